"""`spacy calib count`: how many documents, entities or tokens satisfy a query, give or take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..expect.periods import PERIODS
from ..pairs.documents import several
from .shared.checks import check_confidence, check_option, check_raw_cells
from .shared.command import option, options_command
from .shared.evidence import show_drift_of_counts, show_other_weights
from .shared.examples import data_files
from .shared.options import Columns, Format, OnlyAttr, RawCells, Texts
from .shared.outputs import Output
from .shared.run import Run
from .shared.screen import Column, msg, number, show_rows, whole
from .shared.writing import deliver, write_picture, write_pieces

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..doc.queries.base import Query
    from ..expect.counting import Gathered
    from ..pipe.component import Calibrator
    from ..pipe.counting import Counting

UNITS = ("token", "entity", "document")
# Columns of the CSV file.
COLUMNS = (
    *("name", "query", "unit", "group", "documents", "tokens", "raw", "expected", "low", "high"),
    *("raw_expected", "raw_low", "raw_high"),
)
_PICTURES = (".png", ".svg")


@dataclass(frozen=True)
class CountOptions(Run):
    """What `count` counts, and by what."""

    data: Texts
    _: KW_ONLY
    query: Annotated[
        list[str],
        option(
            "What is counted (may be repeated): a label (PERSON), a token pattern of spaCy's Matcher as JSON "
            '([{"LOWER": "may", "TAG": "NNP"}]), or what an entity does ({"verb": "attack", "names": ["iraq", "iraqi"]})',
            "-q",
        ),
    ]
    name: Annotated[
        list[str] | None,
        option("What the query is called in tables and titles; as often as --query, in the same order"),
    ] = None
    unit: Annotated[
        str | None,
        option("What is counted", "-u", words=UNITS, show_default="entity of an entity label, else token"),
    ] = None
    by: Annotated[
        str | None,
        option("A row for each value of this key of the lines of .jsonl, or of their meta", metavar="KEY"),
    ] = None
    every: Annotated[str | None, option("The values are dates: a row for each period", words=PERIODS)] = None
    per: Annotated[int | None, option("Show counts for each N tokens, on the screen and in the picture", metavar="N")] = None
    gold: Annotated[
        Path | None,
        option("A few labelled documents, picked at random from such texts: they correct the counts"),
    ] = None
    confidence: Annotated[float, option("How often an interval holds the true number")] = 0.95
    draws: Annotated[int, option("Clusterings of each document, for what entities do")] = 200
    attr: OnlyAttr = None
    columns: Columns = None
    output: Annotated[Path | None, option("JSON or CSV file for the counts", "-o")] = None
    raw_cells: RawCells = False
    plot: Annotated[Path | None, option("PNG or SVG file for the picture; needs --by")] = None
    format: Format = "table"

    def check_options(self) -> None:
        """RAISES C056: options out of range, or that say nothing beside each other. C392: a query cannot be read."""
        from ..doc.queries.patterns import split_query

        check_confidence(self.confidence)
        check_option("--query", bool(self.query), "given once at least", "none")
        names = len(self.name or ())
        check_option("--name", names in (0, len(self.query)), f"given once for each of the {len(self.query)} queries", names)
        twice = [name for name, n in Counter(self.name or ()).items() if n > 1]
        check_option("--name", not twice, "another one for each query", ", ".join(twice))
        check_option("--per", self.per is None or self.unit != "document", "left out where documents are counted", self.per)
        check_option("--every", self.every is None or self.by is not None, "left out without --by", self.every)
        check_option("--plot", self.plot is None or self.by is not None, "left out without --by", self.plot)
        suffix = None if self.plot is None else self.plot.suffix
        check_option("--plot", suffix in (None, *_PICTURES), "a file that ends in .png or .svg", self.plot)
        suffix = None if self.output is None else self.output.suffix
        check_option("--output", suffix in (None, ".json", ".csv"), "a file that ends in .json or .csv", self.output)
        check_raw_cells(self.raw_cells, suffix == ".csv")
        kinds = [split_query(text)[0] for text in self.query]
        check_option(
            "--gold", self.gold is None or "event" not in kinds, "left out where a query is of what an entity does", self.gold
        )

    def read_files(self) -> list[Path]:
        """RAISES C051 to C053: --gold is no gold."""
        return [] if self.gold is None else data_files(self.gold)

    def outputs(self) -> list[Output]:
        return [*super().outputs(), *([] if self.plot is None else [Output("--plot", self.plot)])]


@options_command(
    CountOptions,
    example="./calibrated texts.jsonl --query NOUN --by year --plot nouns.png",
)
def count(run: CountOptions) -> dict[str, Any]:
    """
    Count the documents, entities or tokens that satisfy a query: how many the
    pipeline found, how many are to be expected by its calibrated probabilities,
    and the interval that holds the true number, for each year or what else texts
    are counted by.

    RETURNS (dict): "documents" and what they are ("of"), "tokens", "by", "every", "confidence", "per", "weights_changed", "gold" (labelled
        documents; None without), "gold_among" (texts that are among them), "drift" (prefix of a pipe -> whether the texts are like its fit data, as of `expect`), and "queries":
        "name", "query", "unit", "matched", "drawn" (whether its interval is of draws), "centre" (what is taken for the expected number, see `centre_of`; "labels" with --gold, "draws"), "effects" (see
        `expect.effects.Effects`), "rows" of the groups and "total", each with "group", "documents", "tokens", "raw" (found), "expected",
        "low", "high", and "raw_expected", "raw_low", "raw_high" by raw scores of independent units (None where it is of draws).
    RAISES C393 to C395, C398: the pipeline cannot answer a query. C397: a text has nothing that it can be counted by. CalibError: every other
        fault of the input.
    """
    from ..pipe.counting import group_of
    from .shared.examples import values_in

    if run.by is not None:
        for file, line, value in values_in(run.data, run.by, run.fields):
            group_of(value, line, file, run.by, run.every)
    nlp = run.begin()
    pipes, queries = ask(run, nlp)
    counting = count_texts(run, nlp, pipes, queries, run.data)
    held, drift = counting.gathered(), counting.drift(seed=0)
    labelled = None if run.gold is None else count_gold(run, nlp, pipes, queries, run.gold)
    names = zip(queries, run.name or run.query, strict=True)
    told = [told_of(run, place, name, query, pipes, held, drift, labelled) for place, (query, name) in enumerate(names)]
    result = {
        "documents": len(held.groups),
        "of": held.unit,
        "tokens": int(held.sizes.sum()),
        "by": run.by,
        "every": run.every,
        "confidence": run.confidence,
        "per": run.per,
        "drift": drift,
        "weights_changed": any(pipe.lookup.weights_changed() for pipe in pipes),
        "gold": None if labelled is None else len(labelled.groups),
        "gold_among": None if labelled is None else int((held.places_in(labelled) >= 0).sum()),
        "queries": told,
    }
    if run.plot is not None:
        from ..pages.series_plots import plot_counts

        write_picture(run.plot, plot_counts(result))
    as_csv = run.output is not None and run.output.suffix == ".csv"
    if as_csv and run.output is not None:
        write_pieces(run.output, csv_of(result, run.raw_cells))
    output = None if as_csv else run.output
    deliver(result, lambda: show(result), output=output, format=run.format, silent=run.silent)
    return result


def ask(run: CountOptions, nlp: Language) -> tuple[list[Calibrator], list[Query]]:
    """The calib pipes, and the queries that they can answer; none are needed for what entities do.

    RAISES C027, C068: there is no such pipe. C021, C069: see `check_readable`. C392 to C395, C398: see `make_query`.
    """
    from ..doc.queries.patterns import make_query, split_query
    from ..pipe.component import pipes_named
    from ..pipe.counting import asked_of
    from ..pipe.loading import check_readable

    events = all(split_query(text)[0] == "event" for text in run.query)
    pipes = [] if events else pipes_named(nlp, run.attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    asked = asked_of(nlp, pipes)
    return pipes, [make_query(text, asked, run.unit, run.draws) for text in run.query]


def count_texts(
    run: CountOptions, nlp: Language, pipes: Sequence[Calibrator], queries: Sequence[Query], path: Path, gold: bool = False
) -> Counting:
    """Run the pipeline over texts, and ask every Doc. gold (bool): Whether they are those of --gold.

    RAISES C075: no unit got a score. C396, C397: see `Counting`.
    """
    from ..pipe.counting import Counting, pipes_for
    from .shared.evidence import FirstDoc, check_whole_documents
    from .shared.examples import read_through

    for pipe in pipes:
        check_whole_documents(pipe.fit_info.row_unit, run.gold_preproc)
    first = [FirstDoc(nlp, pipe) for pipe in pipes[:1]]
    counting = Counting(pipes, queries, None if gold else run.by, run.every, path, gold)

    def read(some: Iterator[Example]) -> None:
        for one in first:
            some = one.over(some)
        counting.add(some)

    examples, needed = run.stream(nlp, path, gold), pipes_for(nlp, pipes, queries)
    for _ in read_through(nlp, examples, needed, read, run.passing("Counting", path, gold)):
        pass
    if first and not counting.scored:
        raise first[0].silent()
    return counting


def count_gold(run: CountOptions, nlp: Language, pipes: Sequence[Calibrator], queries: Sequence[Query], path: Path) -> Gathered:
    """The labelled documents. RAISES C030: they have no gold. C226: they are fewer than two. And see `count_texts`."""
    from ..doc.annotations import plain_name
    from ..errors import calib_error

    counting = count_texts(run, nlp, pipes, queries, path, gold=True)
    asked = {attr for query in queries for attr, _ in query.labels}
    for pipe in pipes:
        if pipe.attr in asked and pipe.attr not in counting.annotated:
            raise calib_error("C030", layer=plain_name(pipe.fit_info.layer), component=pipe.source.component or "the source")
    held = counting.gathered()
    if len(held.groups) < 2:
        raise calib_error("C226", n=len(held.groups), by=held.unit)
    return held


def told_of(
    run: CountOptions,
    place: int,
    name: str,
    query: Query,
    pipes: Sequence[Calibrator],
    held: Gathered,
    drift: dict[str, Any],
    labelled: Gathered | None,
) -> dict[str, Any]:
    """What is told of the query at a place, see `count`."""
    from ..expect.counting import centre_of
    from ..pipe.counting import effects_for, verdict_for

    effects, verdict, answered = effects_for(query, pipes), verdict_for(query, drift), held.answered[place]
    rows, total = held.rows(place, effects, run.confidence, verdict, labelled)
    drawn = answered.draws is not None
    return {
        "name": name,
        "query": query.text,
        "unit": query.unit,
        "matched": answered.matched,
        "drawn": drawn,
        "centre": "labels" if labelled is not None else "draws" if drawn else centre_of(effects, verdict),
        "effects": None if effects is None else effects.state(),
        "rows": rows,
        "total": total,
    }


def csv_of(result: dict[str, Any], raw: bool = False) -> Iterator[str]:
    """The lines of a CSV file: a row for each group of each query, or for all texts where there are none. raw (bool): See `csv_lines`."""
    from ..corpus.visible import csv_lines

    lines = (
        [one["name"], one["query"], one["unit"], *(row[name] for name in COLUMNS[3:])]
        for one in result["queries"]
        for row in (one["rows"] or [one["total"]])
    )
    return csv_lines(COLUMNS, lines, raw=raw)


# Printing


def show(result: dict[str, Any]) -> None:
    """Print the counts."""
    per = result["per"]
    show_other_weights(result["weights_changed"])
    for one in result["queries"]:
        msg.divider(f"{one['name']} ({several(one['unit'])}{'' if per is None else f' for each {per:,} tokens'})")
        rows = [*one["rows"], {**one["total"], "group": "all"}]
        show_rows([told_by(row, per) for row in rows], columns_of(result["by"] or "Texts", result["confidence"], per))
        if not one["matched"]:
            msg.warn(
                "Nothing satisfies this query in any of the texts, and nothing has a chance to: look at how it is written."
            )
        elif (
            not one["drawn"]
            and one["effects"] is None
            and result["gold"] is None
            and one["total"]["low"] < one["total"]["high"]
        ):
            msg.text("The fit tells nothing of how such numbers differ by document: the interval takes units for independent.")
    if result["gold"] is None:
        for drift in result["drift"].values():
            show_drift_of_counts(drift, [one for one in result["queries"] if one["centre"] == "found"])
    else:
        among = result["gold_among"]
        own = f"; {among:,} of them are among the texts, and count as their labels say" if among else ""
        msg.text(f"Corrected by {result['gold']:,} labelled documents{own}.")


def columns_of(title: str, confidence: float, per: int | None) -> tuple[Column, ...]:
    """Of the table of a query: counts, or rates."""
    return (
        Column(title, "group", align="l"),
        Column("Documents", "documents", whole),
        Column("Tokens", "tokens", whole),
        Column("Found", "raw", whole if per is None else partial(number, digits=2)),
        Column("Expected", "expected", partial(number, digits=1 if per is None else 2)),
        Column(f"{100 * confidence:g} % interval", "", partial(_range, digits=0 if per is None else 2)),
    )


def told_by(row: dict[str, Any], per: int | None) -> dict[str, Any]:
    """A row with rates in the place of counts. per (int | None): Tokens that the rates are of; None leaves the counts."""
    counts = ("raw", "expected", "low", "high")
    return row if per is None else {**row, **{name: row[name] * per / row["tokens"] for name in counts}}


def _range(row: Mapping[str, Any], digits: int) -> str:
    return f"{number(row['low'], digits)} to {number(row['high'], digits)}"
