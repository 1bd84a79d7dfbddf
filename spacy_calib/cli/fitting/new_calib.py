"""Insert a new calib pipe into a pipeline, in place of an old one, and run the pipes that it needs over the examples."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...annotations.span_events import EVENTS
from ...doc.attributes import DEFAULT_ATTR, ENTITY_ATTR
from ...errors import UNREADABLE, CalibError, calib_error
from ...pipe.pipeline import INLINE_FACTORIES, check_enabled, check_readable, load_pipeline, load_with_factories, reason
from ...registry import registry
from ...sources.find import no_component_error, readable_in, registered_sources, source_block
from ...sources.mapped import map_of
from ..shared.command import check_option
from ..shared.examples import run_pipes
from ..shared.gold import check_whole_documents
from ..shared.screen import warn
from .settings import ALIASES, DEFAULTS, Block, SettingPath, merge_settings, parse_source_settings, pipe_settings

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator
    from ...sources.source import Source

_RECOGNIZERS, _PARSERS = "spacy-calib.Ner.v1", "spacy-calib.Parser.v1"  # the sources that --second-pass is for
_UNFITTED = "raw_scores"  # prefix of an unfitted calib pipe in a pipeline that has other calib pipes; it is never saved


def load_readable(model: str) -> tuple[Language, list[str]]:
    """Load a pipeline without the calib pipes whose saved state cannot be read, and warn of each: a fit may replace them.

    RETURNS (tuple): (pipeline, names of the pipes left out). RAISES C050, C020: it cannot be loaded without them either.
    """
    unreadable: list[str] = []
    while True:
        try:
            return load_pipeline(model, exclude=unreadable), unreadable
        except CalibError as error:
            if error.code not in UNREADABLE or error.pipe in unreadable:
                raise
            unreadable.append(error.pipe)
            warn(f"{error.message} It is left out of the new pipeline unless this fit replaces it.")


def old_block(nlp: Language, attr: str | None = None, component: str | None = None) -> Block | None:
    """Return (name, settings) of the calib pipe that a new fit replaces; None if there is none. Pretrained ones do not count.

    attr (str | None): Prefix of the pipe to find. component (str | None): Without `attr`, find the first pipe that reads this
        component. Without both, find the pipe with the default prefix, else the first that reads the default component, else,
        in a pipeline without that component, its only calib pipe.
    """
    from ...pipe.component import Calibrator

    pipes = {name: pipe for name, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fit_info.pretrained is None}
    default_component = DEFAULTS["source"]["component"]
    with_attr = [name for name, pipe in pipes.items() if pipe.attr == (attr or DEFAULTS["attr"])]
    with_component = [name for name, pipe in pipes.items() if pipe.source.component == (component or default_component)]
    if attr is not None:
        names = with_attr
    elif component is not None:
        names = with_component
    else:
        is_only = len(pipes) == 1 and default_component not in nlp.component_names
        names = with_attr or with_component or (list(pipes) if is_only else [])
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
    """Choose the block (name, settings) of the calib pipe to fit: of a config file, else of the old pipe, else the defaults.

    The old pipe is the one that the fit replaces (`old_block`). base (tuple | None): Block of a config file. options, overrides
    (Mapping): Options by name ("attr", "method" ...), and dotted settings, which change the block. second_pass (bool): Value of
    --second-pass. RETURNS (tuple): (name of the old pipe if its settings are taken over, else None; block).
    RAISES CalibError: a wrong option or setting (`merge_block` has the codes).
    """
    old = old_block(nlp, options.get("attr"), options.get("component")) if base is None else None
    block = old or new_block(nlp, base, options, overrides)
    old_name = None if old is None else old[0]
    return old_name, merge_block(nlp, block, options, overrides, second_pass)


def merge_block(
    nlp: Language,
    base: Block | None,
    options: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    second_pass: bool = False,
) -> Block:
    """Return (name, settings) of a calib pipe: a block with options and dotted settings, and the source for its component.

    base (tuple | None): The block; None takes DEFAULTS. options, overrides: Given options by name, and dotted settings.
        second_pass (bool): Value of --second-pass. RAISES C001, C056, C063, C112, C170, C185, C195: a wrong option or setting.
        C200: two sources claim the component. C340: the requested source cannot read the component. C066: --second-pass, and
        the component is no recognizer or parser. C272: the source does not have the event.
    """
    name, settings = pipe_settings(base, options, overrides)
    component = settings["source"].get("component", "")
    if component not in nlp.component_names:
        return name, settings  # `put_calib` reports a missing component; a source of user code may have none
    settings["source"] = source = read_source(nlp, settings["source"], parse_source_settings(overrides))
    source_name, event = source["@calib_sources"], options.get("event")
    if second_pass and source_name not in (_RECOGNIZERS, _PARSERS):
        raise calib_error("C066", option="--second-pass", component=component, kind=type(nlp.get_pipe(component)).__name__)
    if event is not None:
        _check_event(registered_sources().get(source_name), event, component)
        if source_name == _PARSERS:  # whose event is a setting of the source
            source["event"] = settings.pop("event")
    return name, settings


def new_block(nlp: Language, base: Block | None, options: Mapping[str, Any], overrides: Mapping[str, Any] | None) -> Block:
    """Return (name, settings) for a new calib pipe, to which `merge_block` then adds the options and dotted settings.

    base (tuple | None): Block of a config file; None takes the defaults. A name or prefix other than "calib" stays, otherwise
    `_new_name` makes the name, "calib_ent" for entities. The fit may replace an old calib pipe of this name.
    options, overrides (Mapping): Given options by name, and dotted settings.
    """
    from ...pipe.component import Calibrator

    name, settings = base or (DEFAULTS["attr"], DEFAULTS)
    if name != DEFAULTS["attr"] or settings.get("attr", name) != name:  # chosen by the user
        return name, settings
    source_settings = parse_source_settings(overrides)
    source = merge_settings(settings, source_settings)["source"]
    if isinstance(source, Mapping):  # else it is no block, which is reported later
        component_option = {"component": options["component"]} if "component" in options else {}
        name = _new_name(nlp, {**source, **component_option}, source_settings)  # also for a default source in place of `source`
    old = dict(nlp.components).get(name) if base is None else None
    settings = {**settings, "attr": name}
    if isinstance(old, Calibrator) and old.fit_info.pretrained is not None:
        settings["event"] = old.event  # so that the fit can be compared with the pretrained pipe, which it may replace
    return name, settings


def _new_name(nlp: Language, source: Mapping[str, Any], source_settings: Mapping[SettingPath, Any]) -> str:
    """Return a name for a new calib pipe, also the prefix of its attributes, from `source`, the config block of its source.

    It is "calib_ent" for entities, else "calib", or "calib_COMPONENT" if that name is another component's. source_settings
    (Mapping): Dotted settings of the source, path -> value.
    """
    name, component = DEFAULT_ATTR, source.get("component", "")
    if _reads_entities(nlp, source, source_settings):
        name = ENTITY_ATTR
    if component and not _is_free(nlp, name, component):
        identifier = re.sub(r"\W", "_", str(component))
        name = f"{DEFAULT_ATTR}_{identifier}"
    return name


def read_source(nlp: Language, source: Mapping[str, Any], source_settings: Mapping[SettingPath, Any]) -> dict[str, Any]:
    """Return the config block of the source for a component: `source` if that can read it, else the default source for it.

    source (Mapping): Block in the settings. source_settings (Mapping): Dotted settings of the source, also set in the default.
    RAISES C340: a dotted setting names a source that cannot read the component. C200: two sources claim the component.
    """
    component, source_name = source["component"], source.get("@calib_sources")
    pipe, sources = nlp.get_pipe(component), registered_sources()  # sources: name -> one with the default settings
    if source_name is None:
        return {**source_block(pipe, component), **source}
    # A source that needs settings is not among `sources`, and is checked later.
    if source_name not in sources or _make_source(source, sources[source_name]).supports(pipe):
        return dict(source)
    if ("source", "@calib_sources") in source_settings:
        raise calib_error("C340", source=source_name, component=component, kind=type(pipe).__name__)
    # The block of the default source names the component already.
    other_settings = {path: value for path, value in source_settings.items() if path != ALIASES["component"]}
    return dict(merge_settings({"source": source_block(pipe, component)}, other_settings)["source"])


def _make_source(block: Mapping[str, Any], default: Any) -> Any:
    """Make the source of a config block; return `default` for wrong settings, which are reported when the pipe is created."""
    try:
        return registry.resolve({"source": dict(block)})["source"]
    except Exception:  # wrong settings, which are reported when the pipe is created
        return default


def _check_event(source: Source | None, event: str, component: str) -> None:
    """Check that a component's source has this event; without `events` it has those of entities. RAISES C272: it lacks it."""
    events = getattr(source, "events", ()) or tuple(EVENTS)
    if source is not None and event not in events:
        raise calib_error("C272", given=event, component=component, wanted=" or ".join(events))


