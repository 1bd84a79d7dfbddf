"""A new calib pipe in the place of the one that the pipeline may have, not fitted yet, and the examples that it is fitted on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...annotations.span_events import EVENTS
from ...doc.attributes import DEFAULT_ATTR, ENTITY_ATTR
from ...errors import UNREADABLE, CalibError, calib_error
from ...pipe.loading import INLINE_FACTORIES, check_enabled, load_pipeline, load_with_factories, reason
from ...sources.find import no_component_error, registered_sources, source_block
from ..shared.command import check_option
from ..shared.evidence import check_has_gold, check_whole_documents
from ..shared.examples import run_pipes
from ..shared.screen import warn
from .settings import ALIASES, DEFAULTS, Block, SettingPath, merge_settings, parse_source_settings, pipe_settings

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator
    from ...sources.base import Source

# Only these sources can run a second pass: those of recognizers and of parsers.
_RECOGNIZERS, _PARSERS = "spacy-calib.Ner.v1", "spacy-calib.Parser.v1"


def load_readable(model: str) -> tuple[Language, list[str]]:
    """Load the pipeline without the calib pipes whose saved state cannot be read, and return their names too.

    Only a new fit can bring them back, which must not fail for the same reason. Each is warned about.
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


def own_block(nlp: Language, attr: str | None = None, component: str | None = None) -> Block | None:
    """Name and settings of the calib pipe of the pipeline that the new one will replace; None where it has none, or one from a card.

    attr (str | None): The pipe with this prefix. component (str | None): Else the first pipe that reads this component. Without both it is
        the pipe with the prefix that a new one would have, or the first that reads the default component; the only pipe of a pipeline without that.
    """
    from ...pipe.component import Calibrator

    pipes = {name: pipe for name, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fit_info.pretrained is None}
    names = [name for name, pipe in pipes.items() if pipe.attr == (attr or DEFAULTS["attr"])]
    if attr is None:
        source = component or DEFAULTS["source"]["component"]
        names_by_source = [name for name, pipe in pipes.items() if pipe.source.component == source]
        names = names_by_source if component is not None else names + names_by_source
        if not names and component is None and source not in nlp.component_names and len(pipes) == 1:
            names = list(pipes)
    if not names:
        return None
    block = nlp.get_pipe_config(names[0]).copy()
    return names[0], {key: value for key, value in block.items() if key != "factory"}


def block_to_fit(
    nlp: Language,
    base: Block | None,
    options: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    second_pass: bool = False,
) -> tuple[str | None, Block]:
    """(name of the pipe whose settings are taken over, if any; the pipe that is to be fitted).

    base (tuple | None): Of a config file. options, overrides: See `pipe_settings`. RAISES: See `merge_block`.
    """
    own = own_block(nlp, options.get("attr"), options.get("component")) if base is None else None
    block = own or new_block(nlp, base, options, overrides)
    return own and own[0], merge_block(nlp, block, options, overrides, second_pass)


def merge_block(
    nlp: Language,
    base: Block | None,
    options: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    second_pass: bool = False,
) -> Block:
    """Merge the settings of a pipe, with the source that reads its component. Arguments: See `pipe_settings`.

    RAISES: See `pipe_settings` and `read_source`. C066: an option of recognizers for another component. C272: an event of another kind.
    """
    name, settings = pipe_settings(base, options, overrides)
    component = settings["source"].get("component", "")
    if component not in nlp.component_names:
        return name, settings
    settings["source"] = source = read_source(nlp, settings["source"], parse_source_settings(overrides))
    registered, event = source["@calib_sources"], options.get("event")
    if second_pass and registered not in (_RECOGNIZERS, _PARSERS):
        raise calib_error("C066", option="--second-pass", component=component, kind=type(nlp.get_pipe(component)).__name__)
    if event is not None:
        _check_event(registered_sources().get(registered), event, component)
        if registered == _PARSERS:
            source["event"] = settings.pop("event")
    return name, settings


