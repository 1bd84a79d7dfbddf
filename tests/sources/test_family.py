"""What every source must do, over all that are registered (STYLE section 3). A new source adds its rows to CASES, that of a plug-in to its rows.py."""

import re
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_calib.errors import CalibError
from spacy_calib.registry import registry
from spacy_calib.sources.find import ComponentIdentity, find_component, registered_sources, source_name_for
from spacy_calib.sources.mapped import with_map
from spacy_calib.sources.scores_on_doc import DocScoresSource, TokenScoresSource
from spacy_calib.sources.source import Source
from spacy_calib.sources.span_scores import SpanScoresSource
from tests.conftest import revive
from tests.family import SourceRow, rows_of_plugins
from tests.made import revive_categorizer
from tests.sources.ner import trained_once
from tests.sources.parser import trained as trained_parser
from tests.sources.test_spancat import KEY, train

SENTENCES = "the old dog saw a duck . light run red ."
LABELS = ["A", "B", "C"]
OF_TENSOR = {"labels": LABELS, "layer": "tag"}
OF_GROUP = {"spans_key": KEY}

# Factory -> a row of a plug-in.
ADDED: dict[str, SourceRow] = {row.case[2]: row for row in rows_of_plugins("sources")}
# (registered name, settings, factory of the component that is read)
CASES: list[tuple[str, dict[str, Any], str]] = [
    *(("spacy-calib.Softmax.v1", {}, name) for name in ("tagger", "morphologizer", "senter", "trainable_lemmatizer")),
    ("spacy-calib.Pos.v1", {}, "morphologizer"),
    *(("spacy-calib.Ner.v1", {}, name) for name in ("ner", "beam_ner", "calib_ner", "calib_beam_ner")),
    ("spacy-calib.Ner.v1", {"granularity": "biluo"}, "ner"),
    ("spacy-calib.Ner.v1", {"granularity": "biluo", "beam_width": 4, "beam_density": 0.01}, "calib_ner"),
    *(("spacy-calib.Parser.v1", {}, name) for name in ("parser", "calib_parser")),
    ("spacy-calib.Parser.v1", {"event": "arc"}, "calib_parser"),
    *(("spacy-calib.Spancat.v1", {}, name) for name in ("spancat", "spancat_singlelabel")),
    ("spacy-calib.Spancat.v1", {"lowest": 0.05}, "spancat"),
    *(("spacy-calib.Textcat.v1", {}, name) for name in ("textcat", "textcat_multilabel")),
    ("spacy-calib.DocTensor.v1", OF_TENSOR, ""),
    ("spacy-calib.DocTensor.v1", {**OF_TENSOR, "key": "probs", "subprobabilities": True}, ""),
    ("spacy-calib.TokenScores.v1", {"score": "probs", "labels": LABELS}, ""),
    ("spacy-calib.TokenScores.v1", {"score": "probs", "labels": LABELS, "layer": "ent_type"}, ""),
    ("spacy-calib.DocScores.v1", {}, "textcat"), ("spacy-calib.DocScores.v1", {"exclusive": False}, "textcat_multilabel"),
    ("spacy-calib.DocScores.v1", {"score": "probs", "labels": LABELS}, ""), ("spacy-calib.SpanScores.v1", OF_GROUP, "spancat"),
    ("spacy-calib.SpanScores.v1", {**OF_GROUP, "outside": True}, "spancat"),
    ("spacy-calib.SpanScores.v1", {**OF_GROUP, "labels": LABELS}, ""), *(row.case for row in rows_of_plugins("sources")),
]  # fmt: skip


def name_of(case) -> str:
    name, settings, factory = case
    return "-".join([name.split(".")[1], factory, *map(str, settings.values())])


# Lemmas and sentence starts are no labels of a scheme.
NOT_MAPPED = ("trainable_lemmatizer", "senter", *(name for name, row in ADDED.items() if not row.mapped))
PLAIN = [pytest.param(case, False, id=name_of(case)) for case in CASES]
MAPPED = [pytest.param(case, True, id=f"mapped-{name_of(case)}") for case in CASES if case[2] not in NOT_MAPPED]
# Each by its own labels, and by those of another scheme.
every_case = pytest.mark.parametrize(("case", "mapped"), [*PLAIN, *MAPPED])


def config_of(case) -> dict[str, Any]:
    name, settings, factory = case
    component = {"component": component_of(factory)} if factory else {}
    return {"@calib_sources": name, **component, **settings}


def component_of(factory: str) -> str:
    known = re.search("^spancat|^textcat|ner$|parser$", factory)
    return known[0] if known else factory


