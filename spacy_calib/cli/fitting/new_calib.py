"""A new calib pipe in its place in a pipeline, not fitted yet: what `spacy calib fit` fits and `spacy calib collect` reads with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..shared.checks import check_option
from ..shared.gold import check_whole_documents
from ..shared.loading import import_user_code, use_gpu
from .fitted_pipe import add_calib, load_readable, own_block, with_inline_recognizer
from .labels import map_of_pipe
from .settings import check_settings, complete_source, pipe_settings, settings_from_file

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from ...statistics.identity import Identity


class PipeOptions(Protocol):
    """The options that say which pipe is made, as `calib fit` declares them."""

    @property
    def model(self) -> str | None: ...
    @property
    def component(self) -> str | None: ...
    @property
    def config(self) -> Path | None: ...
    @property
    def second_pass(self) -> bool: ...
    @property
    def attr(self) -> str | None: ...
    @property
    def gold_preproc(self) -> bool: ...
    @property
    def gpu_id(self) -> int: ...
    @property
    def code(self) -> Path | None: ...
    @property
    def overrides(self) -> Mapping[str, Any] | None: ...


def new_calib(
    options: PipeOptions, given: dict[str, Any], check: Callable[[], None]
) -> tuple[Language, Calibrator, str | None]:
    """The pipeline with the pipe; and the name of the pipe of the pipeline whose settings it took over.

    given (dict): The options that were given. check (Callable): Looks at the outputs, before anything is loaded.
    RAISES CalibError: a fault of the options, the files, the pipeline or the settings.
    """
    from ...pairs.label_map import read_map

    import_user_code(options.code)
    check_settings(given)
    table = None if given.get("label_map") is None else read_map(given["label_map"])
    base = None if options.config is None else settings_from_file(options.config)
    check()
    use_gpu(options.gpu_id)
    model = options.model or ""
    nlp, unreadable = load_readable(model)
    own = own_block(nlp, options.attr, given.get("component")) if base is None else None
    named = pipe_settings(base or own, given, options.overrides)
    given = {**given, "of_source": _of_source(options.overrides or {})}
    flags = {"second_pass": options.second_pass, "gold_preproc": options.gold_preproc}
    return *place_calib(nlp, model, given, named, table=table, unreadable=unreadable, **flags), own and own[0]


def _of_source(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The dotted settings of the source, which hold for whatever source will read the component."""
    paths = {tuple(setting.split(".")[2:]): value for setting, value in overrides.items()}
    kept = {path[1]: value for path, value in paths.items() if len(path) == 2 and path[0] == "source"}
    return {key: value for key, value in kept.items() if key not in ("@calib_sources", "component")}


def place_calib(
    nlp: Language,
    model: str,
    given: dict[str, Any],
    named: tuple[str, dict[str, Any]],
    *,
    second_pass: bool = False,
    gold_preproc: bool = False,
    table: dict[str, str] | None = None,
    unreadable: Sequence[str] = (),
) -> tuple[Language, Calibrator]:
    """The pipeline, loaded anew where a recognizer has to keep its probabilities, with the pipe behind its component.

    named (tuple): Name and settings of the pipe, see `pipe_settings`. table (dict | None): A label map. unreadable: See `load_readable`.
    RAISES CalibError: a fault of the pipeline or the settings.
    """
    from ...pipe.upstream import map_labels

    name, settings = named
    if not second_pass:
        nlp = with_inline_recognizer(nlp, model, settings["source"].get("component", ""), unreadable)
    complete_source(nlp, settings, given, second_pass)
    older = map_of_pipe(nlp, name)
    calib = add_calib(nlp, name, settings)
    map_labels(calib, older if table is None else table)
    annotation = calib.source.annotation(calib.lookup.component())
    wanted = "left out for a component that finds sentences"
    check_option("--gold-preproc", not (gold_preproc and annotation.name == "sent"), wanted, "it")
    check_whole_documents(annotation.unit, gold_preproc)
    return nlp, calib


def as_collected(identity: Identity, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with those of the collection for what is not given: component, threshold, event and label map."""
    from ...doc.annotations import ARC_EVENTS
    from ...doc.events import EVENTS

    table = json.loads(identity.label_map)
    collected = {
        "component": identity.component or None,
        "threshold": identity.threshold,
        "event": identity.event if identity.span_labels and identity.event in (*EVENTS, *ARC_EVENTS) else None,
        "label_map": ",".join(f"{label}={other}" for label, other in table.items()) or None,
    }
    return {**{key: value for key, value in collected.items() if value is not None}, **given}
