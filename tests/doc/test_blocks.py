"""Blocks that are cut, joined, damaged, or written while they are read: right or None, never another token's value."""

import copy
import random
import sys
import threading

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

import spacy_calib
from spacy_calib.doc.store import BLOCK_VERSION, Block, checksum_of
from spacy_calib.doc.write import SpanScores, _labels_by_doc, span_data
from spacy_calib.types import Spans

WORDS = ["the", "a", "dog", "cat", "saw", "run", "red", "old", "light", "duck", ".", "this", "every"]
TAGS = ["DET", "NOUN", "VERB", "ADJ", "PUNCT"]


def pipeline_of_layer(layer: str = "tag") -> Language:
    nlp = spacy.blank("xx")
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": TAGS, "key": "tensor", "layer": layer}
    nlp.add_pipe("calib", config={"source": source}).warn.warned_keys.add("CW01{}")  # it is not fitted
    return nlp


@pytest.fixture(scope="module")
def nlp() -> Language:
    return pipeline_of_layer()


def annotated_doc(nlp: Language, words: list[str], tags: list[str], scores: np.ndarray | None = None) -> Doc:
    """A Doc with these tags; without scores they are certain."""
    doc = Doc(nlp.vocab, words=words, tags=tags, pos=["NOUN"] * len(words))
    doc.tensor = np.array([[float(tag == label) for label in TAGS] for tag in tags]) if scores is None else scores
    return nlp(doc)


def test_docs_with_the_same_words_and_saturated_scores_are_told_apart(nlp):
    """Their checksum left out the tags: cut at the same place and joined, the tokens of one showed the other's scores."""
    words = ["light", "saw", "run", "duck"]
    one = annotated_doc(nlp, words, ["ADJ", "VERB", "VERB", "NOUN"])
    other = annotated_doc(nlp, words, ["NOUN", "NOUN", "VERB", "NOUN"])
    joined = Doc.from_docs([one[:2].as_doc(copy_user_data=True), other[2:].as_doc(copy_user_data=True)], exclude=["tensor"])
    for token in joined:
        assert token._.calib_scores in (None, {token.tag_: 1.0})
    assert len({key for doc in (one, other) for key in doc.user_data}) == 2


def joins(nlp: Language, n: int, seed: int) -> dict[str, int]:
    """What tokens show on n random joins of Docs, some of them cut, some without their user data."""
    rng = random.Random(seed)
    seen = {"right": 0, "none": 0, "wrong": 0}
    for _ in range(n):
        parts, truth = [], []
        for _ in range(rng.randint(2, 3)):
            words = [rng.choice(WORDS) for _ in range(rng.randint(3, 12))]
            tags = [TAGS[WORDS.index(word) % 5] if rng.random() < 0.7 else rng.choice(TAGS) for word in words]
            scores = np.random.default_rng(rng.randrange(1 << 30)).dirichlet(np.full(5, 0.3), len(words))
            doc = annotated_doc(nlp, words, tags, scores if rng.random() < 0.7 else None)
            first = rng.randrange(len(doc))
            last, way = rng.randint(first + 1, len(doc)), rng.random()
            first, last = (0, len(doc)) if way < 0.3 else (first, last)
            truth += [doc[i]._.calib_scores for i in range(first, last)]
            parts.append(doc if way < 0.3 else doc[first:last].as_doc(copy_user_data=way < 0.8))
        for token, expected in zip(Doc.from_docs(parts, exclude=["tensor"]), truth, strict=True):
            shown = token._.calib_scores
            seen["none" if shown is None else "right" if shown == expected else "wrong"] += 1
    return seen


def test_rows_that_a_cut_left_over_claim_no_word_of_a_doc_without_scores(nlp):
    """With thirteen words, where equal ones meet all the time."""
    seen = joins(nlp, 400, 5)
    assert seen["right"] > 1000
    assert seen["wrong"] == 0


