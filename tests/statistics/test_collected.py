"""Statistics of shards come to the same bytes in whatever order and by whatever tree they are merged, and a file of them is checked."""

from __future__ import annotations

import io
import random
import zipfile
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.context.words import SHAPES, Words
from spacy_calib.errors import CalibError
from spacy_calib.pairs.keyed import Key
from spacy_calib.statistics import cells, readings
from spacy_calib.statistics.blocks import count_distinct, lowest
from spacy_calib.statistics.collected import FitStatistics, Sample
from spacy_calib.statistics.file import VERSION
from spacy_calib.statistics.further_tables import Totals
from spacy_calib.statistics.identity import SENTENCES, Identity, Shard
from spacy_calib.statistics.readings import FoundSpans, Readings, numbered
from spacy_calib.types import Spans
from tests import strategies  # noqa: F401  (its settings of hypothesis)

LABELS = ("A", "B", "C")


KEY = Key(bytes(range(32)))


def identity(**changed) -> Identity:
    held = {
        "weights": "w", "component": "tagger", "kind": "Tagger", "layer": "tag", "labels": LABELS, "span_labels": ("X",), "threshold": 0.01,
        "lowest": 0.0001, "event": "exact", "source": "{}", "label_map": "{}", "features": (), "sample": 40,
        "key": KEY.fingerprint,
    }  # fmt: skip
    return Identity(**{**held, **changed})


def read_doc(rng: random.Random, digest: int) -> Readings:
    """One made-up Doc of some tokens, with entries, spans and words."""
    n = rng.randint(1, 5)
    entries = [
        (row, tag, rng.choice((0.001, 0.25, 0.5, 1 / 3, rng.random())))
        for row in range(n)
        for tag in range(3)
        if rng.random() < 0.7
    ]
    rows, tags, scores = (
        np.array([entry[i] for entry in entries], dtype=kind) for i, kind in enumerate((np.intp, np.intp, float))
    )
    gold = np.array([rng.randint(-2, 2) for _ in range(n)], dtype=np.intp)
    starts = np.array([rng.randrange(n) for _ in range(rng.randint(0, 2))], dtype=np.intp)
    k = len(starts)
    ends = np.array([rng.randint(start + 1, n) for start in starts.tolist()], dtype=np.intp)
    own_scores = np.full(int((ends - starts).sum()), 0.5)
    spans = Spans(starts, ends, np.zeros(k, np.intp), own_scores, np.full(k, 0.4), np.arange(k) == 0, np.full((k, 2), 0.3))
    forms = np.array([rng.randrange(9) for _ in range(n)], dtype=np.uint64)
    words = Words(
        np.array([0, n]), forms, forms, {name: forms > 4 for name in SHAPES}, forms > 0, {}, {"sure": forms.astype(float)}
    )
    return Readings(
        documents=np.zeros(1, np.intp), digests=np.array([digest], dtype=np.uint64), n_rows=np.array([n]), gold=gold, unjudged=gold == -2,
        rows=rows, tags=tags, scores=scores, hits=tags == gold[rows], known=gold[rows] != -2,
        spans=FoundSpans(spans, np.ones(k, np.intp), np.array([k])), words=words,
    )  # fmt: skip


def shard(docs: list[Readings], name: str, **changed) -> FitStatistics:
    readings = Readings.joined(docs).hidden(None if changed.get("key") == "" else KEY, name)
    seen = np.unique(readings.digests)
    counts = Counter({"B": len(docs), "A": 2})
    totals = Totals(
        len(readings.gold), 3, 1, counts, Counter(), Counter({("B", "A"): 1, ("", name): 1}), frozenset({"document"})
    )
    made = FitStatistics.of(identity(**changed), readings, seen)
    return made.named(Shard(name, name, len(docs)), totals)


def split(docs: list[Readings], n: int) -> list[list[Readings]]:
    return [docs[i::n] for i in range(n)]


