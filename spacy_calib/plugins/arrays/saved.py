"""The saved form of a `TagCalibrator`: maps as a pipe saves them, and the estimator's parameters. Never pickle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...calibration.fit_summaries import SELECTION, HeldOut
from ...calibration.recalibrators import Recalibrator
from ...calibration.registered import registered_maker
from ...calibration.saved import FORMAT_VERSION, KINDS, MissingPart, OtherVersion, UnreadableState, make_part, pack, unpack
from ...calibration.scaling import Scaling
from ...calibration.sets import ConformalSets
from ...calibration.tag_offsets import TagOffsets
from ...calibration.tokens import TOKENS, TokenCalibration, check_normalize
from ...errors import CalibError, brief
from ...schema import Misfit, keyed, listed, maybe, number, record, text, whole
from ...types import Groups
from .inputs import steps_of
from .messages import calib_error

if TYPE_CHECKING:
    from .tag_calibrator import TagCalibrator

    Estimator = TypeVar("Estimator", bound=TagCalibrator)

FORMAT = "spacy-calib-arrays"
_KIND_OF = {
    "@calib_recalibrators": Recalibrator,
    "@calib_scalings": Scaling,
    "@calib_poolings": TagOffsets,
    "@calib_sets": ConformalSets,
}


def _plain(value: Any, where: str) -> Any:
    """A text, number, true, false or null; or a part for `make_part`."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if not isinstance(value, dict) or not any(kind in value for kind in KINDS):
        raise Misfit(where, "a setting")
    return value


def _label(value: Any, where: str) -> Any:
    if not isinstance(value, (str, int, float)):
        raise Misfit(where, "a label")
    return value


def _agree(held: dict[str, Any]) -> str:
    n = len(held["classes"])
    sizes = (len(held["judged_by"].of_tag), len(held["maps"]["groups"].of_tag)) if held["maps"] else (-1,)
    return "" if set(sizes) == {n} else f"there are {n} classes, but groups of {sizes[-1]} tags"


_PARAMETERS = record(
    {
        "method": _plain,
        "n_groups": whole(1),
        "scaling": _plain,
        "tag_offsets": _plain,
        "threshold": number(0.0, 1.0),
        "normalize": _plain,
        "sets": _plain,
        "classes": maybe(listed(_label)),
        "tag_counts": maybe(listed(listed(_label, 2, 2))),
    }
)
STATE = record(
    {
        "parameters": _PARAMETERS,
        "classes": listed(_label, 1),
        "columns": maybe(listed(text)),
        "judged_by": Groups.read,
        "selection": maybe(SELECTION),
        "unknown_gold": keyed(whole()),
        "held_out": HeldOut.read,
        **TOKENS,
    },
    _agree,
)


def dump(made: TagCalibrator) -> bytes:
    """A fitted estimator as bytes."""
    given = {name: _saved(value) for name, value in made.get_params(deep=False).items()}
    given["threshold"] = float(made.threshold)
    given["classes"] = None if made.classes is None else np.asarray(made.classes).tolist()
    given["tag_counts"] = None if made.tag_counts is None else [[tag, int(n)] for tag, n in made.tag_counts.items()]
    names = getattr(made, "feature_names_in_", None)
    state = {
        "parameters": given,
        "classes": made.classes_.tolist(),
        "columns": None if names is None else list(names),
        "judged_by": made.groups_.state(),
        "selection": made.selection_ or None,
        "unknown_gold": made.unknown_gold_,
        "held_out": made.held_out_.state(),
        **made.calibration_.state(),
    }
    return pack(state, FORMAT)


def _saved(value: Any) -> Any:
    """A parameter as plain data; a part as its name and settings, without what it has learned."""
    kind = next((kind for kind, base in _KIND_OF.items() if isinstance(value, base)), None)
    if kind is not None:
        return {kind: value.registered, "settings": value.settings(), "learned": {}}
    return value.item() if isinstance(value, np.generic) else value


def read(kind: type[Estimator], data: bytes, path: str) -> Estimator:
    """The estimator that `dump` wrote. RAISES C298: not such bytes. C299: another format version, or an unknown part."""
    try:
        return _made(kind, STATE(unpack(data, FORMAT), "state"))
    except OtherVersion as error:
        why = f"it has format version {error.version}, and this spacy-calib reads version {FORMAT_VERSION}"
        raise calib_error("C299", path=path, why=why) from None
    except MissingPart as error:
        raise calib_error("C299", path=path, why=f"it names {brief(repr(error.name))}, which is not installed") from None
    except CalibError as error:
        why = error.message
    except (UnreadableState, Misfit) as error:
        why = str(error)
    except Exception as error:  # whatever the class of a part from elsewhere says of what it learned
        why = f"{type(error).__name__}: {brief(error, 160)}"
    raise calib_error("C298", path=path, why=why)


def _made(kind: type[Estimator], held: dict[str, Any]) -> Estimator:
    """A fitted estimator from STATE. RAISES Misfit, CalibError: a part, or a parameter, out of range."""

    def load(part: Any) -> Any:
        return make_part(part, registered_maker)

    given = {name: load(value) if isinstance(value, dict) else value for name, value in held["parameters"].items()}
    if given["tag_counts"] is not None:
        given["tag_counts"] = dict(given["tag_counts"])
    made = kind(**given)
    steps_of(**{name: given[name] for name in ("method", "n_groups", "scaling", "tag_offsets", "threshold", "sets")})
    made.calibration_ = TokenCalibration.from_state(held, check_normalize(made.normalize), load)
    made.classes_ = np.array(held["classes"])
    made.n_features_in_ = len(held["classes"])
    if held["columns"] is not None:
        made.feature_names_in_ = np.array(held["columns"], dtype=object)
    made.groups_ = held["judged_by"]
    made.selection_ = held["selection"] or {}
    made.unknown_gold_ = held["unknown_gold"]
    made.held_out_ = held["held_out"]
    return made


def file_bytes(path: Path) -> bytes:
    """The bytes of a file. RAISES C298: it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise calib_error("C298", path=path, why=error.strerror or error) from None
