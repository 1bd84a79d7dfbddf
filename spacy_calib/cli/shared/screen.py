"""Printed output by wasabi: messages, tables and numbers, with control characters of texts and labels escaped."""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from textwrap import wrap
from typing import Any, NamedTuple

from wasabi import Printer

from ...errors import CalibError
from ...errors.visible import visible


class Screen(Printer):
    """A wasabi printer that escapes control characters; line breaks stay, except in the cells of tables."""

    def text(self, title: Any = "", text: Any = "", *args: Any, **kwargs: Any) -> Any:
        return super().text(visible(title, keep="\n"), visible(text, keep="\n"), *args, **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        return super().divider(visible(text), *args, **kwargs)

    def table(self, data: Any, **kwargs: Any) -> Any:
        if isinstance(data, Mapping):
            data = {visible(name): visible(value) for name, value in data.items()}
        else:
            data = [[visible(cell) for cell in row] for row in data]
        return super().table(data, **kwargs)


msg = Screen()
_WIDTH = 100  # widest line of `print_facts`
# A note on an option in a message, in brackets; it is left out for commands without that option.
_OPTION_NOTE = re.compile(r" \((--[\w-]+)[^()]*\)")


def with_own_options(message: str, options: Collection[str]) -> str:
    """Remove from a message the notes in parentheses about options that a command lacks. options: Flags of the command."""
    return _OPTION_NOTE.sub(lambda note: note[0] if note[1] in options else "", message)


@contextlib.contextmanager
def user_errors(options: Collection[str] = ()) -> Iterator[None]:
    """Print a CalibError on the standard error, and exit with 1. options: Flags; notes on others are cut from the message."""
    try:
        yield
    except CalibError as error:
        with contextlib.redirect_stdout(sys.stderr):
            msg.fail(with_own_options(error.message, options))
        raise SystemExit(1) from None


def warn(sentence: str) -> None:
    """Print a warning, a sentence, on the standard error, separate from the results."""
    with contextlib.redirect_stdout(sys.stderr):
        msg.warn(sentence)


def inform(sentence: str) -> None:
    """Print a sentence on a choice that a command made by itself, on the standard error, separate from the results."""
    with contextlib.redirect_stdout(sys.stderr):
        msg.info(sentence)


def show_seen(overlap: dict[str, Any] | None) -> None:
    """Print a warning if much of the data is fit data. overlap: From `TrainTestOverlap.to_dict`; None if unknown."""
    from ...pairs.seen_texts import format_overlap_warning

    warning = format_overlap_warning(overlap)
    if warning:
        msg.fail(warning)


def show_other_weights(has_changed: bool | None) -> None:
    """Print a warning if the component has other weights than at the fit. has_changed: None if that is unknown."""
    from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE

    if has_changed:
        msg.fail(OTHER_WEIGHTS_SENTENCE)


def print_table(rows: Any, header: Sequence[str] | None = None, aligns: Sequence[str] | None = None) -> None:
    """Print a table with columns as wide as their longest cell. header: Titles. aligns: "l" or "r" for each column."""
    msg.table(rows, header=header, divider=header is not None, aligns=aligns, max_col=sys.maxsize)  # the default is 30


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values in two columns; long values continue on the next line. Facts with None or "" are left out."""
    rows = [(name, str(value)) for name, value in facts.items() if value not in (None, "")]
    name_width = max(len(name) for name, _ in rows)
    print_table(_wrap_cells(rows, (name_width, _WIDTH - name_width - 3)))  # 3 spaces between the columns


class TableColumn(NamedTuple):
    """A column of a printed table, for `show_rows`.

    key (str): Key of the column's value in a row, which is a dict; "" takes the row itself as value. show (Callable): Formats
    the value; None is printed as a dash. align (str): "l" or "r". width (int): Longer cells continue on the next line.
    is_detail (bool): Whether the column is printed only on request.
    """

    title: str
    key: str
    show: Callable[[Any], str] = str
    align: str = "r"
    width: int = sys.maxsize
    is_detail: bool = False


def show_rows(rows: Iterable[Mapping[str, Any]], columns: Iterable[TableColumn], details: bool = True) -> None:
    """Print rows as a table with these columns. details (bool): Whether columns with `is_detail` are printed, too."""
    columns = tuple(column for column in columns if details or not column.is_detail)
    values = [[row[column.key] if column.key else row for column in columns] for row in rows]
    cells: list[Sequence[str]] = [
        ["-" if value is None else column.show(value) for column, value in zip(columns, line, strict=True)] for line in values
    ]
    titles, aligns = [column.title for column in columns], [column.align for column in columns]
    print_table(_wrap_cells(cells, [column.width for column in columns]), titles, aligns)


def _wrap_cells(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> list[Sequence[str]]:
    """Return the rows, each with a cell longer than the width of its column split into several. widths: In characters."""
    lines: list[Sequence[str]] = []
    for row in rows:
        if all(len(cell) <= width for cell, width in zip(row, widths, strict=True)):
            lines.append(row)
        else:
            lines += zip_longest(*(wrap(cell, width) for cell, width in zip(row, widths, strict=True)), fillvalue="")
    return lines


def shell_line(command: str, *arguments: object, options: Mapping[str, Any]) -> str:
    """Return a line `python -m spacy calib COMMAND ...` that can be pasted into a shell.

    options (Mapping): Flag -> value; True is a flag without a value, and None, False and "" are left out.

    EXAMPLE:
        >>> shell_line("evaluate", "./my model", "GOLD", options={"--map": "PERSON=PER", "--gold-preproc": False})
        "python -m spacy calib evaluate './my model' GOLD --map PERSON=PER"
    """
    words = ["python", "-m", "spacy", "calib", command, *map(str, arguments)]
    for flag, value in options.items():
        if value not in (None, False, ""):
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


def shorten(text: str, width: int) -> str:
    """Put a text on one line, and cut it to at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def first_of(names: Sequence[str], maximum: int, separator: str = ", ") -> str:
    """Join the first `maximum` names by `separator`, and add how many more there are: "a, b and 3 more"."""
    return separator.join(names[:maximum]) + (f" and {len(names) - maximum:,} more" if len(names) > maximum else "")


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with `digits` decimals; None as a dash."""
    return "-" if value is None else f"{value:.{digits}f}"


def in_percent(share: float | None, digits: int = 1) -> str:
    """Format a share in [0, 1] in percent, without the sign "%"; None as a dash."""
    return number(None if share is None else 100 * share, digits)


def whole(value: int) -> str:
    return f"{value:,}"


def percent(share: float) -> str:
    return f"{in_percent(share, 2)} %"


def interval(row: Mapping[str, Any], show: Callable[[Any], str] = partial(in_percent, digits=2)) -> str:
    """Format row["low"] and row["high"] by `show` (default: shares in percent, "12.34 to 56.78"); a dash if "low" is None."""
    return "-" if row["low"] is None else f"{show(row['low'])} to {show(row['high'])}"