def _reads_entities(nlp: Language, source: Mapping[str, Any], source_settings: Mapping[SettingPath, Any]) -> bool:
    """Whether a source, given as for `read_source`, reads entities; False for wrong settings, which are reported later."""
    pipe = None  # for a source of user code, which may read no component
    try:
        if source.get("component", "") in nlp.component_names:
            pipe = nlp.get_pipe(source["component"])
            source = read_source(nlp, source, source_settings)
        without_settings = registered_sources().get(source.get("@calib_sources", ""))
        return bool(_make_source(source, without_settings).annotation(pipe).kind.of_entities)
    except Exception:  # wrong settings, which are reported later
        return False


def _is_free(nlp: Language, name: str, component: str) -> bool:
    """Whether no pipe has this name or prefix, except calib pipes of this component, which the new one may replace."""
    from ...pipe.component import Calibrator

    calibs = {pipe_name: pipe for pipe_name, pipe in nlp.components if isinstance(pipe, Calibrator)}
    replaceable = {pipe_name for pipe_name, calib in calibs.items() if calib.source.component == component}
    taken_prefixes = {calib.attr for pipe_name, calib in calibs.items() if pipe_name not in replaceable}
    return name not in taken_prefixes and (name in replaceable or name not in nlp.component_names)


def with_inline_recognizers(nlp: Language, model: str, names: Sequence[str], unreadable: Sequence[str] = ()) -> Language:
    """Load a pipeline anew with variants of its recognizers and parsers that keep their scores.

    model (str): Package or folder that `nlp` is from. names (Sequence[str]): Components to calibrate; others are not replaced.
    unreadable (Sequence[str]): Pipes to leave out, from `load_readable`. RETURNS (Language): The loaded pipeline, or `nlp` if
    none of `names` is a recognizer or parser of spaCy. RAISES C050: the pipeline cannot be loaded.
    """
    factories = {name: nlp.get_pipe_meta(name).factory for name in names if name in nlp.component_names}
    inline = {name: INLINE_FACTORIES[factory] for name, factory in factories.items() if factory in INLINE_FACTORIES}
    return load_with_factories(model, inline, exclude=unreadable) if inline else nlp


