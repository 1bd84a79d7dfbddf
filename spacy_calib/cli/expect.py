"""`spacy calib expect`: how good a pipeline is on texts without gold, and whether that number can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import calib_error
from .shared.checks import check_confidence, check_option
from .shared.command import command
from .shared.examples import data_files
from .shared.expected import show
from .shared.gold import check_gold_of_corpus
from .shared.options import Columns, FirstAttr, Format, Texts
from .shared.results import deliver
from .shared.run import Run
from .shared.scoring import score
from .shared.seen import seen_by, watch_for
from .shared.texts import holds_gold

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..corpus.scored import ScoredCorpus
    from ..doc.annotations import Annotation
    from ..expect.few_labels import Read
    from ..expect.summary import TextSums
    from ..pipe.component import Calibrator


@dataclass(frozen=True)
class ExpectOptions(Run):
    """What `expect` tells of the texts."""

    data: Texts
    _: KW_ONLY
    attr: FirstAttr = None
    columns: Columns = None
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold", help="A few labelled documents, picked at random from such texts: they correct what the scores say"
        ),
    ] = None
    confidence: Annotated[float, typer.Option("--confidence", help="How often an interval holds the true value")] = 0.95
    per_doc: Annotated[bool, typer.Option("--per-doc", help="The expected accuracy of every document too")] = False
    check: Annotated[bool, typer.Option("--check", help="Compare with the gold in DATA")] = False
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit code 1 where the texts are not like the fit data: drift, unclear (too few to tell), or drift,unclear",
        ),
    ] = None
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the result")] = None
    format: Format = "table"

    def read_files(self) -> list[Path]:
        """RAISES C051 to C053: --gold is no gold."""
        return [] if self.gold is None else data_files(self.gold)

    def check_options(self) -> None:
        """RAISES C056: no confidence, or no verdict."""
        check_confidence(self.confidence)
        failing_verdicts(self.fail_on)


def failing_verdicts(fail_on: str | None) -> list[str | None]:
    """The verdicts that --fail-on names; None stands for a pipe without a record, which leaves it unclear.

    RAISES C056: it names something else.
    """
    from ..expect.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW

    verdicts: dict[str, list[str | None]] = {"drift": [DIFFERENT, OTHER_WEIGHTS], "unclear": [TOO_FEW, None]}
    given = [] if fail_on is None else [name.strip() for name in fail_on.split(",")]
    check_option("--fail-on", all(name in verdicts for name in given), "drift, unclear or drift,unclear", repr(fail_on))
    return [verdict for name in given for verdict in verdicts[name]]


def exit_code(run: ExpectOptions, result: dict[str, Any]) -> int:
    """1 where the verdict is one that --fail-on names."""
    return int((result["drift"] or {"verdict": None})["verdict"] in failing_verdicts(run.fail_on))


@command(
    ExpectOptions,
    does="Tell the accuracy to be expected on texts without gold",
    example="./calibrated texts.jsonl --per-doc",
    exit_code=exit_code,
)
def expect(run: ExpectOptions) -> dict[str, Any]:
    """
    Tell the accuracy (and precision, recall and F of entities) to be expected on
    texts without gold, with an interval, and whether the texts are like those
    the pipe was fitted on: where they are not, the numbers cannot be trusted.

    With --gold, a few labelled documents tell by how much the scores are off
    (prediction-powered inference): the numbers then hold for other texts too, and
    stand beside what the labelled documents alone would say.

    RETURNS (dict): "pipe", "component", "layer", "documents" and what they are ("by"), "tokens", "confidence",
        "weights_changed" (see `SourceLookup.weights_changed`), and what `expectations` gives, or `with_gold` with "seen" of the labelled documents;
        on request "per_doc" and "true", see `documents_of` and `true_values`, with the numbers of `checked_documents` and "seen", see
        `expect.seen.SeenShare`.
    RAISES C030: there is no gold to check against, or none in --gold. C226: a single document of --gold has labels. CalibError: every other
        fault of the input.
    """
    nlp, pipe = run.open()
    from ..doc.annotations import get_annotation
    from ..expect.few_labels import Beside, with_gold
    from ..expect.summary import checked_documents, corrected, expected_of, true_values, without_trust

    annotation = get_annotation(pipe.fit_info.layer)
    record = pipe.learned.record
    noted, summed, beside, seen = Noted(), Summed(pipe, run), None, None
    if run.check and not holds_gold(run.data):
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    if run.gold is not None:
        few, few_seen = labelled_documents(run, run.gold, nlp, pipe, annotation)
        beside = Beside(few, pipe.lookup.labels(), None if record is None else record.entities)
    corpora: Iterable[ScoredCorpus]
    over = partial(noted.over, annotation=annotation)
    if run.check:
        corpus, seen = run.score(nlp, pipe, sentences=False, also=over)
        corpora = [corpus]
    else:
        corpora = run.score_blocks(nlp, pipe, sentences=False, also=over)
    for corpus in corpora:
        summed.add(corpus)
        read = noted.take(corpus)
        if beside is not None:
            beside.add(read)
    if run.check and not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    assert summed.sums is not None
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": annotation.gold.name,
        "documents": summed.documents,
        "by": corpus.unit,
        "tokens": summed.sums.tokens,
        "confidence": run.confidence,
        "weights_changed": pipe.lookup.weights_changed(),
        **expected_of(summed.sums, record, pipe.fit_info.span_event, run.confidence),
    }
    if result["weights_changed"]:
        result = without_trust(result)
    if beside is not None:
        result = with_gold(result, beside, run.confidence)
        result["gold"]["seen"] = few_seen
        result["trusted"] = not (few_seen and few_seen["many"])
    if run.check:
        result |= {"seen": seen, **checked_documents(corpus)}
        result["true"] = true_values(corpus, noted.n_gold, result)
    if run.per_doc:
        result["per_doc"] = summed.rows if beside is None else corrected(summed.rows, result["gold"]["correction"])
    deliver(result, lambda: show(result), output=run.output, format=run.format, silent=run.silent)
    return result


@dataclass
class Summed:
    """Texts summed up, some after the others. sums (TextSums | None): None before there are any. rows (list): Each document, where --per-doc asks for them."""

    pipe: Calibrator
    run: ExpectOptions
    documents: int = 0
    sums: TextSums | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, corpus: ScoredCorpus) -> None:
        """More texts."""
        from ..expect.summary import TextSums, spans_of, tokens_of

        sums = TextSums.of(tokens_of(corpus, self.pipe.lookup.labels()), spans_of(corpus), self.pipe.learned.record)
        self.sums = sums if self.sums is None else self.sums + sums
        if self.run.per_doc:
            self.rows += self._rows_of(corpus)
        self.documents += corpus.n_documents

    def _rows_of(self, corpus: ScoredCorpus) -> list[dict[str, Any]]:
        """The documents of the next texts. Labelled documents, where there are any, stand in for the fit."""
        from ..expect.summary import documents_of

        record = self.pipe.learned.record if self.run.gold is None else None
        rows = documents_of(corpus, record, self.run.confidence, self.run.check)
        return [{**row, "doc": row["doc"] + self.documents} for row in rows]


@dataclass
class Noted:
    """What is noted of examples that pass: the gold spans of each, and the digest of its text. n_gold (int): Gold spans of those that were taken."""

    n_gold: int = 0
    _gold: list[int] = field(default_factory=list)
    _digests: list[int] = field(default_factory=list)

    def over(self, examples: Iterable[Example], annotation: Annotation) -> Iterator[Example]:
        """The examples."""
        from ..corpus.distinct import digest

        for example in examples:
            self._gold.append(len(annotation.spans_on(example.reference)))
            self._digests.append(digest(example.reference.text))
            yield example

    def take(self, corpus: ScoredCorpus) -> Read:
        """The corpus made of the examples since the last time, with what was noted of them, which is forgotten here."""
        import numpy as np

        from ..expect.few_labels import Read

        read = Read(corpus, np.array(self._gold, dtype=np.intp), self._digests)
        self.n_gold += sum(self._gold)
        self._gold, self._digests = [], []
        return read


def labelled_documents(
    run: ExpectOptions, gold: Path, nlp: Language, pipe: Calibrator, annotation: Annotation
) -> tuple[Read, dict[str, Any] | None]:
    """The documents of --gold as the pipe scores them, and how much of them the fit has seen.

    RAISES C030: they have no labels of the component. C075, C151: no token got a score, or the component knows none of the labels.
    """
    noted, watch = Noted(), watch_for(pipe)
    examples = watch.over(noted.over(run.stream(nlp, gold), annotation))
    corpus = score(nlp, pipe, examples, run.passing("Scoring --gold", gold))
    if not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    check_gold_of_corpus(pipe, corpus, run.silent)
    return noted.take(corpus), seen_by(pipe, watch)
