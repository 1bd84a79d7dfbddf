"""Links: what spaCy's linker chooses from, its own choice, what a fit makes of it, and what the Doc says of it."""

import json
import random
import warnings

import numpy as np
import pytest
import spacy
from spacy.pipeline import EntityLinker
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_calib.annotations.annotation import NIL, ONLY_REJECTED
from spacy_calib.calibration.conditional_logit import softmax
from spacy_calib.errors import CalibError
from spacy_calib.plugins.links import FEATURES, EntityLinkerSource, Options, _GoldOptions, _learn
from spacy_calib.plugins.report.view_server import Viewer, list_views
from spacy_calib.plugins.spark.score_rows import score_rows
from tests.answers import answer, records_in
from tests.cli.conftest import calib, json_of, ok, refuses, save_docs
from tests.made import categorized
from tests.plugins.links_made import NAMES, PRIORS, link_docs, linking

TEXT = "the river Georgia and song town . the boss Zorb and a drum ."
CALIB = {"source": {"@calib_sources": "spacy-calib.EntityLinker.v1"}}


def cut(rng, doc):
    start = rng.randrange(len(doc))
    part = rng.choice(list(doc.sents)) if rng.random() < 0.5 else doc[start : rng.randint(start + 1, len(doc))]
    return part.as_doc(copy_user_data=True)


def merged(rng, doc):
    start = rng.randrange(len(doc))
    doc.spans.clear()  # which spaCy does not move along
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[start : start + 2])
    return doc


def test_candidates_have_the_scores_that_spacys_formula_gives():
    nlp = linking()
    linker, doc = nlp.get_pipe("entity_linker"), nlp(TEXT)
    options = Options.from_docs(linker, [doc])
    assert [entity.text for entity in doc.ents] == ["Georgia", "Zorb"]
    assert options.names == ["Georgia-place", "Georgia-band", "Georgia-firm", NIL, NIL]
    assert options.rows.tolist() == [2, 9]
    assert options.prior == pytest.approx([*PRIORS, 0, 0], abs=1e-6)
    encoded = np.asarray(linker.model.predict([next(iter(doc.sents)).as_doc()])[0], dtype=np.float64)
    cosines = encoded / np.linalg.norm(encoded)  # the vectors of the identities are those of the axes
    assert options.similarity == pytest.approx([*cosines, 0, 0], abs=1e-5)
    expected = np.array(PRIORS) + cosines - np.array(PRIORS) * cosines
    assert options.score == pytest.approx([*expected, 0, 0], abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"threshold": 0.95}, {"incl_prior": False}, {"incl_context": False}, {"n_sents": 1}, {"candidates_batch_size": 4},
        {"labels_discard": ["NAME"]},
    ],
    ids=str,
)  # fmt: skip
def test_what_scores_highest_is_what_spacy_chooses(settings):
    nlp = linking(**settings)
    linker = nlp.get_pipe("entity_linker")
    docs = [nlp(doc.text) for doc in link_docs(30, 3)]
    options, wanted = Options.from_docs(linker, docs), linker.predict(docs)
    source = EntityLinkerSource()
    read = source.read(linker, docs)
    entries = sorted(zip(read.marginals.scores, read.marginals.rows, read.marginals.names, strict=True))
    likeliest = {row: name for _, row, name in entries}
    chosen = [likeliest[row] for row in options.rows.tolist()]
    assert len(wanted) == 60
    assert chosen == wanted
    for start, end, link in zip(options.starts[:-1], options.starts[1:], wanted, strict=True):
        own = options.score[start : end - 1]
        is_linked = len(own) and (linker.threshold is None or own.max() >= linker.threshold)
        assert link == (options.names[start + int(own.argmax())] if is_linked else EntityLinker.NIL)
    assert 0 < wanted.count(NIL) <= 60


def examples_of(nlp, n, seed=61) -> list[Example]:
    return categorized(nlp, link_docs(n, seed))


@pytest.fixture(scope="module")
def fitted():
    """A fitted pipeline. Not to be changed."""
    nlp = linking()
    nlp.add_pipe("calib", config=CALIB).fit(examples_of(nlp, 300))
    return nlp


