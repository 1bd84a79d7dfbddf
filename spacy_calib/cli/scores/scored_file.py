"""A calibrator and a file of scores in the place of a pipeline and documents."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..shared.checks import check_option
from ..shared.outputs import check_files
from .calibrators import check_score_file, read_calibrator

if TYPE_CHECKING:
    from ...arrays import TagCalibrator
    from ...corpus.scored import ScoredCorpus
    from ..shared.run import Run

# Options about pipelines and Docs, of which files of scores know nothing.
_OF_PIPELINES = ("attr", "gold_preproc", "doc_key", "n_process", "gpu_id", "watch", "not_accepted", "component")


class ScoredFile(NamedTuple):
    calibrator: TagCalibrator
    corpus: ScoredCorpus


def is_calibrator(model: str) -> bool:
    """Whether MODEL is a calibrator of scores in files: those are files, and pipelines folders or packages."""
    return os.path.isfile(model)


def scored_file(run: Run) -> ScoredFile:
    """The calibrator at MODEL, and what it says of the scores at DATA.

    RAISES C054 to C056, C102: an output, see `check_files`; or an option of pipelines. C298, C299: the calibrator. C294, C300 to C305: the scores.
    """
    from ...arrays.corpus import scored_corpus
    from ...arrays.files import read_units

    for field in fields(run):
        if field.name in _OF_PIPELINES:
            given = getattr(run, field.name)
            flag = "--" + field.name.replace("_", "-")
            check_option(flag, given == field.default, "left out for a calibrator of scores in files", given)
    check_score_file("DATA", run.data, wanted=True)
    check_files(run.outputs(), run.force, inputs=[Path(run.model), run.data, *run.read_files(), run.code])
    calibrator = read_calibrator(run.model, run.code)
    found = read_units(run.data)
    if run.needs_gold:
        found.y()
    return ScoredFile(calibrator, scored_corpus(calibrator, found))
