"""A new calib pipe in its place in a pipeline, not fitted yet: what `spacy calib fit` fits and `spacy calib collect` reads with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    from ...pipe.upstream import map_labels

    import_user_code(options.code)
    check_settings(given)
    table = None if given.get("label_map") is None else read_map(given["label_map"])
    base = None if options.config is None else settings_from_file(options.config)
    check()
    use_gpu(options.gpu_id)
    model = options.model or ""
    nlp, unreadable = load_readable(model)
    component = given.get("component")
    own = own_block(nlp, options.attr, component) if base is None else None
    name, settings = pipe_settings(base or own, given, options.overrides)
    if not options.second_pass:
        nlp = with_inline_recognizer(nlp, model, settings["source"].get("component", ""), unreadable)
    complete_source(nlp, settings, given, options.second_pass)
    older = map_of_pipe(nlp, name)
    calib = add_calib(nlp, name, settings)
    map_labels(calib, older if table is None else table)
    annotation = calib.source.annotation(calib.lookup.component())
    wanted = "left out for a component that finds sentences"
    check_option("--gold-preproc", not (options.gold_preproc and annotation.name == "sent"), wanted, "it")
    check_whole_documents(annotation.unit, options.gold_preproc)
    return nlp, calib, own and own[0]


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
