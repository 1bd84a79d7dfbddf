"""What a pipe says of itself in a session: one line, and a small table for notebooks; and to `nlp.analyze_pipes()`."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

from spacy.language import Language

from ..doc.annotations import EXTENSION_PREFIX, SPANS_PREFIX, plain_name, unit_of
from ..pairs.documents import DOCUMENT, TOKEN, counted
from .scorer import score_names

# What each annotation is read from, as spaCy's factories name it.
_READS = {
    "tag": ["token.tag"],
    "pos": ["token.pos"],
    "morph": ["token.pos", "token.morph"],
    "lemma": ["token.lemma"],
    "sent": ["token.is_sent_start"],
    "dep": ["token.dep"],
    "ent_type": ["token.ent_type"],
    "ner": ["doc.ents"],
    "biluo": ["doc.ents"],
    "cats": ["doc.cats"],
    "cats:multi": ["doc.cats"],
}
# The attributes of a Doc that has categories.
_OF_DOCUMENTS = ["doc._.calib", *(f"doc._.calib_{name}" for name in ("score", "raw", "cats", "cats_raw", "interval", "set"))]


def facts(pipe: Any) -> dict[str, str]:
    """What a Calibrator holds, in a few words each."""
    info = pipe.fit_info
    source = pipe.source.component or "scores on the Doc"
    if not pipe.fitted:
        return {"Name": pipe.name, "Calibrates": source, "Attributes": f"{pipe.attr}_score", "Fitted": "no"}
    of_documents = "" if info.row_unit == DOCUMENT else f" of {info.docs:,} documents"
    adapted = "".join(f", adapted to {counted(made['unit'], made['docs'])}" for made in info.adaptations)
    return {
        "Name": pipe.name,
        "Calibrates": f"{source} ({plain_name(info.layer)})",
        "Attributes": f"{pipe.attr}_score",
        "Fitted": f"on {info.tokens:,} {info.row_unit}s{of_documents}{adapted}",
        "Method": info.steps,
    }


def one_line(pipe: Any) -> str:
    """For `repr`."""
    held = facts(pipe)
    fitted = "not fitted" if held["Fitted"] == "no" else f"fitted {held['Fitted']}"
    return f"<Calibrator '{held['Name']}' of {held['Calibrates']}, {fitted}>"


def html_table(pipe: Any) -> str:
    """For notebooks."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts(pipe).items())
    return f"<table><caption>Calibrator</caption><tbody>{rows}</tbody></table>"


def note_meta(nlp: Language, name: str, pipe: Any) -> None:
    """Tell a pipeline what this pipe reads, writes and scores, where its factory knows only what the default settings do."""
    if all(own is not pipe for held, own in nlp.components if held == name):
        return
    meta = nlp.get_pipe_meta(name)
    layer = _layer_of(nlp, pipe)
    written = nlp.get_factory_meta(meta.factory).assigns if unit_of(layer) == TOKEN else _OF_DOCUMENTS
    assigns = [attribute.replace("._.calib", f"._.{pipe.attr}") for attribute in written]
    reads = meta.requires if not layer else _reads(layer) or meta.requires
    scores = [f"{pipe.attr}_{score}{suffix}" for score in score_names() for suffix in ("", "_raw")] if pipe.scorer else []
    nlp._pipe_meta[name] = replace(meta, requires=reads, assigns=assigns, scores=scores)


def _reads(layer: str) -> list[str]:
    if layer.startswith(EXTENSION_PREFIX):
        return [f"token.{layer}"]
    return ["doc.spans"] if layer.startswith(SPANS_PREFIX) else _READS.get(layer, [])


def _layer_of(nlp: Language, pipe: Any) -> str:
    """ "" where the component is not there, or of another kind."""
    source = pipe.source
    if not source.component:
        return source.annotation(None).name
    if source.component not in nlp.component_names or not source.supports(nlp.get_pipe(source.component)):
        return ""
    return plain_name(source.annotation(nlp.get_pipe(source.component)).name)
