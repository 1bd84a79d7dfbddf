"""Count what satisfies a query, with an interval.

`spacy calib count`: how many documents, entities or tokens satisfy a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import check_confidence, check_option, check_raw_cells, command, option
from ...cli.shared.examples import data_files
from ...cli.shared.options import (
    CalibratedModel,
    Code,
    Columns,
    DocKey,
    ForceFile,
    Format,
    GoldPreproc,
    GpuId,
    NProcess,
    OnlyAttr,
    OnlyComponent,
    RawCells,
    Silent,
    Texts,
)
from ...cli.shared.outputs import Output, output_files
from ...cli.shared.run import Run
from ...cli.shared.screen import inform
from ...cli.shared.writing import deliver, write_picture, write_pieces
from .count_output import format_csv, show_counts
from .periods import PERIODS

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator
    from .counting import CorpusCounts
    from .queries import LabelQuery
    from .text_counts import CorpusCounter

UNITS = ("token", "entity", "document")
_PICTURES = (".png", ".svg")


QUERY_HELP = "Label to count (may be repeated)"
NAME_HELP = "Name of the query in tables and titles; one for each --query, in the same order"
BY_HELP = "Count by the value of this key in the lines of .jsonl, or in their meta"
PER_HELP = "Show rates per N tokens, on the screen and in the picture"
GOLD_HELP = "A few labelled documents, picked at random from texts like DATA, to correct the counts"
Unit = Annotated[str | None, option("Unit to count", "-u", words=UNITS, show_default="entity of an entity label, else token")]
Every = Annotated[str | None, option("Count by this period of the dates under --by", words=PERIODS)]


@command(example="./calibrated texts.jsonl --query NOUN --by year --plot nouns.png")
def count(
    model: CalibratedModel,
    data: Texts,
    *,
    query: Annotated[list[str], option(QUERY_HELP, "-q")],
    name: Annotated[list[str] | None, option(NAME_HELP)] = None,
    unit: Unit = None,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
    every: Every = None,
    per: Annotated[int | None, option(PER_HELP, metavar="N")] = None,
    gold: Annotated[Path | None, option(GOLD_HELP)] = None,
    confidence: Annotated[float, option("Confidence level of the intervals")] = 0.95,
    component: OnlyComponent = None,
    attr: OnlyAttr = None,
    columns: Columns = None,
    output: Annotated[Path | None, option("JSON or CSV file for the counts", "-o")] = None,
    raw_cells: RawCells = False,
    plot: Annotated[Path | None, option("PNG or SVG file for the picture; needs --by")] = None,
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Count the documents, entities or tokens that satisfy a query: the number that the pipeline predicts, the expected number by
    its calibrated probabilities, and an interval for the true number; for all texts, and for each year or other group of texts.

    RETURNS (dict): "documents" and what they are ("of"), "tokens", "by", "every", "confidence", "per", "weights_changed",
        "gold" (number of labelled documents, or None), "gold_among" (how many texts are labelled documents), "drift"
        (prefix of a pipe -> whether the texts are like its fit data, as from `expect`), and "queries": "name", "query",
        "unit", "matched" (whether anything may satisfy it), "centre"
        (what the interval is centred on: "expected", "found", or "labels" with --gold), "effects" (a
        `pipe.record.effects.Effects`), "rows" of the groups and "total". A row has "group", "documents", "tokens", "raw"
        (count of the predicted labels), "expected", "low", "high", and "raw_expected", "raw_low", "raw_high" from raw
        scores.
    RAISES C389, C393, C398, C483: the pipeline cannot answer a query. C397: a text has no value to group it by. CalibError: every
        other fault of the input.
    """
    names = list(query) if name is None else name
    check_options(query, name or (), unit, by, every, per, confidence)
    check_output_files(by, output, raw_cells, plot)
    run_options: dict[str, Any] = {"gold_preproc": gold_preproc, "doc_key": doc_key, "n_process": n_process, "gpu_id": gpu_id}
    run_options |= {"code": code, "force": force, "silent": silent}
    run = Run(model, data, attr=attr, component=component, columns=columns, by=by, **run_options)
    check_groups(run, every)
    outputs = [*output_files(output), *([] if plot is None else [Output("--plot", plot)])]
    nlp = run.begin(outputs, read=[] if gold is None else data_files(gold))
    pipes, queries = make_queries(run, nlp, query, unit)
    result = {**QueryRun(run, nlp, pipes, queries, every).count(names, gold, confidence), "per": per}
    if plot is not None:
        from ..report.series_plots import plot_counts

        write_picture(plot, plot_counts(result))
    as_csv = output is not None and output.suffix == ".csv"
    if as_csv and output is not None:
        write_pieces(output, format_csv(result, raw_cells))
    deliver(result, lambda: show_counts(result), output=None if as_csv else output, format=format, silent=silent)
    return result


