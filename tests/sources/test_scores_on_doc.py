from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.pipe.saved import dump
from spacy_calib.sources.mapped import with_map
from spacy_calib.sources.scores_on_doc import DocScoresSource, TokenScoresSource
from spacy_calib.sources.span_scores import SpanScoresSource
from tests.gold.test_reading import examples_in
from tests.made import category_docs, fitted_categorizer
from tests.sentences import says

NLP = spacy.blank("xx")
GROUPING = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 1}
WORDS = ["some", "words", "here"]
TAGS = ["A", "B"]


@pytest.fixture
def conf() -> Iterator[None]:
    """`token._.conf`, `span._.conf` and `doc._.conf`, as somebody's component registers them."""
    for owner in (Token, Span, Doc):
        owner.set_extension("conf", default=None, force=True)
    yield
    for owner in (Token, Span, Doc):
        owner.remove_extension("conf")


def pipe_with(kind: str, **settings: Any) -> Any:
    source = {"@calib_sources": f"spacy-calib.{kind}Scores.v1", **settings.pop("source", {})}
    return spacy.blank("xx").add_pipe("calib", config={"source": source, "grouping": GROUPING, **settings})


def token_examples(n: int, seed: int, form: str, labels: list[str] = TAGS) -> list[Example]:
    """Tokens scored too high: the tag is right as often as the square of the score says.

    form (str): "number" puts the score of the tag that is there at token._.conf, "mapping" both scores and no tag, "list" mappings into
    doc.user_data["probs"].
    """
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(n):
        predicted, scores, gold = Doc(NLP.vocab, words=WORDS), rng.uniform(0.75, 1.0, len(WORDS)), []
        for token, score in zip(predicted, scores.tolist(), strict=True):
            tag, other = rng.permutation(labels).tolist()
            gold.append(tag if rng.random() < score**2 else other)
            if form == "number":
                token.tag_ = tag
            value = score if form == "number" else {tag: score, other: 1 - score}
            if form == "list":
                predicted.user_data.setdefault("probs", []).append(value)
            else:
                token._.conf = value
        examples.append(Example(predicted, Doc(NLP.vocab, words=WORDS, tags=gold)))
    return examples


def given_to(doc: Doc, form: str) -> list[Any]:
    return doc.user_data["probs"] if form == "list" else [token._.conf for token in doc]


def with_mapped_gold(examples: list[Example], table: dict[str, str]) -> list[Example]:
    """The same with gold of another scheme, of tokens or of documents."""
    for example in examples:
        gold = example.reference
        for token in gold:
            token.tag_ = table.get(token.tag_, token.tag_)
        gold.cats = {table.get(label, label): value for label, value in gold.cats.items()}
    return examples


# Labels that trade places must not be mapped twice.
TABLES = [{"A": "Z", "B": "Y"}, {"A": "B", "B": "A"}]


@pytest.mark.parametrize("table", [{}, *TABLES])
@pytest.mark.parametrize("form", ["number", "mapping", "list"])
def test_tokens_and_those_with_a_map(conf, form, table):
    calib = pipe_with("Token", source={"score": "probs" if form == "list" else "_.conf"})
    calib.source = with_map(calib.source, table or None)
    calib.fit(with_mapped_gold(token_examples(250, 0, form), table))
    assert set(calib.labels) == {table.get(label, label) for label in TAGS}
    doc = calib(token_examples(1, 1, form)[0].predicted)
    for token, value in zip(doc, given_to(doc, form), strict=True):
        scores = value if isinstance(value, dict) else {token.tag_: value}
        # Without a tag on the Doc each token gets its likeliest one, of who gave the scores; what the pipe says of them names those of the gold.
        assert token.tag_ == max(scores, key=scores.__getitem__)
        assert token._.calib_raw == scores[token.tag_]
        assert next(iter(token._.calib_scores)) == table.get(token.tag_, token.tag_)
        assert set(token._.calib_scores) == {table.get(label, label) for label, score in scores.items() if score >= 0.01}
        assert token._.calib_score == pytest.approx(scores[token.tag_] ** 2, abs=0.12)


