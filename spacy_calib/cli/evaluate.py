"""`spacy calib evaluate`: how true scores are on gold data, as tables, numbers, a page and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import calib_error
from .evaluating.judging import Judgement, judgement, told_of
from .evaluating.page import page_contents, show_verdicts
from .evaluating.pictures import KINDS, SUFFIXES, UNITS, picture_numbers, picture_title, write_pictures
from .evaluating.showing import show_table
from .shared.checks import check_option
from .shared.command import choice, command
from .shared.from_statistics import From, TakesStatistics, check_source
from .shared.options import Format, NBins, NGroups, OnlyAttr
from .shared.outputs import Output, is_stream
from .shared.results import print_json, write_json, write_text
from .shared.run import Run
from .shared.screen import msg
from .shared.sources import GoldSource, MapFor

PAGES = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Run):
    """What `evaluate` judges, by what, and what it makes of it."""

    needs_gold = True

    statistics: From = field(default_factory=list)
    output: Annotated[
        list[Path],
        typer.Option(
            "--output",
            "-o",
            help="File for the result, by suffix: .json the numbers, .html a page, .png, .svg or .pdf a picture; a folder gets all "
            "pictures (may be repeated)",
        ),
    ] = field(default_factory=list)  # type: ignore[assignment]
    kind: Annotated[
        str | None,
        choice(
            (*KINDS, "all"),
            "--kind",
            "-k",
            help="Which picture",
            show_default="reliability; in a folder all, beside --tag none",
        ),
    ] = None
    tags: Annotated[list[str], typer.Option("--tag", "-T", help="A picture of this tag (may be repeated)")] = field(
        default_factory=list
    )
    unit: Annotated[
        str | None,
        choice(
            tuple(UNITS),
            "--unit",
            "-u",
            help="What pictures are of",
            show_default="entity or document where the pipe scores them",
        ),
    ] = None
    watch: Annotated[
        Path | None,
        typer.Option("--watch", help="Windows that `calib watch` wrote, drawn over time on the page (file or folder)"),
    ] = None
    attr: OnlyAttr = None
    gold_source: GoldSource = None
    map_for: MapFor = None
    component: Annotated[
        str | None,
        typer.Option(
            "--component",
            "-C",
            help="Judge the pipes that read this component; raw scores where none is fitted",
            show_default="all fitted pipes; where there is none, the tagger",
        ),
    ] = None
    bins: NBins = None
    groups: NGroups = None
    format: Format = "table"

    def __post_init__(self) -> None:
        given: Any = self.output
        paths = [] if given is None else [given] if isinstance(given, (str, Path)) else given
        object.__setattr__(self, "output", [Path(path) for path in paths])
        super().__post_init__()

    def check_options(self) -> None:
        """RAISES C433: both DATA and statistics, or neither. C435: an option that looks at documents, beside statistics. C056: an output of
        another kind, or options that do not go together. C097: one file for several pictures.
        """
        of_documents = {
            "--gold-preproc": self.gold_preproc, "--doc-key": self.doc_key, "--n-process": self.n_process != 1, "--component": self.component,
            "--gold-source": self.gold_source, "--map-for": self.map_for, "--kind": self.kind, "--tag": self.tags, "--unit": self.unit,
            "--watch": self.watch, **{f"--output {path.name}": _kind_of(path) != "numbers" for path in self.output},
        }  # fmt: skip
        check_source(self.statistics, self.data, of_documents)
        for path in self.output:
            wanted = "a file that ends in .json, .html, .png, .svg or .pdf, or a folder for pictures"
            check_option("--output", _kind_of(path) != "", wanted, path)
        self.pictures  # noqa: B018  (names what is asked for)

    @property
    def pages(self) -> list[Path]:
        """The files of the page."""
        return [path for path in self.output if _kind_of(path) == "page"]

    @property
    def pictures(self) -> list[tuple[str, Path]]:
        """Name and file of each picture. RAISES C097: one file for several pictures."""
        found = []
        for path in self.output:
            kind = _kind_of(path)
            if kind == "pictures":
                found += [(name, path / f"{name}.png") for name in self.names(KINDS)]
            elif kind == "picture":
                names = self.names(KINDS[:1])
                if len(names) > 1:
                    raise calib_error("C097", path=path, pictures=", ".join(names))
                found.append((names[0], path))
        return found

    def names(self, default: Sequence[str] = ()) -> list[str]:
        """The pictures that are asked for. default (Sequence[str]): Where no option says which."""
        if self.kind is None:
            kinds = [] if self.tags else list(default)
        else:
            kinds = list(KINDS) if self.kind == "all" else [self.kind]
        return [*kinds, *(["tags"] if self.tags else [])]

    def outputs(self) -> list[Output]:
        plain = [path for path in self.output if _kind_of(path) in ("numbers", "page")]
        return [Output("--output", path) for path in (*plain, *(path for _, path in self.pictures))]

    def read_files(self) -> list[Path]:
        return [] if self.watch is None else [self.watch]


def _kind_of(path: Path) -> str:
    """What a file is to hold, by its suffix: "numbers", "page", "picture", of a folder "pictures"; "" of any other."""
    kinds = {".json": "numbers", **dict.fromkeys(PAGES, "page"), **dict.fromkeys(SUFFIXES, "picture")}
    if is_stream(path):
        return "numbers"
    return kinds.get(path.suffix.lower()) or ("pictures" if path.is_dir() or not path.suffix else "")


class EvaluateCommand(TakesStatistics):
    """With statistics in the place of DATA, which know whose they are."""

    optional = ("model",)


@command(
    EvaluateOptions,
    does="Show on gold how true scores are: table, page, pictures",
    example="./calibrated test.spacy -o report.html -o curve.png -o numbers.json",
    kind=EvaluateCommand,
)
def evaluate(run: EvaluateOptions) -> dict[str, Any]:
    """
    Show how true the calibrated probabilities of a pipeline are: calibration
    error raw and calibrated, over all tags and by group, with the noise floor
    (what exactly true scores would show) and 95 % intervals by document. The
    same as numbers, as a page that opens offline and tells it in words, and as
    pictures, by the suffix of --output. Of a pipeline that is not calibrated
    yet, how true its raw scores are. With --from, of any number of shards that
    `calib collect --judge` read; MODEL may be left out then.

    RETURNS (dict): By pipe name, see `metrics.table.calibration_table`; "entities" holds the same for whole entities, "events" what event
        pipes say of whole units (see `statistics.further_tables.event_table`), "misaligned" how many tokens align with no single gold token, "pictures"
        the numbers in pictures of the first pipe (see `picture_numbers`), where some are asked for. Of raw scores calibrated figures are None,
        and "unfitted" holds the "verdict" and the command for a "fit".
    RAISES CalibError: every fault of the input.
    """
    check_option("--watch", run.watch is None or bool(run.pages), "left out without a page (--output page.html)", run.watch)
    _check_libraries(run)
    names = list(dict.fromkeys([name for name, _ in run.pictures] or run.names()))
    found = judgement(run, shown=bool(run.pages or names))
    result = {one.about["name"]: told_of(one, run) for one in found.statistics}
    contents = _write_page(found, result, run) if run.pages else None
    if names:
        numbers = picture_numbers(found, result, names, run)
        if run.pictures:
            write_pictures(numbers, run.pictures, picture_title(found, numbers, run))
        result[numbers["pipe"]]["pictures"] = numbers
    _deliver(run, result, contents)
    return result


def page(run: EvaluateOptions) -> dict[str, Any]:
    """All that the page of a run shows, which is written where one is asked for. RAISES CalibError: every fault of the input."""
    _check_libraries(run)
    found = judgement(run, shown=True)
    tables = {one.about["name"]: told_of(one, run) for one in found.statistics}
    return _write_page(found, tables, run)


def _check_libraries(run: EvaluateOptions) -> None:
    """RAISES C061: what draws the pictures is not installed."""
    if run.pictures:
        from ..pages.plots import figure_class

        figure_class()


def _write_page(found: Judgement, tables: dict[str, Any], run: EvaluateOptions) -> dict[str, Any]:
    """RETURNS (dict): What it shows. RAISES C005, C030: there is too little to judge. C055: a file cannot be written."""
    contents = page_contents(found, tables, run)
    if run.pages:
        from ..pages.page import render_report

        text = render_report(contents)
        for path in run.pages:
            write_text(path, text)
    return contents


def _deliver(run: EvaluateOptions, result: dict[str, Any], contents: dict[str, Any] | None) -> None:
    """Write the numbers, and print them, as JSON or as tables. contents (dict | None): Of the page."""
    for path in run.output:
        if _kind_of(path) == "numbers":
            write_json(path, result)
    if run.silent:
        return
    if run.format == "json":
        print_json(result)
        return
    for name, table in result.items():
        show_table(name, table)
    if contents is not None:
        show_verdicts(contents)
    for path in run.pages:
        msg.good(f"The page is at {path}; open it in a browser.")
    for name, path in run.pictures:
        msg.good(f"{'the tags asked for' if name == 'tags' else name}: {path}")