def make(case) -> Source:
    """Resolved from a config, as `[components.calib.source]` is."""
    return registry.resolve({"source": config_of(case)})["source"]


def with_other_labels(source: Source, pipe: Any) -> Source:
    """Two labels are one in the other scheme, and one has no counterpart."""
    named = source.span_labels(pipe)
    names = named if len(named) > 1 else source.labels(pipe)
    return with_map(source, {names[0]: "both", names[1]: "both", **dict.fromkeys(names[3:4], "")})


@pytest.fixture
def world(case, mapped, trained_bytes) -> tuple[Language, Source, Any]:
    """(pipeline, source, the component that it reads)."""
    factory = case[2]
    component = component_of(factory)
    if component == "ner":
        nlp = trained_once(factory)
    elif component == "parser":
        nlp = trained_parser(factory)
    elif component == "spancat":
        nlp = revive(train(factory))
    elif factory in ADDED:
        nlp = ADDED[factory].pipeline()
    elif component == "textcat":
        nlp = revive_categorizer(factory)
        if factory != component:
            nlp.rename_pipe(factory, component)
    else:
        nlp = revive(trained_bytes)
    source, pipe = make(case), nlp.get_pipe(component) if factory else None
    return nlp, with_other_labels(source, pipe) if mapped else source, pipe


def docs_for(nlp: Language, source: Source) -> list[Doc]:
    """Two sentences, nothing, and one word; with an array of probabilities for sources that read one."""
    source = with_map(source, None)
    texts = (ADDED[source.component].texts if source.component in ADDED else ()) or (SENTENCES, "", "dog")
    docs = list(nlp.pipe(texts))
    for number, doc in enumerate(docs):
        array = np.random.default_rng(number).dirichlet(np.ones(len(LABELS)), size=len(doc))
        if isinstance(source, TokenScoresSource):
            doc.user_data["probs"] = [dict(zip(LABELS, row, strict=True)) for row in array.tolist()]
        elif isinstance(source, DocScoresSource) and not source.component:
            doc.user_data["probs"] = dict(zip(LABELS, array.mean(axis=0).tolist(), strict=True)) if len(doc) else None
        elif source.user_data_keys:
            doc.user_data[source.user_data_keys[0]] = array
        elif isinstance(source, SpanScoresSource) and not source.component:
            doc.spans[KEY] = [Span(doc, i, i + 1, LABELS[i % 2]) for i in range(len(doc))]
            doc.spans[KEY].attrs["scores"] = array[:, 0]
        elif not source.component:
            doc.tensor = array
    return docs


@every_case
def test_reads_probabilities_and_changes_no_doc(case, world):
    nlp, source, pipe = world
    docs = docs_for(nlp, source)
    before = [doc.to_bytes() for doc in docs]
    labels = source.labels(pipe)
    assert len(set(labels)) == len(labels)
    assert source.missing(pipe, [docs[0], docs[2]]) == ["", ""]
    scores = source.read(pipe, docs)
    marginals = scores.marginals_above(0.0)
    n_units = source.annotation(pipe).n_units
    assert scores.n_tokens == marginals.n_tokens == sum(map(n_units, docs))
    some = not source.distributions or source.annotation(pipe).kind.of_links
    assert set(marginals.rows.tolist()) == set(range(scores.n_tokens)) or (some and len(marginals))
    assert marginals.tags.min() >= 0
    assert marginals.tags.max() < len(labels)
    assert marginals.scores.min() >= 0
    assert marginals.scores.max() <= 1 + 1e-9
    if not source.annotation(pipe).kind.overlapping:
        assert np.bincount(marginals.rows, weights=marginals.scores).max() <= 1 + 1e-6
    cut = float(np.median(marginals.scores))
    kept = scores.marginals_above(cut)
    assert len(kept) == np.count_nonzero(marginals.scores >= cut)
    assert scores.scores_at(kept.rows, kept.tags) == pytest.approx(kept.scores)
    assert [doc.to_bytes() for doc in docs] == before


@every_case
def test_reads_each_doc_as_if_it_were_alone(case, world):
    nlp, source, pipe = world
    docs = docs_for(nlp, source)
    columns = np.arange(len(source.labels(pipe)))

    def table(docs: list[Doc]) -> Any:
        scores = source.read(pipe, docs)
        dense = np.zeros((scores.n_tokens, len(columns)))
        marginals = scores.marginals_above(1e-5)
        dense[marginals.rows, marginals.tags] = marginals.scores
        return dense

    alone = np.concatenate([table([doc]) for doc in docs if len(doc)])
    assert table(docs) == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize(("case", "mapped"), MAPPED)
