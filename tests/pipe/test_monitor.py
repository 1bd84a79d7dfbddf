"""The monitor of a running pipeline: it counts what the attributes say, adds up in any order, and bears threads."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from spacy.tokens import Doc, DocBin

from spacy_calib import CalibError, Monitor
from spacy_calib.expect.alarms import EMPTY, OPEN
from spacy_calib.expect.windows import ONE
from tests.conftest import examples_for, made_up_sentences, run_upstream
from tests.expect.streams import few_draws  # noqa: F401


def texts(n, seed=5):
    return [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(n, seed)]


def watched(nlp, docs, **settings):
    monitor = Monitor(nlp, **settings)
    for doc in docs:
        monitor.update(doc)
    return monitor


def only(monitor):
    """The only window, which has no verdict yet: that would be simulated."""
    (window,) = monitor.snapshot()["windows"]
    return window


def check_against_attributes(docs, counts, labels):
    """The sums and labels of a window, by the attributes of the tokens."""
    tokens = [token for doc in docs for token in doc if token._.calib_score is not None and not token.is_space]
    assert counts["tokens"] == len(tokens)
    assert counts["expected"] / ONE == pytest.approx(sum(token._.calib_score for token in tokens), abs=1e-4)
    spans = [span for doc in docs for span in doc.ents if span._.calib_score is not None]
    assert counts["spans"] == len(spans)
    assert counts["spans_expected"] / ONE == pytest.approx(sum(span._.calib_score for span in spans), abs=1e-4)
    if labels is not None:
        names = Counter(token.tag_ for token in tokens)
        assert counts["labels"] == [*(names[label] for label in labels), 0]


def test_it_counts_what_the_attributes_say(fitted):
    docs = [*fitted.pipe(texts(70)), fitted("the  dog \n saw ."), fitted(""), fitted.make_doc("never read")]
    window = only(watched(fitted, docs))
    assert (window["documents"], window["counts"]["scored"]) == (73, 71)
    check_against_attributes(docs, window["counts"], fitted.get_pipe("calib").learned.record.profile.labels)
    assert sum(map(sum, window["counts"]["raw"])) == sum(map(sum, window["counts"]["calibrated"])) == window["tokens"]
    assert window["low"] < window["expected"] < window["high"]


def test_docs_that_were_cut_joined_or_changed_are_read_token_by_token(fitted):
    one, other = fitted("the old dog saw a duck . light run red ."), fitted("the cat eats .")
    joined = Doc.from_docs([one, other])
    cut = one[2:7].as_doc(copy_user_data=True)
    changed = fitted("the old dog saw a duck .")
    with changed.retokenize() as retokenizer:
        retokenizer.merge(changed[1:3])
    for docs in ([joined], [cut], [changed], [joined, one, cut, changed]):
        check_against_attributes(docs, only(watched(fitted, docs))["counts"], None)
    restored = list(DocBin(docs=[one], store_user_data=True).get_docs(fitted.vocab))
    assert watched(fitted, restored).to_dict() == watched(fitted, [one]).to_dict()


def test_labels_below_the_threshold_count(fitted):
    """Set by somebody else before calib ran: the model gave them next to nothing."""
    calib = fitted.get_pipe("calib")
    calib.threshold = 0.3
    doc = fitted("the old dog saw a duck .")
    for token in doc:
        token.tag_ = "PUNCT"
    calib(doc)
    assert any("extra" in block for block in doc.user_data.values())
    check_against_attributes([doc], only(watched(fitted, [doc]))["counts"], None)


def test_labels_below_the_threshold_are_counted_in_their_own_docs(fitted):
    """They landed on the first Doc that was counted with them; here its tokens are white space, which does not count."""
    calib = fitted.get_pipe("calib")
    calib.threshold = 0.3
    docs = [fitted(" \n" * 6), fitted("the old dog saw a duck ."), fitted("a cat .")]
    for doc in docs[1:]:
        for token in doc:
            token.tag_ = "PUNCT"
        calib(doc)
    together = watched(fitted, docs)
    check_against_attributes(docs, only(together)["counts"], None)
    assert only(together)["tokens"] == 10
    alone = watched(fitted, [])
    for doc in docs:
        alone.merge(watched(fitted, [doc]))
    assert together.to_dict() == alone.to_dict()


@pytest.mark.parametrize("component", ["trainable_lemmatizer", "morphologizer"])
def test_other_components_are_counted_too(nlp, component):
    calib = nlp.add_pipe(
        "calib", after=component, config={"source": {"@calib_sources": "spacy-calib.Softmax.v1", "component": component}}
    )
    with nlp.select_pipes(disable=["calib"]):
        examples = run_upstream(nlp, examples_for(nlp, 60, seed=2))
    calib.fit(examples)
    docs = list(nlp.pipe(texts(20)))
    check_against_attributes(docs, only(watched(nlp, docs))["counts"], None)


def test_windows_are_full_after_so_many_documents(fitted):
    monitor = watched(fitted, list(fitted.pipe(texts(25))), window=10)
    found = monitor.snapshot()
    assert [(line["at"], line["documents"]) for line in found["windows"]] == [(1, 10), (2, 10), (3, 5)]
    assert [line["verdict"] == OPEN for line in found["windows"]] == [False, False, True]
    assert (found["documents"], found["alarms"], found["rate"]) == (25, 0, 1000)
    assert monitor.snapshot(closing=True)["windows"][2]["verdict"] != OPEN


def test_texts_of_another_kind_give_an_alarm(fitted):
    docs = [fitted("the the the a a a . .")] * 60
    assert only(watched(fitted, docs, window=60))["alarm"]


def test_windows_by_date(fitted):
    monitor, doc = Monitor(fitted, window="month"), fitted("the dog saw .")
    for when in ("2026-01-31", date(2026, 3, 1), "2026-01-01T10:00:00Z"):
        monitor.update(doc, when)
    lines = monitor.snapshot()["windows"]
    assert [(line["at"], line["documents"]) for line in lines] == [("2026-01", 2), ("2026-02", 0), ("2026-03", 1)]
    assert [line["verdict"] for line in lines][1:] == [EMPTY, OPEN]
    with pytest.raises(CalibError, match="C240"):
        monitor.update(doc, "tomorrow")
    today = Monitor(fitted, window="day")
    today.update(doc)
    assert only(today)["at"] >= "2026"


@pytest.mark.parametrize("window", [7, "day"])
def test_monitors_merged_in_any_order_give_the_same_numbers(fitted, window):
    docs = list(fitted.pipe(texts(40)))
    when = [f"2026-01-0{1 + i % 3}" for i in range(len(docs))]
    parts = [docs[:3], docs[3:19], docs[19:20], docs[20:]]

    def monitors():
        made = [Monitor(fitted, window) for _ in parts]
        for monitor, part in zip(made, parts, strict=True):
            for doc in part:
                monitor.update(doc, when[docs.index(doc)])
        return made

    def counted(monitor):
        return monitor.to_dict()["windows"]

    a, b, c, d = monitors()
    one = counted(a.merge(b).merge(c).merge(d))
    a, b, c, d = monitors()
    other = counted(d.merge(c).merge(Monitor(fitted, window).merge(b).merge(a)))
    a, b, c, d = monitors()
    lines = json.loads(json.dumps([line for m in (c, a, d, b) for line in counted(m)]))
    assert one == other == counted(Monitor(fitted, window).add_lines(lines))
    assert sum(line["counts"]["documents"] for line in one) == 40
    if window == "day":
        whole = Monitor(fitted, window)
        for doc, day in zip(docs, when, strict=True):
            whole.update(doc, day)
        assert counted(whole) == one


def test_streams_of_several_names_stay_apart(fitted):
    doc = fitted("the dog saw .")
    merged = watched(fitted, [doc], part="b").merge(watched(fitted, [doc] * 2, part="a"))
    assert [(line["part"], line["counts"]["documents"]) for line in merged.to_dict()["windows"]] == [("a", 2), ("b", 1)]


def test_threads_lose_no_document(fitted):
    docs, monitor = list(fitted.pipe(texts(30))), Monitor(fitted, window=50)
    errors = []

    def work():
        try:
            for doc in docs:
                monitor.update(doc)
                monitor.to_dict()
        except Exception as error:  # pragma: no cover
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = watched(fitted, docs * 6, window=1000)
    assert errors == []
    assert [line["counts"]["documents"] for line in monitor.to_dict()["windows"]] == [50, 50, 50, 30]
    total = Monitor(fitted, window=1000)._layout.nothing()
    for counts in monitor._windows.values():
        total = total + counts
    assert total.to_dict() == only(alone)["counts"]


def test_it_comes_back_from_json_and_goes_on(fitted):
    docs = list(fitted.pipe(texts(12)))
    monitor = watched(fitted, docs[:7], window=5, rate=200, part="worker", confidence=0.9)
    data = json.loads(json.dumps(monitor.to_dict()))
    again = Monitor.from_dict(fitted.get_pipe("calib"), data)
    assert again.to_dict() == data
    for doc in docs[7:]:
        monitor.update(doc)
        again.update(doc)
    assert again.snapshot() == monitor.snapshot()


def test_no_word_is_kept(fitted):
    monitor = watched(fitted, list(fitted.pipe(["the zebra saw the zebra ."] * 3)))
    kept = json.dumps([monitor.to_dict(), monitor.lines()])
    assert "zebra" not in kept
    assert str(fitted.vocab.strings["zebra"]) not in kept
    assert monitor._buffer == []


def test_windows_can_be_handed_over(fitted):
    docs = list(fitted.pipe(texts(12)))
    monitor = watched(fitted, docs[:7], window=5)
    first = monitor.take()
    assert monitor.snapshot()["windows"] == []
    for doc in docs[7:]:
        monitor.update(doc)
    assert [(one["at"], one["counts"]["documents"]) for one in first["windows"]] == [(1, 5), (2, 2)]
    second = monitor.to_dict()["windows"]
    assert [(one["at"], one["counts"]["documents"]) for one in second] == [(3, 5)]
    assert Monitor.from_dict(fitted, first).merge(monitor).to_dict()["windows"] == [*first["windows"], *second]


def test_other_pipes_and_windows_are_not_added(fitted, trained_bytes):
    monitor, doc = Monitor(fitted), fitted("the dog saw .")
    other = Monitor(fitted, window=100)
    other.update(doc)
    with pytest.raises(CalibError, match="C238.*100 documents.*200 documents"):
        monitor.merge(other)
    data = watched(fitted, [doc]).to_dict()
    calib = fitted.get_pipe("calib")
    profile = calib.learned.record.profile
    changed = replace(profile, calibrated=profile.calibrated + 1e-9)
    calib.learned = replace(calib.learned, record=replace(calib.learned.record, profile=changed))
    with pytest.raises(CalibError, match="C237"):
        Monitor(fitted).merge(monitor)
    with pytest.raises(CalibError, match="C237"):
        Monitor.from_dict(fitted, data)
    with pytest.raises(CalibError, match="C237"):
        Monitor(fitted).add_lines(data["windows"])


@pytest.mark.parametrize(
    "line",
    [
        {"text": "a"},
        [],
        {"at": 0},
        {"at": "2026"},
        {"counts": {}},
        {"window": True},
        {"calib_watch": 2},
        {"counts": {"tokens": -1}},
    ],
)
def test_what_is_no_window_is_refused(fitted, line):
    doc = fitted("the dog saw .")
    (good,) = watched(fitted, [doc]).to_dict()["windows"]
    bad = line if not isinstance(line, dict) or "text" in line else {**good, **line}
    with pytest.raises(CalibError, match="C239.*line 2"):
        Monitor(fitted).add_lines([good, bad])
    with pytest.raises(CalibError, match="C239"):
        Monitor.from_dict(fitted, bad)


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 0},
        {"window": "hour"},
        {"window": True},
        {"window": 2.5},
        {"rate": 0.5},
        {"rate": np.inf},
        {"rate": "often"},
        {"confidence": 1},
    ],
)
def test_settings_out_of_range(fitted, settings):
    with pytest.raises(CalibError, match="C001"):
        Monitor(fitted, **settings)


def test_what_cannot_be_watched(nlp, fitted):
    calib = fitted.get_pipe("calib")
    calib.learned = replace(calib.learned, record=None)
    with pytest.raises(CalibError, match="C236"):
        Monitor(fitted)
    with pytest.raises(CalibError, match="C068"):
        Monitor(fitted, attr="other")
    fitted.remove_pipe("calib")
    with pytest.raises(CalibError, match="C027"):
        Monitor(fitted)
    fitted.add_pipe("calib")
    with pytest.raises(CalibError, match="C027"):
        Monitor(fitted)
    with pytest.raises(CalibError, match="C236"):
        Monitor(fitted.get_pipe("calib"))
