"""Files of scores as DATA: `fit` makes a calibrator of one; with a calibrator in the place of MODEL, `apply` calibrates one, and others judge and rank it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import calib_error
from ..pipe.loading import import_user_code
from .fitting.fit_output import say_what_was_chosen, verdict_sentence, warn_of_held_out
from .fitting.fit_pipe import check_held_out
from .fitting.settings import MOST_UNKNOWN, pipe_settings
from .shared.checks import check_option
from .shared.command import Options, declared
from .shared.outputs import Output, check_files
from .shared.screen import msg, number, warn
from .shared.writing import print_json

if TYPE_CHECKING:
    from ..arrays import TagCalibrator
    from ..arrays.files import ScoreUnits
    from ..corpus.scored import ScoredCorpus
    from ..pipe.judging import Judged
    from .fitting.options import FitOptions
    from .shared.run import Run

# Options about pipelines and Docs, of which files of scores know nothing.
_OF_PIPELINES = {
    "allow_seen", "attr", "batch_size", "columns", "component", "config",
    "context", "doc_key", "event", "gold", "gold_preproc", "gold_source", "gpu_id",
    "key", "label_map", "map_for", "n_process", "not_accepted", "score", "second_pass",
    "sets", "shard_size", "source", "train_data", "watch", "way",
}  # fmt: skip
# Dotted settings that mean for them what they mean for pipelines.
_OF_MAPS = ("recalibrator", "scaling", "pooling", "scorer")


def is_calibrator(model: str) -> bool:
    """Whether MODEL is a calibrator of scores in files: those are files, and pipelines folders or packages."""
    return os.path.isfile(model)


def check_score_file(option: str, path: Path, wanted: bool = True) -> None:
    """RAISES C056: a path ends as files of scores do, and is to be none; or the other way round."""
    from ..arrays.files import SUFFIXES, is_score_file

    kinds = ", ".join(SUFFIXES)
    sentence = f"a file that ends in one of {kinds}" if wanted else f"a file that ends otherwise than files of scores ({kinds})"
    check_option(option, is_score_file(path) == wanted, sentence, path)


def check_for_scores(options: Options) -> None:
    """RAISES C056: an option of pipelines is given."""
    kind: Any = type(options)
    for option in declared(kind):
        given = getattr(options, option.name)
        if option.name in _OF_PIPELINES and given != option.default:
            check_option(option.flag.split("/")[0], False, "left out for scores in files", given)


# Fit


def fit_scores(options: FitOptions, data: Path) -> TagCalibrator:
    """Learn from the scores at DATA, for a tagger that is not spaCy's, and write the calibrator to OUTPUT. RAISES CalibError: every fault of the input."""
    from ..arrays.files import read_units
    from .shared.writing import write_file

    check_for_scores(options)
    for setting in options.overrides or ():
        known = setting.startswith(tuple(f"components.calib.{kind}." for kind in _OF_MAPS))
        check_option(f"--{setting}", known, "left out for scores in files", "it")
    import_user_code(options.code)
    calibrator = calibrator_of(options.given(), options.overrides)
    check_score_file("OUTPUT", options.output, wanted=False)
    check_files([Output("OUTPUT", options.output)], options.force, inputs=[data, options.code])
    found = read_units(data)
    y, unknown = found.y(), found.unknown_gold()
    if unknown.share > MOST_UNKNOWN and not options.allow_unknown:
        raise calib_error("C306", share=f"{100 * unknown.share:.1f}", path=data, unknown=unknown.named)
    classes = sorted(found.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of gold that no row has, which is told below
        calibrator.set_params(classes=classes).fit(found.scores_for(classes), y, found.groups)
    check_held_out(calibrator.held_out_, registered_map(calibrator) or "")
    write_file(options.output, calibrator.to_bytes())
    if not options.silent:
        _tell(calibrator, found, options)
    return calibrator


def calibrator_of(options: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> TagCalibrator:
    """One that is not fitted, with the settings that `fit` would give a pipe.

    RAISES C056: an option out of range, or one beside --method auto.
    """
    from ..arrays import TagCalibrator
    from ..registry import registry

    _, settings = pipe_settings(None, dict(options), overrides)
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


def registered_map(calibrator: TagCalibrator) -> str | None:
    """The registered name of its maps; None where it has none."""
    maps = calibrator.calibration_.maps
    return None if maps is None else maps.prototype.registered


def _tell(calibrator: TagCalibrator, found: ScoreUnits, options: FitOptions) -> None:
    """Print what was fitted, as JSON or in words."""
    unknown, held = found.unknown_gold(), calibrator.held_out_
    labels = calibrator.classes_.tolist()
    if options.format == "json":
        made: dict[str, Any] = {
            "output": str(options.output),
            "units": unknown.n_gold,
            "documents": None if found.documents is None else len(found.documents.names),
            "labels": labels,
            "method": registered_map(calibrator),
            "scaling": calibrator.calibration_.scaling and calibrator.calibration_.scaling.describe(),
            "selection": calibrator.selection_ or None,
            "held_out": held.state(),
            "unknown_gold": calibrator.unknown_gold_,
        }
        print_json(made)
        return
    msg.good(verdict_sentence("The scores", held, "the likeliest tag of each unit"))
    msg.good(f"Calibrated {len(labels)} tags on {unknown.n_gold:,} units with gold: {options.output}")
    if unknown.n:
        share = f"{100 * unknown.share:.1f} %"
        warn(
            f"{unknown.n:,} units ({share}) have a gold tag that no row has ({unknown.named}); all their pairs count as misses"
        )
    if found.documents is None:
        msg.info("There is no column document: each unit was held out by itself, though units of one text are alike")
    if calibrator.selection_:
        say_what_was_chosen(calibrator.selection_, "tags")
    msg.info(f"Held-out log loss: {number(held.raw)} raw, {number(held.calibrated)} calibrated")
    warn_of_held_out(held)
    msg.text(f"python -m spacy calib apply {options.output} SCORES OUTPUT gives the scores of other texts")


def read_calibrator(model: str | Path, code: Path | None = None) -> TagCalibrator:
    """RAISES C298, C299: it is no calibrator, or cannot be used here. C062: the code."""
    from ..arrays import TagCalibrator

    import_user_code(code)
    return TagCalibrator.from_disk(model)


# Judge and rank


class ScoredFile(NamedTuple):
    calibrator: TagCalibrator
    corpus: ScoredCorpus


def scored_file(run: Run) -> ScoredFile:
    """The calibrator at MODEL, and what it says of the scores at DATA.

    RAISES C054 to C056, C102: an output, see `check_files`; or an option of pipelines. C298, C299: the calibrator. C294, C300 to C305: the scores.
    """
    from ..arrays.corpus import scored_corpus
    from ..arrays.files import read_units

    check_for_scores(run)
    check_score_file("DATA", run.data)
    check_files(run.outputs(), run.force, inputs=[Path(run.model), run.data, *run.read_files(), run.code])
    calibrator = read_calibrator(run.model, run.code)
    found = read_units(run.data)
    if run.needs_gold:
        found.y()
    return ScoredFile(calibrator, scored_corpus(calibrator, found))


def judged_scores(model: str, scored: ScoredFile) -> Judged:
    """What a calibrator says of a file of scores with gold. model (str): The calibrator's file."""
    from ..pipe.judging import Judged
    from ..pipe.scorer import CalibScorer

    calibrator, corpus = scored
    return Judged(
        name=Path(model).name,
        component="scores",
        layer="tag",
        event="",
        threshold=calibrator.threshold,
        labels=tuple(str(label) for label in calibrator.classes_.tolist()),
        tokens=corpus.pairs(),
        groups=calibrator.groups_,
        scorer=CalibScorer(),
    )
