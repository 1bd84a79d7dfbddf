"""Settings of a calib pipe: defaults of `spacy calib fit`, config files, dotted settings, and the options that stand for a setting."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from ...errors import brief, calib_error
from ...pipe.loading import reason
from ...pipe.settings import BLOCKS, PipeSettings, default_config
from ..shared.command import check_option, check_registered, method_name

# Name of a pipe and its settings, as the block [components.NAME] of a config has them without the factory.
Block = tuple[str, dict[str, Any]]
# Where a setting is in the block of a pipe: ("grouping", "n_groups").
SettingPath = tuple[str, ...]

_PIPE_DEFAULTS = default_config(PipeSettings)
# Where the config of a pipeline has the blocks of pipes.
_SECTION = "components"
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
# The function of a block that is given without one.
_FUNCTIONS: dict[str, dict[str, Any]] = {
    "grouping": {BLOCKS["grouping"]: "spacy-calib.TFG.v1"},
    "sets": {BLOCKS["sets"]: "spacy-calib.ConformalSets.v1", "nonempty": True},
    "pooling": {BLOCKS["pooling"]: "spacy-calib.TagOffsets.v1"},
    "selection": {BLOCKS["selection"]: "spacy-calib.Auto.v1"},
    "context": {BLOCKS["context"]: "spacy-calib.Context.v1"},
}
# Options -> the settings that they stand for. --groups names the function of its block too; --method auto stands for a selection.
ALIASES: dict[str, SettingPath] = {
    "attr": ("attr",),
    "event": ("event",),
    "component": ("source", "component"),
    "groups": ("grouping", "n_groups"),
    "method": ("recalibrator", BLOCKS["recalibrator"]),
}
# Blocks that --method auto chooses.
_CHOSEN_BLOCKS = ("grouping", "recalibrator", "scaling", "pooling")


def pipe_settings(base: Block | None, options: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Block:
    """Merge the settings of a pipe. Precedence, highest first: options, dotted settings, base, defaults.

    base (tuple | None): Of a config file or of a pipe in the pipeline; None takes the defaults.
    options (dict): Those of ALIASES that were given. overrides (dict | None): Dotted settings.
    RAISES C056 and others: see `translate_options`; a setting beside --method auto that it chooses. C063, C195: a setting that is no block with a registered function.
        C170: a dotted setting of something else.
    """
    name, settings = base or (DEFAULTS["attr"], DEFAULTS)
    if options.get("attr", attr := settings.get("attr", DEFAULTS["attr"])) != attr:
        name = options["attr"]
    dotted = parse_dotted(overrides, name, options)
    settings = merge_settings(settings, dotted)
    for block, function in _FUNCTIONS.items():
        if isinstance(settings.get(block), Mapping) and BLOCKS[block] not in settings[block]:
            settings[block] = {**function, **settings[block]}
    _check_blocks(settings)
    settings = merge_settings(settings, translate_options(options))
    if options.get("method", "auto") != "auto":
        _fill_bins(settings)
    _resolve_selection(name, settings, options, dotted)
    return name, settings


def parse_dotted(overrides: Mapping[str, Any] | None, name: str, options: Mapping[str, Any]) -> dict[SettingPath, Any]:
    """Find the places of dotted settings in the block of this pipe. RAISES C170: a setting names no place in it.

    Without --attr `components.calib` stands for the pipe that is fitted, even if that is `calib_ent`.
    """
    names = (name,) if "attr" in options else (name, DEFAULTS["attr"])
    paths = {}
    for setting, value in (overrides or {}).items():
        components, _, rest = setting.partition(".")
        prefix, _, path = rest.partition(".")
        if components != _SECTION or prefix not in names or not all(path.split(".")):
            raise calib_error("C170", option=f"--{setting}", name=name, prefix=f"--{_SECTION}.{name}.")
        paths[tuple(path.split("."))] = value
    return paths


def parse_source_settings(overrides: Mapping[str, Any] | None) -> dict[SettingPath, Any]:
    """Find the dotted settings of a source, whatever pipe they name: which names are right is known later."""
    paths = {tuple(setting.split(".")[2:]): value for setting, value in (overrides or {}).items()}
    return {path: value for path, value in paths.items() if path[:1] == ("source",) and all(path)}


def translate_options(options: Mapping[str, Any]) -> dict[SettingPath, Any]:
    """Translate options into settings.

    RAISES C056: one is wrong by itself. C001, C112: no prefix. C185: two registered things have one short name.
    """
    from ...doc.attributes import check_attr

    paths = {ALIASES[option]: value for option, value in options.items()}
    if "component" in options:
        check_option("--component", bool(options["component"]), "the name of a component", repr(options["component"]))
    check_attr(options.get("attr", DEFAULTS["attr"]))
    if "groups" in options:
        paths |= {("grouping", key): value for key, value in _FUNCTIONS["grouping"].items()}
    if options.get("method") == "auto":
        del paths[ALIASES["method"]]
        paths |= {("selection", key): value for key, value in _FUNCTIONS["selection"].items()}
    elif "method" in options:
        paths[ALIASES["method"]] = method_name(options["method"])
    return paths


def merge_settings(settings: Mapping[str, Any], paths: Mapping[SettingPath, Any]) -> dict[str, Any]:
    """Return the settings with these in place; a new function drops the settings of the old one."""
    merged = copy.deepcopy(dict(settings))
    for path, value in sorted(paths.items(), key=lambda item: (not item[0][-1].startswith("@"), item[0])):
        block = merged
        for part in path[:-1]:
            if not isinstance(block.get(part), dict):
                block[part] = {}
            block = block[part]
        if path[-1].startswith("@") and block.get(path[-1]) != value:
            block.clear()
        block[path[-1]] = value
    return merged


def _fill_bins(settings: dict[str, Any]) -> None:
    """Give the scorer's number of bins to a recalibrator that takes one and has none."""
    from ...registry import registry

    block, recalibrators = settings["recalibrator"], registry.calib_recalibrators
    registered = block[BLOCKS["recalibrator"]]
    if registered in recalibrators and "n_bins" in signature(recalibrators.get(registered)).parameters:
        scorer = settings.get("scorer") or DEFAULTS["scorer"]
        if not {"n_bins", "bin_size"} & set(block):
            block["n_bins"] = scorer.get("n_bins", DEFAULTS["scorer"]["n_bins"])


