"""Draws of whole parses have the shares that brute force over spaCy's own transitions gives them, and P(all arcs of a sentence are right)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from spacy.tokens import Doc, DocBin

from spacy_calib.errors import CalibError
from spacy_calib.plugins.events import trees
from spacy_calib.plugins.events.component import EventPipe
from spacy_calib.plugins.events.draws import make_rng
from spacy_calib.plugins.events.questions import UNKNOWN
from spacy_calib.plugins.events.trees import TREE_FEATURES, TreeEvent, sample_trees
from tests.conftest import run_upstream
from tests.plugins.events.test_sampling import write
from tests.sentences import says
from tests.sources.ner import Shape, docs_of, random_drafts
from tests.sources.parser import gold_examples, random_parser, trained, with_ours
from tests.sources.parser.test_decoding import put_back
from tests.sources.parser.test_source import fitted_on

TEXT = "dog saw king with duck . duck met dog"
N = 20_000
Arcs = tuple[tuple[int, str], ...]


def soft_parser(seed: int, change: Any = None, factor: float = 0.2) -> Any:
    """A pipeline with random weights, small ones: probabilities that are neither 0 nor 1."""
    nlp = random_parser(Shape(maxout_pieces=2), seed)
    parser = nlp.get_pipe("parser")
    for node in parser.model.walk():
        for name in node.param_names:
            node.set_param(name, node.get_param(name) * factor)
    if change is not None:
        change(parser)
    return nlp


def arcs_of(doc: Doc) -> Arcs:
    return tuple((token.head.i, token.dep_) for token in doc)


def enumerated(parser: Any, doc: Doc, least: float) -> tuple[dict[Arcs, float], dict[Arcs, float]]:
    """(the probability of each tree, that of its likeliest sequence) by all sequences of transitions, those below `least` left out."""
    names, step_model = parser.move_names, parser.model.predict([doc])
    shares: dict[Arcs, float] = defaultdict(float)
    likeliest: dict[Arcs, float] = defaultdict(float)
    (first,) = parser.moves.init_batch([doc])
    waiting = [(first, 1.0)]
    while waiting:
        state, share = waiting.pop()
        if state.is_final():
            parsed = Doc(doc.vocab, words=[token.text for token in doc])
            parser.set_annotations([parsed], [state])
            shares[arcs_of(parsed)] += share
            likeliest[arcs_of(parsed)] = max(share, likeliest[arcs_of(parsed)])
            continue
        scores = step_model.predict([state])[0].astype(float)
        valid = np.array([bool(parser.moves.is_valid(state, name)) for name in names])
        odds = np.where(valid, np.exp(scores - scores.max()), 0.0)
        for number in np.flatnonzero(share * odds / odds.sum() >= least).tolist():
            after = state.copy()
            parser.moves.apply_transition(after, names[number])
            waiting.append((after, share * float(odds[number] / odds.sum())))
    return dict(shares), dict(likeliest)


def shares_of(doc: Doc, heads: np.ndarray, labels: np.ndarray) -> Counter[Arcs]:
    name = doc.vocab.strings.__getitem__
    pairs = (zip(*one, strict=True) for one in zip(heads.tolist(), labels.tolist(), strict=True))
    return Counter(tuple((head, name(label)) for head, label in one) for one in pairs)


def chances(doc: Doc, n: int, seed: int = 1) -> np.ndarray:
    return make_rng(n, seed, 0).random((n, trees._STEPS * len(doc)))


@pytest.mark.parametrize(("seed", "change", "words"), [(0, None, "w1 w2 w3"), (1, put_back, "w4 w5 w6"), (3, None, "w1 w2 w7")])
def test_shares_are_those_of_all_sequences(seed, change, words):
    parser = soft_parser(seed, change).get_pipe("parser")
    doc = Doc(parser.vocab, words=words.split())
    wanted, likeliest = enumerated(parser, doc, 2e-6)
    missing = 1 - sum(wanted.values())
    assert missing < 1e-3
    heads, labels, logs = trees._draw_batch(parser, doc, chances(doc, N))
    found = shares_of(doc, heads, labels)
    often = [tree for tree, share in wanted.items() if share * N >= 5]
    assert len(often) > 50
    assert any(label == "obl" for tree in often for _, label in tree)  # an arc that was lifted, back at its head
    expected = N * np.array([*(wanted[tree] for tree in often), 1 - sum(wanted[tree] for tree in often)])
    observed = np.array([found[tree] for tree in often])
    observed = np.append(observed, N - observed.sum())
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), len(often)) > 1e-3
    best = max(wanted, key=wanted.__getitem__)
    own = [log for log, tree in zip(logs, drawn(doc, heads, labels), strict=True) if tree == best]
    assert max(own) == pytest.approx(np.log(likeliest[best]), abs=1e-5)


def drawn(doc: Doc, heads: np.ndarray, labels: np.ndarray) -> list[Arcs]:
    return [next(iter(shares_of(doc, heads[i : i + 1], labels[i : i + 1]))) for i in range(len(heads))]


@pytest.mark.parametrize("change", [None, put_back], ids=["as it is", "puts back"])
def test_heads_and_labels_are_those_of_spacys_states_and_always_a_tree(change):
    nlp = with_ours(soft_parser(2, change))
    parser = nlp.get_pipe("parser")
    met: dict[int, Any] = {}
    step = parser.transition_states

    def watch(states: Any, scores: Any) -> Any:
        met.update((id(state), state) for state in states)
        return step(states, scores)

    parser.transition_states = watch
    for doc in docs_of(random_drafts(12, seed=4), nlp.vocab):
        met.clear()
        if not len(doc):
            continue
        heads, labels, _ = trees._draw_batch(parser, doc, chances(doc, 30))
        for state, found in zip(met.values(), drawn(doc, heads, labels), strict=True):
            parsed = Doc(doc.vocab, words=[token.text for token in doc])
            parser.set_annotations([parsed], [state])
            assert arcs_of(parsed) == found
        above = heads
        for _ in range(len(doc)):
            above = np.take_along_axis(heads, above, axis=1)
        assert (np.take_along_axis(heads, above, axis=1) == above).all()  # every way up ends at a root


@pytest.fixture(scope="module")
def nlp():
    made = trained("calib_parser")
    fitted_on(made)
    return made


def test_a_doc_draws_its_trees(nlp):
    doc = nlp(TEXT)
    before = doc.to_bytes()
    draws = doc._.calib.sample(500, seed=3)
    assert doc.to_bytes() == before
    assert draws.heads.shape == draws.codes.shape == (500, 9)
    assert (draws.heads[:40] == doc._.calib.sample(40, seed=3).heads).all()
    assert (draws.heads != doc._.calib.sample(500, seed=4).heads).any()
    same = draws.same()
    names = np.array(draws.labels, dtype=object)
    for draw in list(draws)[:20]:
        copy = draw.doc()
        assert [token.head.i for token in copy] == draws.heads[draw.number].tolist()
        assert [token.dep_ for token in copy] == names[draws.codes[draw.number]].tolist()
        assert same[draw.number] == ([token.head.i for token in copy] == [token.head.i for token in doc])
        assert sum(1 for _ in copy.sents) == sum(token.head.i == token.i for token in copy)
    shares = draws.head_shares()
    assert shares.sum(axis=1) == pytest.approx(1)
    assert shares[3, 4] == (draws.heads[:, 3] == 4).mean()
    sentences = list(doc.sents)
    assert same.mean() <= min(draws.same(one).mean() for one in sentences)
    assert doc._.calib.sample(0).heads.shape == (0, 9)


def test_best_trees_are_distinct_and_the_most_frequent_first(nlp):
    doc = nlp(TEXT)
    draws = doc._.calib.sample(500, seed=3)
    best = draws.best(4)
    trees_of = [arcs_of(tree.draw.doc()) for tree in best]
    assert len(set(trees_of)) == 4
    every = Counter(arcs_of(copy) for copy in draws.docs())
    assert [tree.share for tree in best] == [count / 500 for _, count in every.most_common(4)]
    for tree, arcs in zip(best, trees_of, strict=True):
        own = [draws.log_probability[draw.number] for draw in draws if arcs_of(draw.doc()) == arcs]
        assert tree.log_probability == max(own)
    last = list(doc.sents)[-1]
    assert sum(tree.share for tree in draws.best(1000, last)) == pytest.approx(1)
    assert len(draws.best(1000, last)) < len(draws.best(1000))


def test_batches_of_draws_do_not_matter(nlp, monkeypatch):
    doc = nlp(TEXT)
    whole = doc._.calib.sample(60, seed=5)
    monkeypatch.setattr(trees, "_CELLS", 7 * trees._STEPS * len(doc))  # seven at once
    parts = doc._.calib.sample(60, seed=5)
    assert (parts.heads == whole.heads).all()
    assert parts.log_probability == pytest.approx(whole.log_probability)


def test_arcs_with_labels_are_compared_with_labels():
    nlp = trained("calib_parser")
    fitted_on(nlp, event="arc")
    doc = nlp(TEXT)
    draws = doc._.calib.sample(200, seed=0)
    heads = (draws.heads == [token.head.i for token in doc]).all(axis=1)
    labels = np.array(draws.labels, dtype=object)[draws.codes] == [token.dep_ for token in doc]
    assert (draws.same() == (heads & labels.all(axis=1))).all()
    assert draws.same().sum() < heads.sum()


def test_docs_that_came_from_elsewhere_need_the_parser(nlp):
    doc = nlp(TEXT)
    wanted = doc._.calib.sample(50, seed=2).heads
    read = next(DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab))
    with pytest.raises(CalibError, match=r"\[C410\].*a copy is another Doc.*sample_trees"):
        read._.calib.sample(5)
    assert (sample_trees(nlp.get_pipe("parser"), read, 50, seed=2).heads == wanted).all()
    stock = trained("parser")  # with a second pass
    fitted_on(stock)
    assert (stock(TEXT)._.calib.sample(50, seed=2).heads == wanted).all()


def test_right_or_a_sentence(nlp):
    doc, parser = nlp(TEXT), nlp.get_pipe("parser")
    other = soft_parser(0).get_pipe("parser")
    with pytest.raises(CalibError, match=r"\[C680\].*its probabilities are others"):
        sample_trees(other, doc)
    with pytest.raises(CalibError, match=r"\[C681\].*'tok' is a |\[C681\].* is a str"):
        sample_trees("tok", doc)
    with pytest.raises(CalibError, match=r"\[C413\]"):
        sample_trees(parser, nlp.make_doc("dog"))
    given = trained("calib_parser")
    given.add_pipe("sentencizer", first=True)
    fitted_on(given)
    with pytest.raises(CalibError, match=r"\[C680\].*sentences set before"):
        given("dog saw . with duck")._.calib.sample(5)
    tags = write(nlp.make_doc("dog"), "tag", [{"NN": 0.5}])
    with pytest.raises(CalibError, match=says("C412", name="parser", layer="tag", own="arcs")):
        sample_trees(parser, tags)
    with pytest.raises(CalibError, match=r"C001.*\bn\b"):
        doc._.calib.sample(-1)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[3:5])
    with pytest.raises(CalibError, match=r"\[C680\]"):
        doc._.calib.sample(5)


# P(every arc of a sentence is right)


@pytest.fixture(scope="module")
def asking():
    """A pipeline with a fitted calib pipe and an event pipe of trees, fitted too, and gold."""
    nlp = trained("calib_parser")
    fitted_on(nlp)
    event = {"@calib_events": "spacy-calib.Tree.v1", "draws": 50}
    pipe = nlp.add_pipe("calib_event", config={"event": event}, last=True)
    with nlp.select_pipes(disable=["calib_event"]):
        examples = run_upstream(nlp, gold_examples(nlp, 60, seed=21))
    return nlp, pipe.fit(examples), examples


def test_evidence_is_the_share_of_the_draws(asking):
    nlp, pipe, examples = asking
    assert isinstance(pipe, EventPipe)
    assert (pipe.event.condition, pipe.event.rivals[1], len(TREE_FEATURES)) == ("all arcs right", "share of draws", 3)
    doc = nlp(TEXT)
    asked = pipe.find_units(doc)
    draws = doc._.calib.sample(50, seed=0)
    assert asked.evidence.estimates.tolist() == [(draws.same(one).sum() + 0.5) / 51 for one in doc.sents]
    assert asked.evidence.raw_estimates.tolist() == pytest.approx([one._.calib_raw for one in doc.sents])
    found, layer = pipe.gather(examples)
    assert layer == "head"
    docs = [(example.predicted, example.reference) for example in examples]
    right = [all(token.head.i == gold[token.i].head.i for token in one) for doc, gold in docs for one in doc.sents]
    assert found.hits.tolist() == right
    assert 0.2 < np.mean(right) < 0.95


def test_a_sentence_has_its_score_until_an_arc_is_changed(asking):
    nlp, pipe, _ = asking
    doc = nlp(TEXT)
    assert pipe.info.event == "all arcs right"
    first, second = list(doc.sents)[:2]
    assert all(0 <= one._.calib_right <= 1 for one in (first, second))
    read = next(DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab))
    assert next(iter(read.sents))._.calib_right == pytest.approx(first._.calib_right)
    moved = next(token for token in first if token.head.i != token.i and token.head.i != first.start and token.i != first.start)
    moved.head = doc[first.start]
    assert next(iter(doc.sents))._.calib_right is None
    assert list(doc.sents)[1]._.calib_right is not None


def test_where_nothing_can_be_drawn_it_warns(asking):
    nlp, pipe, _ = asking
    doc = nlp(TEXT)
    pipe.event.bind("calib", lambda: None)
    with pytest.warns(UserWarning, match=r"CW23.*C681"):
        assert pipe.find_units(doc).spans == []
    with pytest.raises(CalibError, match=r"C001.*draws"):
        TreeEvent(0)


def test_unknown_gold_is_left_out(asking):
    nlp, pipe, examples = asking
    example = examples[0]
    event, unit = pipe.event, list(example.predicted.sents)[:1]
    assert event.judge(example, unit, np.full(len(example.predicted), UNKNOWN)).tolist() == [-1]