@given(st.integers(0, 1000), st.sampled_from([2, 7, 100]))
def test_any_tree_of_merges_gives_the_same_bytes(seed, n):
    rng = random.Random(seed)
    # Some documents have several Docs, which may lie in different shards.
    docs = [read_doc(rng, rng.randrange(60) << 50) for _ in range(120)]
    parts = [shard(own, str(i)) for i, own in enumerate(split(docs, n))]
    whole = FitStatistics.merged(parts).to_bytes()
    while len(parts) > 1:
        rng.shuffle(parts)
        k = rng.randint(2, min(3, len(parts)))
        parts[:k] = [FitStatistics.merged(parts[:k])]
    assert parts[0].to_bytes() == whole
    assert FitStatistics.from_bytes(whole).to_bytes() == whole


@given(st.integers(0, 1000), st.sampled_from([2, 7]))
def test_shards_hold_what_one_pass_holds(seed, n):
    rng = random.Random(seed)
    docs = [read_doc(rng, rng.randrange(1 << 64)) for _ in range(60)]
    merged, whole = FitStatistics.merged([shard(own, str(i)) for i, own in enumerate(split(docs, n))]), shard(docs, "all")
    for one, other in (
        (merged.pairs.arrays(), whole.pairs.arrays()),
        (merged.sample.readings.arrays(), whole.sample.readings.arrays()),
    ):
        assert list(one) == list(other)
        assert all(np.array_equal(one[key], other[key]) and one[key].dtype == other[key].dtype for key in one)
    assert np.array_equal(merged.documents, whole.documents)
    assert (merged.size, merged.n_documents, merged.sampled_all) == (whole.size, 60, False)


def test_a_sample_holds_whole_documents_up_to_the_one_that_reaches_the_number():
    rng = random.Random(3)
    docs = Readings.joined([read_doc(rng, digest) for digest in (50, 10, 30, 10, 20)])
    sizes = {digest: int(docs.sizes[docs.digests == digest].sum()) for digest in (10, 20, 30, 50)}
    assert set(Sample.of(docs, sizes[10]).readings.digests.tolist()) == {10}
    held = Sample.of(docs, sizes[10] + 1)
    assert held.readings.digests.tolist() == [10, 10, 20]
    assert held.readings.documents.tolist() == [0, 0, 1]
    assert held.n_pairs == sizes[10] + sizes[20]
    assert Sample.of(docs).n_pairs == docs.sizes.sum()


def test_docs_taken_in_another_order_and_back_are_what_they_were():
    rng = random.Random(5)
    docs = Readings.joined([read_doc(rng, digest) for digest in range(9)])
    order = np.array(rng.sample(range(9), 9))
    back = docs.take(order).take(np.argsort(order))
    assert all(np.array_equal(one, other) for one, other in zip(docs.arrays().values(), back.arrays().values(), strict=True))
    alone = docs.take(np.array([4]))
    assert numbered(alone.digests).tolist() == [0]
    assert (alone.starts[-1], len(alone.words)) == (docs.n_rows[4], docs.n_rows[4])


def test_spans_of_a_batch_may_come_in_any_order():
    doc = read_doc(random.Random(7), 1)
    k = 5
    starts = np.arange(k) % len(doc.gold)
    spans = Spans(starts, starts + 1, np.zeros(k, np.intp), np.arange(k) / 8, np.arange(k) / 16, np.arange(k) == 3)
    order = np.array([4, 2, 3, 0, 1])
    one = replace(doc, spans=FoundSpans(spans, np.arange(k) % 2, np.array([2])))
    other = replace(doc, spans=FoundSpans(spans.take(order), np.arange(k)[order] % 2, np.array([2])))
    in_order = [doc.with_spans_in_order().digests_of_docs() for doc in (one, other)]
    assert in_order[0] == in_order[1] != other.digests_of_docs()