def _resolve_selection(
    name: str, settings: dict[str, Any], options: Mapping[str, Any], dotted: Mapping[SettingPath, Any]
) -> None:
    """Drop the selection, and the context that it brought, where the user chooses a part; `auto` brings both back.

    RAISES C056: the user asks for a selection and chooses a part.
    """
    is_auto, blocks = options.get("method") == "auto", {path[0] for path in dotted}
    parts = {"--groups": options["groups"]} if "groups" in options else {}
    parts |= {f"--{_SECTION}.{name}.{'.'.join(path)}": dotted[path] for path in dotted if path[0] in _CHOSEN_BLOCKS}
    is_required = is_auto or ("selection" in blocks and settings["selection"] is not None)
    for option, value in parts.items() if is_required else ():
        check_option(option, False, "left out beside --method auto, which chooses it", value)
    drops = not is_auto and settings.get("selection") is not None and ("method" in options or parts)
    if drops:
        settings["selection"] = None
    if "context" in blocks:
        return
    context = settings.get("context")
    if is_auto and context is None:
        settings["context"] = dict(DEFAULTS["context"])
    elif drops and context is not None and context.get("when") == "no_worse":
        settings["context"] = None


def _check_blocks(settings: Mapping[str, Any]) -> None:
    """Check that settings for registered functions name one, or are null. RAISES C063: no such block. C195: not known."""
    for setting, key in BLOCKS.items():
        block = settings.get(setting)
        is_block = isinstance(block, Mapping) and (key in block or setting == "source")
        if not is_block and (block is not None or setting == "source"):
            raise calib_error("C063", why=f"{setting} is {brief(repr(block))}, but a block with {key} is wanted")
        if isinstance(block, Mapping) and key in block and key != "@scorers":
            check_registered(setting, key[1:], block[key])


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