def test_a_map_changes_labels_and_nothing_else(case, world):
    _, source, pipe = world
    own = with_map(source, None)
    settings = [name for name, value in vars(Source).items() if name[0] != "_" and isinstance(value, (str, bool, tuple))]
    assert "sets_labels" in settings
    assert {name: getattr(source, name) for name in settings} == {name: getattr(own, name) for name in settings}
    assert (source.claims(pipe), source.kept_labels()) == (own.claims(pipe), own.kept_labels())
    assert "both" in {label.rpartition("-")[2] for label in source.labels(pipe)}
    assert len(source.labels(pipe)) < len(own.labels(pipe))


@pytest.mark.parametrize(("case", "mapped"), PLAIN)
def test_settings_survive_a_saved_pipeline(case, world):
    _, source, _ = world
    nlp = spacy.blank("xx")
    nlp.add_pipe("calib", config={"source": config_of(case)})
    again = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert vars(again.get_pipe("calib").source) == vars(source)
    assert set(case[1]) - {"labels", "layer"} <= set(vars(source))


@every_case
def test_a_component_is_found_again_after_a_rename(case, world):
    nlp, source, pipe = world
    if pipe is None:
        assert source.component == ""
        assert with_map(source, None).labels(None)[-len(LABELS) :] == tuple(LABELS)
        return
    assert source.supports(pipe)
    assert source.is_trained(pipe)
    assert source.has_finite_weights(pipe)
    old, new = source.component, "renamed"
    nlp.rename_pipe(old, new)
    try:
        assert find_component(nlp, source, ComponentIdentity(source.type_name(pipe), source.labels(pipe))) is pipe
    finally:
        nlp.rename_pipe(new, old)


@pytest.mark.parametrize(
    ("name", "factory"),
    [(name, factory) for name, _, factory in CASES if factory and "Scores" not in name and "Pos" not in name],
)
def test_a_source_claims_its_component(name, factory):
    pipe = spacy.blank("xx").add_pipe(factory)
    claiming = [other for other, source in registered_sources().items() if source.claims(pipe)]
    assert claiming == [name] == [source_name_for(pipe)]


def test_what_none_claims_is_left_to_the_source_of_softmax_heads():
    assert source_name_for(spacy.blank("xx").add_pipe("sentencizer")) == "spacy-calib.Softmax.v1"


class Sentences(Source):
    """As a package of somebody else's could have it: it reads the tagger, too."""

    reads = ("sentencizer",)

    def __init__(self, component: str = "sentencizer"):
        self.component = component

    def supports(self, pipe: Any) -> bool:
        return hasattr(pipe, "punct_chars") or hasattr(pipe, "tag_acc")

    def claims(self, pipe: Any) -> bool:
        return hasattr(pipe, "punct_chars") or type(pipe).__name__ == "Tagger"

    def annotation(self, pipe: Any) -> Any: ...

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return ("S", "I")

    def missing(self, pipe: Any, docs: Any) -> list[str]:
        return [""] * len(docs)

    def read(self, pipe: Any, docs: Any) -> Any: ...


def test_a_source_from_outside_goes_before_ours(register):
    nlp = spacy.blank("xx")
    register("calib_sources", "another.Sentences.v1", Sentences)
    assert source_name_for(nlp.add_pipe("tagger")) == "another.Sentences.v1"
    assert source_name_for(nlp.add_pipe("sentencizer")) == "another.Sentences.v1"
    assert source_name_for(nlp.add_pipe("morphologizer")) == "spacy-calib.Softmax.v1"
    with pytest.raises(CalibError, match="C022.*'tagger' .Tagger.* spancat_singlelabel, .*sentencizer"):
        find_component(nlp, make(("spacy-calib.Spancat.v1", {"component": "tagger"}, "tagger")), ComponentIdentity())


def test_a_source_that_needs_settings_is_not_asked(register):
    def make_source(component: str) -> Source:
        return Sentences(component)

    register("calib_sources", "another.Sentences.v1", make_source)
    assert source_name_for(spacy.blank("xx").add_pipe("tagger")) == "spacy-calib.Softmax.v1"


def test_two_sources_from_outside_that_claim_one_component_are_both_named(register):
    register("calib_sources", "another.Sentences.v1", Sentences)
    register("calib_sources", "third.Sentences.v1", Sentences)
    pipe = spacy.blank("xx").add_pipe("tagger")
    with pytest.raises(CalibError, match="C200.*'tagger'.*another.Sentences.v1, third.Sentences.v1"):
        source_name_for(pipe)
