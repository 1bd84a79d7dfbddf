"""Scores that any component left with spans: read where they stand, calibrated, and refused in words where they are none."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.registry import registry
from spacy_calib.sources.span_scores import SpanScoresSource
from tests.conftest import run_upstream
from tests.sentences import says
from tests.sources.test_spancat import KEY, TEXT, examples_for, train, with_calib

GROUPING = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 2}
SOURCE = {"@calib_sources": "spacy-calib.SpanScores.v1"}
LABELS = ("LOC", "PER")


@pytest.fixture
def conf() -> Iterator[None]:
    """The extension `span._.conf`, as somebody's component registers it."""
    Span.set_extension("conf", default=None, force=True)
    yield
    Span.remove_extension("conf")


def span_examples(n: int, seed: int, key: str = "", write: bool = True, label: str = "PER") -> list[Example]:
    """Names whose scores are too high: right as often as the square of the score says. With span._.conf, or attrs where there is a key."""
    rng = np.random.default_rng(seed)
    vocab = spacy.blank("xx").vocab
    examples = []
    for _ in range(n):
        words = ["Ann", "met", "Bob", "Hill", "in", "Rome"]
        predicted, gold = Doc(vocab, words=words), Doc(vocab, words=words)
        spans = [Span(predicted, 0, 1, label), Span(predicted, 2, 4, label), Span(predicted, 5, 6, "LOC")]
        scores = rng.uniform(0.3, 1.0, len(spans))
        right = [span for span, score in zip(spans, scores, strict=True) if rng.random() < score**2]
        put(predicted, spans, key)
        put(gold, [Span(gold, span.start, span.end, span.label_) for span in right], key)
        if key and write:
            predicted.spans[key].attrs["scores"] = scores.tolist()
        elif write:
            for span, score in zip(predicted.ents, scores, strict=True):
                span._.conf = float(score)
        examples.append(Example(predicted, gold))
    return examples


def put(doc: Doc, spans: list[Span], key: str) -> None:
    if key:
        doc.spans[key] = spans
    else:
        doc.set_ents(spans, default="outside")


def pipe_for(**settings) -> tuple[Language, object]:
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe("calib", config={"source": {**SOURCE, **settings}, "grouping": GROUPING, "token_scores": True})


def fitted_pipe(examples: list[Example], **settings):
    nlp, calib = pipe_for(**settings)
    calib.fit(examples)
    return nlp, calib


@pytest.fixture(scope="module", params=["spancat", "spancat_singlelabel"])
def both_ways(request):
    """Docs through a span categorizer whose scores are read by its own source, and as anybody's scores (with and without O)."""
    trained = train(request.param)
    nlp = with_calib(trained)
    direct = nlp.get_pipe("calib")
    others = {
        attr: nlp.add_pipe("calib", attr, config={"attr": attr, "grouping": GROUPING, "source": {**SOURCE, **settings}})
        for attr, settings in {
            "with_outside": {"component": "spancat", "spans_key": KEY, "outside": True},
            "without_outside": {"component": "spancat", "spans_key": KEY},
        }.items()
    }
    with nlp.select_pipes(enable=["spancat"]):
        examples = run_upstream(nlp, examples_for(nlp, 80, seed=2))
    for calib in (direct, *others.values()):
        calib.fit(examples)
    return list(nlp.pipe([TEXT, "red dog", "."]))


def test_spans_have_the_scores_of_the_direct_way(both_ways):
    spans = [span for doc in both_ways for span in doc.spans[KEY]]
    assert len(spans) > 3
    for span in spans:
        for attr in ("with_outside", "without_outside"):
            assert abs(getattr(span._, f"{attr}_score") - span._.calib_score) < 1e-12
            assert getattr(span._, f"{attr}_raw") == span._.calib_raw
    for doc in both_ways:
        assert doc.spans[KEY].attrs["without_outside_scores"] == pytest.approx(doc.spans[KEY].attrs["calib_scores"], abs=1e-12)


def test_with_outside_all_tokens_have_the_scores_of_the_direct_way(both_ways):
    for token in (token for doc in both_ways for token in doc):
        assert abs(token._.with_outside_score - token._.calib_score) < 1e-12


def test_without_outside_only_tokens_in_spans_have_scores(both_ways):
    outside = [t for doc in both_ways for t in doc if not any(s.start <= t.i < s.end for s in doc.spans[KEY])]
    inside = [t for doc in both_ways for t in doc if t not in outside]
    assert outside
    assert all(token._.without_outside_score is None and token._.without_outside_scores == {} for token in outside)
    assert all(
        "O" not in token._.without_outside_scores and token._.without_outside_raw == token._.calib_raw for token in inside
    )


