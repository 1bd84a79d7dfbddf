"""Count what satisfies a query, with an interval.

`spacy calib count`: how many documents, entities or tokens satisfy a query, give or take.
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
from .count_output import csv_of, show
from .periods import PERIODS

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator
    from .counting import Gathered
    from .queries.base import Query
    from .text_counts import Counting

UNITS = ("token", "entity", "document")
_PICTURES = (".png", ".svg")


QUERY_HELP = (
    "Query (may be repeated): a label (PERSON), a token pattern of spaCy's Matcher as JSON "
    '([{"LOWER": "may", "TAG": "NNP"}]), or what an entity does ({"verb": "attack", "names": ["iraq", "iraqi"]})'
)
NAME_HELP = "Name of the query in tables and titles; as often as --query, in the same order"
BY_HELP = "Count separately for each value of this key of the lines of .jsonl, or of their meta"
PER_HELP = "Show counts per N tokens, on the screen and in the picture"
GOLD_HELP = "A few labelled documents, picked at random from such texts, to correct the counts"
Unit = Annotated[str | None, option("Unit to count", "-u", words=UNITS, show_default="entity for an entity label, else token")]
Every = Annotated[str | None, option("Period of the rows, if the values of --by are dates", words=PERIODS)]


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
    draws: Annotated[int, option("Sampled clusterings per document, for queries about what entities do")] = 200,
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
    Count the documents, entities or tokens that satisfy a query: the number in the output of the pipeline, the expected number by
    its calibrated probabilities, and an interval for the true number, also for each year or another key.

    RETURNS (dict): "documents" and what they are ("of"), "tokens", "by", "every", "confidence", "per", "weights_changed", "gold" (labelled
        documents; None without), "gold_among" (texts that are among them), "drift" (prefix of a pipe -> whether the texts are like its fit data, as of `expect`), and "queries":
        "name", "query", "unit", "matched", "drawn" (whether its interval is of draws), "centre" (what is taken for the expected number, see `centre_of`; "labels" with --gold, "draws"), "effects" (see
        `pipe.record.effects.Effects`), "rows" of the groups and "total", each with "group", "documents", "tokens", "raw" (found), "expected",
        "low", "high", and "raw_expected", "raw_low", "raw_high" by raw scores of independent units (None where it is of draws).
    RAISES C393 to C395, C398: the pipeline cannot answer a query. C397: a text has nothing that it can be counted by. CalibError: every other
        fault of the input.
    """
    names = list(query) if name is None else name
    check_counts(query, name or (), unit, by, every, per, confidence, gold)
    check_files_of_counts(by, output, raw_cells, plot)
    how: dict[str, Any] = {"gold_preproc": gold_preproc, "doc_key": doc_key, "n_process": n_process, "gpu_id": gpu_id}
    how |= {"code": code, "force": force, "silent": silent}
    run = Run(model, data, attr=attr, component=component, columns=columns, by=by, **how)
    check_groups(run, every)
    outputs = [*output_files(output), *([] if plot is None else [Output("--plot", plot)])]
    nlp = run.begin(outputs, read=[] if gold is None else data_files(gold))
    pipes, queries = make_queries(run, nlp, query, unit, draws)
    result = {**QueryRun(run, nlp, pipes, queries, every).count(names, gold, confidence), "per": per}
    if plot is not None:
        from ..report.series_plots import plot_counts

        write_picture(plot, plot_counts(result))
    as_csv = output is not None and output.suffix == ".csv"
    if as_csv and output is not None:
        write_pieces(output, csv_of(result, raw_cells))
    deliver(result, lambda: show(result), output=None if as_csv else output, format=format, silent=silent)
    return result


def check_counts(
    queries: Sequence[str],
    names: Sequence[str],
    unit: str | None,
    by: str | None,
    every: str | None,
    per: int | None,
    confidence: float,
    gold: Path | None,
) -> None:
    """RAISES C056: options out of range or in conflict. C392: a query cannot be read."""
    from .queries.patterns import split_query

    check_confidence(confidence)
    check_option("--query", bool(queries), "given once at least", "none")
    n = len(queries)
    check_option("--name", len(names) in (0, n), f"given once for each of the {n} queries", len(names))
    duplicates = [name for name, times in Counter(names).items() if times > 1]
    check_option("--name", not duplicates, "another one for each query", ", ".join(duplicates))
    check_option("--per", per is None or unit != "document", "left out where documents are counted", per)
    check_option("--every", every is None or by is not None, "left out without --by", every)
    kinds = [split_query(text)[0] for text in queries]
    check_option("--gold", gold is None or "event" not in kinds, "left out where a query is of what an entity does", gold)


def check_files_of_counts(by: str | None, output: Path | None, raw_cells: bool, plot: Path | None) -> None:
    """RAISES C056: an unknown kind of file, or a picture of counts without groups."""
    check_option("--plot", plot is None or by is not None, "left out without --by", plot)
    suffix = None if plot is None else plot.suffix
    check_option("--plot", suffix in (None, *_PICTURES), "a file that ends in .png or .svg", plot)
    suffix = None if output is None else output.suffix
    check_option("--output", suffix in (None, ".json", ".csv"), "a file that ends in .json or .csv", output)
    check_raw_cells(raw_cells, suffix == ".csv")


def check_groups(run: Run, every: str | None) -> None:
    """RAISES C397: a text has no value to group it by."""
    from ...cli.shared.examples import values_in
    from .text_counts import group_of

    if run.by is not None:
        for file, line, value in values_in(run.data, run.by, run.fields):
            group_of(value, line, file, run.by, every)


