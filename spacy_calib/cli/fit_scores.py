"""`spacy calib fit-scores`: learn calibrated probabilities from a file of scores with gold, without a pipeline."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import calib_error
from .fitting.fit_output import say_what_was_chosen, verdict_sentence, warn_of_held_out
from .fitting.fit_pipe import check_held_out
from .fitting.labels import MOST_UNKNOWN
from .fitting.settings import NORMALIZE
from .scores.calibrators import calibrator_of, check_score_file
from .shared.command import Options, choice, command
from .shared.loading import import_user_code
from .shared.options import Bins, Code, Format, Groups, Method, Scaling, Silent, TagOffsets, Threshold
from .shared.outputs import Output, check_files
from .shared.results import print_json
from .shared.screen import msg, number, warn

if TYPE_CHECKING:
    from ..arrays import TagCalibrator
    from ..arrays.files import ScoreUnits

SCORES = "Scores: .csv, .tsv, .jsonl, .parquet or .npz with a tag and a score on each row"


@dataclass(frozen=True)
class FitScoresOptions(Options):
    """On which scores a calibrator is fitted, and how."""

    scores: Annotated[Path, typer.Argument(metavar="SCORES", help=f"{SCORES}, and the gold tag of its unit")]
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File to write the calibrator to")]
    _: KW_ONLY
    groups: Groups = None
    method: Method = None
    scaling: Scaling = None
    tag_offsets: TagOffsets = False
    bins: Bins = None
    threshold: Threshold = None
    normalize: Annotated[
        str | None,
        choice(
            tuple(NORMALIZE),
            "--normalize",
            help="Rescale the scores of a unit: kept (they sum to 1), other (room for the tags below the threshold)",
            show_default="none",
        ),
    ] = None
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Go on where no row has many of the gold tags")] = False
    format: Format = "table"
    code: Code = None
    force: Annotated[bool, typer.Option("--force", "-F", help="Replace a file at OUTPUT")] = False
    silent: Silent = True


@command(
    FitScoresOptions,
    does="Learn the same from a file of scores, of any tagger",
    example="dev.csv tagger.calibrator",
)
def fit_scores(options: FitScoresOptions) -> TagCalibrator:
    """
    Learn calibrated probabilities from scores in a file, for a tagger that is not
    spaCy's, and write the calibrator to OUTPUT. A row holds document, unit
    (a token of it), tag, score and gold. Use scores of texts that the tagger
    was not trained on.

    RETURNS (TagCalibrator): The fitted calibrator.
    RAISES CalibError: every fault of the input.
    """
    from ..arrays.files import read_units
    from .shared.atomic import write_file

    import_user_code(options.code)
    calibrator = calibrator_of(options.given())
    check_score_file("SCORES", options.scores, wanted=True)
    check_score_file("OUTPUT", options.output, wanted=False)
    check_files([Output("OUTPUT", options.output)], options.force, inputs=[options.scores, options.code])
    found = read_units(options.scores)
    y = found.y()
    unknown = found.unknown_gold()
    if unknown.share > MOST_UNKNOWN and not options.allow_unknown:
        raise calib_error("C306", share=f"{100 * unknown.share:.1f}", path=options.scores, unknown=unknown.named)
    classes = sorted(found.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of gold that no row has, which is told below
        calibrator.set_params(classes=classes).fit(found.scores_for(classes), y, found.groups)
    registered = calibrator.calibration_.maps.prototype.registered if calibrator.calibration_.maps else ""
    check_held_out(calibrator.held_out_, registered)
    write_file(options.output, calibrator.to_bytes())
    if not options.silent:
        tell(calibrator, found, options)
    return calibrator


def tell(calibrator: TagCalibrator, found: ScoreUnits, options: FitScoresOptions) -> None:
    """Print what was fitted, as JSON or in words."""
    unknown = found.unknown_gold()
    held = calibrator.held_out_
    maps = calibrator.calibration_.maps
    made: dict[str, Any] = {
        "output": str(options.output),
        "units": unknown.n_gold,
        "documents": None if found.documents is None else len(found.documents.names),
        "labels": calibrator.classes_.tolist(),
        "method": maps and maps.prototype.registered,
        "scaling": calibrator.calibration_.scaling and calibrator.calibration_.scaling.describe(),
        "selection": calibrator.selection_ or None,
        "held_out": held.to_dict(),
        "unknown_gold": calibrator.unknown_gold_,
    }
    if options.format == "json":
        print_json(made)
        return
    msg.good(verdict_sentence("The scores", held, "the likeliest tag of each unit"))
    msg.good(f"Calibrated {len(made['labels'])} tags on {unknown.n_gold:,} units with gold: {options.output}")
    if unknown.n:
        warn(
            f"{unknown.n:,} units ({100 * unknown.share:.1f} %) have a gold tag that no row has ({unknown.named}); all their pairs count as misses"
        )
    if found.documents is None:
        msg.info("There is no column document: each unit was held out by itself, though units of one text are alike")
    if calibrator.selection_:
        say_what_was_chosen(calibrator.selection_, "tags")
    msg.info(f"Held-out log loss: {number(held.raw)} raw, {number(held.calibrated)} calibrated")
    warn_of_held_out(held)
    msg.text(f"python -m spacy calib apply-scores {options.output} SCORES OUTPUT gives the scores of other texts")