def put_calib(nlp: Language, name: str, settings: dict[str, Any], label_map: dict[str, str] | None) -> Calibrator:
    """Add a new calib pipe directly after the component that it reads, and remove an old calib pipe of the same name.

    name, settings: Of the new pipe. label_map (dict | None): Component label -> gold label; None takes the map of the old pipe,
    unless that is pretrained. RAISES C317, C318: the component is missing. C063: wrong settings. C059: the name belongs to a
    component that is no calib pipe, or to the calib pipe of another component.
    """
    from ...pipe.fitting import map_labels

    component = settings["source"].get("component", "")
    factory = DEFAULT_ATTR  # the prefix "calib" is also the name of the factory
    if component and component not in nlp.component_names:
        raise no_component_error(nlp, component)
    if name in nlp.component_names:
        old = _pipe_to_replace(nlp, name, component)
        if label_map is None and old.fit_info.pretrained is None:
            old_map = map_of(old.source) or {}  # component label -> gold label, "" if the gold lacks it
            label_map = {label: gold_label for label, gold_label in old_map.items() if gold_label} or None
        factory = nlp.get_pipe_meta(name).factory
        nlp.remove_pipe(name)
    try:
        position = {"after": component} if component else {"last": True}
        calib: Calibrator = nlp.add_pipe(factory, name=name, config=settings, **position)  # type: ignore[assignment]
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C063", why=reason(error)) from None
    map_labels(calib, label_map)
    return calib


def _pipe_to_replace(nlp: Language, name: str, component: str) -> Calibrator:
    """Return the calib pipe `name`, which a new one replaces. RAISES C059: it is not a calib pipe of this component."""
    from ...pipe.component import Calibrator

    old = nlp.get_pipe(name)
    if not isinstance(old, Calibrator):
        raise calib_error("C059", name=name, owner="it is no calib pipe")
    if old.source.component != component:
        raise calib_error("C059", name=name, owner=f"it calibrates '{old.source.component}'")
    return old


