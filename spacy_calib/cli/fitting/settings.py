"""Merge the settings of a calib pipe for `spacy calib fit` from defaults, a config file, dotted settings and options."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from thinc.api import Config

from ...doc.attributes import check_attr
from ...errors import brief, calib_error
from ...pipe.factory import BLOCKS, EntityPipeSettings, PipeSettings, default_config
from ...pipe.pipeline import reason
from ...registry import registry
from ..shared.command import check_option, check_registered, registered_method

# Name of a pipe and its settings, as the block [components.NAME] of a config has them without the factory.
Block = tuple[str, dict[str, Any]]
SettingPath = tuple[str, ...]  # path of a setting in the block of a pipe: ("grouping", "n_groups")

_PIPE_DEFAULTS = default_config(PipeSettings)
_SECTION = "components"  # the section of a config that contains the blocks of pipes, [components.NAME]
# Settings that neither options, a config nor the old pipe give. The source is not among them: it follows from the component.
DEFAULTS: dict[str, Any] = {
    **_PIPE_DEFAULTS,
    "source": {"component": _PIPE_DEFAULTS["source"]["component"]},
    "selection": {"methods": ["isotonic"], "n_groups": [1, 5]},
    "context": {BLOCKS["context"]: "spacy-calib.Context.v1", "when": "no_worse"},
    "scorer": {**_PIPE_DEFAULTS["scorer"], "n_bins": 10},
}
_FACTORY_DEFAULTS: dict[str, dict[str, Any]] = {  # factory of a pipe in a config file -> settings if its block lacks them
    "calib": {"source": DEFAULTS["source"]},
    "calib_ent": {name: default_config(EntityPipeSettings)[name] for name in ("attr", "source")},
}
# Maximum share of gold tokens with a label unknown to the component; beyond it the data probably follow another label scheme.
MAX_UNKNOWN = 0.2
_FUNCTIONS: dict[str, dict[str, Any]] = {  # block -> the registered function that it gets if it is given without one
    "grouping": {BLOCKS["grouping"]: "spacy-calib.TFG.v1"},
    "context": {BLOCKS["context"]: "spacy-calib.Context.v1"},
}
# Option -> the setting that it sets. --groups also sets the function of its block; --method auto sets a selection instead.
ALIASES: dict[str, SettingPath] = {
    "attr": ("attr",),
    "event": ("event",),
    "component": ("source", "component"),
    "groups": ("grouping", "n_groups"),
    "method": ("recalibrator", BLOCKS["recalibrator"]),
}
# Blocks of settings that --method auto chooses by itself, so that the user may not set them, too.
_AUTO_BLOCKS = ("grouping", "recalibrator", "scaling", "tag_offsets")


def pipe_settings(base: Block | None, options: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Block:
    """Return (name, settings) of the calib pipe to fit. Precedence, highest first: options, dotted settings, base.

    base (tuple | None): Name and settings from a config file or the old pipe; None takes DEFAULTS. options (dict): Given
    options, by their names in ALIASES. overrides (dict | None): Dotted settings, {"components.calib.threshold": 0.01}.
    RAISES C001, C056, C112, C185: a wrong option, or a setting in addition to --method auto, which chooses it. C063, C195: a
        setting that is no block with a registered function. C170: a dotted setting of something else.
    """
    name, settings = base or (DEFAULTS["attr"], DEFAULTS)
    old_attr = settings.get("attr", DEFAULTS["attr"])
    if options.get("attr", old_attr) != old_attr:  # a pipe with a new prefix has that as its name
        name = options["attr"]
    dotted_settings = parse_dotted(overrides, name, options)
    settings = merge_settings(settings, dotted_settings)
    for block, function in _FUNCTIONS.items():  # a block given without a function gets the default one
        if isinstance(settings.get(block), Mapping) and BLOCKS[block] not in settings[block]:
            settings[block] = {**function, **settings[block]}
    _check_blocks(settings)  # before the options, which `translate_options` checks
    settings = merge_settings(settings, translate_options(options))
    if options.get("method", "auto") != "auto":  # --method names a recalibrator, which may need a number of bins
        _fill_bins(settings)
    _resolve_selection(name, settings, options, dotted_settings)
    return name, settings


def parse_dotted(overrides: Mapping[str, Any] | None, name: str, options: Mapping[str, Any]) -> dict[SettingPath, Any]:
    """Return path -> value from dotted settings of the pipe `name`: {("grouping", "n_groups"): 3}.

    overrides (Mapping | None): {"components.calib.grouping.n_groups": 3}. options (Mapping): Given options; without "attr"
    `components.calib` means this pipe even if its name is `calib_ent`. RAISES C170: a setting is not of this pipe.
    """
    names = (name,) if "attr" in options else (name, DEFAULTS["attr"])
    paths = {}
    for setting, value in (overrides or {}).items():
        section, _, block_path = setting.partition(".")
        prefix, _, path = block_path.partition(".")
        if section != _SECTION or prefix not in names or not all(path.split(".")):
            raise calib_error("C170", option=f"--{setting}", name=name, prefix=f"--{_SECTION}.{name}.")
        paths[tuple(path.split("."))] = value
    return paths


def parse_source_settings(overrides: Mapping[str, Any] | None) -> dict[SettingPath, Any]:
    """Return path -> value from `overrides` called components.NAME.source.*, for any NAME: {("source", "score"): value}."""
    # [2:]: without components.NAME
    paths = {tuple(setting.split(".")[2:]): value for setting, value in (overrides or {}).items()}
    return {path: value for path, value in paths.items() if path[:1] == ("source",) and all(path)}


def translate_options(options: Mapping[str, Any]) -> dict[SettingPath, Any]:
    """Return path -> value of the settings that options set. options (Mapping): Given options, by their names in ALIASES.

    RAISES C056: a wrong value. C001, C112: --attr is no valid prefix. C185: two methods share a short name.
    """
    paths = {ALIASES[option]: value for option, value in options.items()}
    if "component" in options:
        check_option("--component", bool(options["component"]), "the name of a component", repr(options["component"]))
    check_attr(options.get("attr", DEFAULTS["attr"]))
    if "groups" in options:  # it chooses the function that makes groups, too
        paths |= {("grouping", key): value for key, value in _FUNCTIONS["grouping"].items()}
    if options.get("method") == "auto":  # which is no recalibrator, but a selection
        del paths[ALIASES["method"]]
    elif "method" in options:
        paths[ALIASES["method"]] = registered_method(options["method"])
    return paths


def merge_settings(settings: Mapping[str, Any], paths: Mapping[SettingPath, Any]) -> dict[str, Any]:
    """Return a copy of the settings with the value of each path set. A block that gets a new function loses its settings."""
    result = copy.deepcopy(dict(settings))
    # Names of functions, "@calib_...", come first, as they clear their block.
    for path, value in sorted(paths.items(), key=lambda item: (not item[0][-1].startswith("@"), item[0])):
        block = result
        for part in path[:-1]:
            if not isinstance(block.get(part), dict):
                block[part] = {}
            block = block[part]
        if path[-1].startswith("@") and block.get(path[-1]) != value:
            block.clear()
        block[path[-1]] = value
    return result


def _fill_bins(settings: dict[str, Any]) -> None:
    """Set `n_bins` of the recalibrator to that of the scorer, in place, if it needs bins and the settings do not give any."""
    block, recalibrators = settings["recalibrator"], registry.calib_recalibrators
    name = block[BLOCKS["recalibrator"]]
    needs_bins = name in recalibrators and "n_bins" in signature(recalibrators.get(name)).parameters
    if needs_bins and "n_bins" not in block and "bin_size" not in block:
        scorer = settings.get("scorer") or DEFAULTS["scorer"]
        block["n_bins"] = scorer.get("n_bins", DEFAULTS["scorer"]["n_bins"])


def _resolve_selection(
    name: str, settings: dict[str, Any], options: Mapping[str, Any], dotted_settings: Mapping[SettingPath, Any]
) -> None:
    """Remove the selection and its context if the user sets a block that it would choose; restore both for --method auto.

    A selection chooses the _AUTO_BLOCKS by cross-validation in the fit. settings: Of the pipe `name`, changed in place.
    options, dotted_settings (Mapping): What the user gave: option name -> value, and path -> value.
    RAISES C056: the user requests a selection, and sets a block that it chooses.
    """
    is_auto = options.get("method") == "auto"
    dotted_blocks = {path[0] for path in dotted_settings}
    # Flag -> value of the options and dotted settings that set a block which a selection would choose.
    conflicts = {"--groups": options["groups"]} if "groups" in options else {}
    for path, value in dotted_settings.items():
        if path[0] in _AUTO_BLOCKS:
            conflicts[f"--{_SECTION}.{name}.{'.'.join(path)}"] = value
    is_requested = is_auto or ("selection" in dotted_blocks and settings["selection"] is not None)
    if is_requested:
        for option, value in conflicts.items():
            check_option(option, False, "left out with --method auto, which chooses it", value)  # raises C056
    has_selection = settings.get("selection") is not None
    drops_selection = has_selection and not is_auto and ("method" in options or bool(conflicts))
    if drops_selection:
        settings["selection"] = None
    elif is_auto and not has_selection:
        settings["selection"] = copy.deepcopy(DEFAULTS["selection"])
    if "context" in dotted_blocks:  # the user sets the context
        return
    context = settings.get("context")
    if is_auto and context is None:
        settings["context"] = dict(DEFAULTS["context"])
    elif drops_selection and context is not None and context.get("when") == "no_worse":
        settings["context"] = None  # the selection decides whether such a context is used


def _check_blocks(settings: Mapping[str, Any]) -> None:
    """Check that each block of settings is None or names a registered function. RAISES C063: no block. C195: wrong name."""
    for setting, key in BLOCKS.items():
        block = settings.get(setting)
        is_source = setting == "source"  # which must be there, but may lack a function
        is_block = isinstance(block, Mapping) and (key in block or is_source)
        is_left_out = block is None and not is_source
        if not is_block and not is_left_out:
            raise calib_error("C063", why=f"{setting} is {brief(repr(block))}, but must be a block with {key}")
        if isinstance(block, Mapping) and key in block and key != "@scorers":  # that registry is spaCy's
            check_registered(setting, key.removeprefix("@"), block[key])


def settings_from_file(path: Path) -> Block:
    """Return (name, settings) of the first calib pipe in a config file. If its source names a file of labels, they are read.

    RAISES C058: the file is no config, or has no calib pipe. C114: a $ begins no variable. C167: its labels cannot be read.
    """
    try:
        components = Config().from_disk(path).interpolate().get(_SECTION, {})
    except Exception as error:
        raise calib_error("C114" if "$" in str(error) else "C058", path=path, why=reason(error)) from None  # $: a variable
    sections = components if isinstance(components, dict) else {}
    blocks = [
        (name, block)
        for name, block in sections.items()
        if isinstance(block, dict) and block.get("factory") in _FACTORY_DEFAULTS
    ]
    if not blocks:
        raise calib_error("C058", path=path, why='it has no [components.calib] block with factory = "calib" or "calib_ent"')
    name, block = blocks[0]
    settings = _FACTORY_DEFAULTS[block["factory"]] | {key: value for key, value in block.items() if key != "factory"}
    source = settings["source"]
    labels = source.get("labels") if isinstance(source, dict) else None
    if isinstance(labels, str):
        settings["source"] = {**source, "labels": read_labels(path.parent / labels)}
    return name, settings


def read_labels(path: Path) -> list[str]:
    """Read labels from a list in a .json file, or from the lines of another file. RAISES C167: it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        labels = json.loads(text) if path.suffix == ".json" else text.splitlines()
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ValueError("no list of texts")
    except (OSError, ValueError, RecursionError) as error:
        raise calib_error("C167", path=path, why=str(error)) from None
    return labels
