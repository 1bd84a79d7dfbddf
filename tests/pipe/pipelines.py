"""Fitted pipelines that together hold each part that is saved."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language

from spacy_calib.calibration.cutoffs import Cutoffs
from tests.cli.conftest import entity_examples, revive_recognizer
from tests.conftest import run_upstream, train_pipeline
from tests.made import examples_before_calib

_AUTO = {"n_groups": [1, 2], "methods": ["platt", "isotonic"]}


def isotonic() -> Language:
    """A tagger with the default settings of the pipe."""
    return _tagger({})


def auto() -> Language:
    """A tagger with all that a token can be given."""
    return _tagger({"selection": _AUTO, "tag_offsets": True, "normalize": True})


def context() -> Language:
    """A tagger whose scores look at the words around."""
    return _tagger({"context": {"@calib_contexts": "spacy-calib.Context.v1", "when": "always"}})


def _tagger(settings: dict[str, Any]) -> Language:
    nlp = train_pipeline(["tagger"], listener=False)
    calib = nlp.add_pipe("calib", config=settings)
    calib.fit(examples_before_calib(nlp, 80, 2))
    return nlp


def ner() -> Language:
    """A recognizer that keeps its probabilities, with maps of entities and a cut-off."""
    nlp = revive_recognizer("calib_ner")
    nlp.remove_pipe("tagger")
    calib = nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}})
    examples = entity_examples(nlp, 60, 31)
    with nlp.select_pipes(disable=["calib"]):
        run_upstream(nlp, examples)
    calib.fit(examples)
    calib.spans.cutoffs = Cutoffs(0.8, 0.9, "all", {"all": 0.6})
    return nlp


PIPELINES: dict[str, Callable[[], Language]] = {"isotonic": isotonic, "auto": auto, "context": context, "ner": ner}
