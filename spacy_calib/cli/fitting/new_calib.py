"""A new calib pipe in the place of the one that the pipeline may have, not fitted yet: what `fit` fits and `collect` reads with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import UNREADABLE, CalibError, calib_error
from ...pipe.loading import INLINE_FACTORIES, import_user_code, load_pipeline, load_with_factories, reason, use_gpu
from ..shared.checks import check_option
from ..shared.evidence import check_whole_documents
from ..shared.screen import warn
from .settings import DEFAULTS, check_settings, complete_source, pipe_settings, settings_from_file

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


def map_of_pipe(nlp: Language, name: str) -> dict[str, str] | None:
    """The label map of a calib pipe that a new fit replaces."""
    from ...pipe.component import Calibrator
    from ...sources.mapped import map_of

    older = nlp.get_pipe(name) if name in nlp.component_names else None
    return map_of(older.source) if isinstance(older, Calibrator) else None


def new_calib(options: Any, given: dict[str, Any], check: Callable[[], None]) -> tuple[Language, Calibrator, str | None]:
    """The pipeline with the pipe; and the name of the pipe of the pipeline whose settings it took over.

    options: Of `fit` or `collect`. given (dict): Those that were given. check (Callable): Looks at the outputs, before anything is loaded.
    RAISES CalibError: a fault of the options, the files, the pipeline or the settings.
    """
    from ...pairs.label_map import read_map

    import_user_code(options.code)
    check_settings(given)
    table = None if given.get("label_map") is None else read_map(given["label_map"])
    base = None if options.config is None else settings_from_file(options.config)
    check()
    use_gpu(options.gpu_id, options.n_process)
    model = options.model
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