def test_a_doc_has_one_digest_wherever_it_stands_and_another_where_anything_differs(monkeypatch):
    monkeypatch.setattr(readings, "check_within", lambda *given: None)
    monkeypatch.setattr(readings, "_check", lambda made: None)
    rng = random.Random(11)
    docs = Readings.joined([read_doc(rng, 1) for _ in range(40)]).with_spans_in_order().hidden(KEY, "")
    digests = docs.digests_of_docs()
    assert len(set(digests.tolist())) == 40
    order = np.array(rng.sample(range(40), 40))
    assert np.array_equal(docs.take(order).digests_of_docs(), digests[order])
    alone = docs.take(np.array([7]))
    assert alone.digests_of_docs()[0] == digests[7]
    for key, array in alone.arrays().items():
        if len(array) and key not in ("digests", "n_rows", "rows", "spans.starts", "spans.ends", "words.starts", "words.seals"):
            changed = array.copy()
            changed[0] = not array[0] if array.dtype == bool else array[0] + 1
            assert Readings.of_arrays({**alone.arrays(), key: changed}).digests_of_docs()[0] != digests[7], key


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.data())
def test_samples_merged_by_any_tree_are_the_sample_of_all_at_the_very_edge_too(places, data):
    rng = random.Random(len(places))
    docs = [read_doc(rng, place) for place in places]
    sums = np.cumsum([sum(int(doc.sizes[0]) for doc in docs if doc.digests[0] == place) for place in sorted(set(places))])
    most = max(1, int(data.draw(st.sampled_from(sums.tolist()))) + data.draw(st.integers(-1, 1)))
    whole = Sample.of(Readings.joined(docs), most)
    parts = [Sample.of(doc, most) for doc in data.draw(st.permutations(docs))]
    while len(parts) > 1:
        n = data.draw(st.integers(2, len(parts)))
        parts = [*parts[n:], Sample.merged(parts[:n])]
    (merged,) = parts
    assert set(merged.readings.digests.tolist()) == set(sorted(set(places))[: int((sums < most).sum()) + 1])
    one, other = merged.readings.arrays(), whole.readings.arrays()
    assert all(np.array_equal(one[key], other[key]) for key in other)


def test_documents_are_counted_exactly_and_estimated_where_there_are_too_many():
    digests = np.random.default_rng(1).integers(0, 1 << 64, 50_000, dtype=np.uint64)
    assert count_distinct(lowest([digests, digests])) == 50_000
    assert count_distinct(lowest([digests], 4096), 4096) == pytest.approx(50_000, rel=0.05)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"weights": "v"},
            r"C425.*shard 'a' and of shard 'b' cannot go together: they differ in the weights of the component \(w; v\)",
        ),
        ({"labels": ("A", "Z", "C")}, r"they differ in the labels \(3 labels, number 2 'B'; 3 labels, number 2 'Z'\)"),
        ({"labels": LABELS[:2]}, r"they differ in the labels \(3 labels, number 3 'C'; 2 labels\)"),
        ({"threshold": 0.05}, r"they differ in the threshold \(--threshold\) \(0.01; 0.05\)"),
        ({"event": "overlap"}, r"they differ in when a span is right \(--event\)"),
        (
            {"reading": SENTENCES},
            r"what is read \(--gold-preproc\) \(whole documents; sentences of gold tokens\)",
        ),
        ({"key": ""}, rf"they differ in the key of their digests \(--key\) \({KEY.fingerprint}; none\)"),
    ],
)
def test_other_statistics_are_refused_by_name(changed, sentence):
    rng = random.Random(1)
    one, other = shard([read_doc(rng, 1)], "a"), shard([read_doc(rng, 2)], "b", **changed)
    with pytest.raises(CalibError, match=sentence):
        one.merge(other)


def test_one_shard_twice_is_refused():
    one = shard([read_doc(random.Random(1), 1)], "a")
    with pytest.raises(CalibError, match="C426.*'a' is there twice; give"):
        FitStatistics.merged([one, one])
    copy = one.named(Shard("b", "a", 1), Totals())
    with pytest.raises(CalibError, match="'b' is there twice, also as 'a'; give"):
        one.merge(copy)
    with pytest.raises(CalibError, match="'a' is there twice, with other content; give"):
        one.merge(one.named(Shard("a", "z", 1), Totals()))


