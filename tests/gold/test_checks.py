"""Gold that says nothing of the scores of a component is refused before anything is learned of it, or found."""

import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib import CalibError
from spacy_calib.annotations import get_annotation
from spacy_calib.gold.checks import GoldWatch, check_outcomes
from spacy_calib.gold.left_out import DroppedGold
from spacy_calib.types import Pairs
from tests.made import category_docs, revive_categorizer
from tests.sentences import says

VOCAB = spacy.blank("xx").vocab
CATS = 'cats:multi ["film", "music"]'


def pairs_of(scores: list[float], hits: list[int]) -> Pairs:
    """Of as many units, each with one score."""
    n = len(scores)
    return Pairs(np.arange(n), np.zeros(n, dtype=np.intp), np.array(scores), np.array(hits, dtype=bool), n)


def check_gold(layer: str, own: Pairs, *gold: str, **more):
    return check_outcomes(get_annotation(layer), "model", own, gold, **more)


@pytest.mark.parametrize(("layer", "label", "sentence"), [
    ("sent", "I", r"No gold document has a sentence start after its first token \(10 tokens\).*`# newdoc`"),
    ("tag", "_", r"The gold tag of all 10 tokens is '_'.*give data annotated with tag"),
    ("pos", "X", "The gold pos of all 10 tokens is 'X'"),
    ("ner", "O", r"The gold has no entities \(10 tokens\).*give gold in which people marked entities"),
    ("biluo", "O", "The gold has no entities"),
    ("spans:sc", "O", "The gold has no spans|The gold has no entities"),
    ("arc", "dep", "The gold arc of all 10 tokens is 'dep'"),
    ("link", "NIL", "The gold link of all 10 tokens is 'NIL'"),
    ("cats", "film", "The gold cats of all 10 documents is 'film'"),
    ("cats:multi", "(none)", r"The gold has no categories \(10 documents\)"),
])  # fmt: skip
def test_gold_with_one_label_alone_is_refused(layer, label, sentence):
    own = pairs_of([0.9] * 5 + [0.1] * 5, [1] * 5 + [0] * 5)  # 10 units, of which 4.5 have the label by the scores
    with pytest.raises(CalibError, match=f"(?s)C800.*{sentence}"):
        check_gold(layer, own, label)


@pytest.mark.parametrize(("layer", "labels"), [
    ("tag", ["_", "NN"]),
    ("tag", ["NN", ""]),  # the other one is unknown to the component
    ("head", ["dep"]),  # compares no labels
    ("link", ["Q42"]),  # an identity, of which others are candidates
    ("cats:multi", ["film"]),  # others are right too
    ("spans:sc", ["ORG"]),
])  # fmt: skip
def test_gold_with_two_outcomes_is_accepted(layer, labels):
    assert check_gold(layer, pairs_of([0.9] * 5 + [0.1] * 5, [1] * 5 + [0] * 5), *labels) is None


def test_words_that_are_their_own_lemmas_are_refused_where_scores_let_expect_others():
    # 100 units: 4 and 6 others by the scores. Languages without endings have no others.
    assert check_gold("lemma", pairs_of([0.96] * 100, [1] * 99 + [0]), "the word") is None
    with pytest.raises(CalibError, match="C800.*is the word itself, or formed alike"):
        check_gold("lemma", pairs_of([0.94] * 100, [1] * 99 + [0]), "the word")


def test_a_few_labelled_texts_without_an_entity_are_refused_where_scores_let_expect_five():
    texts = pairs_of([0.96] * 100, [1] * 99 + [0])
    with pytest.raises(CalibError, match="C800"):
        check_gold("ner", texts, "O")
    assert check_gold("ner", texts, "O", min_expected=5.0) is None
    with pytest.raises(CalibError, match="C800"):
        check_gold("ner", pairs_of([0.94] * 100, [1] * 99 + [0]), "O", min_expected=5.0)


def test_gold_equal_to_the_predictions_is_refused_where_scores_let_expect_five_errors():
    assert check_gold("tag", pairs_of([0.951] * 100, [1] * 100), "A", "B") is None  # 4.9
    with pytest.raises(CalibError, match=r"C804.*agrees with component 'model' everywhere.* 5 errors in 100 tokens"):
        check_gold("tag", pairs_of([0.95] * 100, [1] * 100), "A", "B")


