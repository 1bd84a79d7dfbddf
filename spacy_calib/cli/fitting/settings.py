"""Settings of a calib pipe: defaults of `spacy calib fit`, config files, dotted settings, and the options that stand for a setting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...annotations.span_events import EVENTS
from ...errors import CalibError, brief, calib_error
from ...pipe.loading import reason
from ...pipe.settings import BLOCKS, PipeSettings, default_config
from ..shared.command import check_option, check_registered, method_name
from ..shared.options import override, override_path

if TYPE_CHECKING:
    from spacy.language import Language

    from ...sources.base import Source

# Name of a pipe and its settings, as the block [components.NAME] of a config has them without the factory.
Block = tuple[str, dict[str, Any]]

_PIPE_DEFAULTS = default_config(PipeSettings)
# What neither options, a config nor a pipe of the pipeline sets. The component decides which source reads it.
DEFAULTS: dict[str, Any] = {
    **_PIPE_DEFAULTS,
    "source": {"component": _PIPE_DEFAULTS["source"]["component"]},
    "selection": {BLOCKS["selection"]: "spacy-calib.Auto.v1"},
    "context": {BLOCKS["context"]: "spacy-calib.Context.v1", "when": "no_worse"},
    "scorer": {**_PIPE_DEFAULTS["scorer"], "n_bins": 10},
}
# If more of the gold tokens have a label that the component does not know, the data probably follows another label scheme.
MAX_UNKNOWN = 0.2
# Blocks that --method auto chooses.
_CHOSEN_BLOCKS = ("grouping", "recalibrator", "scaling", "pooling")
# Only these sources can run a second pass: those of recognizers and of parsers.
_RECOGNIZERS, _PARSERS = "spacy-calib.Ner.v1", "spacy-calib.Parser.v1"
# The function of a block that dotted settings give without a function.
_NEW_BLOCKS: dict[str, dict[str, Any]] = {
    "grouping": {BLOCKS["grouping"]: "spacy-calib.TFG.v1"},
    "sets": {BLOCKS["sets"]: "spacy-calib.ConformalSets.v1", "nonempty": True},
    "pooling": {BLOCKS["pooling"]: "spacy-calib.TagOffsets.v1"},
    "selection": {BLOCKS["selection"]: "spacy-calib.Auto.v1"},
    "context": {BLOCKS["context"]: "spacy-calib.Context.v1"},
}


def pipe_settings(base: Block | None, options: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Block:
    """Merge the settings of a pipe. Precedence, highest first: options, dotted settings, base, defaults.

    base (tuple | None): Of a config file or of a pipe in the pipeline; None takes the defaults.
    options (dict): Those of attr, component, method, groups and event that were given. overrides (dict | None): Dotted settings.
    RAISES C056: an option that is wrong by itself, or a setting beside --method auto that it chooses. C063, C195: a setting that is no block
        with a registered function. C170: a dotted setting of something else.
    """
    check_settings(options)
    name, settings = (DEFAULTS["attr"], DEFAULTS) if base is None else base
    attr = settings.get("attr", DEFAULTS["attr"])
    if options.get("attr", attr) != attr:
        name = options["attr"]
    overrides = overrides or {}
    blocks = {setting: override_path(name, setting)[0] for setting in overrides}
    settings = override(name, settings, overrides)
    for block, new in _NEW_BLOCKS.items():
        if isinstance(settings.get(block), Mapping) and BLOCKS[block] not in settings[block]:
            settings[block] = {**new, **settings[block]}
    _check_blocks(settings)
    chosen_by_user = {"--groups": options["groups"]} if "groups" in options else {}
    chosen_by_user |= {f"--{setting}": overrides[setting] for setting, block in blocks.items() if block in _CHOSEN_BLOCKS}
    auto = options.get("method") == "auto"
    select = auto or ("selection" in blocks.values() and settings["selection"] is not None)
    for option, value in chosen_by_user.items():
        check_option(option, not select, "left out beside --method auto, which chooses it", value)
    no_selection = not auto and ("method" in options or bool(chosen_by_user))
    default_context = "context" not in blocks.values()
    changes = {key: options[key] for key in ("attr", "event") if key in options}
    if "component" in options:
        changes["source.component"] = options["component"]
    if "groups" in options:
        changes |= {f"grouping.{BLOCKS['grouping']}": _NEW_BLOCKS["grouping"][BLOCKS["grouping"]]}
        changes["grouping.n_groups"] = options["groups"]
    if options.get("method") == "auto":
        changes[f"selection.{BLOCKS['selection']}"] = DEFAULTS["selection"][BLOCKS["selection"]]
    elif "method" in options:
        changes |= {f"recalibrator.{key}": value for key, value in _recalibrator(settings, options["method"]).items()}
    settings = override(name, settings, {f"components.{name}.{key}": value for key, value in changes.items()})
    return name, {**settings, **_selection_settings(settings, auto, no_selection, default_context)}


def _selection_settings(settings: Mapping[str, Any], auto: bool, no_selection: bool, default_context: bool) -> dict[str, Any]:
    """Drop the selection, with its context, where the user chooses; `auto` brings that back. default_context: It is not set."""
    context = settings.get("context")
    if auto:
        return {"context": dict(DEFAULTS["context"])} if default_context and context is None else {}
    if not no_selection or settings.get("selection") is None:
        return {}
    drop_context = default_context and context is not None and context.get("when") == "no_worse"
    return {"selection": None, **({"context": None} if drop_context else {})}


def check_settings(options: Mapping[str, Any]) -> None:
    """RAISES C056: an option of the pipe is wrong by itself. C001, C112: no prefix. C185: two registered things have one short name."""
    from ...doc.attributes import check_attr

    if "component" in options:
        check_option("--component", bool(options["component"]), "the name of a component", repr(options["component"]))
    check_attr(options.get("attr", DEFAULTS["attr"]))
    if options.get("method", "auto") != "auto":
        method_name(options["method"])


def _check_blocks(settings: Mapping[str, Any]) -> None:
    """Check that settings for registered functions name one, or are null. RAISES C063: no such block. C195: not known."""
    for setting, key in BLOCKS.items():
        block = settings.get(setting)
        is_block = isinstance(block, Mapping) and (key in block or setting == "source")
        if not is_block and (block is not None or setting == "source"):
            raise calib_error("C063", why=f"{setting} is {brief(repr(block))}, but a block with {key} is wanted")
        if isinstance(block, Mapping) and key in block and key != "@scorers":
            check_registered(setting, key[1:], block[key])


def _recalibrator(settings: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The block of a method. A function that takes a number of bins gets its own, else the scorer's."""
    key = BLOCKS["recalibrator"]
    registered = method_name(method)
    current = settings.get("recalibrator") or {}
    block = dict(current) if current.get(key) == registered else {key: registered}
    if not _has_bins(registered) or {"n_bins", "bin_size"} & set(block):
        return block
    scorer = settings.get("scorer") or DEFAULTS["scorer"]
    return {**block, "n_bins": scorer.get("n_bins", DEFAULTS["scorer"]["n_bins"])}