def check_options(
    queries: Sequence[str],
    names: Sequence[str],
    unit: str | None,
    key: str | None,
    period: str | None,
    per: int | None,
    confidence: float,
) -> None:
    """Check the values of options. RAISES C056: out of range or in conflict."""
    check_confidence(confidence)
    check_option("--query", bool(queries), "given once at least", "none")
    n = len(queries)
    check_option("--name", len(names) in (0, n), f"given once for each of the {n} queries", len(names))
    duplicates = [name for name, times in Counter(names).items() if times > 1]
    check_option("--name", not duplicates, "another one for each query", ", ".join(duplicates))
    check_option("--per", per is None or unit != "document", "left out where documents are counted", per)
    check_option("--every", period is None or key is not None, "left out without --by", period)


def check_output_files(key: str | None, output: Path | None, raw_cells: bool, plot: Path | None) -> None:
    """Check the paths of outputs. RAISES C056: an unknown suffix, or a picture without --by."""
    check_option("--plot", plot is None or key is not None, "left out without --by", plot)
    suffix = None if plot is None else plot.suffix
    check_option("--plot", suffix in (None, *_PICTURES), "a file that ends in .png or .svg", plot)
    suffix = None if output is None else output.suffix
    check_option("--output", suffix in (None, ".json", ".csv"), "a file that ends in .json or .csv", output)
    check_raw_cells(raw_cells, suffix == ".csv")


def check_groups(run: Run, period: str | None) -> None:
    """Check that each text can be grouped. RAISES C397: a text has no value under --by, or no date."""
    from ...cli.shared.examples import values_in
    from .text_counts import name_group

    if run.by is not None:
        for file, line, value in values_in(run.data, run.by, run.fields):
            name_group(value, line, file, run.by, period)


def make_queries(run: Run, nlp: Language, texts: Sequence[str], unit: str | None) -> tuple[list[Calibrator], list[LabelQuery]]:
    """Return the calib pipes and the queries to answer from them.

    RAISES C027, C068, C079: no such pipe. C021, C069, C084: its component is missing or disabled. C389 to C398: a bad query.
    """
    from ...pipe.pipeline import check_readable
    from .queries import make_query
    from .text_counts import scores_to_count

    pipes = run.pipes(nlp, allow_many=True)
    for pipe in pipes:
        check_readable(nlp, pipe)
    label_scores = scores_to_count(pipes)
    queries = [make_query(text, label_scores, unit) for text in texts]
    for line in () if run.silent else describe_merged_labels(queries):
        inform(line)
    if len(pipes) > 1 and not run.silent:
        inform("; ".join(f"{query.text} is counted by '{query.label_scores.attr}'" for query in queries) + ".")
    return pipes, queries


def describe_merged_labels(queries: Sequence[LabelQuery]) -> list[str]:
    """Return a sentence for each query whose label stands for several labels of the component."""
    lines = []
    for query in queries:
        if labels := query.label_scores.list_merged(query.label):
            names = " and ".join(", ".join(labels).rsplit(", ", 1))
            lines.append(f"{query.text} stands for {names}, which '{query.label_scores.attr}' does not tell apart.")
    return lines


