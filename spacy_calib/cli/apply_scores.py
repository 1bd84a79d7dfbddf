"""`spacy calib apply-scores`: a file of scores with a column of calibrated ones."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .fit_scores import SCORES
from .scores.calibrators import check_score_file, read_calibrator
from .shared.checks import check_raw_cells
from .shared.command import Options, command
from .shared.options import Code, Format, RawCells, Silent
from .shared.outputs import Output, check_files
from .shared.results import print_json
from .shared.screen import msg


@dataclass(frozen=True)
class ApplyScoresOptions(Options):
    """Which scores are calibrated, and where to."""

    calibrator: Annotated[Path, typer.Argument(metavar="CALIBRATOR", help="File that fit-scores wrote")]
    scores: Annotated[Path, typer.Argument(metavar="SCORES", help=SCORES)]
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File for the rows, in the format of its suffix")]
    _: KW_ONLY
    format: Format = "table"
    raw_cells: RawCells = False
    code: Code = None
    force: Annotated[bool, typer.Option("--force", "-F", help="Replace a file at OUTPUT")] = False
    silent: Silent = True

    def check_options(self) -> None:
        """RAISES C056: --raw-cells, of something else than CSV."""
        from ..arrays.files import has_cells

        check_raw_cells(self.raw_cells, has_cells(self.output))


@command(
    ApplyScoresOptions,
    does="Calibrate a file of scores",
    example="tagger.calibrator new.csv calibrated.csv",
)
def apply_scores(options: ApplyScoresOptions) -> dict[str, Any]:
    """
    Write the rows of a file of scores with one column more: calibrated, empty for
    scores below the threshold of the calibrator. The formats of SCORES and
    OUTPUT may differ.

    RETURNS (dict): "output", "units", "scores": rows with a score, "calibrated": those that reach the "threshold".
    RAISES CalibError: every fault of the input.
    """
    from ..arrays.files import read_units, with_calibrated
    from .shared.atomic import write_chunks

    check_score_file("SCORES", options.scores, wanted=True)
    check_score_file("OUTPUT", options.output, wanted=True)
    inputs = [options.scores, options.calibrator, options.code]
    check_files([Output("OUTPUT", options.output)], options.force, inputs=inputs)
    calibrator = read_calibrator(options.calibrator, options.code)
    found = read_units(options.scores)
    classes = calibrator.classes_.tolist()
    calibrated = calibrator.transform(found.scores_for(classes))
    of_rows = found.of_rows(calibrated, classes, calibrator.threshold)
    write_chunks(options.output, with_calibrated(options.scores, options.output, of_rows, options.raw_cells))
    result: dict[str, Any] = {
        "output": str(options.output),
        "units": found.n_units,
        "scores": found.n_entries,
        "calibrated": found.n_reaching(calibrator.threshold),
        "threshold": calibrator.threshold,
    }
    if not options.silent and options.format == "json":
        print_json(result)
    elif not options.silent:
        below = result["scores"] - result["calibrated"]
        left = f"; {below:,} below the threshold {calibrator.threshold:g} have none" if below else ""
        msg.good(f"Calibrated {result['calibrated']:,} scores of {found.n_units:,} units: {options.output}{left}")
    return result
