"""`spacy calib evaluate`: how true scores are on gold data, as tables, numbers, a page and pictures."""

from __future__ import annotations

from typing import Any

from .evaluating.against import check_against, compared
from .evaluating.judging import Judgement, judgement, table_of_unit
from .evaluating.options import EvaluateOptions, kind_of
from .evaluating.page import page_contents, picture_numbers, picture_title, show_verdicts, write_pictures
from .evaluating.showing import show_table
from .evaluating.slices import found_slices, slices_of
from .shared.command import options_command
from .shared.screen import msg
from .shared.writing import print_json, write_json, write_text


@options_command(
    EvaluateOptions,
    example="./calibrated test.spacy -o report.html -o curve.png -o numbers.json",
)
def evaluate(run: EvaluateOptions) -> dict[str, Any]:
    """
    Show on gold how true the calibrated probabilities of a pipeline are (of those
    of .9, are nine in ten right?): how far raw and calibrated scores are off, over
    all tags and by group, with 95 % intervals by document, beside what exactly true
    scores would show on so little data (the floor). --output writes the same as
    numbers, as a page that opens offline and tells it in words, or as pictures.

    Of a pipeline that is not calibrated yet it shows how true its raw scores are.

    RETURNS (dict): By pipe name, see `metrics.table.calibration_table`; "entities" holds the same for whole entities, "events" what event
        pipes say of whole units (see `pipe.judging.event_table`), "misaligned" how many tokens align with no single gold token;
        what each slice of --by shows stands under "slices" of a pipe, and of its entities (see `corpus.slices.judge_slices`), those of
        --find-slices under "found_slices", with "examples"; how the pipeline of --against compares, "against", with the rows of
        `metrics.paired`; "pictures"
        the numbers in pictures of the first pipe (see `picture_numbers`), where some are asked for; "conventions" is as in `FitInfo`, None
        where it is not known. Of raw scores calibrated figures are None,
        and "unfitted" holds the "verdict" and the command for a "fit".
    RAISES CalibError: every fault of the input.
    """
    names = list(dict.fromkeys([name for name, _ in run.pictures] or run.names()))
    found, result = _judged(run, shown=bool(run.pages or names))
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
    found, tables = _judged(run, shown=True)
    return _write_page(found, tables, run)


def _judged(run: EvaluateOptions, shown: bool) -> tuple[Judgement, dict[str, Any]]:
    """What was judged, and the table of each pipe. shown (bool): See `judgement`."""
    check_against(run)
    found = judgement(run, shown or run.by is not None or run.find_slices)
    tables = found.tables(run)
    more = ((run.against, "against", compared), (run.by, "slices", slices_of), (run.find_slices, "found_slices", found_slices))
    for asked, key, tell in more:
        for (name, unit), told in tell(found, run).items() if asked else ():
            table_of_unit(tables[name], unit)[key] = told
    return found, tables


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
        if kind_of(path) == "numbers":
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