@pytest.mark.parametrize("key", ["", "x"])
def test_learned_from_spans_that_have_one_score_each(conf, key):
    settings = {"spans_key": key} if key else {"score": "_.conf"}
    nlp, calib = fitted_pipe(span_examples(150, 0, key), **settings)
    doc = calib(span_examples(1, 1, key)[0].predicted)
    spans = list(doc.spans[key] if key else doc.ents)
    given = doc.spans[key].attrs["scores"] if key else [span._.conf for span in spans]
    assert [span._.calib_raw for span in spans] == given
    # Right as often as the square says.
    assert [span._.calib_score for span in spans] == pytest.approx([score**2 for score in given], abs=0.12)
    assert calib.labels == ("O", *LABELS)
    assert calib.fit_info.spans.labels == list(LABELS)
    # Inside of a span its tokens have its score for its label; outside there is none.
    assert [token._.calib_raw for token in doc] == [given[0], None, given[1], given[1], None, given[2]]
    assert [set(token._.calib_scores) for token in doc] == [{"PER"}, set(), {"PER"}, {"PER"}, set(), {"LOC"}]


def test_what_is_loaded_comes_with_its_labels(conf, register):
    """The component stood there already when the state was read, and its labels were looked for before they were there."""
    Language.component("nothing_of_its_own", func=lambda doc: doc)

    def pipeline() -> Language:
        nlp = spacy.blank("xx")
        nlp.add_pipe("nothing_of_its_own")
        nlp.add_pipe("calib", config={"source": {**SOURCE, "component": "nothing_of_its_own", "score": "_.conf"}})
        return nlp

    saved = []
    for label in ("PER", "ORG"):
        nlp = pipeline()
        nlp.get_pipe("calib").fit(span_examples(60, 0, label=label))
        saved.append(nlp.to_bytes())
    nlp = pipeline()
    for data, labels in zip(saved, (("O", "LOC", "PER"), ("O", "LOC", "ORG")), strict=True):
        assert nlp.from_bytes(data).get_pipe("calib").labels == nlp.get_pipe("calib").source.labels(None) == labels


def test_a_span_without_a_score_gets_none(conf):
    _, calib = fitted_pipe(span_examples(60, 0), score="_.conf")
    doc = span_examples(1, 1)[0].predicted
    doc.ents[1]._.conf = None
    calib(doc)
    assert [span._.calib_score is None for span in doc.ents] == [False, True, False]
    assert [token._.calib_score is None for token in doc] == [False, True, True, True, True, False]
    # In a group too, where the best span of the token is another one.
    _, calib = fitted_pipe(span_examples(60, 0, "x"), spans_key="x")
    doc = span_examples(1, 1, "x")[0].predicted
    doc.spans["x"] = [Span(doc, 2, 4, "PER"), Span(doc, 3, 4, "LOC")]
    doc.spans["x"].attrs["scores"] = [None, 0.5]
    calib(doc)
    assert [span._.calib_raw for span in doc.spans["x"]] == [None, 0.5]
    assert (doc[2]._.calib_score, doc[3]._.calib_score) == (None, None)  # they carry PER
    assert list(doc[3]._.calib_scores) == ["LOC"]
    assert np.isnan(doc.spans["x"].attrs["calib_scores"]).tolist() == [True, False]


def test_docs_that_cannot_be_read_get_none_and_a_reason(conf):
    _, calib = fitted_pipe(span_examples(60, 0, "x"), spans_key="x")
    vocab = spacy.blank("xx").vocab
    bare, other = Doc(vocab, words=["Ann"]), Doc(vocab, words=["Ann"])
    other.spans["x"] = [other[:1]]
    for doc, why in ((bare, "doc.spans has no key 'x'"), (other, r"nothing at doc.spans\['x'\].attrs\['scores'\]")):
        with pytest.warns(UserWarning, match=rf"\[CW02\].*{why}"):
            calib(doc)
        assert doc._.calib is None
    _, calib = fitted_pipe(span_examples(60, 0), score="_.conf")
    with pytest.warns(UserWarning, match=r"\[CW02\].*doc.ents was not set"):
        calib(Doc(vocab, words=["Ann"]))


