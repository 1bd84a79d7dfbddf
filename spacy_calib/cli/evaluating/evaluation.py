"""Load the pipeline of `spacy calib evaluate`, run it over the gold, and evaluate its calib pipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CalibError
from ...metrics.calibration_errors import calibration_error
from ...metrics.sentences import leaning_in_words
from ...pairs.pairing import top_pairs
from ...pipe.pipeline import check_readable
from ..fitting.new_calib import insert_unfitted
from ..fitting.settings import DEFAULTS
from ..shared.command import check_option
from ..shared.screen import number, shell_line
from .options import PAGE, EvaluateRun

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from ...pipe.evaluation import Evaluation, PipeTable


def evaluate_pipeline(run: EvaluateRun, fitted_only: bool = False) -> Evaluation:
    """Evaluate the fitted calib pipes of a pipeline on gold, also by slice (--by); without any, its raw scores. Write no file.

    fitted_only (bool): Whether a pipeline without a fitted calib pipe is an error. RAISES CalibError: any error in the input.
    """
    from ...gold.keys import names_under
    from ...pipe.evaluation import Evaluation, check_evaluable, evaluate_pipe
    from ...pipe.scorer import corpus_of

    nlp = run.begin(run.files())
    # Slices, pages and pictures are of fitted scores, and show whole sentences.
    needs_fit = fitted_only or run.by is not None or bool(run.outputs[PAGE]) or run.has_pictures
    if needs_fit:
        check_fitted(run, nlp)
    if has_fitted(run, nlp):
        examples = run.read(nlp)
        pipes = run.pipes(nlp, examples, allow_many=True)
    else:
        nlp, pipe = insert_unfitted(nlp, run.model, run.component, gold_preproc=run.gold_preproc)
        examples, pipes = run.read(nlp), [pipe]
    obstacles = find_obstacles(nlp, pipes)  # why a component gives no scores, such as that it is disabled
    examples = run.annotate(nlp, pipes, examples, title="Evaluating", sentences=needs_fit)
    corpora = [corpus_of(examples, pipe.attr, tuple(pipe.lookup.labels())) for pipe in pipes]
    check_evaluable(pipes, corpora, examples, run.silent)
    # (key, value of each Doc under it), which divide the Docs into slices
    by = None if run.by is None else (run.by, names_under([example.reference for example in examples], run.by))
    tables = [
        evaluate_pipe(pipe, examples, corpus, run.groups, by=by, obstacle=obstacle)
        for pipe, corpus, obstacle in zip(pipes, corpora, obstacles, strict=True)
    ]
    if not pipes[0].fitted:
        unfitted = {"verdict": verdict_on_raw(tables[0]), "fit": fit_command(run.model, tables[0].component)}
        tables = [replace(tables[0], unfitted=unfitted)]
    name, version, notes = f"{nlp.meta['lang']}_{nlp.meta['name']}", nlp.meta["version"], notes_on(run, nlp, tables)
    return Evaluation(name, version, Path(run.model).name, run.data.name, tables, notes)


def has_fitted(run: EvaluateRun, nlp: Language) -> bool:
    """Return whether the pipeline has a fitted calib pipe, of the component or prefix --component if that is given."""
    from ...pipe.component import Calibrator

    fitted_calibs = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    return any(run.component in (None, pipe.source.component, pipe.attr) for pipe in fitted_calibs)


def check_fitted(run: EvaluateRun, nlp: Language) -> None:
    """Check that `has_fitted` is true. RAISES C027: the pipeline has no fitted calib pipe. C056: none is of --component."""
    from ...pipe.pipeline import fitted_pipes

    fitted_pipes(nlp)  # raises C027
    wanted = "one that is calibrated, to be shown on a page or in pictures"
    check_option("--component", has_fitted(run, nlp), wanted, run.component)


def find_obstacles(nlp: Language, pipes: Sequence[Calibrator]) -> list[str]:
    """Return for each pipe why its component gives no scores, or "" if it does. For a single pipe the reason is an error.

    RAISES C021: the component of the only pipe is missing. C069, C084: a pipe that its scores need is disabled.
    """
    obstacles = []
    for pipe in pipes:
        try:
            check_readable(nlp, pipe)
            obstacles.append("")
        except CalibError as error:
            if len(pipes) == 1:
                raise
            obstacles.append(error.message)
    return obstacles


def notes_on(run: EvaluateRun, nlp: Language, tables: Sequence[PipeTable]) -> list[str]:
    """Return a sentence for each fitted calib pipe that is not evaluated, with the reason. tables: The evaluated pipes."""
    from ...pipe.component import Calibrator

    evaluated, notes = {table.pipe.name for table in tables}, []
    components = nlp.components if run.component is None else []  # --component leaves out the others on purpose
    for name, pipe in components:
        if isinstance(pipe, Calibrator) and pipe.fitted and name not in evaluated:
            notes.append(f"Not evaluated: pipe {name}. The data has no gold for '{pipe.source.component}'.")
    return notes + [f"Not evaluated: pipe {table.pipe.name}. {table.obstacle}" for table in tables if table.obstacle]


def verdict_on_raw(table: PipeTable) -> str:
    """Return a sentence on how far the raw scores of a pipe are off (their ECE); "" if nothing with gold has a score."""
    kind = table.annotation.kind
    *span_tables, row_table = table.units.values()  # of entities, if the pipe scores these; of tokens or documents
    unit_words, view = f"the top label of each {kind.unit}", row_table.view
    if span_tables and len(span_tables[0].view) and not kind.of_arcs:
        unit_words, view = f"predicted {kind.span_words[1]}", span_tables[0].view
    pairs = view.pairs.take(top_pairs(view.pairs))
    error = calibration_error(pairs.scores, pairs.hits, view.n_bins, norm="l1")  # the ECE
    if error is None:
        return ""
    subject = f"The scores of '{table.component}'" if table.component else "The scores"
    excess = float((pairs.scores - pairs.hits).mean())
    return f"{subject} are off by {number(error, 3)} on average, {leaning_in_words(excess, error)} ({unit_words}, on this data)"


def fit_command(model: str, component: str) -> str:
    """Return a command line, to be shown, that calibrates the scores of a component."""
    options = {"--component": "" if component == DEFAULTS["source"]["component"] else component}
    return shell_line("fit", model, "dev.spacy", "./calibrated", options=options)
