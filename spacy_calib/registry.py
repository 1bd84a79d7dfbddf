"""The registries of this package, their entries, and look-ups of entries by short name.

Other packages add to the registries by entry points of the groups `spacy_calib_sources`, `spacy_calib_recalibrators` and so on.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import catalogue

from .errors import WARNINGS, calib_error

if TYPE_CHECKING:
    from .calibration.recalibrators import Recalibrator
    from .calibration.scaling import Scaling

# Registry -> name in it -> where its object is, which is imported when it is asked for.
REGISTERED = {
    "calib_sources": {
        "spacy-calib.Softmax.v1": ".sources.heads:SoftmaxSource",
        "spacy-calib.Ner.v1": ".sources.ner.source:NerSource",
        "spacy-calib.Pos.v1": ".plugins.pretrained.parts_of_speech:PosSource",
        "spacy-calib.Parser.v1": ".sources.parser.source:ParserSource",
        "spacy-calib.Spancat.v1": ".sources.span_scores:SpancatSource",
        "spacy-calib.EntityLinker.v1": ".plugins.links:EntityLinkerSource",
        "spacy-calib.Textcat.v1": ".sources.scores_on_doc:TextcatSource",
        "spacy-calib.DocTensor.v1": ".sources.left_scores:DocTensorSource",
        "spacy-calib.SpanScores.v1": ".sources.span_scores:SpanScoresSource",
        "spacy-calib.TokenScores.v1": ".sources.scores_on_doc:TokenScoresSource",
        "spacy-calib.DocScores.v1": ".sources.scores_on_doc:DocScoresSource",
    },
    "calib_groupings": {
        "spacy-calib.TFG.v1": ".calibration.grouping.tag_frequency:make_tag_frequency_grouping",
        "spacy-calib.SCW.v1": ".calibration.grouping.fixed:make_shared_grouping",
        "spacy-calib.OneVsRest.v1": ".calibration.grouping.fixed:make_one_vs_rest_grouping",
    },
    "calib_scalings": {
        "spacy-calib.TemperatureScaling.v1": ".calibration.scaling.scaling:TemperatureScaling",
        "spacy-calib.VectorScaling.v1": ".calibration.scaling.scaling:VectorScaling",
        "spacy-calib.MatrixScaling.v1": ".calibration.scaling.scaling:MatrixScaling",
    },
    "calib_recalibrators": {
        "spacy-calib.Identity.v1": ".calibration.recalibrators.identity:Identity",
        "spacy-calib.Histogram.v1": ".calibration.recalibrators.binning:HistogramBinning",
        "spacy-calib.Isotonic.v1": ".calibration.recalibrators.isotonic:IsotonicRegression",
        "spacy-calib.ScalingBinning.v1": ".calibration.recalibrators.binning:ScalingBinning",
        "spacy-calib.Temperature.v1": ".calibration.recalibrators.logistic:Temperature",
        "spacy-calib.Platt.v1": ".calibration.recalibrators.logistic:Platt",
        "spacy-calib.Beta.v1": ".calibration.recalibrators.logistic:Beta",
    },
    "calib_contexts": {
        "spacy-calib.EntityEvidence.v1": ".plugins.pretrained.evidence:EntityEvidence",
        "spacy-calib.EntityMap.v1": ".plugins.pretrained.evidence:EntityMap",
        "spacy-calib.GatedContext.v1": ".plugins.pretrained.gate:GatedContext",
        "spacy-calib.Context.v1": ".context.tokens:make_context",
        "spacy-calib.FurtherScores.v1": ".context.tokens:FurtherScores",
    },
    "calib_metrics": {
        "spacy-calib.Brier.v1": ".metrics.proper:Brier",
        "spacy-calib.LogLoss.v1": ".metrics.proper:LogLoss",
        "spacy-calib.SmoothCalibrationError.v1": ".metrics.smooth_error:SmoothCalibrationError",
    },
}
OURS = "spacy-calib."  # the prefix of the registered names of this package


@cache
def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of this group in all installed packages; cached, since the search takes time."""
    return tuple(entry_points(group=group))


def load_point(point: EntryPoint, thing: str) -> Any:
    """Import the object of an entry point. thing (str): What the object is, for the message. RAISES C105: the import fails."""
    try:
        return point.load()
    except Exception as error:  # whatever the module of another package raises
        raise calib_error("C105", thing=thing, value=point.value, why=f"{type(error).__name__}: {error}") from None