def test_missing_shards_are_named():
    rng = random.Random(1)
    parts = [shard([read_doc(rng, i)], f"{i}/7") for i in (1, 3, 4, 7)]
    with pytest.raises(CalibError, match="C428.*Of 7 shards there are 4: 2/7, 5/7, 6/7 missing"):
        FitStatistics.merged(parts).check_complete()
    shard([read_doc(rng, 1)], "any name").check_complete()
    with pytest.raises(CalibError, match="there are 1: 2/1000000000000, .* 9/1000000000000 and 999,999,999,991 more missing"):
        shard([read_doc(rng, 1)], "1/1000000000000").check_complete()


def changed_header(data: bytes, old: str, new: str) -> bytes:
    """The file with another header."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as held, zipfile.ZipFile(made, "w") as copy:
        for name in held.namelist():
            content = held.read(name)
            copy.writestr(name, content.replace(old.encode(), new.encode()) if name == "header.json" else content)
    return made.getvalue()


def with_array(data: bytes, name: str, array: np.ndarray) -> bytes:
    """The file with another array, as somebody could write it."""
    made, content = io.BytesIO(), io.BytesIO()
    np.save(content, array)
    with zipfile.ZipFile(io.BytesIO(data)) as held, zipfile.ZipFile(made, "w") as copy:
        for member in held.namelist():
            copy.writestr(member, content.getvalue() if member == f"{name}.npy" else held.read(member))
    return made.getvalue()


def arrays_of(data: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(data)) as held:
        return {name[:-4]: np.load(io.BytesIO(held.read(name))) for name in held.namelist() if name.endswith(".npy")}


def test_numbers_that_no_collection_gives_are_one_sentence(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 4)
    data = shard([read_doc(random.Random(1), i) for i in range(9)], "a").to_bytes()
    held, refused = arrays_of(data), 0

    def check(name, array, sentence=""):
        nonlocal refused
        with pytest.raises(
            CalibError,
            match=rf"\[C427\] The statistics in some.npz cannot be read: '[^']+' is not [^;]*{sentence}[^;]*; collect",
        ):
            FitStatistics.from_bytes(with_array(data, name, array), "some.npz")
        refused += 1

    def changed(name, value, at=0):
        array = held[name].copy()
        array[at] = value
        return array

    for name, array in held.items():
        if array.dtype.kind == "f":
            for bad in (np.nan, np.inf, -np.inf):
                check(name, changed(name, bad), "numbers from ")
        check(name, array.astype(str) if array.dtype.kind == "f" else array.astype(float))
        check(name, array.reshape(-1, 1, 1))
        if name not in ("documents", "texts"):  # of which there may be any number
            check(name, array[:-1])
    for name in ("sample.scores", "sample.spans.own", "sample.spans.token_scores"):
        check(name, changed(name, -0.1), "from -1e-09 to 1.000000001")
        check(name, changed(name, 1.1))
    check("sample.digests", held["sample.digests"][::-1], "never falls")
    check("sample.tags", changed("sample.tags", 3), "from 0 to 2")
    check("sample.tags", changed("sample.tags", -1))
    check("sample.rows", held["sample.rows"][::-1], "never falls")
    check("sample.n_rows", changed("sample.n_rows", -1))
    check("sample.gold", changed("sample.gold", 4), "from -2 to 3")
    check("sample.known", np.ones_like(held["sample.known"]), "rows have gold")
    check("sample.spans.labels", changed("sample.spans.labels", 1), "from 0 to 0")
    check("sample.spans.hits", changed("sample.spans.hits", 2), "from -1 to 1")
    check("sample.spans.gold", changed("sample.spans.gold", -1))
    check("sample.spans.starts", changed("sample.spans.starts", -1), "from 0 to")
    check("sample.words.starts", changed("sample.words.starts", 1), "from 0 to the number of words")
    check("documents", held["documents"][::-1], "an array that rises")
    check("texts", held["texts"][::-1], "an array that rises")
    check("pairs.pairs", held["pairs.pairs"][:, :2])
    for name in ("pairs", "hits", "sums"):
        check(f"pairs.{name}", np.repeat(held[f"pairs.{name}"], 2, axis=1))
    assert refused > 80
    with pytest.raises(CalibError, match="'header.pairs_sampled_from' is not as great as the pairs"):
        FitStatistics.from_bytes(changed_header(data, '"pairs_sampled_from": ', '"pairs_sampled_from": 1, "was": '))
    with pytest.raises(CalibError, match="'header.totals' is not consistent: there are more unknown labels"):
        FitStatistics.from_bytes(changed_header(data, '"unknown_labels": 1', '"unknown_labels": 9'), "some.npz")
    assert FitStatistics.from_bytes(data).to_bytes() == data


def test_damaged_files_are_one_sentence():
    data = shard([read_doc(random.Random(1), i) for i in range(9)], "a").to_bytes()
    flipped = bytearray(data)
    flipped[data.index(b"header.json") + 60] ^= 255
    broken = {
        "cut short": data[: len(data) // 2],
        "C427": bytes(flipped),
        "it is no such file": b"not a file of statistics",
        f"C429.*version 1, but this spacy-calib reads version {VERSION}": changed_header(
            data, f'"version": {VERSION}', '"version": 1'
        ),
        "C430.*collected for `calib evaluate`": changed_header(data, '"statistics_for": "fit"', '"statistics_for": "evaluate"'),
        "'header.identity.weights' is not there": changed_header(data, '"weights"', '"heights"'),
        "cannot be read: Expecting ':'": changed_header(data, '":', '"'),
        "has no header.json": changed_header(data, "", "").replace(b"header.json", b"hooter.json"),
    }
    for sentence, content in broken.items():
        with pytest.raises(CalibError, match=sentence):
            FitStatistics.from_bytes(content, "some.npz")
    assert FitStatistics.from_bytes(data).name == "shard 'a'"


def test_arrays_that_do_not_fit_one_another_are_refused():
    held = read_doc(random.Random(2), 1).hidden(KEY, "").arrays()
    for key in ("digests", "rows", "gold", "spans.gold", "words.forms", "words.seals"):
        with pytest.raises(ValueError, match="is not"):
            Readings.of_arrays({**held, key: np.append(held[key], held[key][:1])})
        if key != "words.seals":  # without a key there are none
            with pytest.raises(ValueError, match="is not"):
                Readings.of_arrays({name: array for name, array in held.items() if name != key})
    with pytest.raises(ValueError, match="is not"):
        Readings.of_arrays({**held, "scores": held["scores"].astype(str)})


def test_words_are_hidden_by_a_key_and_come_back_with_it():
    docs = Readings.joined([read_doc(random.Random(seed), seed) for seed in range(20)])
    docs = docs.take(np.flatnonzero(docs.n_rows > 2))  # different ones
    hidden = docs.hidden(KEY, "a").words
    for name in ("forms", "endings"):  # equal words do not look alike
        assert len(np.unique(getattr(hidden, name))) == len(docs.words) > len(np.unique(getattr(docs.words, name)))
    order = np.array(random.Random(1).sample(range(len(docs)), len(docs)))
    moved = docs.hidden(KEY, "a").take(order).words
    assert np.array_equal(moved.shown(KEY).forms, docs.take(order).words.forms)
    assert np.array_equal(moved.shown(KEY).endings, docs.take(order).words.endings)
    with pytest.raises(CalibError, match="C427"):
        replace(moved, forms=moved.forms + np.uint64(1)).shown(KEY)
    assert not docs.hidden(None, "a").words.forms.any()


@pytest.mark.parametrize("key", ["", KEY.fingerprint])
def test_a_file_is_of_a_key_where_its_words_are_hidden(key):
    data, other = (shard([read_doc(random.Random(2), 1)], "a", key=one).to_bytes() for one in (key, ""))
    assert ("sample.words.forms" in arrays_of(data)) == bool(key)
    if key:
        with pytest.raises(CalibError, match="'sample.words.seals' is not there where the header names a key"):
            FitStatistics.from_bytes(changed_header(other, '"key": ""', f'"key": "{key}"'))