def insert_calib(
    nlp: Language,
    model: str,
    block: Block,
    label_map: dict[str, str] | None = None,
    *,
    second_pass: bool = False,
    gold_preproc: bool = False,
    unreadable: Sequence[str] = (),
) -> tuple[Language, Calibrator]:
    """Add a new calib pipe after its component. Unless `second_pass`, replace a recognizer or parser, to keep its scores.

    model (str): Package or folder that `nlp` is from, to load it anew. block (tuple): Name and settings of the calib pipe.
    label_map (dict | None): Component label -> gold label. gold_preproc (bool): Value of --gold-preproc, only to check
    that the component allows it. unreadable (Sequence[str]): Pipes to leave out, from `load_readable`.
    RETURNS (tuple): (pipeline, perhaps loaded again; calib pipe). RAISES CalibError: an error in pipeline or settings.
    """
    name, settings = block
    if not second_pass:
        nlp = with_inline_recognizers(nlp, model, [settings["source"].get("component", "")], unreadable)
    calib = put_calib(nlp, name, settings, label_map)
    check_readable(nlp, calib)
    annotation = calib.source.annotation(calib.lookup.component())
    if gold_preproc and annotation.name == "sent":
        check_option("--gold-preproc", False, "left out for a component that finds sentences", "it")  # raises C056
    check_whole_documents(annotation.kind, gold_preproc)
    return nlp, calib


def insert_unfitted(
    nlp: Language, model: str, component: str | None, label_map: dict[str, str] | None = None, *, gold_preproc: bool = False
) -> tuple[Language, Calibrator]:
    """Insert an unfitted calib pipe into a pipeline in memory, to write raw scores or to be fitted in folds.

    It has the settings of the calib pipe that `old_block` finds for the component, else the defaults. component (str | None):
    None takes the component of that pipe, else `only_component`. model, label_map, gold_preproc: As for `insert_calib`.
    RETURNS (tuple): (pipeline, perhaps loaded again; calib pipe). RAISES C317, C318: there is no such component.
    """
    from ...pipe.component import Calibrator

    block = old_block(nlp, None, component)
    options: dict[str, Any] = {}
    if block is None:
        options["component"] = component or only_component(nlp)
        if any(isinstance(pipe, Calibrator) for _, pipe in nlp.components):
            options["attr"] = _UNFITTED  # a prefix that no other calib pipe has
    nlp, calib = insert_calib(nlp, model, merge_block(nlp, block, options), label_map, gold_preproc=gold_preproc)
    calib.warn.silence("CW01")  # "is not fitted", as intended
    return nlp, calib


def only_component(nlp: Language) -> str:
    """Return the default component of a fit; if the pipeline lacks it, the one that can be calibrated, if there is only one."""
    default: str = DEFAULTS["source"]["component"]
    readable = readable_in(nlp)
    return readable[0] if default not in nlp.component_names and len(readable) == 1 else default


def pipes_before(nlp: Language, calib: Calibrator) -> list[str]:
    """Return the names of the pipes that have to run over Docs before a calib pipe can be fitted to them.

    RAISES C021 to C023, C028, C034, C035: no component to calibrate. C084: a component that it listens to is disabled.
    """
    check_enabled(nlp, calib.source.component)
    pipe, component, order = calib.lookup.component_to_fit(), calib.source.component, nlp.pipe_names
    is_enabled = component in order
    upstream = order[: order.index(component if is_enabled else calib.name)]  # no component runs: all before the calib pipe
    # Other sources run the model of their component themselves.
    reads_output = is_enabled and pipe is not None and calib.source.reads_output(pipe)
    return [*upstream, component] if reads_output else upstream


def ready_to_read(
    nlp: Language,
    calib: Calibrator,
    examples: list[Example],
    *,
    silent: bool,
    n_process: int = 1,
    pipes_done: Collection[str] = (),
) -> Iterator[Example]:
    """Run `pipes_before` a calib pipe over the examples, so that its source can read the predicted Docs; yield the examples.

    pipes_done (Collection[str]): Pipes that were run over these Docs already, and are not run again. silent: No progress bar.
    RAISES C021 to C023, C028, C034, C035: the component is missing, or cannot be calibrated; C034 also if a component before a
        second pass sets entities. C030: no example has gold of the annotation.
    """
    from ...pipe.fitting import without_presets
    from ...pipe.gold_checks import check_has_gold

    upstream = [name for name in pipes_before(nlp, calib) if name not in pipes_done]
    check_has_gold(examples, calib)
    # Scores that the component keeps must stay in this process.
    workers = 1 if calib.source.component in upstream else n_process
    ready = run_pipes(nlp, examples, upstream, silent=silent, title="Reading scores", n_process=workers)
    return without_presets(calib, ready)  # raises C034 for entities on a Doc before the second pass
