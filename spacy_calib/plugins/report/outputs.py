"""The HTML page of an evaluation, for `calib evaluate --output` and `spacy_calib.report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...cli.evaluating.evaluation import Evaluation, evaluate_pipeline
from ...cli.evaluating.outputs import Section
from ...cli.shared.screen import msg
from ...cli.shared.writing import write_text
from .page_contents import page_contents, show_verdicts


def write_page(evaluation: Evaluation, paths: Sequence[Path]) -> list[Section]:
    """Write the page, and return the section that prints its verdicts. RAISES C005, C030: too few pairs. C055: a file cannot be written."""
    contents = _render_to(evaluation, paths)
    return [Section("", "", "", {**contents, "paths": paths}, _show_page)]


def _render_to(evaluation: Evaluation, paths: Sequence[Path]) -> dict[str, Any]:
    from .page import render_report

    contents = page_contents(evaluation)
    if paths:
        text = render_report(contents)
        for path in paths:
            write_text(path, text)
    return contents


def _show_page(contents: Mapping[str, Any], _: str) -> None:
    show_verdicts(contents)
    for path in contents["paths"]:
        msg.good(f"The page is at {path}; open it in a browser.")


def report(model: str | Path, data: str | Path, output: str | Path | None = None, **options: Any) -> dict[str, Any]:
    """Explain how well a pipeline is calibrated on one HTML page, as `spacy calib evaluate --output page.html` does.

    model (str | Path): Calibrated pipeline, package name or folder. data (str | Path): Gold. output (str | Path | None): File
        for the page; None writes none.
    options: Options of `evaluate` by their long names: attr, component, bins, groups, gold_preproc, n_process, gpu_id, code,
        force.
    RETURNS (dict): The contents of the page: "title", "model", "data", "made", "skipped" and "views".
    RAISES CalibError: any bad input.

        >>> contents = report("calibrated", "test.spacy", "page.html")
        >>> sorted(contents["views"][0]["verdict"])
        ['heading', 'more', 'sentence', 'status', 'warnings']
    """
    from ...cli.evaluating.options import EvaluateRun

    paths = [] if output is None else [Path(output)]
    run = EvaluateRun(str(model), Path(data), output=paths, **options)
    return _render_to(evaluate_pipeline(run, fitted_only=True), run.output)
