"""`spacy_calib.fit`, `adapt` and `evaluate`: the commands of these names as Python functions, which print nothing."""

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

    model (str | Path): Package name or folder of the pipeline. data (str | Path): Gold that it was not trained on, a .spacy or
        .conllu file or a folder of them. output (str | Path): Folder to write. component (str | list[str] | None): Component to
        calibrate, or several; None takes the command's default. options: Options of the command by their long names: gold (a
        list of more files), train_data, config, method, groups, attr, event, unit, always, gold_preproc, n_process, gpu_id,
        code, force and so on; `overrides` is a dict of dotted settings: {"components.calib.sets.alpha": 0.1}.
    RETURNS (Calibrator | list[Calibrator]): The pipe that was written, a list for several components; its `fit_info` has the
        tables of its fit. A calibrated pipeline keeps its calibration, or adapts it, unless the new fit is clearly better on
        held-out documents, or `always` is true.
    RAISES CalibError: any error in the input.
    """
    from .fit_command import fit as run

    return run(str(model), Path(data), Path(output), component=component, **options)  # type: ignore[arg-type]


def adapt(model: str | Path, data: str | Path, output: str | Path, **options: Any) -> Calibrator:
    """Adapt a calibrated pipeline to a new domain with a few labelled documents and write it, as `spacy calib adapt` does.

    model (str | Path): Package name or folder of the calibrated pipeline. data (str | Path): 5 to 50 labelled documents of the
        new domain, a .spacy or .conllu file or a folder of them. output (str | Path): Folder to write. options: Options of the
        command by their long names: component, attr, allow_unknown, gold_preproc, doc_key, n_process, gpu_id, code, force.
    RETURNS (Calibrator): The adapted pipe; its `fit_info.adaptations` describes each adaptation.
    RAISES CalibError: any error in the input.
    """
    from .adapt_command import adapt as run

    return run(str(model), Path(data), Path(output), **options)


def evaluate(model: str | Path, data: str | Path, **options: Any) -> dict[str, Any]:
    """Evaluate the calibration of a pipeline on gold, as `spacy calib evaluate` does.

    model (str | Path): Package name or folder of the pipeline. data (str | Path): Gold, a .spacy or .conllu file or a folder of
    them. options: Options of the command by their long names: component, attr, bins, groups, gold_preproc, code, output ...
    RETURNS (dict): Pipe name -> raw and calibrated figures, the JSON of `spacy calib evaluate --output`.
    RAISES CalibError: any error in the input.
    """
    from .evaluate_command import evaluate as run

    return run(str(model), Path(data), **options)


__all__ = ["adapt", "evaluate", "fit"]