@pytest.mark.parametrize("way", ["whole", "joined"])
def test_a_text_with_another_word_of_the_same_length_has_no_score(nlp, way):
    doc, n = annotated_doc(nlp, ["the", "old", "aaaa", "saw", "it"], ["DET", "ADJ", "NOUN", "VERB", "NOUN"]), 5
    if way == "joined":
        doc = Doc.from_docs([doc, annotated_doc(nlp, ["and", "so"], ["DET", "ADJ"])])
    words, spaces, tags = zip(*((t.text, bool(t.whitespace_), t.tag_) for t in doc), strict=True)
    for number in range(300):  # eight bits of the text would agree once
        word = f"{number:04}"
        changed = Doc(nlp.vocab, [*words[:2], word, *words[3:]], list(spaces), tags=list(tags), pos=["NOUN"] * len(doc))
        changed.user_data = doc.user_data
        assert [token._.calib_score is None for token in changed] == [j < n for j in range(len(doc))]


@pytest.mark.parametrize(("labels", "codes", "bounds", "names", "numbers"), [
    # Three Docs with four, no and two entries.
    (("A", "B", "C"), [2, 0, 2, 0, 1, 2], [0, 4, 4, 6], [["A", "C"], [], ["B", "C"]], [1, 0, 1, 0, 0, 1]),
    ((), [], [0, 0, 0], [[], []], []),  # no entry at all: links of Docs without entities
])  # fmt: skip
def test_labels_of_each_doc_by_hand(labels, codes, bounds, names, numbers):
    by_doc, new_codes = _labels_by_doc(labels, np.array(codes, dtype=np.intp), bounds)
    assert (by_doc, new_codes.tolist(), new_codes.dtype) == (names, numbers, np.uint32)


@pytest.mark.parametrize("between", "- \u00a0\n")
def test_a_text_with_something_else_between_its_words_has_no_score(nlp, between):
    doc = annotated_doc(nlp, ["the", "dog"], ["DET", "NOUN"])
    changed = Doc(nlp.vocab, ["the", between, "dog"], [False] * 3, tags=["DET", "X", "NOUN"])
    changed.user_data = doc.user_data
    scores = [token._.calib_score for token in changed]
    assert scores == ([1.0, None, 1.0] if between == " " else [None] * 3)  # only a space is the same text


def test_two_annotations_under_one_prefix_are_not_mixed(nlp):
    """Tags of one Doc and parts of speech of another, joined: `render` showed one's probability as the other's."""
    of_pos = pipeline_of_layer("pos")
    tagged = annotated_doc(nlp, ["the", "old", "dog", "run"], ["DET", "ADJ", "NOUN", "VERB"])
    posed = annotated_doc(of_pos, ["cat", "saw"], ["NOUN", "NOUN"])
    posed = Doc(nlp.vocab).from_bytes(posed.to_bytes())
    joined = Doc.from_docs([tagged, posed], exclude=["tensor"])
    assert joined._.calib.layer == "tag"
    assert joined._.calib.scored.tolist() == [True] * 4 + [False] * 2
    html = spacy_calib.render(joined)
    assert html.count("1.00") <= spacy_calib.render(tagged).count("1.00")
    assert joined[4]._.calib_scores == {"NOUN": 1.0}


def block_of(doc: Doc) -> tuple[tuple, dict]:
    (item,) = ((key, value) for key, value in doc.user_data.items() if key[0] == "._.")
    return item


def changed(value: object, rng: random.Random) -> object:
    if isinstance(value, np.ndarray) and value.size and rng.random() < 0.6:
        other = value.copy()
        other.flat[rng.randrange(other.size)] += np.array(1, dtype=other.dtype) if other.dtype != bool else True
        return other
    return rng.choice([None, 7, "x", [], [0.5], {}, np.zeros(0), np.full(3, np.nan), np.full(99, 7), np.array(["x"]), b"1"])