def test_errors_fewer_than_a_tenth_of_those_expected_are_told_and_an_unsure_model_is_not():
    scores = [0.7] * 100  # 30 errors
    assert check_gold("tag", pairs_of(scores, [0] * 3 + [1] * 97), "A", "B") is None
    told = check_gold("tag", pairs_of(scores, [0] * 2 + [1] * 98), "A", "B")
    assert told == {"component": "model", "unit": "tokens", "n": "100", "expected": "30", "errors": "2"}


def test_the_likeliest_label_of_each_unit_counts():
    rows, scores = np.repeat(np.arange(50), 2), np.tile([0.8, 0.2], 50)
    own = Pairs(rows, np.tile([0, 1], 50), scores, np.tile([True, False], 50), 50)
    with pytest.raises(CalibError, match=r"C804.* 10 errors in 50 tokens"):
        check_gold("tag", own, "A", "B")


def test_where_two_labels_are_equally_likely_gold_agrees_with_neither():
    """An untrained component is no output of itself; the units that are clear are judged as ever."""
    rows, tags, hits = np.repeat(np.arange(50), 2), np.tile([0, 1], 50), np.tile([True, False], 50)
    assert check_gold("tag", Pairs(rows, tags, np.tile([0.5, 0.4995], 50), hits, 50), "A", "B") is None
    scores = np.concatenate([np.tile([0.5, 0.5], 25), np.tile([0.7, 0.3], 25)])
    with pytest.raises(CalibError, match=r"C804.* 8 errors in 50 tokens"):  # 25 * .3 = 7.5
        check_gold("tag", Pairs(rows, tags, scores, hits, 50), "A", "B")


@pytest.mark.parametrize("cutoff", [0.5, 0.3])
def test_categories_made_by_any_cutoff_are_the_components_own(cutoff):
    scores = np.linspace(0.01, 0.99, 99)
    with pytest.raises(CalibError, match="C804"):
        check_gold("cats:multi", pairs_of(scores.tolist(), (scores >= cutoff).tolist()), "film", "(none)")
    hits = scores >= cutoff
    hits[[20, 40, 60, 80]] ^= True
    assert check_gold("cats:multi", pairs_of(scores.tolist(), hits.tolist()), "film", "(none)") is None or cutoff == 0.5


def test_answers_about_spans_that_are_all_wrong_or_all_right_are_refused():
    none = pairs_of([], [])
    with pytest.raises(CalibError, match=says("C803", n=20, unit="entities", expected=12)):
        check_gold("ner", none, spans=pairs_of([0.6] * 20, [0] * 20))
    with pytest.raises(CalibError, match=says("C804", expected=8, n=20, unit="entities")):
        check_gold("ner", none, spans=pairs_of([0.6] * 20, [1] * 20))
    assert check_gold("ner", none, spans=pairs_of([0.6] * 20, [1] * 12 + [0] * 8)) is None


def cats(*values: dict[str, float]) -> list[Example]:
    docs = []
    for value in values:
        doc = Doc(VOCAB, words=["a"])
        doc.cats = value
        docs.append(Example(Doc(VOCAB, words=["a"]), doc))
    return docs


def watch_gold(layer: str, examples: list[Example]) -> GoldWatch:
    watch = GoldWatch(get_annotation(layer))
    assert list(watch.watch(examples)) == examples
    return watch


@pytest.mark.parametrize(("values", "names"), [
    ([{"film": 1.0}, {"music": 1.0}], "film, music"),
    ([{"film": 1.0, "music": 1.0}], "film, music"),
    ([{"film": 1.0, "music": 0.0}] * 5 + [{"music": 1.0}] * 5, "film"),
])  # fmt: skip
def test_categories_named_only_where_they_apply_are_refused(values, names):
    with pytest.raises(CalibError, match=says("C801", names=names)):
        watch_gold(CATS, cats(*values)).check("model")


@pytest.mark.parametrize("values", [
    [{"film": 1.0, "music": 0.0}] * 9,  # each text has a value of each
    [{"film": 1.0}, {"film": 0.0}, {"music": 1.0}, {"music": 0.0}],  # some are left out, at random
    [{"film": 1.0, "music": 0.0}] * 4 + [{"music": 1.0}] * 9,  # too few to tell
    [{"film": 0.0}, {"music": 0.0}],
    [{"other": 1.0}],
    [],
])  # fmt: skip
def test_other_categories_are_accepted(values):
    watch_gold(CATS, cats(*values)).check("model")


