"""The calibrator of a file of scores: made from options, and read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..fitting.settings import pipe_settings
from ..shared.checks import check_option
from ..shared.loading import import_user_code

if TYPE_CHECKING:
    from ...arrays import TagCalibrator


def calibrator_of(options: Mapping[str, Any]) -> TagCalibrator:
    """One that is not fitted, with the settings that `fit` would give a pipe.

    RAISES C056: an option out of range, or one beside --method auto.
    """
    from ...arrays import TagCalibrator
    from ...registry import registry

    _, settings = pipe_settings(None, dict(options))
    blocks = {name: settings[name] for name in ("recalibrator", "scaling", "pooling") if settings.get(name)}
    made = registry.resolve({"parts": blocks})["parts"]
    return TagCalibrator(
        method="auto" if settings["selection"] else made["recalibrator"],
        n_groups=settings["grouping"]["n_groups"],
        scaling=made.get("scaling"),
        tag_offsets=made.get("pooling", False),
        threshold=settings["threshold"],
        normalize=settings["normalize"],
    )


def read_calibrator(model: str | Path, code: Path | None = None) -> TagCalibrator:
    """RAISES C298, C299: it is no calibrator, or cannot be used here. C062: the code."""
    from ...arrays import TagCalibrator

    import_user_code(code)
    return TagCalibrator.from_disk(model)


def check_score_file(option: str, path: Path, wanted: bool) -> None:
    """RAISES C056: a path ends as files of scores do, and is to be none; or the other way round."""
    from ...arrays.files import SUFFIXES, is_score_file

    kinds = ", ".join(SUFFIXES)
    sentence = f"a file that ends in one of {kinds}" if wanted else f"a file that ends otherwise than files of scores ({kinds})"
    check_option(option, is_score_file(path) == wanted, sentence, path)