def new_block(nlp: Language, base: Block | None, options: Mapping[str, Any], overrides: Mapping[str, Any] | None) -> Block:
    """Name and settings of a pipe that the pipeline has not got yet.

    Its name, and prefix, is "calib_ent" for entities and "calib" for all else, or "calib_COMPONENT" where that belongs to another component.
    base (tuple | None): Of a config file, whose own name stays unless it is "calib"; None takes the defaults.
    options, overrides: See `pipe_settings`.
    """
    from ...pipe.component import Calibrator

    name, settings = base or (DEFAULTS["attr"], DEFAULTS)
    if name != DEFAULTS["attr"] or settings.get("attr", name) != name:
        return name, settings
    dotted = parse_source_settings(overrides)
    source = merge_settings(settings, dotted)["source"]
    if isinstance(source, Mapping):
        component = options.get("component", source.get("component", ""))
        source = {**source, "component": component} if component else source
        name = ENTITY_ATTR if _reads_entities(nlp, source, dotted) else name
        if component and not _is_free(nlp, name, component):
            identifier = re.sub(r"\W", "_", str(component))
            name = f"{DEFAULT_ATTR}_{identifier}"
    present = dict(nlp.components).get(name) if base is None else None
    # A pipe from a card that will be compared with the new one is of the same question.
    event = {"event": present.event} if isinstance(present, Calibrator) and present.fit_info.pretrained is not None else {}
    return name, {**settings, "attr": name, **event}


def read_source(nlp: Language, source: Mapping[str, Any], dotted: Mapping[SettingPath, Any]) -> dict[str, Any]:
    """Choose the source that reads a component of the pipeline, where the settings name none, or one that cannot read it.

    dotted (Mapping): Dotted settings of the source, which hold for whatever source reads the component.
    RAISES C340: a dotted setting names a source that cannot read the component. C200: two sources claim the component.
    """
    component = source["component"]
    pipe, sources, registered = nlp.get_pipe(component), registered_sources(), source.get("@calib_sources")
    if registered is None:
        return {**source_block(pipe, component), **source}
    if registered not in sources or _with_settings(source, sources[registered]).supports(pipe):
        return dict(source)
    if ("source", "@calib_sources") in dotted:
        why, kind = getattr(_with_settings(source, None), "reads_what", ""), type(pipe).__name__
        raise calib_error("C340", source=registered, component=component, kind=kind, why=why)
    settings = {path: value for path, value in dotted.items() if path != ALIASES["component"]}
    return dict(merge_settings({"source": source_block(pipe, component)}, settings)["source"])


def _with_settings(block: Mapping[str, Any], source: Any) -> Any:
    """Make the source of a config block; where its settings do not fit, which is reported when the pipe is made, take the source without settings."""
    from ...registry import registry

    try:
        return registry.resolve({"source": dict(block)})["source"]
    except Exception:
        return source


def _check_event(source: Source | None, event: str, component: str) -> None:
    """RAISES C272: the source has no such event. One from outside of this package that names none has those of entities."""
    events = getattr(source, "events", ()) or (() if event in EVENTS else tuple(EVENTS))
    if source is not None and events and event not in events:
        raise calib_error("C272", given=event, component=component, wanted=" or ".join(events))


def _reads_entities(nlp: Language, source: Mapping[str, Any], dotted: Mapping[SettingPath, Any]) -> bool:
    """Whether a source is of entities; False where it is none yet, which is reported when the pipe is made."""
    try:
        pipe = None
        if source.get("component", "") in nlp.component_names:
            pipe, source = nlp.get_pipe(source["component"]), read_source(nlp, source, dotted)
        without_settings = registered_sources().get(source.get("@calib_sources", ""))
        return bool(_with_settings(source, without_settings).annotation(pipe).of_entities)
    except Exception:
        return False


def _is_free(nlp: Language, name: str, component: str) -> bool:
    """Whether no other component than a calib pipe of this one has the name or the prefix."""
    from ...pipe.component import Calibrator

    for other, pipe in nlp.components:
        names = {other}
        if isinstance(pipe, Calibrator):
            names = set() if pipe.source.component == component else {other, pipe.attr}
        if name in names:
            return False
    return True


def with_inline_recognizers(nlp: Language, model: str, names: Sequence[str], unreadable: Sequence[str] = ()) -> Language:
    """Load the pipeline anew with recognizers that keep their probabilities in place of spaCy's, where some are among these.

    names (Sequence[str]): The components that are to be calibrated. unreadable: See `load_readable`. RAISES C050: see `load_pipeline`.
    """
    factories = {name: nlp.get_pipe_meta(name).factory for name in names if name in nlp.component_names}
    inline = {name: INLINE_FACTORIES[factory] for name, factory in factories.items() if factory in INLINE_FACTORIES}
    return load_with_factories(model, inline, exclude=unreadable) if inline else nlp


