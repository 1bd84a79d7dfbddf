"""The config of a calib pipe, from the options of `spacy calib fit` or a config file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import calib_error
from ._common import check_option, reason

if TYPE_CHECKING:
    from spacy.language import Language

# Short names of --method; a name of the registry calib_recalibrators works too.
METHODS = {
    "isotonic": "spacy-calib.Isotonic.v1",
    "histogram": "spacy-calib.Histogram.v1",
    "scaling-binning": "spacy-calib.ScalingBinning.v1",
    "temperature": "spacy-calib.Temperature.v1",
    "platt": "spacy-calib.Platt.v1",
    "beta": "spacy-calib.Beta.v1",
    "identity": "spacy-calib.Identity.v1",
}
# Short names of --scaling; a name of the registry calib_scalings works too.
SCALINGS = {
    "temperature": "spacy-calib.TemperatureScaling.v1",
    "vector": "spacy-calib.VectorScaling.v1",
    "matrix": "spacy-calib.MatrixScaling.v1",
}
# Words of --normalize, and the setting that each stands for.
NORMALIZE = {"none": False, "kept": True, "other": "other"}
_BINNED = ("spacy-calib.Histogram.v1", "spacy-calib.ScalingBinning.v1")
_DEFAULTS: dict[str, Any] = {
    "component": "tagger",
    "groups": 5,
    "method": "isotonic",
    "bins": 10,
    "threshold": 0.01,
    "event": "exact",
}
_NOT_BESIDE_CONFIG = (
    "groups", "method", "scaling", "bins", "threshold", "tag_offsets", "event", "normalize", "intervals", "sets", "coverage",
    "allow_empty_sets",
)  # fmt: skip
_OWN_SOURCES = {"spacy-calib.Softmax.v1", "spacy-calib.Ner.v1", "spacy-calib.Spancat.v1"}
# Settings of a recognizer's source.
_OF_RECOGNIZERS = ("granularity", "beam_width", "beam_density")


def _flag(option: str) -> str:
    """How an option is written on the command line."""
    return "--" + option.replace("_", "-")


def pipe_settings(config: Path | None, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(name of the pipe, its config) from the command's options or a config file.

    RAISES C056: an option out of range. C057: an option beside a config. C058: the config cannot be read.
    """
    from ..entities.events import EVENTS

    if config is not None:
        for option in _NOT_BESIDE_CONFIG:
            if option in options:
                raise calib_error("C057", option=_flag(option))
        return settings_from_file(config, options)
    chosen = {**_DEFAULTS, **options}
    check_option("--component", bool(chosen["component"]), "the name of a component", "an empty string")
    check_option("--groups", chosen["groups"] >= 1, "at least 1", chosen["groups"])
    check_option("--bins", chosen["bins"] >= 1, "at least 1", chosen["bins"])
    check_option("--threshold", 0 <= chosen["threshold"] < 1, "at least 0 and below 1", chosen["threshold"])
    check_option("--event", chosen["event"] in EVENTS, f"one of {', '.join(EVENTS)}", repr(chosen["event"]))
    name = chosen.get("attr", "calib")
    settings = {
        "attr": name,
        "threshold": chosen["threshold"],
        "event": chosen["event"],
        "source": {"component": chosen["component"]},
        "grouping": {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": chosen["groups"]},
        **method_settings(chosen["method"], chosen["bins"], options),
        **promise_settings(options),
        "scorer": {"@scorers": "spacy-calib.Scorer.v1", "n_bins": chosen["bins"]},
    }
    return name, settings


def method_settings(method: str, bins: int, options: dict[str, Any]) -> dict[str, Any]:
    """The blocks recalibrator, pooling and selection.

    RAISES C056: no such method, or an option beside `auto`, which chooses by itself.
    """
    if method == "auto":
        for option in ("groups", "tag_offsets", "scaling"):
            check_option(
                _flag(option), option not in options, "left out beside --method auto, which chooses it", options.get(option)
            )
        return {"selection": {"@calib_selections": "spacy-calib.Auto.v1"}}
    settings = {"recalibrator": recalibrator_settings(method, bins)}
    if options.get("tag_offsets"):
        settings["pooling"] = {"@calib_poolings": "spacy-calib.TagOffsets.v1"}
    if "scaling" in options:
        settings["scaling"] = scaling_settings(options["scaling"])
    return settings


def scaling_settings(scaling: str) -> dict[str, Any]:
    """RAISES C056: no such scaling."""
    from ..registry import registry

    registered = SCALINGS.get(scaling, scaling)
    known = registered in registry.calib_scalings
    check_option("--scaling", known, f"one of {', '.join(SCALINGS)} or a registered scaling", repr(scaling))
    return {"@calib_scalings": registered}


def promise_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The settings normalize, intervals and sets, as far as they were asked for.

    RAISES C056: an option out of range, or --coverage or --allow-empty-sets without --sets.
    """
    from ..conformal import COVERAGES

    settings: dict[str, Any] = {}
    if "normalize" in options:
        given = options["normalize"]
        check_option("--normalize", given in NORMALIZE, f"one of {', '.join(NORMALIZE)}", repr(given))
        settings["normalize"] = NORMALIZE[given]
    if options.get("intervals"):
        settings["intervals"] = True
    coverage = options.get("coverage", COVERAGES[0])
    check_option("--coverage", coverage in COVERAGES, f"one of {', '.join(COVERAGES)}", repr(coverage))
    for option in ("coverage", "allow_empty_sets"):
        check_option(_flag(option), "sets" in options or option not in options, "given beside --sets", "it alone")
    if "sets" in options:
        check_option("--sets", 0 < options["sets"] < 1, "above 0 and below 1", options["sets"])
        settings["sets"] = {
            "@calib_sets": "spacy-calib.ConformalSets.v1",
            "alpha": options["sets"],
            "coverage": coverage,
            "nonempty": not options.get("allow_empty_sets", False),
        }
    return settings


def recalibrator_settings(method: str, bins: int) -> dict[str, Any]:
    """RAISES C056: no such method."""
    from ..registry import registry

    registered = METHODS.get(method, method)
    known = registered in registry.calib_recalibrators
    check_option("--method", known, f"one of auto, {', '.join(METHODS)} or a registered recalibrator", repr(method))
    return {"@calib_recalibrators": registered, **({"n_bins": bins} if registered in _BINNED else {})}


def settings_from_file(path: Path, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The first block of factory "calib" in a config file; --component and --attr replace what it says.

    RAISES C058: no such file, no config, or no such block. C063: a source that is no block.
    """
    from thinc.api import Config

    try:
        components = Config().from_disk(path).interpolate().get("components", {})
    except Exception as error:
        raise calib_error("C058", path=path, why=reason(error)) from None
    components = components if isinstance(components, dict) else {}
    blocks = {name: block for name, block in components.items() if isinstance(block, dict) and block.get("factory") == "calib"}
    if not blocks:
        raise calib_error("C058", path=path, why='it has no [components.calib] block with factory = "calib"')
    name, block = next(iter(blocks.items()))
    settings = {key: value for key, value in block.items() if key != "factory"}
    source = settings.setdefault("source", {"component": _DEFAULTS["component"]})
    if not isinstance(source, dict):
        raise calib_error("C063", why=f"source is {source!r}, but a block with @calib_sources is wanted")
    if "component" in options:
        settings["source"] = {**source, "component": options["component"]}
    if "attr" in options:
        name = settings["attr"] = options["attr"]
    return name, settings


def complete_source(nlp: Language, settings: dict[str, Any], options: dict[str, Any], second_pass: bool) -> None:
    """Choose the source that reads the component, where the settings leave it open or name one that does not.

    RAISES C056: an option out of range. C066: an option of recognizers for another component.
    """
    from ..lookup import source_for
    from ..marginals.ner import GRANULARITIES

    source = settings["source"]
    name = source.get("component", "")
    if name not in nlp.component_names:
        return
    pipe = nlp.get_pipe(name)
    registered = source_for(pipe)
    if source.get("@calib_sources", registered) in _OWN_SOURCES - {registered} or "@calib_sources" not in source:
        settings["source"] = source = {"@calib_sources": registered, "component": name}
    given = {option: options[option] for option in _OF_RECOGNIZERS if option in options}
    if registered != "spacy-calib.Ner.v1" and (given or second_pass):
        raise calib_error("C066", option=_flag([*given, "second_pass"][0]), component=name, kind=type(pipe).__name__)
    granularity = given.get("granularity", "type")
    check_option("--granularity", granularity in GRANULARITIES, " or ".join(GRANULARITIES), repr(granularity))
    check_option("--beam-width", given.get("beam_width", 1) >= 1, "at least 1", given.get("beam_width"))
    check_option("--beam-density", 0 <= given.get("beam_density", 0.0) < 1, "at least 0 and below 1", given.get("beam_density"))
    source.update(given)