def test_a_refused_fit_does_not_change_what_was_learned(conf):
    calib = pipe_with("Token", source={"score": "_.conf"}).fit(token_examples(60, 0, "mapping"))
    before = calib.to_bytes()
    others = token_examples(40, 1, "number", ["X", "Y"])
    with pytest.raises(CalibError, match=r"\[C005\]"):
        calib.fit(others, min_pairs=1_000)
    assert calib.to_bytes() == before
    assert calib.source.distributions
    assert calib.fit(others).labels == ("X", "Y")


def test_a_token_without_a_value_has_none_and_labels_that_are_left_out_too(conf):
    calib = pipe_with("Token", source={"score": "_.conf"})
    calib.fit(token_examples(60, 0, "mapping"))
    doc = Doc(NLP.vocab, words=WORDS, tags=["A", "A", "B"])
    doc[0]._.conf, doc[2]._.conf = {"A": 0.8, "B": None}, {"A": 0.3, "C": 0.2}
    calib(doc)
    assert [token._.calib_raw for token in doc] == [0.8, None, None]
    assert [list(token._.calib_scores) for token in doc] == [["A"], [], ["A"]]


def test_scalings_and_sets_are_for_mappings_alone(conf):
    scaled = {"scaling": {"@calib_scalings": "spacy-calib.TemperatureScaling.v1"}}
    pipe_with("Token", source={"score": "_.conf"}, **scaled).fit(token_examples(40, 0, "mapping"))
    with pytest.raises(CalibError, match=says("C287", setting="scaling")):
        pipe_with("Token", source={"score": "_.conf"}, **scaled).fit(token_examples(40, 0, "number"))


@pytest.mark.parametrize(("values", "n"), [([0.5] * 4, 4), (np.full((2, 1), 0.5), 2), ([], 0)])
def test_as_many_values_as_tokens_are_wanted(values, n):
    doc = Doc(NLP.vocab, words=WORDS, tags=["A", "A", "B"])
    doc.user_data["probs"] = values
    with pytest.raises(CalibError, match=rf"^\[C283\] There are {n} scores at doc.user_data\['probs'\], but 3 in the document"):
        TokenScoresSource(score="probs", labels=TAGS).read(None, [doc])


@pytest.mark.parametrize("value", [
    2.0, -0.1, float("nan"), np.float32("inf"), "sure", True, [0.5, 0.1], {"A": -1}, {"A": "sure"},
])  # fmt: skip
def test_what_is_no_probability_is_refused(conf, value):
    doc = Doc(NLP.vocab, words=WORDS, tags=["A", "A", "B"], ents=["O", "B-A", "I-A"])
    doc[1]._.conf = doc.ents[0]._.conf = doc._.conf = value
    doc.cats = {"A": 1.0}
    for source, where in (
        (TokenScoresSource, "token._.conf of the token 'words'"),
        (DocScoresSource, "doc._.conf of the document that begins 'some words here '"),
        (SpanScoresSource, "span._.conf of the span 'words here'"),
    ):
        with pytest.raises(CalibError, match=rf"^\[C282\] The score at {where} is .*must be a number in \[0, 1\], or None"):
            source(score="_.conf", labels=TAGS).read(None, [doc])


def test_scores_that_exclude_each_other_share_one(conf):
    doc = Doc(NLP.vocab, words=WORDS)
    doc._.conf = {"A": 0.8, "B": 0.7, "of another component": 1.0}
    with pytest.raises(
        CalibError, match=r"^\[C288\] The scores at doc._.conf of the document .* sum to 1.5, but .* exclusive = false"
    ):
        DocScoresSource(score="_.conf", labels=TAGS).read(None, [doc])
    read = DocScoresSource(score="_.conf", labels=TAGS, exclusive=False).read(None, [doc])
    assert read.marginals.scores.tolist() == [0.8, 0.7]
    doc[0]._.conf = {"A": 0.8, "B": 0.7}
    with pytest.raises(CalibError, match=r"^\[C288\] The scores at token._.conf of the token 'some' sum to 1.5"):
        TokenScoresSource(score="_.conf", labels=TAGS).read(None, [doc])