@dataclass(frozen=True)
class QueryRun:
    """A pipeline, the texts to run it over, and the queries to count. period (str | None): Period of the groups."""

    run: Run
    nlp: Language
    pipes: Sequence[Calibrator]
    queries: Sequence[LabelQuery]
    period: str | None

    def count(self, names: Sequence[str], gold: Path | None, confidence: float) -> dict[str, Any]:
        """Return the result of `count`, except for "per". gold (Path | None): Labelled documents.

        RAISES C075: no unit got a score. C397: a text has no group. C030, C226: gold has no labels, or is a single
        document.
        """
        counter = self._count_texts(self.run.data)
        counts, drift = counter.join(), counter.drift(seed=0)
        gold_counts = None if gold is None else self._count_gold(gold)
        return {
            "documents": len(counts.groups),
            "of": counts.unit,
            "tokens": int(counts.sizes.sum()),
            "by": self.run.by,
            "every": self.period,
            "confidence": confidence,
            "drift": drift,
            "weights_changed": any(pipe.lookup.weights_changed() for pipe in self.pipes),
            "gold": None if gold_counts is None else len(gold_counts.groups),
            "gold_among": None if gold_counts is None else int((counts.find_in(gold_counts) >= 0).sum()),
            "queries": [self._make_result(i, name, counts, drift, gold_counts, confidence) for i, name in enumerate(names)],
        }

    def _count_texts(self, path: Path, gold: bool = False) -> CorpusCounter:
        """Run the pipeline and the queries over texts, or over labelled documents without groups."""
        from ...cli.shared.evidence import SilenceCheck, check_whole_documents
        from ...cli.shared.examples import read_through
        from .text_counts import CorpusCounter, select_pipes

        run = self.run
        for pipe in self.pipes:
            check_whole_documents(pipe.fit_info.row_unit, run.gold_preproc)
        first_docs = [SilenceCheck(self.nlp, pipe) for pipe in self.pipes[:1]]
        key, period = (None, None) if gold else (run.by, self.period)
        counter = CorpusCounter(self.pipes, self.queries, key, period, path, gold)

        def read(examples: Iterator[Example]) -> None:
            for first_doc in first_docs:
                examples = first_doc.watch(examples)
            counter.add(examples)

        examples, pipe_names = run.stream(self.nlp, path, gold, self.pipes), select_pipes(self.nlp, self.pipes)
        for _ in read_through(self.nlp, examples, pipe_names, read, run.make_settings("Counting", path, gold)):
            pass
        if first_docs and not counter.has_scores:
            raise first_docs[0].error()
        return counter

    def _count_gold(self, path: Path) -> CorpusCounts:
        """Count labelled documents, by scores and by gold. RAISES C030: they have no gold. C226: fewer than two."""
        from ...annotations import plain_name
        from .messages import calib_error

        counter = self._count_texts(path, gold=True)
        attrs = {attr for query in self.queries for attr, _ in query.labels}
        for pipe in self.pipes:
            if pipe.attr in attrs and pipe.attr not in counter.gold_attrs:
                component = pipe.source.component or "the source"
                raise calib_error("C030", layer=plain_name(pipe.fit_info.layer), component=component)
        counts = counter.join()
        if len(counts.groups) < 2:
            raise calib_error("C226", n=len(counts.groups), by=counts.unit)
        return counts

    def _make_result(
        self, i: int, name: str, counts: CorpusCounts, drift: dict[str, Any], gold: CorpusCounts | None, confidence: float
    ) -> dict[str, Any]:
        """Return the entry of a query in "queries" of the result. i (int): Number of the query."""
        from .counting import choose_centre
        from .text_counts import find_effects, find_verdict

        query, inputs = self.queries[i], counts.inputs[i]
        effects, verdict = find_effects(query, self.pipes), find_verdict(query, drift)
        rows, total = counts.make_rows(i, effects, confidence, verdict, gold)
        return {
            "name": name,
            "query": query.text,
            "unit": query.unit,
            "matched": inputs.has_matches,
            "centre": "labels" if gold is not None else choose_centre(effects, verdict),
            "effects": None if effects is None else effects.state(),
            "rows": rows,
            "total": total,
        }
