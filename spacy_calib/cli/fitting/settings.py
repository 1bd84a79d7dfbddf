"""The config of a calib pipe: from the options of `spacy calib fit`, a config file, and the block that the pipeline has already."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...doc.events import EVENTS
from ...errors import brief, calib_error
from ...pipe.loading import reason
from ...pipe.settings import BLOCKS, PipeSettings, default_config
from ..shared.arguments import override, override_path
from ..shared.checks import check_option, check_registered, registered_name

if TYPE_CHECKING:
    from spacy.language import Language

    from ...sources.base import Source

_OF_PIPE = default_config(PipeSettings)
_CONTEXT = "spacy-calib.Context.v1"
# What counts where neither an option, nor a config, nor a pipe in the pipeline says otherwise.
DEFAULTS: dict[str, Any] = {
    **_OF_PIPE,
    "source": {"component": _OF_PIPE["source"]["component"]},  # the component tells which source reads it
    "selection": {BLOCKS["selection"]: "spacy-calib.Auto.v1"},
    "context": {BLOCKS["context"]: _CONTEXT, "when": "no_worse"},
    "scorer": {**_OF_PIPE["scorer"], "n_bins": 10},
}
# Where more of the gold tokens have a label that the component does not know, the data is taken to follow another label scheme.
MOST_UNKNOWN = 0.2
# Words of --normalize, and the setting that each stands for.
NORMALIZE: dict[str, Any] = {"none": False, "kept": True, "other": "other"}
# What --method auto chooses: the options, and the blocks of the config.
_CHOSEN_OPTIONS = ("groups", "tag_offsets", "scaling")
_CHOSEN_BLOCKS = ("grouping", "recalibrator", "scaling", "pooling")
# The sources of recognizers and of parsers.
_RECOGNIZERS, _PARSERS = "spacy-calib.Ner.v1", "spacy-calib.Parser.v1"
# That of labellers which know no probabilities.
_CONFIDENCE = "spacy-calib.Confidence.v1"
# Words of --source, and the source of scores that a component left for which each stands.
_LEFT = {
    "spans": "spacy-calib.SpanScores.v1",
    "tokens": "spacy-calib.TokenScores.v1",
    "docs": "spacy-calib.DocScores.v1",
}
# Option -> the setting that it stands for, where that is all; of a block's setting, "block.setting".
_STANDS_FOR = {
    "attr": "attr",
    "threshold": "threshold",
    "event": "event",
    "normalize": "normalize",
    "component": "source.component",
    "groups": "grouping.n_groups",
    "sets": "sets.alpha",
}
# The block that a setting gets where it has none, or one of another function.
_NEW: dict[str, dict[str, Any]] = {
    "grouping": {BLOCKS["grouping"]: "spacy-calib.TFG.v1"},
    "sets": {BLOCKS["sets"]: "spacy-calib.ConformalSets.v1", "nonempty": True},
    "pooling": {BLOCKS["pooling"]: "spacy-calib.TagOffsets.v1"},
    "selection": {BLOCKS["selection"]: "spacy-calib.Auto.v1"},
    "context": {BLOCKS["context"]: _CONTEXT},
}


def _flag(option: str) -> str:
    """How an option is written on the command line."""
    return "--" + option.replace("_", "-")


def pipe_settings(
    base: tuple[str, dict[str, Any]] | None, options: dict[str, Any], overrides: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """(name of the pipe, its config): an option counts before a dotted setting, and that before what the base says.

    base (tuple | None): Name and block of a config file or of a pipe in the pipeline; None takes the defaults.
    overrides (dict | None): Dotted settings, see `overrides`.
    RAISES C056: an option out of range, or one beside --method auto. C063, C195: a setting that is no block with a registered function. C170: a dotted setting of something else.
    """
    check_settings(options)
    name, settings = (DEFAULTS["attr"], DEFAULTS) if base is None else base
    if options.get("attr", settings.get("attr", DEFAULTS["attr"])) != settings.get("attr", DEFAULTS["attr"]):
        name = options["attr"]
    settings = override(name, settings, {**(overrides or {}), **_left_scores(name, settings, options, overrides or {})})
    for kind, new in _NEW.items():
        if isinstance(settings.get(kind), Mapping) and BLOCKS[kind] not in settings[kind]:
            settings[kind] = {**new, **settings[kind]}
    _check_blocks(settings)
    by_hand = {_flag(option): options[option] for option in _CHOSEN_OPTIONS if option in options}
    parts = {setting: override_path(name, setting)[0] for setting in overrides or {}}
    by_hand |= {f"--{setting}": (overrides or {})[setting] for setting, part in parts.items() if part in _CHOSEN_BLOCKS}
    asked = options.get("method") == "auto" or ("selection" in parts.values() and settings["selection"] is not None)
    for option, given in by_hand.items():
        check_option(option, not asked, "left out beside --method auto, which chooses it", given)
    settings |= _plain_settings(settings, options)
    changed = _method_settings(settings, options, chosen=not by_hand)
    return name, settings | changed | _context_settings(settings, changed, options)


def _left_scores(
    name: str, settings: Mapping[str, Any], options: dict[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """The dotted settings that --source and --score stand for. RAISES C056: there is no such score, or no such source beside it."""
    from ...registry import registry

    key, score = f"components.{name}.source.@calib_sources", options.get("score")
    found = {key: _LEFT[options["source"]]} if "source" in options else {}
    check_option("--way", not found or "way" not in options, "left out beside --source", options.get("way"))
    if score is None:
        return found
    named = {**overrides, **found}.get(key, (settings.get("source") or {}).get("@calib_sources"))
    check_option("--score", named in _LEFT.values(), "given beside --source", repr(score))
    check_option("--score", bool(score), "the name of an extension, of data or of a function", repr(score))
    is_function = score in registry.calib_scores
    return {**found, f"components.{name}.source.score": {"@calib_scores": score} if is_function else score}


def check_settings(options: dict[str, Any]) -> None:
    """RAISES C056: an option of the pipe out of range by itself. C001, C112: no prefix. C185: two registered things have one short name."""
    from ...doc.attributes import check_attr

    def check(option: str, ok: Callable[[Any], bool], wanted: str) -> None:
        given = options.get(option)
        if given is not None:
            check_option(_flag(option), ok(given), wanted, repr(given) if isinstance(given, str) else given)

    check("component", bool, "the name of a component")
    check_attr(options.get("attr", DEFAULTS["attr"]))
    check("threshold", lambda score: 0 <= score < 1, "at least 0 and below 1")
    check("sets", lambda share: 0 < share < 1, "above 0 and below 1")
    if options.get("method") not in (None, "auto"):
        registered_name("--method", options["method"], "calib_recalibrators", ("auto",))
    if "scaling" in options:
        registered_name("--scaling", options["scaling"], "calib_scalings")


def _check_blocks(settings: Mapping[str, Any]) -> None:
    """Each setting that stands for a registered function is a block that names one, or null. The source may leave its function out.

    RAISES C063: a setting that is neither a block with a function nor null. C195: the function is not registered.
    """
    for setting, key in BLOCKS.items():
        block = settings.get(setting)
        is_block = isinstance(block, Mapping) and (key in block or setting == "source")
        if not is_block and (block is not None or setting == "source"):
            raise calib_error("C063", why=f"{setting} is {brief(repr(block))}, but a block with {key} is wanted")
        if isinstance(block, Mapping) and key in block and key != "@scorers":
            check_registered(setting, key[1:], block[key])


def _block(kind: str, settings: Mapping[str, Any], registered: str | None = None) -> dict[str, Any]:
    """The block of a registered function, None: of that in _NEW. Where the settings name the same function, its own settings stay."""
    key, held = BLOCKS[kind], settings.get(kind) or {}
    new = _NEW[kind] if registered is None else {key: registered}
    return dict(held if held.get(key) == new[key] else new)


def _plain_settings(settings: Mapping[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """What the options change that stand for one setting each."""
    changed: dict[str, Any] = {}
    for option in _STANDS_FOR.keys() & options.keys():
        kind, _, inner = _STANDS_FOR[option].partition(".")
        value = NORMALIZE[options[option]] if option == "normalize" else options[option]
        held = settings[kind] if kind == "source" else _block(kind, settings) if inner else {}
        changed[kind] = {**held, inner: value} if inner else value
    return changed


def _method_settings(settings: Mapping[str, Any], options: dict[str, Any], chosen: bool) -> dict[str, Any]:
    """What the options change in recalibrator, pooling, scaling and selection.

    chosen (bool): Whether a selection that the settings hold stays: not where what it chooses is given by hand.
    """
    method = options.get("method")
    if method == "auto":
        return {"selection": _block("selection", settings)}
    changed: dict[str, Any] = {}
    if settings.get("selection") is not None and (method is not None or not chosen):
        changed["selection"] = None
    if method is not None:
        changed["recalibrator"] = _recalibrator(settings, method)
    if options.get("tag_offsets"):
        changed["pooling"] = _block("pooling", settings)
    if "scaling" in options:
        changed["scaling"] = _block("scaling", settings, registered_name("--scaling", options["scaling"], "calib_scalings"))
    return changed


def _context_settings(settings: Mapping[str, Any], changed: Mapping[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """What the options change in context. It goes with the selection that it came with, unless it is asked for.

    changed (Mapping): What they change in the method.
    """
    asked, held = options.get("context"), settings.get("context")
    if asked is not None:
        return {"context": {**_block("context", settings), "when": "always"} if asked else None}
    if options.get("method") == "auto" and held is None:
        return {"context": dict(DEFAULTS["context"])}
    dropped = settings.get("selection") is not None and changed.get("selection", "as it was") is None
    return {"context": None} if dropped and held is not None and held.get("when") == "no_worse" else {}


def _recalibrator(settings: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The block of the method. Where its function takes a number of bins, that is its own, else the scorer's."""
    block = _block("recalibrator", settings, registered_name("--method", method, "calib_recalibrators", ("auto",)))
    if not _has_bins(block[BLOCKS["recalibrator"]]) or {"n_bins", "bin_size"} & set(block):
        return block
    scorer = settings.get("scorer") or DEFAULTS["scorer"]
    return {**block, "n_bins": scorer.get("n_bins", DEFAULTS["scorer"]["n_bins"])}


