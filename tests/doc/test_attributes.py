"""Values stay with their token through every operation on Docs: right or None, never another token's."""

import pickle

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from tests.conftest import WORDS, examples_for, fit_calib, revive

N_CHAINS = 400


@pytest.fixture(scope="module")
def annotate(trained_bytes):
    """A function that runs a fitted pipeline over words and remembers, for every token, all that it was given."""
    nlp = revive(trained_bytes)
    nlp.add_pipe("calib", after="tagger")
    fit_calib(nlp, examples_for(nlp, 80, seed=2))
    keep = nlp.select_pipes(enable=["tok2vec", "tagger", "calib"])
    truth: dict[str, tuple] = {}

    def run(words, spaces):
        doc = nlp(Doc(nlp.vocab, words=words, spaces=spaces))
        for token in doc:
            identity = f"token{len(truth)}"
            # Identities travel in the dependency label, which every operation copies.
            token.dep_ = identity
            truth[identity] = (token.text, token.tag_, token._.calib_score, token._.calib_raw, token._.calib_scores)
        return doc

    yield run, truth
    keep.restore()


def check(doc, truth):
    """No token shows a value that is not its own, one that was merged or split shows none.

    RETURNS (tuple): How many tokens show a value, and how many whole ones have lost theirs.
    """
    shown = lost = 0
    view = doc._.calib
    for token in doc:
        identity = token.dep_
        value = (token._.calib_score, token._.calib_raw, token._.calib_scores)
        own = slice(0) if view is None else view.rows == token.i
        in_view = {} if view is None else dict(zip(view.tags[own], view.calibrated[own], strict=True))
        if identity not in truth or token.text != truth[identity][0]:
            assert value == (None, None, None), (token.text, value)
            assert not in_view
            continue
        text, tag, *expected = truth[identity]
        if value == (None, None, None):
            lost += 1
            assert not in_view
        else:
            shown += 1
            assert token.tag_ == tag
            assert value == tuple(expected), (token.text, value, expected)
            assert in_view == expected[2]
    return shown, lost


ALL_WORDS = sorted({word for of_tag in WORDS.values() for word in of_tag})
words = st.lists(st.sampled_from(ALL_WORDS), min_size=1, max_size=7)
operation = st.one_of(
    st.tuples(st.sampled_from(["bytes", "docbin", "copy", "pickle"])),
    st.tuples(st.just("as_doc"), st.integers(0, 6), st.integers(1, 6)),
    st.tuples(st.just("from_docs"), st.lists(words, min_size=1, max_size=2), st.booleans(), st.booleans()),
    st.tuples(st.just("self_docs"), st.integers(0, 6)),
    st.tuples(st.just("merge"), st.integers(0, 6), st.integers(2, 3)),
    st.tuples(st.just("split"), st.integers(0, 6)),
)


def apply(doc, step, run):
    kind, *args = step
    if kind == "bytes":
        return Doc(doc.vocab).from_bytes(doc.to_bytes())
    if kind == "docbin":
        packed = DocBin(attrs=["ORTH", "SPACY", "TAG", "DEP", "HEAD"], store_user_data=True, docs=[doc]).to_bytes()
        return next(iter(DocBin(store_user_data=True).from_bytes(packed).get_docs(Vocab())))
    if kind == "copy":
        return doc.copy()
    if kind == "pickle":
        return pickle.loads(pickle.dumps(doc))
    if kind == "as_doc":
        start = args[0] % len(doc)
        return doc[start : start + args[1]].as_doc(copy_user_data=True)
    if kind == "from_docs":
        others = [run(ws, [True] * len(ws)) for ws in args[0]]
        docs = [*others, doc] if args[1] else [doc, *others]
        return Doc.from_docs(
            [Doc(docs[0].vocab).from_bytes(d.to_bytes()) for d in docs], ensure_whitespace=args[2], exclude=["tensor"]
        )
    if kind == "self_docs":
        at = 1 + args[0] % len(doc)
        parts = [part.as_doc(copy_user_data=True) for part in (doc[at:], doc[:at]) if len(part)]
        return Doc.from_docs(parts, exclude=["tensor"])
    if kind == "merge":
        start = args[0] % len(doc)
        if start + args[1] <= len(doc):
            with doc.retokenize() as retokenizer:
                retokenizer.merge(doc[start : start + args[1]])
        return doc
    token = doc[args[0] % len(doc)]
    if len(token.text) > 1 and token.text in ALL_WORDS:
        with doc.retokenize() as retokenizer:
            retokenizer.split(token, [token.text[:1], token.text[1:]], heads=[(token, 0), (token, 1)])
    return doc