@pytest.mark.parametrize("signed", [False, True])
def test_a_damaged_block_reads_as_none(nlp, signed):
    """Never as an exception; with a checksum of its own (signed) never as what is no probability."""
    rng = random.Random(3)
    doc = annotated_doc(nlp, ["the", "old", "dog"], ["DET", "ADJ", "NOUN"], np.full((3, 5), 0.2))
    key, block = block_of(doc)
    for _ in range(150):
        broken = dict(block)
        name = rng.choice(sorted(broken))
        broken[name] = changed(broken[name], rng)
        if rng.random() < 0.2:
            del broken[name]
        damaged: object = broken if rng.random() < 0.9 else rng.choice([None, 3, [], "x"])
        new = key
        if signed:
            try:
                new = (*key[:3], checksum_of(damaged))
            except Exception:  # no checksum of it can be made
                continue
        doc.user_data = {new: damaged}
        shown = [(token._.calib_score, token._.calib_scores) for token in doc]
        view = doc._.calib
        if signed:
            assert all(score is None or 0 <= score <= 1 for score, _ in shown)
        elif damaged is not broken or not same_block(broken, block):
            assert shown == [(None, None)] * 3
            assert view is None


def same_block(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def read_all(doc: Doc) -> None:
    """Every attribute of tokens, spans and the Doc, its view, and those of a part that is cut."""
    for owner, names in (
        *((token, ("score", "raw", "scores", "flag")) for token in doc),
        *((span, ("score", "raw", "accept", "link", "links")) for span in (*doc.ents, doc[0:2], doc[:])),
        (doc, ("score", "raw", "cats", "cats_raw", "accept")),
    ):
        for name in names:
            getattr(owner._, f"calib_{name}")
    if doc._.calib is not None:
        assert ((doc._.calib.raw >= 0) & (doc._.calib.calibrated >= 0)).all()
        _ = (doc._.calib.ents, doc._.calib.candidates)
    if len(doc) > 2:
        read_all(doc[1:3].as_doc(copy_user_data=True))


@pytest.mark.parametrize("with_spans", [False, True])
def test_blocks_that_somebody_made_up_are_read_or_passed_over(nlp, fuzz, with_spans):
    """Their checksum is right: whatever is in them is no exception."""
    doc = annotated_doc(nlp, ["the", "old", "dog"], ["DET", "ADJ", "NOUN"])
    doc.set_ents([Span(doc, 1, 3, "A")])
    key, block = block_of(doc)
    block = dict(block)  # as it is read from a file
    if with_spans:
        one = np.array([1], dtype=np.intp)
        drawn = Spans(one, one + 2, one * 0, np.full(2, 0.5), one * 0.5, one > 0)
        spans = SpanScores(drawn, ("A",), one * 0.5, one * 0.25, -one.astype(np.int8), "span", "tag")
        block["spans"] = span_data(doc, spans, 0, 3)
        doc.user_data = {(*key[:3], checksum_of(block)): block}
        assert doc.ents[0]._.calib_score == 0.25
    for seed in range(400):
        rng, other = random.Random(seed), copy.deepcopy(dict(block))
        for _ in range(rng.choice([1, 1, 2, 3])):
            fuzz.mutate(other, rng)
        try:
            checksum = checksum_of(other)
        except Exception:  # nobody could write it
            continue
        doc.user_data = {(*key[:3], checksum): other}
        read_all(doc)


@pytest.mark.parametrize("version", [1, 3, BLOCK_VERSION + 1])
def test_a_block_of_another_version_is_none_of_ours(nlp, version):
    doc = annotated_doc(nlp, ["the", "old", "dog"], ["DET", "ADJ", "NOUN"], np.full((3, 5), 0.2))
    key, block = block_of(doc)
    other = {**block, "version": version}
    doc.user_data = {(*key[:3], checksum_of(other)): other}
    assert [token._.calib_score for token in doc] == [None] * 3
    assert doc._.calib is None


def test_reading_while_another_thread_writes(nlp):
    """`dictionary changed size during iteration`."""
    doc = annotated_doc(nlp, ["the", "old", "dog"] * 20, ["DET", "ADJ", "NOUN"] * 20)
    stop, faults = threading.Event(), []

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            doc.user_data[f"other {number % 50}"] = number
            doc.user_data.pop(f"other {(number + 25) % 50}", None)

    def read() -> None:
        try:
            for _ in range(150):
                assert doc._.calib is not None
                assert doc[1]._.calib_score == 1.0
        except Exception as error:
            faults.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=write), threading.Thread(target=read)]
        for thread in threads:
            thread.start()
        threads[1].join()
        stop.set()
        threads[0].join()
    finally:
        sys.setswitchinterval(interval)
    assert not faults


