"""Convert a fitted `TagCalibrator` (parameters and learned attributes) into msgpack bytes and back; pickle is never used."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...calibration.fit_summaries import SELECTION, HeldOut
from ...calibration.saved import (
    FORMAT_VERSION,
    KINDS,
    MissingPart,
    OtherVersion,
    Part,
    UnreadableState,
    make_part,
    pack,
    unpack,
)
from ...calibration.tokens import TOKENS, TokenCalibration, check_normalize
from ...errors import CalibError, brief
from ...registry import registered_maker
from ...schema import InvalidState, dict_of, flag, list_of, maybe, number, record, text, whole
from ...types import Groups
from .inputs import make_steps
from .messages import calib_error

if TYPE_CHECKING:
    from .tag_calibrator import TagCalibrator

    Estimator = TypeVar("Estimator", bound=TagCalibrator)

FORMAT = "spacy-calib-arrays"


def _check_setting(value: Any, where: str) -> Any:
    """Return a saved parameter: None, a text, number, bool, or a step's state. where: Its path. RAISES InvalidState: other."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if not isinstance(value, dict) or not any(kind in value for kind in KINDS):
        raise InvalidState(where, "a setting")
    return value


def _check_label(value: Any, where: str) -> Any:
    """Return a saved label, a text or a number. where: Its path, for the error. RAISES InvalidState: it is neither."""
    if not isinstance(value, (str, int, float)):
        raise InvalidState(where, "a label")
    return value


def _find_contradiction(state: dict[str, Any]) -> str:
    """Return why a saved state contradicts itself: it has no maps, or groups of more or fewer tags than classes; else ""."""
    n = len(state["classes"])
    if not state["maps"]:
        return "it has no maps"
    # Groups of the evaluation ("judged_by") and of the maps: `of_tag` has the group of each tag.
    sizes = (len(state["judged_by"].of_tag), len(state["maps"]["groups"].of_tag))
    return next((f"there are {n} classes, but groups of {size} tags" for size in sizes if size != n), "")


_PARAMETERS = record(
    {
        "method": _check_setting,
        "n_groups": whole(1),
        "scaling": _check_setting,
        "tag_offsets": maybe(flag),
        "threshold": maybe(number(0.0, 1.0)),
        "normalize": _check_setting,
        "classes": maybe(list_of(_check_label)),
        "tag_counts": maybe(list_of(list_of(_check_label, 2, 2))),
    }
)
STATE = record(
    {
        "parameters": _PARAMETERS,
        "classes": list_of(_check_label, 1),
        "columns": maybe(list_of(text)),
        "threshold": number(0.0, 1.0),
        "units": whole(1),
        "judged_by": Groups.read,
        "selection": maybe(SELECTION),
        "unknown_gold": dict_of(whole()),
        "held_out": HeldOut.read,
        **TOKENS,
    },
    _find_contradiction,
)


def dump(calibrator: TagCalibrator) -> bytes:
    """Convert a fitted estimator (`calibrator`) into msgpack bytes, from which `read` rebuilds it."""
    parameters = {name: _as_plain_data(value) for name, value in calibrator.get_params(deep=False).items()}
    parameters["threshold"] = None if calibrator.threshold is None else float(calibrator.threshold)
    parameters["classes"] = None if calibrator.classes is None else np.asarray(calibrator.classes).tolist()
    tag_counts = calibrator.tag_counts
    parameters["tag_counts"] = None if tag_counts is None else [[tag, int(n)] for tag, n in tag_counts.items()]
    names = getattr(calibrator, "feature_names_in_", None)
    state = {
        "parameters": parameters,
        "classes": calibrator.classes_.tolist(),
        "columns": None if names is None else list(names),
        "threshold": float(calibrator.threshold_),
        "units": calibrator.n_units_,
        "judged_by": calibrator.groups_.state(),
        "selection": calibrator.selection_ or None,
        "unknown_gold": calibrator.unknown_gold_,
        "held_out": calibrator.held_out_.state(),
        **calibrator.calibration_.state(),
    }
    return pack(state, FORMAT)


def _as_plain_data(value: Any) -> Any:
    """Return a parameter as plain data; a calibration step as its registered name and settings, not what it has learned."""
    if isinstance(value, Part):
        return {value.kind: value.registered, "settings": value.settings(), "learned": {}}
    return value.item() if isinstance(value, np.generic) else value


def read(estimator_class: type[Estimator], data: bytes, path: str) -> Estimator:
    """Rebuild an estimator, of the class given, from the bytes of `dump`. path (str): Where they are from, for the errors.

    RAISES C298: the bytes are damaged, or no saved estimator. C299: another format version, or a step that is not installed.
    """
    try:
        return _make_estimator(estimator_class, STATE(unpack(data, FORMAT), "state"))
    except OtherVersion as error:
        why = f"it has format version {error.version}, and this spacy-calib reads version {FORMAT_VERSION}"
        raise calib_error("C299", path=path, why=why) from None
    except MissingPart as error:
        raise calib_error("C299", path=path, why=f"it names {brief(repr(error.name))}, which is not installed") from None
    except CalibError as error:
        why = error.message
    except (UnreadableState, InvalidState) as error:
        why = str(error)
    except Exception as error:  # a part from another package may raise anything
        why = f"{type(error).__name__}: {brief(error, 160)}"
    raise calib_error("C298", path=path, why=why)


def _make_estimator(estimator_class: type[Estimator], state: dict[str, Any]) -> Estimator:
    """Build the fitted estimator from a state that STATE has checked. RAISES InvalidState, CalibError: a value out of range."""
    load = partial(make_part, find=registered_maker)
    parameters = {name: load(value) if isinstance(value, dict) else value for name, value in state["parameters"].items()}
    if parameters["tag_counts"] is not None:
        parameters["tag_counts"] = dict(parameters["tag_counts"])
    calibrator = estimator_class(**parameters)
    make_steps(calibrator, state["threshold"])  # raises if a parameter is out of range
    calibrator.calibration_ = TokenCalibration.from_state(state, check_normalize(calibrator.normalize), load)
    calibrator.classes_ = np.array(state["classes"])
    calibrator.n_features_in_ = len(state["classes"])
    if state["columns"] is not None:
        calibrator.feature_names_in_ = np.array(state["columns"], dtype=object)
    calibrator.groups_ = state["judged_by"]
    calibrator.threshold_, calibrator.n_units_ = state["threshold"], state["units"]
    calibrator.selection_ = state["selection"] or {}
    calibrator.unknown_gold_ = state["unknown_gold"]
    calibrator.held_out_ = state["held_out"]
    return calibrator