def make_queries(
    run: Run, nlp: Language, texts: Sequence[str], unit: str | None, draws: int
) -> tuple[list[Calibrator], list[Query]]:
    """Return the calib pipes and their queries. RAISES C027, C068, C079: no such pipe. Others: see `check_readable`, `make_query`."""
    from ...pipe.loading import check_readable
    from .queries.patterns import make_query, split_query
    from .text_counts import asked_of

    events = all(split_query(text)[0] == "event" for text in texts)
    pipes = [] if events else run.pipes(nlp, allow_many=True)
    for pipe in pipes:
        check_readable(nlp, pipe)
    labels = asked_of(nlp, pipes)
    queries = [make_query(text, labels, unit, draws) for text in texts]
    for line in () if run.silent else merged_lines(queries):
        inform(line)
    if len(pipes) > 1 and not run.silent:
        attrs = [", ".join(dict.fromkeys(f"'{attr}'" for attr, _ in query.labels)) for query in queries]
        inform(
            "; ".join(f"{query.text} is counted by {attr}" for query, attr in zip(queries, attrs, strict=True) if attr) + "."
        )
    return pipes, queries


def merged_lines(queries: Sequence[Query]) -> list[str]:
    """Return a line for each label that stands for several of its component."""
    from .queries.base import LabelQuery

    lines = []
    for query in queries:
        if isinstance(query, LabelQuery) and (labels := query.scored.merged_in(query.label)):
            names = " and ".join(", ".join(labels).rsplit(", ", 1))
            lines.append(f"{query.text} stands for {names}, which '{query.scored.attr}' does not tell apart.")
    return lines


@dataclass(frozen=True)
class QueryRun:
    """A pipeline that is run over texts, and the queries about them. every (str | None): The period of the groups."""

    run: Run
    nlp: Language
    pipes: Sequence[Calibrator]
    queries: Sequence[Query]
    every: str | None

    def count(self, names: Sequence[str], gold: Path | None, confidence: float) -> dict[str, Any]:
        """Return the result of the command but "per". RAISES: see `_count_texts` and `_count_gold`."""
        counting = self._count_texts(self.run.data)
        counts, drift = counting.gathered(), counting.drift(seed=0)
        gold_counts = None if gold is None else self._count_gold(gold)
        return {
            "documents": len(counts.groups),
            "of": counts.unit,
            "tokens": int(counts.sizes.sum()),
            "by": self.run.by,
            "every": self.every,
            "confidence": confidence,
            "drift": drift,
            "weights_changed": any(pipe.lookup.weights_changed() for pipe in self.pipes),
            "gold": None if gold_counts is None else len(gold_counts.groups),
            "gold_among": None if gold_counts is None else int((counts.places_in(gold_counts) >= 0).sum()),
            "queries": [self._result(i, name, counts, drift, gold_counts, confidence) for i, name in enumerate(names)],
        }

    def _count_texts(self, path: Path, gold: bool = False) -> Counting:
        """Ask every Doc of texts, or of --gold. RAISES C075: no unit got a score. C396, C397: see `Counting`."""
        from ...cli.shared.evidence import SilenceCheck, check_whole_documents
        from ...cli.shared.examples import read_through
        from .text_counts import Counting, pipes_for

        run = self.run
        for pipe in self.pipes:
            check_whole_documents(pipe.fit_info.row_unit, run.gold_preproc)
        first = [SilenceCheck(self.nlp, pipe) for pipe in self.pipes[:1]]
        counting = Counting(self.pipes, self.queries, None if gold else run.by, None if gold else self.every, path, gold)

        def read(examples: Iterator[Example]) -> None:
            for first_doc in first:
                examples = first_doc.over(examples)
            counting.add(examples)

        examples, pipe_names = run.stream(self.nlp, path, gold, self.pipes), pipes_for(self.nlp, self.pipes, self.queries)
        for _ in read_through(self.nlp, examples, pipe_names, read, run.make_settings("Counting", path, gold)):
            pass
        if first and not counting.scored:
            raise first[0].error()
        return counting

    def _count_gold(self, path: Path) -> Gathered:
        """Count the labelled documents. RAISES C030: they have no gold. C226: fewer than two. And see `_count_texts`."""
        from ...annotations import plain_name
        from .messages import calib_error

        counting = self._count_texts(path, gold=True)
        attrs = {attr for query in self.queries for attr, _ in query.labels}
        for pipe in self.pipes:
            if pipe.attr in attrs and pipe.attr not in counting.annotated:
                component = pipe.source.component or "the source"
                raise calib_error("C030", layer=plain_name(pipe.fit_info.layer), component=component)
        counts = counting.gathered()
        if len(counts.groups) < 2:
            raise calib_error("C226", n=len(counts.groups), by=counts.unit)
        return counts

    def _result(
        self, place: int, name: str, counts: Gathered, drift: dict[str, Any], gold: Gathered | None, confidence: float
    ) -> dict[str, Any]:
        """Return the result of the query at a place, see `count`."""
        from .counting import centre_of
        from .text_counts import effects_for, verdict_for

        query, answers = self.queries[place], counts.answered[place]
        effects, verdict = effects_for(query, self.pipes), verdict_for(query, drift)
        rows, total = counts.rows(place, effects, confidence, verdict, gold)
        by_draws = answers.draws is not None
        return {
            "name": name,
            "query": query.text,
            "unit": query.unit,
            "matched": answers.matched,
            "drawn": by_draws,
            "centre": "labels" if gold is not None else "draws" if by_draws else centre_of(effects, verdict),
            "effects": None if effects is None else effects.state(),
            "rows": rows,
            "total": total,
        }
