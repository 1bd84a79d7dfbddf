"""`spacy_calib.fit`, `fit_all`, `adapt` and `evaluate`: the commands as Python functions, which print nothing.

Each option is written out, for editors and type checkers; `tests/cli/test_api.py` compares them with those of the commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ..pipe.component import Calibrator

File = str | Path
# The values that type checkers know; at run time names that other packages register work, too.
Method = Literal["auto", "identity", "temperature", "platt", "beta", "histogram", "scaling-binning", "isotonic"]
Event = Literal["exact", "article", "type", "overlap", "head", "arc"]
Picture = Literal["reliability", "top", "groups", "errors", "coverage", "all"]

_PATHS = ("data", "output", "train_data", "config", "code")  # options that take a path


def _run(run: Any, options: dict[str, Any]) -> Any:
    """Call the command function `run` with `options` by name, after file names became Paths, and return its result."""
    paths = {name: Path(options[name]) for name in _PATHS if isinstance(options.get(name), str)}
    return run(**{**options, **paths, "model": str(options["model"])})


def fit(
    model: File,
    data: File,
    output: File,
    *,
    component: str | None = None,
    train_data: File | None = None,
    method: Method | None = None,
    attr: str | None = None,
    force: bool = False,
    groups: int | None = None,
    config: File | None = None,
    event: Event | None = None,
    second_pass: bool = False,
    label_map: Mapping[str, str] | str | None = None,
    gold: Sequence[File] | None = None,
    gold_preproc: bool = False,
    allow_unknown: bool = False,
    allow_seen: bool = False,
    always: bool = False,
    n_process: int = 1,
    gpu_id: int = -1,
    code: File | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Calibrator:
    """Learn calibrated probabilities from held-out gold and write the pipeline with them, as `spacy calib fit` does.

    model (str | Path): Package name or folder of the pipeline. data (str | Path): Gold that it was not trained on, a .spacy or
        .conllu file or a folder of them; `gold` adds more. output (str | Path): Folder to write; `force` replaces a pipeline.
        component (str | None): Component to calibrate; None lets the command choose, by default the tagger. train_data: Gold to
        count tag frequencies in. method, groups, event: How scores are calibrated, the number of groups of tags, and when a
        prediction is right. attr (str | None): Name of the pipe and prefix of its attributes. config: File with settings.
        overrides (dict | None): Dotted settings, {"components.calib.threshold": 0.01}. label_map: Component label -> gold
        label, a dict or "PERSON=PER,GPE=LOC". The others are options that `python -m spacy calib fit --help` describes.
    RETURNS (Calibrator): The calib pipe that was written; its `fit_info` has the tables of its fit. A calibrated pipeline keeps
        its calibration, or adapts it, unless the new fit is clearly better on held-out documents, or `always` is true.
    RAISES CalibError: any error in the input.
    """
    options = locals()  # only the arguments: no other local variable exists yet
    from .fit_command import fit as run

    pipe: Calibrator = _run(run, options)
    return pipe


def fit_all(
    model: File,
    data: File,
    output: File,
    component: Sequence[str],
    *,
    train_data: File | None = None,
    method: Method | None = None,
    force: bool = False,
    groups: int | None = None,
    label_map: Mapping[str, str] | str | None = None,
    gold: Sequence[File] | None = None,
    gold_preproc: bool = False,
    allow_unknown: bool = False,
    allow_seen: bool = False,
    always: bool = False,
    n_process: int = 1,
    gpu_id: int = -1,
    code: File | None = None,
) -> list[Calibrator]:
    """Calibrate several components in one run, and write the pipeline.

    component (Sequence[str]): Names of the components. The other arguments are as for `fit`, and hold for all components.
    RETURNS (list[Calibrator]): The calib pipes that were written, in pipeline order. RAISES CalibError: any error in the input.
    """
    options = {**locals(), "component": list(component)}  # locals(): only the arguments, as no other local variable exists yet
    from .fit_command import fit as run

    pipes: Calibrator | list[Calibrator] = _run(run, options)
    return pipes if isinstance(pipes, list) else [pipes]


def adapt(
    model: File,
    data: File,
    output: File,
    *,
    component: str | None = None,
    label_map: Mapping[str, str] | str | None = None,
    allow_unknown: bool = False,
    force: bool = False,
    gold_preproc: bool = False,
    n_process: int = 1,
    gpu_id: int = -1,
    code: File | None = None,
) -> Calibrator:
    """Adapt a calibrated pipeline to a new domain with a few labelled documents and write it, as `spacy calib adapt` does.

    model (str | Path): Package name or folder of the calibrated pipeline. data (str | Path): 5 to 50 labelled documents of the
        new domain, a .spacy or .conllu file or a folder of them. output (str | Path): Folder to write. component (str | None):
        Component whose calibration is adapted; None takes the one that the data are about. The others are as for `fit`.
    RETURNS (Calibrator): The adapted calib pipe; its `fit_info.adaptations` describes each adaptation.
    RAISES CalibError: any error in the input.
    """
    options = locals()  # only the arguments: no other local variable exists yet
    from .adapt_command import adapt as run

    pipe: Calibrator = _run(run, options)
    return pipe


def evaluate(
    model: File,
    data: File,
    *,
    output: File | Sequence[File] | None = None,
    component: str | None = None,
    by: str | None = None,
    groups: int | None = None,
    label_map: Mapping[str, str] | str | None = None,
    gold_preproc: bool = False,
    n_process: int = 1,
    gpu_id: int = -1,
    code: File | None = None,
    force: bool = False,
    kind: Picture | None = None,
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Measure on gold how well the scores of a pipeline are calibrated, as `spacy calib evaluate` does.

    model (str | Path): Package name or folder of the pipeline. data (str | Path): Gold, a .spacy or .conllu file or a folder of
        them. output: .json, .html or picture files to write, or a folder for all pictures. component (str | None): The only one
        to evaluate. by (str | None): Key of Doc.user_data whose values divide the documents into slices. groups (int | None):
        Number of groups of tags; None takes those of the fit. kind (str | None): What pictures show. tags (list[str] | None):
        Tags to draw. force (bool): Whether to replace existing files. The others are as for `fit`.
    RETURNS (dict): Pipe name -> raw and calibrated figures, the JSON of `spacy calib evaluate --output`.
    RAISES CalibError: any error in the input.
    """
    options = locals()  # only the arguments: no other local variable exists yet
    from .evaluate_command import evaluate as run

    figures: dict[str, Any] = _run(run, options)
    return figures


__all__ = ["adapt", "evaluate", "fit", "fit_all"]
