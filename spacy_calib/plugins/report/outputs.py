"""The page of `evaluate`, as a file, and by `spacy_calib.report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...cli.evaluating.evaluation import Evaluation, evaluate_pipeline
from ...cli.evaluating.outputs import Section, Writer
from ...cli.shared.screen import msg
from ...cli.shared.writing import write_text
from .page_contents import page_contents, show_verdicts


def write_page(evaluation: Evaluation, paths: Sequence[Path]) -> list[Section]:
    """Write the page. RAISES C005, C030: there is too little to judge. C055: a file cannot be written."""
    contents = _write(evaluation, paths)
    return [Section("", "", "", {**contents, "paths": paths}, _show)]


PAGE = Writer(write_page, fitted_only=True)


def _write(evaluation: Evaluation, paths: Sequence[Path]) -> dict[str, Any]:
    from .page import render_report

    contents = page_contents(evaluation)
    if paths:
        text = render_report(contents)
        for path in paths:
            write_text(path, text)
    return contents


def _show(contents: Mapping[str, Any], _: str) -> None:
    show_verdicts(contents)
    for path in contents["paths"]:
        msg.good(f"The page is at {path}; open it in a browser.")


def report(model: str | Path, data: str | Path, output: str | Path | None = None, **options: Any) -> dict[str, Any]:
    """Explain the probabilities of a calibrated pipeline by one HTML page, as `spacy calib evaluate --output page.html` does.

    model, data: See `fit`. output: The page to write; None writes none.
    options: Those of `evaluate` by their long names: attr, component, bins, groups, gold_preproc, n_process, gpu_id, code,
        force.
    RETURNS (dict): All that the page shows.
    RAISES CalibError: every fault of the input.
    """
    from ...cli.evaluate_command import evaluate
    from ...cli.evaluating.options import EvaluateRun

    paths = [] if output is None else [Path(output)]
    run = EvaluateRun.from_options(evaluate.check_arguments(str(model), Path(data), output=paths, **options))
    return _write(evaluate_pipeline(run, fitted_only=True), run.output)