def test_no_spans_are_no_fault(conf):
    _, calib = fitted_pipe(span_examples(60, 0), score="_.conf")
    doc = Doc(spacy.blank("xx").vocab, words=["Ann"], ents=["O"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calib(doc)
    assert doc._.calib.ents == ()
    assert doc[0]._.calib_score is None


def test_labels_of_the_settings_come_before_those_of_the_component_and_these_before_learned_ones(conf):
    class Names:
        labels = ("PER", "ORG", "LOC")

    assert SpanScoresSource().labels(None) == ()
    assert SpanScoresSource(labels=["PER"]).labels(Names()) == ("O", "PER")
    assert SpanScoresSource().labels(Names()) == ("O", "PER", "ORG", "LOC")
    learned = SpanScoresSource(score="_.conf")
    docs = [example.predicted for example in span_examples(3, 0)]
    assert learned.learn_labels(None, docs) == ()
    assert learned.labels(None) == ("O", *LABELS)
    assert SpanScoresSource(score="_.conf", labels=["PER"]).learn_labels(None, docs) == ("LOC",)


def test_a_label_that_is_not_known_is_said_and_gets_none(conf):
    nlp, calib = pipe_for(score="_.conf", labels=["PER"])
    with pytest.warns(UserWarning, match=r"\[CW19\].*'calib'.*labels LOC"):
        calib.fit(span_examples(60, 0))
    assert [span._.calib_score is None for span in calib(span_examples(1, 1)[0].predicted).ents] == [False, False, True]


def test_not_fitted_it_says_that_labels_are_learned(conf):
    nlp, calib = pipe_for(score="_.conf")
    calib.warn.warned_keys.add("CW01{}")
    with pytest.warns(UserWarning, match=r"\[CW02\].*its labels are learned by the fit"):
        doc = calib(span_examples(1, 0)[0].predicted)
    assert doc._.calib is None


def test_single_precision_may_pass_one():
    doc = span_examples(1, 1, "x")[0].predicted
    doc.spans["x"].attrs["scores"] = np.array([1.0000001, 0.5, -1e-8], dtype=np.float32)
    assert SpanScoresSource(spans_key="x", labels=LABELS).read(None, [doc]).spans.scores.tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("values", [[0.5, 0.5], np.array([0.5] * 4), [], 0.5])
def test_as_many_scores_as_spans_are_wanted(values):
    doc = span_examples(1, 1, "x")[0].predicted
    doc.spans["x"].attrs["scores"] = values
    n = np.size(values)
    with pytest.raises(
        CalibError, match=rf"^\[C283\] There are {n} scores at doc.spans.*, but 3 in the document .*'Ann met Bob"
    ):
        SpanScoresSource(spans_key="x", labels=LABELS).read(None, [doc])


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), [0.5]])
def test_one_number_is_the_score_of_the_only_span(value):
    doc = span_examples(1, 1, "x")[0].predicted
    doc.spans["x"] = [doc[0:1]]
    doc.spans["x"].attrs["scores"] = value
    assert SpanScoresSource(spans_key="x", labels=("",)).read(None, [doc]).spans.scores.tolist() == [0.5]


def test_of_entities_a_name_is_the_key_of_a_group():
    docs = [eg.predicted for eg in span_examples(1, 1, write=False)]
    assert SpanScoresSource(score="found", labels=LABELS).missing(None, docs) == [
        "doc.spans has no key 'found'; run the component that sets it first"
    ]


@pytest.mark.parametrize("score", ["", "found,", [], ["found", 3], 5])
def test_scores_without_a_name(score):
    with pytest.raises(CalibError, match=r"\[C001\] score must be a name, or several"):
        SpanScoresSource(score=score)


def test_labels_that_are_not_those_of_the_component(conf):
    nlp, calib = pipe_for(score="_.conf", labels=["PERSON", "GPE"])
    with pytest.raises(CalibError, match=r"^\[C284\] The source knows none .*\(LOC, PER; it knows PERSON, GPE\)"):
        calib.fit(span_examples(10, 0))


def test_a_component_that_left_nothing(conf):
    nlp, calib = pipe_for(score="_.conf")
    with pytest.raises(CalibError, match=says("C285", where="span._.conf")):
        calib.fit(span_examples(10, 0, write=False))


@pytest.mark.parametrize(
    ("setting", "value"), [("scaling", {"@calib_scalings": "spacy-calib.TemperatureScaling.v1"}), ("normalize", True)]
)
def test_settings_that_weigh_labels_are_refused(conf, setting, value):
    nlp = spacy.blank("xx")
    calib = nlp.add_pipe("calib", config={"source": {**SOURCE, "score": "_.conf"}, setting: value})
    with pytest.raises(CalibError, match=says("C287", setting=setting)):
        calib.fit(span_examples(30, 0))


def test_a_pipeline_of_functions_is_told_apart_by_their_names(conf):
    nlp = spacy.blank("xx")

    @Language.component("guess_names")
    def guess_names(doc: Doc) -> Doc:
        return doc

    nlp.add_pipe("guess_names")
    assert SpanScoresSource("guess_names").type_name(nlp.get_pipe("guess_names")).endswith("guess_names")
    assert registry.resolve({"source": {**SOURCE, "component": "guess_names"}})["source"].reads_output(None)


@pytest.mark.parametrize("place", [{"score": "found"}, {"spans_key": "found"}])
def test_a_doc_without_words_needs_no_group(place):
    source, doc = SpanScoresSource(labels=["P"], **place), Doc(spacy.blank("xx").vocab)
    assert source.missing(None, [doc]) == [""]
    assert len(source.read(None, [doc]).spans) == 0