@pytest.mark.parametrize("make", [TokenScoresSource, DocScoresSource, SpanScoresSource])
def test_an_extension_that_does_not_exist(make):
    with pytest.raises(CalibError, match=r"^\[C281\] The extension (Doc|Token|Span)._.nothing does not exist"):
        make(score="_.nothing", labels=TAGS).missing(None, [Doc(NLP.vocab, words=WORDS)])


def test_a_layer_that_tokens_do_not_have():
    with pytest.raises(CalibError, match="C001.*layer must be one of tag, pos.*'ner' was given"):
        TokenScoresSource(layer="ner")


def test_gold_files_bring_lists_along(tmp_path):
    """Each sentence of gold preprocessing has the values of its own tokens."""
    doc = Doc(NLP.vocab, words=WORDS, tags=["A", "A", "B"], sent_starts=[True, False, True])
    doc.user_data["probs"] = [{"A": 0.9}, {"A": 0.8}, {"B": 0.7}]
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "gold.spacy")
    source = TokenScoresSource(score="probs", labels=TAGS)
    assert source.user_data_keys == ("probs",)
    assert TokenScoresSource("tagger", "probs").user_data_keys == DocScoresSource().user_data_keys == ()
    for preproc, n in ((False, [3]), (True, [2, 1])):
        examples = examples_in(tmp_path / "gold.spacy", preproc, source.user_data_keys)
        predicted = [example.predicted for example in examples]
        assert [len(one.user_data["probs"]) for one in predicted] == n
        assert source.read(None, predicted).marginals.scores.tolist() == [0.9, 0.8, 0.7]


@pytest.mark.parametrize("factory", ["textcat", "textcat_multilabel"])
def test_documents_have_the_scores_of_the_direct_way(factory):
    nlp = fitted_categorizer(factory)
    source = {"@calib_sources": "spacy-calib.DocScores.v1", "component": factory, "exclusive": factory == "textcat"}
    other = nlp.add_pipe("calib", "other", config={"attr": "other", "source": source, "grouping": GROUPING})
    docs = category_docs(120, 32, factory != "textcat", nlp.vocab)
    with nlp.select_pipes(enable=[factory]):
        examples = [Example(nlp(Doc(nlp.vocab, words=[token.text for token in doc])), doc) for doc in docs]
    other.fit(examples)
    doc = nlp("the actor was good in a long scene")
    assert doc._.other_cats == pytest.approx(doc._.calib_cats, abs=1e-12)
    assert doc._.other_cats_raw == doc._.calib_cats_raw
    assert doc._.other_score == pytest.approx(doc._.calib_score, abs=1e-12)


def doc_examples(n: int, seed: int, form: str) -> list[Example]:
    """As `token_examples`; "number" is the score of the category in doc.cats, "mapping" leaves doc.cats empty."""
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(n):
        predicted, gold = Doc(NLP.vocab, words=WORDS), Doc(NLP.vocab, words=WORDS)
        label, other = rng.permutation(TAGS).tolist()
        score = float(rng.uniform(0.75, 1.0))
        right = label if rng.random() < score**2 else other
        gold.cats = {name: float(name == right) for name in TAGS}
        if form == "number":
            predicted.cats = {label: 1.0, other: 0.0}
        value = score if form == "number" else {label: score, other: 1 - score}
        if form == "user_data":
            predicted.user_data["intent"] = value
        else:
            predicted._.conf = value
        examples.append(Example(predicted, gold))
    return examples