def _has_bins(recalibrator: str) -> bool:
    """Whether the registered function of this name takes a number of bins."""
    from ...registry import registry

    known = registry.calib_recalibrators
    return recalibrator in known and "n_bins" in signature(known.get(recalibrator)).parameters


def settings_from_file(path: Path) -> tuple[str, dict[str, Any]]:
    """Name and settings of the first block of factory "calib" in a config file.

    RAISES C058: no such file, no config, or no such block. C114: a dollar sign that stands alone. C167: see `labels_from`.
    """
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


def complete_source(nlp: Language, settings: dict[str, Any], options: dict[str, Any], second_pass: bool) -> None:
    """Choose the source that reads the component, where the settings name none, or one that cannot read it.

    RAISES C056: an option out of range. C066: an option of recognizers for another component. C272: an event of another kind. C340: a way of another kind. C200: two sources claim the component.
    """
    from ...sources.find import registered_sources, source_block

    source = settings["source"]
    name = source.get("component", "")
    if name not in nlp.component_names:
        return
    pipe = nlp.get_pipe(name)
    if "way" in options:
        _take_way(settings, options["way"], pipe)
    source = settings["source"]
    named = source.get("@calib_sources")
    if named is None:
        settings["source"] = source = {**source_block(pipe, name), **source}
    elif named in registered_sources() and not _with_settings(source, registered_sources()[named]).supports(pipe):
        settings["source"] = source = {**source_block(pipe, name), **options.get("of_source", {})}
    named = source["@calib_sources"]
    if second_pass and named not in (_RECOGNIZERS, _PARSERS):
        raise calib_error("C066", option="--second-pass", component=name, kind=type(pipe).__name__)
    if "event" in options:
        _check_event(registered_sources().get(named), options["event"], name)
        if named == _PARSERS:
            source["event"] = settings.pop("event")


def _take_way(settings: dict[str, Any], way: str, pipe: Any) -> None:
    """Let the source be that of confidences. RAISES C340: this way cannot read the component."""
    from ...sequence.factory import WAYS
    from ...sequence.source import ConfidenceSource

    held, component = settings["source"], settings["source"]["component"]
    if not ConfidenceSource(component, way).supports(pipe):
        raise calib_error("C340", way=way, component=component, kind=type(pipe).__name__, wanted=WAYS[way])
    kept = held if held.get("@calib_sources", _CONFIDENCE) == _CONFIDENCE and held.get("way", way) == way else {}
    settings["source"] = {**kept, "@calib_sources": _CONFIDENCE, "component": component, "way": way}


def _with_settings(block: Mapping[str, Any], source: Source) -> Source:
    """The source of a block of the config; as it is without settings where these do not fit, which is said where the pipe is made."""
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
    """The labels in a file: a list in .json, one on each line of .txt.

    RAISES C167: there is no such list.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        labels = json.loads(text) if path.suffix == ".json" else text.splitlines()
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ValueError("no list of texts")
    except (OSError, ValueError, RecursionError) as error:
        raise calib_error("C167", path=path, why=str(error)) from None
    return labels