def add_calib(nlp: Language, name: str, settings: dict[str, Any], table: dict[str, str] | None) -> Calibrator:
    """Put a new calib pipe directly after the component that it reads; an older one for the same component makes way.

    table (dict | None): Its label map; None takes that of the older one, unless it comes from a card. Which types are in the gold, the new gold tells.
    RAISES C317, C318: the component is missing. C063: settings that do not fit. C059: the name belongs to another component's pipe.
    """
    from ...pipe.component import Calibrator
    from ...pipe.fit_preparation import map_labels
    from ...sources.mapped import map_of

    component = settings["source"].get("component", "")
    if component and component not in nlp.component_names:
        raise no_component_error(nlp, component)
    if name in nlp.component_names:
        older = nlp.get_pipe(name)
        if not isinstance(older, Calibrator) or older.source.component != component:
            owner = f"it calibrates '{older.source.component}'" if isinstance(older, Calibrator) else "it is no calib pipe"
            raise calib_error("C059", name=name, owner=owner)
        if table is None and older.fit_info.pretrained is None:
            table = {label: name for label, name in (map_of(older.source) or {}).items() if name} or None
        nlp.remove_pipe(name)
    try:
        place = {"after": component} if component else {"last": True}
        calib: Calibrator = nlp.add_pipe("calib", name=name, config=settings, **place)  # type: ignore[assignment]
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C063", why=reason(error)) from None
    map_labels(calib, table)
    return calib


def place_calib(
    nlp: Language,
    model: str,
    block: Block,
    table: dict[str, str] | None = None,
    *,
    second_pass: bool = False,
    gold_preproc: bool = False,
    unreadable: Sequence[str] = (),
) -> tuple[Language, Calibrator]:
    """Put the pipe of a block behind its component; a recognizer that has to keep its probabilities is loaded anew.

    table (dict | None): A label map. unreadable: See `load_readable`.
    RAISES CalibError: a fault of the pipeline or the settings.
    """
    name, settings = block
    if not second_pass:
        nlp = with_inline_recognizers(nlp, model, [settings["source"].get("component", "")], unreadable)
    calib = add_calib(nlp, name, settings, table)
    annotation = calib.source.annotation(calib.lookup.component())
    wanted = "left out for a component that finds sentences"
    check_option("--gold-preproc", not (gold_preproc and annotation.name == "sent"), wanted, "it")
    check_whole_documents(annotation.unit, gold_preproc)
    return nlp, calib


def pipes_before(nlp: Language, calib: Calibrator) -> list[str]:
    """The pipes that have to run before a calib pipe can be fitted. RAISES C021 to C023, C028, C034, C035: see `SourceLookup.to_fit`. C084: see `check_enabled`."""
    check_enabled(nlp, calib.source.component)
    pipe, component, order = calib.lookup.to_fit(), calib.source.component, nlp.pipe_names
    is_enabled = component in order
    # Whether the source reads what its own component leaves, in the process that ran it.
    reads_output = bool(is_enabled and pipe is not None and calib.source.reads_output(pipe))
    return order[: order.index(component if is_enabled else calib.name) + reads_output]


def ready_to_read(
    nlp: Language, calib: Calibrator, examples: list[Example], *, silent: bool, n_process: int = 1, done: Collection[str] = ()
) -> Iterator[Example]:
    """Run the pipes before a calib pipe, so that the predicted Docs have what its source reads.

    done (Collection[str]): Pipes that have been run over these Docs already.
    RAISES C021 to C023, C028, C034, C035: see `SourceLookup.to_fit`. C034: a second pass would be made where a component before the
        recognizer sets entities. C030: no example has gold of the annotation.
    """
    from ...pipe.fit_preparation import without_presets

    upstream = [name for name in pipes_before(nlp, calib) if name not in done]
    check_has_gold(examples, calib)
    workers = 1 if calib.source.component in upstream else n_process
    ready = run_pipes(nlp, examples, upstream, silent=silent, what="Reading scores", n_process=workers)
    return without_presets(calib, ready)