@pytest.mark.parametrize(
    ("form", "table"), [*((form, {}) for form in ("number", "mapping", "user_data")), *(("mapping", table) for table in TABLES)]
)
def test_documents_with_one_score_or_several_and_with_a_map(conf, form, table):
    labels = {"labels": TAGS} if table else {}
    calib = pipe_with("Doc", source={"score": "intent" if form == "user_data" else "_.conf", **labels})
    calib.source = with_map(calib.source, table or None)
    calib.fit(with_mapped_gold(doc_examples(400, 0, form), table))
    doc = doc_examples(1, 1, form)[0].predicted
    value = doc.user_data["intent"] if form == "user_data" else doc._.conf
    calib(doc)
    label = max(doc.cats, key=doc.cats.__getitem__)
    score = value if form == "number" else value[label]
    assert doc._.calib_raw == score
    assert doc._.calib_score == pytest.approx(score**2, abs=0.15)
    if form == "number":
        assert list(doc._.calib_cats) == [label]
        assert doc.cats[label] == 1.0
    else:
        assert doc.cats == value
        assert next(iter(doc._.calib_cats)) == table.get(label, label)
        assert set(doc._.calib_cats) == set(table.values() or TAGS)


def further_examples(n: int, seed: int) -> list[Example]:
    """The first score says nothing of how often the category is right, and "sure" all; "of" is the same by category."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(n):
        predicted, gold = (Doc(NLP.vocab, words=[*WORDS, str(seed), str(number)]) for _ in range(2))
        label, other = rng.permutation(TAGS).tolist()
        first, sure = rng.uniform(0.6, 0.9), float(rng.uniform())
        predicted.cats = {label: first, other: 1 - first}
        predicted.user_data.update({"sure": sure, "of": {label: sure}})
        right = label if rng.random() < sure else other
        gold.cats = {name: float(name == right) for name in TAGS}
        examples.append(Example(predicted, gold))
    return examples


def loss_of(calib: Any, examples: list[Example]) -> float:
    """Mean log loss of the likeliest categories."""
    losses = []
    for example in examples:
        doc = calib(example.predicted)
        right = example.reference.cats[max(doc.cats, key=doc.cats.__getitem__)] == 1
        losses.append(-np.log(doc._.calib_score if right else 1 - doc._.calib_score))
    return float(np.mean(losses))


AUTO: dict[str, list[int]] = {}


@pytest.mark.parametrize(
    ("settings", "score"), [({"selection": AUTO}, "cats,sure"), ({}, ["cats", "of"])], ids=["auto", "bins"]
)
def test_get_further_scores_documents_take_part_where_they_help(score, settings):
    alone, more = (pipe_with("Doc", source={"score": one}, **settings).fit(further_examples(150, 0)) for one in ("cats", score))
    assert more.fit_info.context["kept"]
    assert more.fit_info.context["columns"] == [score.split(",")[1] if isinstance(score, str) else score[1]]
    # no score but the second tells right from wrong: the first can reach log 2 at best, that one 1/2 (the mean entropy of a share drawn evenly)
    assert loss_of(alone, further_examples(300, 1)) == pytest.approx(np.log(2), abs=0.03)
    assert loss_of(more, further_examples(300, 1)) == pytest.approx(0.5, abs=0.06)
    (doc,) = (calib_doc.predicted for calib_doc in further_examples(1, 2))
    more(doc)
    assert doc._.calib_raw == max(doc.cats.values())
    assert sum(doc._.calib_cats.values()) == pytest.approx(1.0, abs=0.15)
    again = pipe_with("Doc", source={"score": score}, **settings).from_bytes(more.to_bytes())
    assert again(doc)._.calib_cats == doc._.calib_cats


def test_useless_further_scores_are_left_out():
    examples = further_examples(150, 0)
    for number, example in enumerate(examples):
        example.predicted.user_data["sure"] = number % 7 / 7
    calib = pipe_with("Doc", source={"score": "cats,sure"}, selection=AUTO).fit(examples)
    assert not calib.fit_info.context["kept"]
    assert calib.fit_info.context["why"] == "further scores do not lower the log loss on held-out documents"
    assert calib.tokens.context is None


def test_a_document_that_lacks_a_further_score_has_its_first_there():
    source = DocScoresSource(score="cats, sure, of", labels=TAGS)
    docs = [example.predicted for example in further_examples(3, 0)]
    docs[0].user_data.clear()
    docs[1].user_data["of"] = {"another": 0.5}
    hints = source.read(None, docs).further_scores
    assert list(hints) == ["sure", "of"]
    first = [max(doc.cats.values()) for doc in docs]
    assert hints["sure"].tolist() == [first[0], docs[1].user_data["sure"], docs[2].user_data["sure"]]
    assert hints["of"].tolist() == [first[0], first[1], docs[2].user_data["sure"]]


@pytest.mark.parametrize(("source", "message"), [
    ({"score": "cats,sure", "exclusive": False}, says("C740", given="sure")),
    ({"score": "cats,"}, r"\[C001\] score must be a name, or several"),
    ({"score": []}, r"\[C001\] score must be a name, or several"),
])  # fmt: skip
def test_settings_of_further_scores_that_are_refused(source, message):
    with pytest.raises(CalibError, match=message):
        DocScoresSource(**source)


def test_what_is_no_further_score_is_refused():
    (example,) = further_examples(1, 0)
    example.predicted.user_data["sure"] = 1.5
    with pytest.raises(CalibError, match=r"\[C282\].*doc.user_data\['sure'\].*1.5"):
        DocScoresSource(score="cats,sure", labels=TAGS).read(None, [example.predicted])
    with pytest.raises(CalibError, match=r"\[C281\]"):
        DocScoresSource(score="cats,_.nobody", labels=TAGS).read(None, [example.predicted])


def test_further_scores_are_no_setting_of_the_context():
    calib = pipe_with("Doc", context={"@calib_contexts": "spacy-calib.FurtherScores.v1"})
    with pytest.raises(CalibError, match=r"\[C741\]"):
        calib.fit(further_examples(60, 0))


def test_what_was_learned_of_further_scores_is_for_a_source_that_reads_them():
    state = pipe_with("Doc", source={"score": "cats,sure"}).fit(further_examples(150, 0)).to_bytes()
    for score, given in (("cats", "none"), ("cats,of", "of")):
        with pytest.raises(CalibError, match=says("C742", name="calib", wanted="sure", given=given)):
            pipe_with("Doc", source={"score": score}).from_bytes(state)


def test_damaged_states_of_further_scores():
    calib = pipe_with("Doc", source={"score": "cats,sure"}).fit(further_examples(150, 0))
    held = calib._state()["context"]["learned"]

    def refused(**changed: Any) -> str:
        context = {"@calib_contexts": "spacy-calib.FurtherScores.v1", "settings": {}, "learned": {**held, **changed}}
        state = {**calib._state(), "context": context}
        with pytest.raises(CalibError, match=r"\[C010\]") as refusal:
            pipe_with("Doc", source={"score": "cats,sure"}).from_bytes(dump(state))
        return str(refusal.value)

    groups = held["model"]["groups"]
    groups = {**groups, **{name: np.append(groups[name], 0) for name in ("of_tag", "counts")}}
    assert "2 labels" in refused(model={**held["model"], "groups": groups})
    assert "further scores" in refused(names=["sure", "of"])
    refused(model=None)


def test_a_document_without_a_value_has_none(conf):
    calib = pipe_with("Doc", source={"score": "_.conf"})
    calib.fit(doc_examples(60, 0, "mapping"))
    with pytest.warns(UserWarning, match=r"\[CW02\].*nothing has a score at doc._.conf"):
        doc = calib(Doc(NLP.vocab, words=WORDS))
    assert (doc._.calib_score, doc._.calib_cats) == (None, None)
    assert doc.cats == {}
