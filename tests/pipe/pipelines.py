"""Fitted pipelines that together hold each part that is saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import spacy
from spacy.language import Language

from spacy_calib.calibration.cutoffs import Cutoffs
from tests.cli.conftest import bare_docs, entity_docs, trained_recognizer
from tests.conftest import examples_for, run_upstream, train_pipeline

_SETS = {"@calib_sets": "spacy-calib.ConformalSets.v1", "alpha": 0.2}
_AUTO = {"@calib_selections": "spacy-calib.Auto.v1", "n_groups": [1, 2], "methods": ["platt", "isotonic"]}


def isotonic() -> Language:
    """A tagger with the default settings of the pipe."""
    return _tagger({})


def auto() -> Language:
    """A tagger with all that a token can be given."""
    pooling = {"@calib_poolings": "spacy-calib.TagOffsets.v1"}
    return _tagger({"selection": _AUTO, "pooling": pooling, "sets": _SETS, "normalize": "other"})


def context() -> Language:
    """A tagger whose scores look at the words around."""
    return _tagger({"context": {"@calib_contexts": "spacy-calib.Context.v1", "when": "always"}})


def _tagger(settings: dict[str, Any]) -> Language:
    nlp = train_pipeline(["tagger"], listener=False)
    calib = nlp.add_pipe("calib", config=settings)
    with nlp.select_pipes(disable=["calib"]):
        examples = run_upstream(nlp, examples_for(nlp, 80, seed=2))
    calib.fit(examples)
    return nlp


def ner() -> Language:
    """A recognizer that keeps its probabilities, with maps of entities and a cut-off."""
    from spacy.training import Example

    saved = trained_recognizer("ner")
    config = saved["config"].copy()
    config["components"]["ner"]["factory"] = "calib_ner"
    nlp = spacy.util.load_model_from_config(config).from_bytes(saved["bytes"])
    nlp.remove_pipe("tagger")
    calib = nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}})
    gold = entity_docs(60, 31, nlp.vocab)
    examples = [Example(doc, right) for doc, right in zip(bare_docs(nlp, gold), gold, strict=True)]
    with nlp.select_pipes(disable=["calib"]):
        run_upstream(nlp, examples)
    calib.fit(examples)
    calib.spans.cutoffs = Cutoffs(0.8, 0.9, "all", {"all": 0.6})
    return nlp


PIPELINES: dict[str, Callable[[], Language]] = {"isotonic": isotonic, "auto": auto, "context": context, "ner": ner}
