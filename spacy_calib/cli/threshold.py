"""`spacy calib threshold`: the score cut-offs of entities that reach a precision, or that bound what is missed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..calibration.cutoffs import PER
from ..errors import calib_error
from ..pipe.loading import check_readable
from .shared.checks import check_confidence, check_option
from .shared.command import choice, command
from .shared.options import Format
from .shared.outputs import Output
from .shared.results import deliver, write_json
from .shared.run import Run
from .shared.screen import msg
from .shared.seen import seen_in
from .thresholds.precision import check_accepts, find_precision, show_precision
from .thresholds.recall import find_recall, show_recall
from .thresholds.review import find_review, show_review

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipe.component import Calibrator


@dataclass(frozen=True)
class ThresholdOptions(Run):
    """The precision or the recall to reach, how surely, and where the cut-offs go."""

    needs_gold = True

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="Gold that the pipeline was not trained on: a .spacy or .conllu file, or a folder of them"
        ),
    ]
    _: KW_ONLY
    precision: Annotated[
        float | None, typer.Option("--precision", "-p", help="Share of accepted entities that are to be right")
    ] = None
    recall: Annotated[
        float | None,
        typer.Option(
            "--recall", "-r", help="Share of the tokens of gold entities that are to be flagged; beside --precision: both"
        ),
    ] = None
    per: Annotated[str, choice(PER, "--per", help="One cut-off for all, or for each")] = "all"
    confidence: Annotated[
        float, typer.Option("--confidence", help="How sure it must be that the precision, or recall, is reached")
    ] = 0.95
    attr: Annotated[
        str | None, typer.Option("--attr", help="The calib pipe with this prefix; else the first that scores entities")
    ] = None
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the cut-offs")] = None
    apply: Annotated[Path | None, typer.Option("--apply", "-a", help="Folder for the pipeline with the cut-offs in it")] = None
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Write the pipeline at --apply even where it would accept nothing")
    ] = False
    format: Format = "table"
    force: Annotated[bool, typer.Option("--force", "-F", help="Replace a file at --output, and a pipeline at --apply")] = False

    def check_options(self) -> None:
        """RAISES C307: neither precision nor recall. C056: one out of range, no confidence, or groups beside --recall."""
        if self.precision is None and self.recall is None:
            raise calib_error("C307")
        for option, value in (("--precision", self.precision), ("--recall", self.recall)):
            check_option(option, value is None or 0 < value < 1, "between 0 and 1", value)
        check_option("--per", self.recall is None or self.per != "group", "all or label beside --recall", repr(self.per))
        check_confidence(self.confidence)

    def folder(self) -> Output | None:
        return None if self.apply is None else Output("--apply", self.apply)


@command(
    ThresholdOptions,
    does="Find cut-offs: entities right as often as asked, or few missed",
    example="./calibrated test.spacy --precision 0.9",
)
def threshold(run: ThresholdOptions) -> dict[str, Any]:
    """
    Find the lowest score cut-offs at which accepted entities reach a precision
    (--precision), or the highest at which no more tokens of entities are missed
    than asked for (--recall), with the stated confidence; or both, which leaves
    what is between them to be looked at. Best on gold that was not used for
    `calib fit`.

    RETURNS (dict): "pipe", "attr", "by", "seen" (see `expect.record.SeenShare`); for a precision "event", "precision", "confidence", "per",
        "cutoffs": key -> cut-off or None, and "rows": for each key what it keeps, see `calibration.thresholds.Threshold`; for a recall
        "misses": the same with "recall", see `corpus.missed.rows_of`; for both "review": see `corpus.missed.review_of`.
    RAISES CalibError: every fault of the input.
    """
    import numpy as np

    from ..pipe.lookup import entity_tokens
    from ..pipe.scorer import corpus_of
    from .shared.loading import write_pipeline

    nlp = run.begin()
    pipe = span_pipe(nlp, run.attr)
    done = run.annotate(nlp, [pipe], what="Scoring entities")
    corpus = corpus_of(done, pipe.attr, pipe.lookup.labels())
    of_documents = pipe.spans.groups is None
    judged = corpus if of_documents else corpus.spans
    by = {"unit": corpus.unit, "n": len(np.unique(corpus.documents_of(judged.docs[judged.right >= 0])))}
    result: dict[str, Any] = {"pipe": pipe.name, "attr": pipe.attr, "by": by, "seen": seen_in(pipe, done)}
    accepting = flagging = None
    if run.precision is not None:
        accepting, found = find_precision(pipe, corpus, run.precision, run.confidence, run.per)
        result |= found
    if run.recall is not None:
        if of_documents:
            raise calib_error("C310", name=pipe.name, component=pipe.source.component or "the source")
        tokens = entity_tokens(pipe, done, corpus)
        flagging, result["misses"] = find_recall(tokens, run.recall, run.confidence, run.per, run.data)
        if accepting is not None:
            result["review"] = find_review(pipe, corpus, tokens, accepting, flagging)
    if run.output is not None:
        write_json(run.output, result)
    if run.apply is not None:
        if accepting is not None and not run.allow_empty:
            check_accepts(result, run.apply)
        if of_documents:
            pipe.tokens.label_cutoffs = accepting
        else:
            pipe.spans.cutoffs = accepting or pipe.spans.cutoffs
        pipe.tokens.recall_cutoffs = flagging or pipe.tokens.recall_cutoffs
        write_pipeline(nlp, run.apply, run.force)
    deliver(result, lambda: show(result, run.apply), output=None, format=run.format, silent=run.silent)
    return result


def span_pipe(nlp: Language, attr: str | None) -> Calibrator:
    """The fitted calib pipe that scores entities, or else one that scores documents.

    RAISES C027: there is no fitted pipe. C068: none of this prefix. C065: it calibrates a component without entities. C021, C069: see
    `check_readable`.
    """
    from ..doc.annotations import unit_of
    from ..pairs.documents import DOCUMENT
    from ..pipe.component import pipes_named

    pipes = pipes_named(nlp, attr)
    found = [pipe for pipe in pipes if pipe.spans.groups is not None]
    found += [pipe for pipe in pipes if unit_of(pipe.fit_info.layer) == DOCUMENT]
    if not found:
        raise calib_error("C065", name=pipes[0].name, component=pipes[0].source.component or "the source")
    check_readable(nlp, found[0])
    return found[0]


def show(result: dict[str, Any], apply: Path | None) -> None:
    """Print what was found."""
    attr = result["attr"]
    names = []
    if "precision" in result:
        show_precision(result)
        names += [f"{'Doc' if result['event'] is None else 'Span'}._.{attr}_accept"] * any(
            row["cutoff"] is not None for row in result["rows"]
        )
    if "misses" in result:
        show_recall(result["misses"], None if "precision" in result else result["seen"], result["by"], apply)
        names += [f"Token._.{attr}_flag", f"doc.spans['{attr}_doubtful']"]
    if "review" in result:
        show_review(result["review"], result["precision"], result["misses"]["recall"], result["confidence"])
    if apply is not None and names:
        msg.good(f"The pipeline with these cut-offs ({', '.join(names)}): {apply}")
