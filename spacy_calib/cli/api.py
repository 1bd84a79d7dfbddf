"""What people call from Python: `spacy_calib.fit`, `adapt` and `evaluate` do what these commands do; nothing is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from ..pipe.component import Calibrator


@overload
def fit(
    model: str | Path, data: str | Path, output: str | Path, *, component: str | None = None, **options: Any
) -> Calibrator: ...
@overload
def fit(
    model: str | Path, data: str | Path, output: str | Path, *, component: list[str], **options: Any
) -> Calibrator | list[Calibrator]: ...
def fit(
    model: str | Path, data: str | Path, output: str | Path, *, component: str | list[str] | None = None, **options: Any
) -> Calibrator | list[Calibrator]:
    """Learn calibrated probabilities from held-out gold and write the pipeline with them, as `spacy calib fit` does.

    model: Package name or folder of the pipeline. data: Gold that it was not trained on, a .spacy or .conllu file or a
        folder of them; `gold` is a list of more. output: Folder to write.
    component (str | list[str] | None): What to calibrate, one or several; None takes the command's default.
    options: Those of the command by their long names: gold, train_data, config, method, groups, attr, event, unit, always,
        gold_preproc, n_process, gpu_id, code, force and so on; `overrides` has dotted settings of the pipe, as
        {"components.calib.sets.alpha": 0.1}.
    RETURNS (Calibrator | list[Calibrator]): The pipe that was written, a list of several components; its `fit_info` holds the tables of its
        fit. A pipeline that has a calibration keeps it, or adapts it, unless the new fit is clearly better on held-out documents, or `always` is true.
    RAISES CalibError: every fault of the input.
    """
    from .fit_command import fit as run

    return run(str(model), Path(data), Path(output), component=component, **options)  # type: ignore[arg-type]


def adapt(model: str | Path, data: str | Path, output: str | Path, **options: Any) -> Calibrator:
    """Make the scores of a calibrated pipeline true on a new kind of text, from a few labelled documents, as `spacy calib adapt` does.

    model, data, output: See `fit`; the data are 5 to 50 documents of the new kind. options: Those of the command by their long names:
        component, attr, allow_unknown, gold_preproc, doc_key, n_process, gpu_id, code, force.
    RETURNS (Calibrator): The adapted pipe; its `fit_info.adaptations` says what it learned.
    RAISES CalibError: every fault of the input.
    """
    from .adapt_command import adapt as run

    return run(str(model), Path(data), Path(output), **options)


def evaluate(model: str | Path, data: str | Path, **options: Any) -> dict[str, Any]:
    """Compare the probabilities of a calibrated pipeline with gold, as `spacy calib evaluate` does.

    model, data: See `fit`. options: Those of the command by their long names: component, attr, bins, groups, gold_preproc, n_process, gpu_id, code, output.
    RETURNS (dict): Pipe name -> figures raw and calibrated, see `spacy calib evaluate --output`.
    RAISES CalibError: every fault of the input.
    """
    from .evaluate_command import evaluate as run

    return run(str(model), Path(data), **options)


__all__ = ["adapt", "evaluate", "fit"]