@settings(
    max_examples=N_CHAINS,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(start=words, spaces=st.lists(st.booleans(), min_size=7, max_size=7), chain=st.lists(operation, min_size=1, max_size=6))
@pytest.mark.filterwarnings("ignore:.*W101.*:UserWarning")
def test_random_chains_of_doc_operations(annotate, start, spaces, chain):
    run, truth = annotate
    doc = run(start, spaces[: len(start)])
    for step in chain:
        doc = apply(doc, step, run)
        shown, lost = check(doc, truth)
        event("shown" if shown else "none shown")
        event("lost" if lost else "none lost")


def test_plain_chain_loses_nothing(annotate):
    run, truth = annotate
    doc = run(["the", "dog", "saw", "a", "cat"], [True] * 5)
    for step in (
        ("bytes",),
        ("as_doc", 0, 5),
        ("docbin",),
        ("from_docs", [["red", "duck"]], True, True),
        ("pickle",),
        ("as_doc", 2, 5),  # at the seam: what is left of the other Doc lies outside
        ("copy",),
    ):
        doc = apply(doc, step, run)
        assert check(doc, truth) == (len(doc), 0)


def test_a_cut_doc_and_those_that_its_rest_touches_show_nothing(annotate):
    run, truth = annotate
    whole = run(["the", "dog", "saw", "a", "cat"], [True] * 5)
    for first, last in ((0, 4), (1, 5), (2, 3)):
        part = whole[first:last].as_doc(copy_user_data=True)
        assert check(part, truth) == (0, last - first)
        assert part._.calib is None
    first, other, last = run(["red", "duck"], [True] * 2), run(["a", "cat"], [True] * 2), whole[1:].as_doc(copy_user_data=True)
    joined = Doc.from_docs([first, other, last], exclude=["tensor"])
    assert [token._.calib_score is None for token in joined] == [False] * 2 + [True] * 6
    check(joined, truth)


def test_a_part_of_the_last_token_is_never_taken_for_it(annotate):
    """It begins where the whole did; the text is the same."""
    run, _ = annotate
    for n in range(600):
        doc = run([f"w{n:03}"], [False])
        with doc.retokenize() as retokenizer:
            retokenizer.split(doc[0], ["w", f"{n:03}"], heads=[(doc[0], 1), doc[0]], attrs={"TAG": ["NOUN", "NOUN"]})
        assert [token._.calib_raw for token in doc] == [None, None], doc
        assert doc._.calib is None, doc


def test_merging_keeps_the_neighbours(annotate):
    run, truth = annotate
    doc = run(["the", "dog", "saw", "a", "cat"], [True] * 5)
    apply(doc, ("merge", 1, 2), run)
    assert len(doc) == 4
    assert check(doc, truth) == (3, 0)


def test_leftover_of_a_cut_doc_does_not_claim_another_docs_token(annotate):
    """Two blocks that end up at the same start used to overwrite each other, and the leftover claimed a token that was not its own."""
    run, truth = annotate
    first = run(["dog", "saw", "dog", "run"], [True] * 4)
    cut = run(["dog", "eats", "dog", "light"], [True] * 4)[2:].as_doc(copy_user_data=True)
    joined = Doc.from_docs([first, cut])
    check(joined, truth)
    assert joined[0]._.calib_score in (None, truth[joined[0].dep_][2])


def test_docs_without_values():
    doc = Doc(Vocab(), words=["a", "b"])
    assert doc._.calib is doc[0]._.calib_score is doc[0]._.calib_raw is doc[0]._.calib_scores is None
