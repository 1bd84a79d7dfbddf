"""The calib pipe that `spacy calib fit` fits: the one that the pipeline may have already, and the place of the new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import UNREADABLE, CalibError, calib_error
from ...pipe.loading import INLINE_FACTORIES, load_pipeline, load_with_factories, reason
from ..shared.screen import warn
from .settings import DEFAULTS

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator


def load_readable(model: str) -> tuple[Language, list[str]]:
    """The pipeline, and the names of those calib pipes that were left out because their saved state cannot be read: the only way to have
    them again is to fit them, which must not fail for the same reason. Each is warned about.

    RAISES C050, C020: see `load_pipeline`.
    """
    unreadable: list[str] = []
    while True:
        try:
            return load_pipeline(model, exclude=unreadable), unreadable
        except CalibError as error:
            if error.code not in UNREADABLE or error.pipe in unreadable:
                raise
            unreadable.append(error.pipe)
            warn(f"{error.message} It is left out of the new pipeline unless it is the one that is fitted.")


def own_block(nlp: Language, attr: str | None = None, component: str | None = None) -> tuple[str, dict[str, Any]] | None:
    """Name and settings of the pipeline's own calib pipe that the new one will replace; None where it has none.

    attr (str | None): The pipe with this prefix. component (str | None): Else the first pipe that reads this component. Without both it is
        the pipe with the prefix that a new one would have, or the first that reads the default component.
    """
    from ...pipe.component import Calibrator

    pipes = {name: pipe for name, pipe in nlp.components if isinstance(pipe, Calibrator)}
    wanted = [name for name, pipe in pipes.items() if pipe.attr == (attr or DEFAULTS["attr"])]
    if attr is None:
        reading = component or DEFAULTS["source"]["component"]
        of_component = [name for name, pipe in pipes.items() if pipe.source.component == reading]
        wanted = of_component if component is not None else wanted + of_component
    if not wanted:
        return None
    block = nlp.get_pipe_config(wanted[0]).copy()
    return wanted[0], {key: value for key, value in block.items() if key != "factory"}


def with_inline_recognizer(nlp: Language, model: str, name: str, unreadable: Sequence[str] = ()) -> Language:
    """The pipeline, loaded anew with a recognizer that keeps its probabilities in place of spaCy's, if it is one.

    name (str): The component that is to be calibrated. unreadable (Sequence[str]): See `load_readable`. RAISES C050: see `load_pipeline`.
    """
    factory = nlp.get_pipe_meta(name).factory if name in nlp.component_names else ""
    if factory not in INLINE_FACTORIES:
        return nlp
    return load_with_factories(model, {name: INLINE_FACTORIES[factory]}, exclude=unreadable)


def add_calib(nlp: Language, name: str, settings: dict[str, Any]) -> Calibrator:
    """Put a new calib pipe directly after the component that it reads; an older one for the same component makes way.

    RAISES C317, C318: the component is missing. C063: settings that do not fit. C059: the name belongs to another component's pipe.
    """
    from ...pipe.component import Calibrator
    from ...sources.find import no_component

    component = settings["source"].get("component", "")
    if component and component not in nlp.component_names:
        raise no_component(nlp, component)
    if name in nlp.component_names:
        older = nlp.get_pipe(name)
        if not isinstance(older, Calibrator) or older.source.component != component:
            owner = f"it calibrates '{older.source.component}'" if isinstance(older, Calibrator) else "it is no calib pipe"
            raise calib_error("C059", name=name, owner=owner)
        nlp.remove_pipe(name)
    try:
        place = {"after": component} if component else {"last": True}
        return nlp.add_pipe("calib", name=name, config=settings, **place)  # type: ignore[return-value]
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C063", why=reason(error)) from None
