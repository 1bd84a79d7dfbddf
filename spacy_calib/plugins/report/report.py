"""`spacy_calib.report`: the page of an evaluation, in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...cli.evaluating.evaluation import evaluate_pipeline
from ...cli.evaluating.options import EvaluateRun
from .page_contents import write_page


def report(model: str | Path, data: str | Path, output: str | Path | None = None, **options: Any) -> dict[str, Any]:
    """Explain how well a pipeline is calibrated on one HTML page, as `spacy calib evaluate --output page.html` does.

    model (str | Path): Calibrated pipeline, package name or folder. data (str | Path): Gold. output (str | Path | None): File
        for the page; None writes none.
    options: Options of `evaluate` by their names in Python: component, by, groups, label_map, gold_preproc, n_process, gpu_id,
        code, force.
    RETURNS (dict): The contents of the page: "title", "model", "data", "made", "skipped" and "views".
    RAISES CalibError: any bad input.

        >>> contents = report("calibrated", "test.spacy", "page.html")
        >>> sorted(contents["views"][0]["verdict"])
        ['heading', 'more', 'sentence', 'status', 'warnings']
    """
    paths = [] if output is None else [Path(output)]
    run = EvaluateRun(str(model), Path(data), output=paths, **options)
    return write_page(evaluate_pipeline(run, fitted_only=True), run.output)