def test_threads_that_read_one_loaded_doc_get_equal_scores(nlp):
    """Each opens the block that it finds, and the Doc keeps one of them."""
    rng = np.random.default_rng(0)
    docs = [
        annotated_doc(nlp, ["the", "old", "dog"] * 9, ["DET", "ADJ", "NOUN"] * 9, rng.dirichlet(np.ones(5), 27))
        for _ in range(40)
    ]
    expected = [[(token._.calib_score, token._.calib_scores) for token in doc] for doc in docs]
    loaded = [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    start, results = threading.Barrier(4), [[] for _ in range(4)]

    def read(result: list) -> None:
        for doc in loaded:
            start.wait()
            result.append([(token._.calib_score, token._.calib_scores) for token in doc])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read, args=(result,)) for result in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert results == [expected] * 4
    assert [type(block_of(doc)[1]) for doc in loaded] == [Block] * 40


def test_what_was_read_before_the_pipe_ran_is_forgotten(nlp):
    """The user data have as many entries afterwards: one of somebody else's went, the block came."""
    doc = Doc(nlp.vocab, words=["light"], tags=["NOUN"])
    doc.tensor = np.array([[float(label == "NOUN") for label in TAGS]])
    doc.user_data["other"] = 1
    assert doc[0]._.calib_score is None
    assert doc._.calib is None
    del doc.user_data["other"]
    nlp.get_pipe("calib")(doc)
    assert doc[0]._.calib_score == 1.0
    assert len(doc._.calib) == 1


def remove_block(doc: Doc) -> None:
    del doc.user_data[block_of(doc)[0]]


def add_overlapping_block(doc: Doc) -> None:
    (prefix, name, start, end), block = block_of(doc)
    doc.user_data[(prefix, name, start + 1, end + 1)] = dict(block)


def damage_block(doc: Doc) -> None:
    key, block = block_of(doc)
    doc.user_data[key] = {**block, "raw": block["raw"] / 2}


@pytest.mark.parametrize("change", [remove_block, add_overlapping_block, damage_block])
def test_a_read_notices_what_changed_since_the_last_one(nlp, change):
    """The blocks of the Doc that was read last are kept, and entries of others are set meanwhile."""
    doc = annotated_doc(nlp, ["light", "saw"], ["NOUN", "VERB"])
    for number in range(3):
        assert [token._.calib_score for token in doc] == [1.0, 1.0]
        doc.user_data[f"other {number}"] = number
    change(doc)
    assert [token._.calib_score for token in doc] == [None, None]


def test_scores_that_are_written_again_replace_what_was_read(nlp):
    doc = annotated_doc(nlp, ["light", "saw"], ["NOUN", "VERB"])
    assert doc[0]._.calib_score == 1.0
    doc.tensor = np.array([[0.25, 0.75, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0, 0.0]])
    nlp.get_pipe("calib")(doc)
    assert [token._.calib_score for token in doc] == [0.75, 0.5]


@pytest.mark.parametrize("part", ["above", "tag", "raw", "calibrated"])
def test_a_block_whose_labels_below_the_threshold_do_not_fit_each_other_shows_nothing(nlp, part):
    doc = annotated_doc(nlp, ["light", "saw"], ["NOUN", "VERB"], np.array([[0.0, 1.0, 0.0, 0.0, 0.0]] * 2))
    (key, block) = next((key, value) for key, value in doc.user_data.items() if type(key) is tuple)
    assert block["above"].tolist() == [True, True, False]  # NOUN twice, and VERB of "saw"
    del doc.user_data[key]
    block = {**block, part: block[part][:-1]}
    doc.user_data[(*key[:3], checksum_of(block))] = block
    assert doc._.calib is None
    assert [token._.calib_score for token in doc] == [None, None]