def _has_bins(recalibrator: str) -> bool:
    """Whether the registered function of this name takes a number of bins."""
    from ...registry import registry

    recalibrators = registry.calib_recalibrators
    return recalibrator in recalibrators and "n_bins" in signature(recalibrators.get(recalibrator)).parameters


def settings_from_file(path: Path) -> Block:
    """Name and settings of a config's first "calib" block. RAISES C058: no such block. C114: a lone dollar sign. C167."""
    components = _components_in(path)
    components = components if isinstance(components, dict) else {}
    blocks = {name: block for name, block in components.items() if isinstance(block, dict) and block.get("factory") == "calib"}
    if not blocks:
        raise calib_error("C058", path=path, why='it has no [components.calib] block with factory = "calib"')
    name, block = next(iter(blocks.items()))
    settings = {key: value for key, value in block.items() if key != "factory"}
    source = settings.setdefault("source", DEFAULTS["source"])
    labels = source.get("labels") if isinstance(source, dict) else None
    if isinstance(labels, str):
        settings["source"] = {**source, "labels": labels_from(path.parent / labels)}
    return name, settings


def _components_in(path: Path) -> Any:
    """RAISES C058: no such file, or no config. C114: a dollar sign that stands alone, or that begins a reference to nothing."""
    from thinc.api import Config

    try:
        return Config().from_disk(path).interpolate().get("components", {})
    except Exception as error:
        raise calib_error("C114" if "$" in str(error) else "C058", path=path, why=reason(error)) from None


def complete_source(
    nlp: Language, settings: dict[str, Any], event: str | None, overrides: Mapping[str, Any], second_pass: bool
) -> None:
    """Choose the source that reads the component, where the settings name none, or one that cannot read it.

    event (str | None): The option. overrides (dict): Dotted settings; those of the source hold for whatever source reads the component.
    RAISES C340: a dotted setting names a source that cannot read the component. C066: an option of recognizers for another component.
        C272: an event of another kind. C200: two sources claim the component.
    """
    from ...sources.find import registered_sources, source_block

    source = settings["source"]
    component = source.get("component", "")
    if component not in nlp.component_names:
        return
    pipe, sources = nlp.get_pipe(component), registered_sources()
    registered = source.get("@calib_sources")
    if registered is None:
        source = {**source_block(pipe, component), **source}
    elif registered in sources and not _with_settings(source, sources[registered]).supports(pipe):
        paths = {tuple(setting.split(".")[2:]): value for setting, value in overrides.items()}
        given = {
            path[1]: value for path, value in paths.items() if len(path) == 2 and path[0] == "source" and path[1] != "component"
        }
        if "@calib_sources" in given:
            raise _cannot_read(source, pipe)
        source = {**source_block(pipe, component), **given}
    settings["source"], registered = source, source["@calib_sources"]
    if second_pass and registered not in (_RECOGNIZERS, _PARSERS):
        raise calib_error("C066", option="--second-pass", component=component, kind=type(pipe).__name__)
    if event is not None:
        _check_event(sources.get(registered), event, component)
        if registered == _PARSERS:
            source["event"] = settings.pop("event")


def _cannot_read(block: Mapping[str, Any], pipe: Any) -> CalibError:
    """C340, with what the source can read, where it says so."""
    why = getattr(_with_settings(block, None), "reads_what", "")
    kind = type(pipe).__name__
    return calib_error("C340", source=block["@calib_sources"], component=block["component"], kind=kind, why=why)


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


def labels_from(path: Path) -> list[str]:
    """Read labels: a list in .json, one on each line of .txt. RAISES C167: there is no such list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        labels = json.loads(text) if path.suffix == ".json" else text.splitlines()
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ValueError("no list of texts")
    except (OSError, ValueError, RecursionError) as error:
        raise calib_error("C167", path=path, why=str(error)) from None
    return labels