def test_a_failed_fit_leaves_its_settings_to_the_next_one():
    nlp = linking()
    calib = nlp.add_pipe("calib", config=CALIB)
    before = nlp.config.to_str()
    with pytest.raises(CalibError, match="C005"):
        calib.fit(examples_of(nlp, 30), min_pairs=10**6)
    assert (calib.source.weights, calib.source.covered, nlp.config.to_str()) == (None, None, before)
    calib.fit(examples_of(nlp, 30))
    assert calib.source.weights is not None
    assert nlp.config.to_str() != before


def test_a_fit_learns_six_numbers_and_nothing_of_the_gold(fitted):
    source = fitted.get_pipe("calib").source
    assert len(source.weights) == len(FEATURES)
    assert source.weights[1] > 0.5  # what stands around does tell
    unknown = [e.kb_id_ == NIL for doc in link_docs(300, 61) for e in doc.ents if e.text == "Zorb"]
    assert source.covered[1] == pytest.approx((sum(unknown) + 1) / (len(unknown) + 2))
    held = fitted.config["components"]["calib"]["source"]
    assert (held["weights"], held["covered"]) == (source.weights, source.covered)
    saved = fitted.get_pipe("calib").to_bytes() + json.dumps(fitted.config["components"]["calib"]).encode()
    for word in (*NAMES, "elsewhere", "Georgia-band", "Zorb"):
        assert word.encode() not in saved


def test_a_link_is_true_more_or_less_as_often_as_it_says(fitted):
    said, own, right = [], [], []
    examples = examples_of(fitted, 200, 99)
    options = Options.from_docs(fitted.get_pipe("entity_linker"), [example.predicted for example in examples])
    highest = np.maximum.reduceat(options.score, options.starts[:-1])
    for example in examples:
        doc = fitted.get_pipe("calib")(example.predicted)
        for entity, gold in zip(doc.ents, example.reference.ents, strict=True):
            assert entity._.calib_link == entity._.calib_links[entity.kb_id_] == entity._.calib_score
            own.append(highest[len(said)])
            said.append(entity._.calib_link)
            right.append(entity.kb_id_ == gold.kb_id_)
    linked = np.array(own) > 0  # spaCy has no score for NIL
    off, raw_off = (abs(np.mean(np.array(scores)[linked]) - np.mean(np.array(right)[linked])) for scores in (said, own))
    assert off < min(0.1, raw_off / 2)
    doubted, sure = (np.array(right)[np.array(said) < 0.4], np.array(right)[np.array(said) > 0.7])
    assert doubted.mean() + 0.2 < sure.mean()


def test_what_the_doc_says(fitted):
    doc = fitted(TEXT)
    georgia, zorb = doc.ents
    links = georgia._.calib_links
    assert list(links.values()) == sorted(links.values(), reverse=True)
    assert set(links) <= {"Georgia-place", "Georgia-band", "Georgia-firm", NIL}
    assert set(zorb._.calib_links) == {NIL}
    assert (doc[0:1]._.calib_links, doc[2:4]._.calib_links, doc[3:4]._.calib_link) == (None, None, None)
    assert [(one.start, one.end, one.label) for one in doc._.calib.ents] == [(2, 3, georgia.kb_id_), (9, 10, NIL)]
    other = next(name for name in links if name != georgia.kb_id_)
    doc[2].ent_kb_id_ = other
    assert (doc.ents[0]._.calib_link, doc.ents[0]._.calib_links) == (links[other], links)
    doc[2].ent_kb_id_ = "nowhere"
    assert (doc.ents[0]._.calib_link, doc.ents[0]._.calib_links) == (None, links)