class Registry(catalogue.Registry):
    """A registry under spaCy's namespace. An entry that cannot be imported is left out of listings, with a warning.

    name (str): Such as "calib_metrics". places (dict): Entry -> "module:object" of this package, imported on demand.
    """

    def __init__(self, name: str):
        super().__init__(("spacy", name), entry_points=True)
        self.places = REGISTERED.get(name, {})

    def get_entry_points(self) -> dict[str, Any]:
        """Return name -> object for all entries of this package and of entry points."""
        loaded_by_name = {name: self.get_entry_point(name) for name in self.places}
        for point in entry_points_of(self.entry_point_namespace):
            try:
                loaded_by_name[point.name] = point.load()
            except Exception as error:  # whatever the module of another package raises
                _warn_once(point.name, self.namespace[-1], repr(error))
        return loaded_by_name

    def get_entry_point(self, name: str, default: Any = None) -> Any:
        """Load the object with this name; return `default` if there is none. RAISES C500: it cannot be imported."""
        if name in self.places:
            module, _, attribute = self.places[name].partition(":")
            return getattr(import_module(module, __package__.partition(".")[0]), attribute)
        try:
            return super().get_entry_point(name, default)
        except Exception as error:
            raise calib_error("C500", given=name, registry=self.namespace[-1], why=repr(error)) from error


# spaCy's registry.create would use thinc's namespace, and with it another entry point group.
REGISTRIES = {name: Registry(name) for name in (*REGISTERED, "calib_keys", "calib_asks")}


@cache
def _warn_once(name: str, registry: str, why: str) -> None:
    """Warn that an entry (name) of a registry (its name) cannot be used, and why; once for each entry."""
    warnings.warn(WARNINGS["CW40"].format(given=name, registry=registry, why=why), stacklevel=3)


# id of a function, which need not be hashable -> (the function, which keeps the id; its prototype, None if it needs arguments).
_PROTOTYPES: dict[int, tuple[Any, Any]] = {}


def prototypes(name: str) -> dict[str, Any]:
    """Call the functions of a registry that need no arguments; return registered name -> object that its function made.

    name (str): Name of the registry. The objects are made only once, as that takes long, and must not be changed. A function
    that fails is left out, with a warning.
    """
    prototypes_by_name = {}
    for registered_name, function in sorted(REGISTRIES[name].get_all().items()):
        try:
            if id(function) not in _PROTOTYPES:  # the stored function keeps its id from being used again
                _PROTOTYPES[id(function)] = function, (function() if _needs_no_arguments(function) else None)
        except Exception as error:  # whatever a registered function raises
            _warn_once(registered_name, name, repr(error))
            continue
        _, prototype = _PROTOTYPES[id(function)]
        if prototype is not None:
            prototypes_by_name[registered_name] = prototype
    return prototypes_by_name


def _needs_no_arguments(function: Any) -> bool:
    """Return whether every parameter of a function has a default (*args and **kwargs aside)."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return all(parameter.default is not inspect.Parameter.empty or parameter.kind not in kinds for parameter in parameters)


def registered_maker(kind: str, name: str) -> Callable[..., Any] | None:
    """Return the registered function `name`, or None. kind: Its registry, as "@calib_sources". RAISES C500: import fails."""
    registry = REGISTRIES[kind.removeprefix("@")]
    return registry.get(name) if name in registry else None


def by_short(name: str) -> dict[str, Any]:
    """Return short name (or registered name, if it has none) -> object, for the entries of a registry that need no arguments.

    name (str): Name of the registry, such as "calib_metrics". RAISES C185: two entries have one short name.
    """
    by_name: dict[str, Any] = {}
    owner: dict[str, str] = {}  # short name -> registered name
    # Entries of this package come first.
    entries = sorted(prototypes(name).items(), key=lambda entry: not entry[0].startswith(OURS))
    for registered_name, prototype in entries:
        # A function that returns an object of another entry's class does not get the short name of that class.
        is_own_class = getattr(prototype, "registered", registered_name) == registered_name
        attributes = {**vars(type(prototype)), **getattr(prototype, "__dict__", {})}  # a subclass inherits no short name
        short = (attributes.get("short", "") if is_own_class else "") or registered_name
        if short in by_name:
            raise calib_error("C185", short=short, registry=name, first=owner[short], second=registered_name)
        by_name[short], owner[short] = prototype, registered_name
    return by_name


def recalibrators() -> dict[str, Recalibrator]:
    """Return short name -> unfitted recalibrator, fewest parameters first. RAISES C185: two have one short name."""
    return dict(sorted(by_short("calib_recalibrators").items(), key=lambda item: (item[1].n_parameters, item[0])))


def scalings() -> dict[str, Scaling]:
    """Return short name -> unfitted scaling, fewest parameters (of many tags) first. RAISES C185: two have one short name."""
    return dict(sorted(by_short("calib_scalings").items(), key=lambda item: item[1].growth))  # of n_parameters with n_tags


def __getattr__(name: str) -> Any:
    """Return spaCy's `registry`, with the registries of this package added to it, as attribute "registry" of this module."""
    if name != "registry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spacy.util import registry  # not at the top of the module: other names here do not need spaCy

    for calib_name, calib_registry in REGISTRIES.items():
        if not hasattr(registry, calib_name):
            setattr(registry, calib_name, calib_registry)
    return registry


def metrics() -> dict[str, Any]:
    """Return short name -> registered metric. RAISES C185: two metrics have one short name."""
    return by_short("calib_metrics")