def test_categories_that_exclude_each_other_need_name_the_right_one_alone():
    watch_gold('cats ["film", "music"]', cats({"film": 1.0}, {"music": 1.0})).check("model")


@pytest.mark.parametrize("layer", ["head", "arc"])
def test_heads_that_are_all_their_own_are_refused(layer):
    def example(heads):
        words = ["a", "b", "c"]
        return Example(Doc(VOCAB, words=words), Doc(VOCAB, words=words, heads=heads, deps=["ROOT", "dep", "dep"]))

    with pytest.raises(CalibError, match="C802.*Each of the 6 tokens is its own head"):
        watch_gold(layer, [example([0, 1, 2])] * 2).check("model")
    watch_gold(layer, [example([0, 1, 2]), example([0, 0, 1])]).check("model")
    watch_gold(layer, [Example(Doc(VOCAB, words=["a"]), Doc(VOCAB, words=["a"]))]).check("model")


def categorizer() -> tuple:
    nlp = revive_categorizer("textcat_multilabel")
    source = {"@calib_sources": "spacy-calib.Textcat.v1", "component": "textcat_multilabel"}
    gold = category_docs(120, 32, True, nlp.vocab)
    predicted = list(nlp.pipe(Doc(nlp.vocab, words=[t.text for t in doc]) for doc in gold))
    calib = nlp.add_pipe("calib", config={"source": source})
    return calib, [Example(doc, right) for doc, right in zip(predicted, gold, strict=True)]


def test_a_fit_refuses_the_pipelines_own_output_and_positives_alone_and_takes_gold():
    calib, examples = categorizer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calib.fit(examples)
        with pytest.raises(CalibError, match="C804"):
            calib.fit([Example(one.predicted, one.predicted.copy()) for one in examples])
    for example in examples:
        example.reference.cats = {name: value for name, value in example.reference.cats.items() if value}
    with pytest.raises(CalibError, match="C801"):
        calib.fit(examples)


def test_a_fit_warns_once_where_hardly_an_error_is_left():
    calib, examples = categorizer()
    for example in examples:
        example.reference.cats = dict(example.predicted.cats)
    surest = max(examples, key=lambda one: one.predicted.cats["film"])
    surest.reference.cats = {**surest.predicted.cats, "film": 0.0}
    with pytest.warns(
        UserWarning,
        match=r"\[CW65\] The gold differs from component 'textcat_multilabel' in 1 of [0-9]+ pairs of document and label",
    ) as caught:
        calib.fit(examples)
    assert len([one for one in caught if "CW65" in str(one.message)]) == 1


def test_what_takes_no_part_is_counted():
    text = ["Word"] + ["word"] * 9
    whole = Example(Doc(VOCAB, words=text), Doc(VOCAB, words=text, tags=["A"] * 10))
    cut = Example(Doc(VOCAB, words=["ab", "c"]), Doc(VOCAB, words=["a", "b", "c"], spaces=[False, True, True], tags=["A"] * 3))
    bare = Example(Doc(VOCAB, words=text), Doc(VOCAB, words=text))
    dropped = DroppedGold.from_examples(get_annotation("tag"), [whole, cut, bare])
    assert (dropped.documents, dropped.without_gold, dropped.tokens, dropped.left_out) == (3, 1, 12, 1)
    assert dropped.sentences() == [
        "1 of 3 documents have no gold tag annotation and take no part",
        "1 of 12 tokens (8.3 %) are left out, as they align with no single gold token: the figures are of the others alone, and may flatter; "
        "--gold-preproc takes the tokens of the gold",
    ]
    assert not DroppedGold.from_examples(get_annotation("tag"), [whole]).sentences()


def test_texts_without_categories_are_told_with_the_way_out():
    dropped = DroppedGold.from_examples(get_annotation(CATS), cats({"film": 1.0, "music": 0.0}, {}, {}))
    assert dropped.sentences() == [
        "2 of 3 documents have no gold cats:multi annotation and take no part: if a text has none of the categories, give each of them the value 0 there"
    ]