def test_another_entity_at_the_same_place_has_no_links(fitted):
    for start, end in ((2, 4), (1, 3)):
        doc = fitted(TEXT)
        doc.ents = [Span(doc, start, end, label="NAME", kb_id=doc.ents[0].kb_id)]
        assert (doc.ents[0]._.calib_link, doc.ents[0]._.calib_links) == (None, None)
        assert doc._.calib.ents == ()
        assert doc._.calib.rows.tolist() == []
    doc = fitted(TEXT)
    doc.ents = doc.ents[1:]
    assert doc[2:3]._.calib_links is None
    assert (doc[2]._.calib_scores, doc[2]._.calib_score, doc[9]._.calib_scores) == (None, None, doc.ents[0]._.calib_links)
    assert doc._.calib.rows.tolist() == [9]
    doc = fitted(TEXT)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    assert [entity._.calib_link for entity in doc.ents if entity.text != "Zorb"] in ([], [None])


@pytest.mark.parametrize(("settings", "named"), [
    ({"weights": [1.0]}, "weights"), ({"weights": [1.0, 0.0, float("nan"), 0.0]}, "weights"),
    ({"covered": [0.5, 1.5]}, "covered"), ({"covered": [0.5]}, "covered"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(settings, named):
    with pytest.raises(CalibError, match=f"C001.*{named}"):
        EntityLinkerSource(**settings)


def test_only_the_thirty_likeliest_candidates_are_kept():
    nlp = linking()
    kb = nlp.get_pipe("entity_linker").kb
    names = [f"many-{i}" for i in range(50)]
    for name in names:
        kb.add_entity(name, 1, [1.0, 0.0, 0.0])
    kb.add_alias("Many", names, [(50 - i) / 2000 for i in range(50)])
    doc = nlp.make_doc("the river Many .")
    doc.ents = [Span(doc, 2, 3, label="NAME")]
    doc = nlp.get_pipe("entity_linker")(nlp.get_pipe("sentencizer")(doc))
    marginals = EntityLinkerSource().read(nlp.get_pipe("entity_linker"), [doc]).marginals
    assert marginals.names == [NIL, *names[:30]]
    assert len(set(marginals.tags.tolist())) == 31


def test_random_chains_of_operations_leave_right_links_or_none(fitted):
    truth: dict[tuple[str, str], dict[str, float]] = {}

    def drawn(rng: random.Random) -> Doc:
        words = [
            word for _ in range(3) for word in (f"w{rng.randrange(10**6)}", rng.choice(NAMES), f"w{rng.randrange(10**6)}", ".")
        ]
        doc = fitted(Doc(fitted.vocab, words=words))
        for entity in doc.ents:
            truth.update({(entity.text, doc[i].text): entity._.calib_links for i in (entity.start - 1, entity.end)})
        return doc

    def joined(rng: random.Random, doc: Doc) -> Doc:
        return Doc.from_docs(rng.sample([doc, drawn(rng)], 2))

    def widened(rng: random.Random, doc: Doc) -> Doc:
        entity = rng.choice(doc.ents) if doc.ents else None
        if entity is not None and entity.end < len(doc):
            kept = [one for one in doc.ents if one.end <= entity.start or one.start > entity.end]
            doc.ents = [*kept, Span(doc, entity.start, entity.end + 1, label="NAME", kb_id=entity.kb_id)]
        return doc

    def removed(rng: random.Random, doc: Doc) -> Doc:
        doc.ents = [entity for entity in doc.ents if rng.random() < 0.5]
        return doc

    def linked(rng: random.Random, doc: Doc) -> Doc:
        for entity in doc.ents:
            doc[entity.start].ent_kb_id_ = rng.choice([f"{entity.text}-place", NIL, "nowhere"])
        return doc

    shown = lost = 0
    for number in range(60):
        rng = random.Random(number)
        doc = drawn(rng)
        for _ in range(rng.randint(1, 4)):
            doc = rng.choice([cut, joined, merged, widened, removed, linked])(rng, doc)
            starts = {entity.start for entity in doc.ents}
            assert not any(token._.calib_scores for token in doc if token.i not in starts)
            assert doc._.calib is None or starts.issuperset(doc._.calib.rows.tolist())
            for entity in doc.ents:
                beside = [doc[i].text for i in (entity.start - 1, entity.end) if 0 <= i < len(doc)]
                own = [truth[entity.text, word] for word in beside if (entity.text, word) in truth]
                found, link = entity._.calib_links, entity._.calib_link
                whole = entity.text in NAMES
                owners = own or [held for (name, _), held in truth.items() if name == entity.text]
                assert found is None or (whole and found in owners)
                assert link == (None if found is None else found.get(entity.kb_id_))
                shown, lost = shown + (found is not None), lost + (found is None and whole and len(own) == 2)
    assert shown > 150
    assert lost < shown / 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    linking().to_disk(folder / "model")
    for name, n, seed in (("dev", 60, 61), ("test", 40, 62)):
        save_docs(folder / f"{name}.spacy", link_docs(n, seed))
    ok(calib("fit", folder / "model", folder / "dev.spacy", folder / "fitted", "--component", "entity_linker"))
    return folder


def test_cut_offs_accept_links_and_files_and_queues_name_identities(folder):
    told = json_of("threshold", folder / "fitted", folder / "test.spacy", "--precision", 0.4, "--apply", folder / "cut")
    assert (told["event"], told["rows"][0]["entities"]) == ("link", 80)
    nlp = spacy.load(folder / "cut")
    doc = nlp(TEXT)
    cutoff = told["cutoffs"]["all"]
    assert [entity._.calib_accept for entity in doc.ents] == [entity._.calib_link >= cutoff for entity in doc.ents]
    columns = score_rows(nlp.pipe(gold.text for gold in link_docs(40, 62)), "calib", "entity")
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    assert len(rows) == 80
    assert {row["text"] for row in rows} <= {*NAMES, "Zorb"}
    identities = {f"{name}-{topic}" for name in NAMES for topic in ("place", "band", "firm")}
    assert {row["label"] for row in rows} <= {NIL, *identities}
    assert {row["accept"] for row in rows} == {True, False}
    ranked = json_of("rank", folder / "cut", folder / "test.spacy", "--not-accepted")
    assert ranked["unit"] == "entity"
    assert ranked["accepted"] == sum(row["accept"] for row in rows)
    refused = calib("threshold", folder / "fitted", folder / "test.spacy", "--recall", 0.5)
    refuses(refused, "no probability that a token is outside")
    assert "_link, _links" in ok(calib("info", folder / "fitted")).text


def test_rejected_links_count_everywhere(folder, tmp_path):
    queue = tmp_path / "queue.jsonl"
    asked = ("--unit", "token", "--order", "random", "--format", "prodigy", "--output", queue)
    ok(calib("rank", folder / "fitted", folder / "test.spacy", *asked))
    assert {record["meta"]["unit"] for record in records_in(queue)} == {"entity"}
    gold = {sentence.text: sentence.ents[0] for doc in link_docs(40, 62) for sentence in doc.sents}

    def right(record):
        return record["spans"][0]["label"] == gold[record["text"]].kb_id_

    data = answer("prodigy", queue, right, tmp_path / "answers.jsonl")
    n_right = sum(record["answer"] == "accept" for record in records_in(data))
    n = len(records_in(data))
    assert 10 < n_right < n - 10
    ok(calib("fit", folder / "model", data, tmp_path / "out", "--component", "entity_linker"))
    pipe = spacy.load(tmp_path / "out").get_pipe("calib")
    assert (pipe.fit_info.tokens, pipe.fit_info.unknown_gold) == (n, 0)
    ok(calib("evaluate", tmp_path / "out", data, "--output", tmp_path / "told.json"))
    told = json.loads((tmp_path / "told.json").read_text())["calib"]
    assert (told["tokens"], told["accuracy"]) == (n, pytest.approx(n_right / n))
    found = json_of("threshold", folder / "fitted", data, "--precision", 0.4)
    assert found["rows"][0]["entities"] == n


def test_what_is_learned_from_rejected_links_is_near_what_full_gold_tells():
    """The likelihood of an answer that says no more than that the likeliest one is wrong; drawn by the model itself."""
    rng, m = np.random.default_rng(0), 4000
    prior = np.where(np.arange(4 * m) % 4 == 3, 0.0, rng.dirichlet([1.0, 1, 1, 1], m).ravel())
    similarity = np.where(prior > 0, rng.uniform(0, 1, 4 * m), 0.0)
    names = [f"{i}" for i in range(4 * m)]
    options = Options(np.arange(m), np.arange(0, 4 * m + 1, 4), names, prior, similarity, m)
    true, covered, towards = np.array([0.8, 3.0, 0.1, 0.5]), 0.85, np.array([0.0, 0.0, 1.0, 0.0])
    chances = softmax(options.features() @ true, options.starts).reshape(m, 4)
    right = (chances.cumsum(axis=1) > rng.random((m, 1))).argmax(axis=1)
    hashes = np.array([get_string_id(name) for name in names], dtype=np.uint64).reshape(m, 4)
    gold = np.where(rng.random(m) < covered, hashes[np.arange(m), right], get_string_id("elsewhere"))
    asked = hashes[np.arange(m), options.score.reshape(m, 4).argmax(axis=1)]
    rejected = {(row, int(asked[row])) for row in np.flatnonzero(asked != gold)}
    full, partial = (
        _learn(options, _GoldOptions.from_links(options, known, answers), towards, None, None)
        for known, answers in ((gold, ()), (np.where(asked == gold, gold, ONLY_REJECTED), rejected))
    )
    assert full[1] == pytest.approx([covered, 0.5], abs=0.02)
    said = []
    for weights, shares in (full, partial):
        found = softmax(options.features() @ weights, options.starts).reshape(m, 4) * shares[0]
        said.append(found[np.arange(m), options.score.reshape(m, 4).argmax(axis=1)])
    truth = covered * chances[np.arange(m), options.score.reshape(m, 4).argmax(axis=1)]
    assert [np.abs(one - truth).mean() < limit for one, limit in zip(said, (0.01, 0.02), strict=True)] == [True, True]


def test_texts_without_entities_have_a_sentence_of_their_own(folder, tmp_path):
    (tmp_path / "none.txt").write_text("the river and the boss .\nnothing here .\n")
    for command in ("rank", "expect"):
        refuses(calib(command, folder / "fitted", tmp_path / "none.txt"), "found no entity in any of the 2 documents")


def test_a_pipeline_without_entities_or_with_gold_without_links_says_so(folder, tmp_path):
    nlp = spacy.load(folder / "model", exclude=["entity_ruler"])
    nlp.to_disk(tmp_path / "bare")
    how = ("--component", "entity_linker")
    refuses(calib("fit", tmp_path / "bare", folder / "dev.spacy", tmp_path / "out", *how), "its entities were not set")
    docs = link_docs(5, 1)
    for doc in docs:
        doc.ents = [Span(doc, entity.start, entity.end, label=entity.label) for entity in doc.ents]
    save_docs(tmp_path / "unlinked.spacy", docs)
    refuses(calib("fit", folder / "model", tmp_path / "unlinked.spacy", tmp_path / "out", *how), "no gold link annotation")


def test_a_side_task_of_training_is_no_tagger():
    from spacy.pipeline.multitask import MultitaskObjective

    from spacy_calib.sources.find import ComponentIdentity, find_component, source_name_for
    from spacy_calib.sources.heads import SoftmaxSource

    nlp = linking()
    side = MultitaskObjective(nlp.vocab, nlp.get_pipe("entity_linker").model, target="tag")
    nlp._components.append(("nn_labeller", side))
    assert source_name_for(side) == "spacy-calib.Softmax.v1"
    with pytest.raises(CalibError, match="C022.*'nn_labeller' .MultitaskObjective. .*it is a side task of training"):
        find_component(nlp, SoftmaxSource("nn_labeller"), ComponentIdentity())


def test_a_text_without_entities_is_read_and_has_no_links(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        none, some = fitted.pipe(["the river and the boss .", TEXT])
    assert (none._.calib.ents, len(none._.calib), none._.calib.scored.any()) == ((), 0, False)
    assert [token._.calib_score for token in none] == [None] * len(none)
    assert [ent._.calib_links for ent in some.ents] == [ent._.calib_links for ent in fitted(TEXT).ents]
    for way in list_views(fitted):
        assert Viewer(fitted).show(none.text, way)["summary"] == "Nothing in it has a score."
