"""`spacy_calib.report`: the page of an evaluation, in Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...cli.api import File
from ...cli.evaluating.evaluation import evaluate_pipeline
from ...cli.evaluating.options import EvaluateRun
from .page_contents import write_page


def report(
    model: File,
    data: File,
    output: File | None = None,
    *,
    component: str | None = None,
    by: str | None = None,
    groups: int | None = None,
    label_map: Mapping[str, str] | str | None = None,
    gold_preproc: bool = False,
    n_process: int = 1,
    gpu_id: int = -1,
    code: File | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Explain how well a pipeline is calibrated on one HTML page, as `spacy calib evaluate --output page.html` does.

    model (str | Path): Calibrated pipeline, package name or folder. data (str | Path): Gold. output (str | Path | None): File
        for the page; None writes none. Others: options of the command with the same names (`spacy calib evaluate --help`).
    RETURNS (dict): The page's contents: "title", "model", "data", "made", "skipped", "views". RAISES CalibError: bad input.

        >>> contents = report("calibrated", "test.spacy", "page.html")
        >>> sorted(contents["views"][0]["verdict"])
        ['heading', 'more', 'sentence', 'status', 'warnings']
    """
    options: dict[str, Any] = locals()  # all arguments
    run = EvaluateRun(**options | {"model": str(model), "data": Path(data), "code": None if code is None else Path(code)})
    return write_page(evaluate_pipeline(run, fitted_only=True), run.output)
