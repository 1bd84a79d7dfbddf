"""Finding the component that a source reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spacy.language import Language

from ..calibration.registered import prototypes
from ..errors import CalibError, calib_error
from .base import Source, named_source

_RULE, _SIDE, _VECTORS = (
    "a rule has no score",
    "it is a side task of training, and puts no label on a Doc",
    "it gives vectors, and no label",
)
# Why components have no score to read, by the names of their classes.
_WHY_NOT = {
    **dict.fromkeys(("EntityRuler", "SpanRuler", "AttributeRuler", "Sentencizer", "Lemmatizer"), _RULE),
    **dict.fromkeys(("MultitaskObjective", "ClozeMultitask"), _SIDE),
    **dict.fromkeys(("Tok2Vec", "Transformer", "CuratedTransformer"), _VECTORS),
}
# Reads what no source claims: `supports` then says that it cannot.
_FALLBACK = "spacy-calib.Softmax.v1"


@dataclass(frozen=True)
class Fitted:
    """How a component is told from others: kind (str), labels (tuple[str, ...]) of the one fitted on; "" and () before the fit."""

    kind: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """component: What a source reads, None where it needs none or why (str) says what is amiss."""

    component: Any
    why: str = ""


def look_up(nlp: Language, source: Source, fitted: Fitted, name: str) -> Found:
    """The component that the pipe `name` reads. RAISES C020, C022: it cannot be read."""
    if not source.component:
        return Found(None)
    component = find_component(nlp, source, fitted.kind, fitted.labels)
    if component is None:
        return Found(None, f"the pipeline has no component '{source.component}'")
    check_labels(source, component, fitted.labels, name)
    return Found(component)


def check_loaded(nlp: Language, source: Source, fitted: Fitted, name: str) -> int:
    """Labels that the component got since the fit; one that is not loaded yet is checked when read. RAISES C020, C022."""
    component = find_component(nlp, source, fitted.kind, fitted.labels) if source.component else None
    if component is None or not source.is_trained(component):
        return 0
    return len(check_labels(source, component, fitted.labels, name)) - len(fitted.labels)


def check_labels(source: Source, component: Any, fitted: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The labels that the component has now. RAISES C020: some were removed or reordered since the pipe `name` was fitted."""
    labels = source.labels(component)
    if labels[: len(fitted)] == fitted:
        return labels
    gone = [label for label in fitted if label not in set(labels)]
    detail = f"'{gone[0]}' is gone" if gone else "their order is another one"
    raise calib_error("C020", component=source.component, name=name, detail=detail)


def find_component(nlp: Language, source: Source, kind: str, labels: tuple[str, ...]) -> Any:
    """The component by name, else (renamed since the fit) the only one of its type whose labels begin with those fitted.

    kind (str): Its type at fit time, "" before the fit. labels (tuple[str, ...]): Its labels at fit time.
    RETURNS: The component, or None.
    RAISES C022: the source does not read the component of this name.
    """
    by_name = dict(nlp.components)
    if source.component in by_name:
        pipe = by_name[source.component]
        if not source.supports(pipe):
            raise calib_error(
                "C022",
                component=source.component,
                kind=type(pipe).__name__,
                why=next((f": {_WHY_NOT[kind.__name__]}" for kind in type(pipe).__mro__ if kind.__name__ in _WHY_NOT), ""),
                supported=_all_that_is_read(),
                readable=", ".join(readable_in(nlp)) or "none",
            )
        return pipe
    if not labels:
        return None
    alike = [
        pipe
        for pipe in by_name.values()
        if source.supports(pipe) and source.kind(pipe) == kind and source.labels(pipe)[: len(labels)] == labels
    ]
    return alike[0] if len(alike) == 1 else None


def registered_sources() -> dict[str, Source]:
    """Registered name -> source without settings: that of softmax heads, others of this package, those from outside of it."""
    return dict(
        sorted(prototypes("calib_sources").items(), key=lambda pair: (not _is_ours(pair[1]), pair[0] != _FALLBACK, pair[0]))
    )


def source_for(pipe: Any) -> str:
    """Registered name of the source that claims a component, those of others first; else of softmax heads. RAISES C200: two."""
    claiming = {name: source for name, source in registered_sources().items() if source.claims(pipe)}
    outside = [name for name, source in claiming.items() if not _is_ours(source)]
    if len(outside) > 1:
        raise calib_error("C200", component=getattr(pipe, "name", type(pipe).__name__), sources=", ".join(outside))
    return next(reversed(claiming), _FALLBACK)


def source_block(pipe: Any, name: str) -> dict[str, Any]:
    """The source that reads the component of this name, as a config has it. RAISES C200: see `source_for`."""
    named, own = source_for(pipe), named_source(pipe)
    return {**(own if own.get("@calib_sources") == named else {}), "@calib_sources": named, "component": name}


def readable_in(nlp: Language) -> list[str]:
    """Names of the trained components that some source claims, in the order of the pipeline."""
    sources = registered_sources().values()
    return [name for name, pipe in nlp.components if any(one.claims(pipe) and one.is_trained(pipe) for one in sources)]


def no_component(nlp: Language, component: str) -> CalibError:
    """C317 for a pipeline without this component, naming those that could be calibrated, or C318 where there is none."""
    readable = readable_in(nlp)
    if readable:
        return calib_error("C317", component=component, readable=", ".join(readable))
    available = ", ".join(nlp.component_names) or "no components"
    return calib_error("C318", component=component, available=available, supported=_all_that_is_read())


def _is_ours(source: Source) -> bool:
    return type(source).__module__.partition(".")[0] == __name__.partition(".")[0]


def _all_that_is_read() -> str:
    """The factories whose components some source reads."""
    return ", ".join(dict.fromkeys(name for source in registered_sources().values() for name in source.reads))
