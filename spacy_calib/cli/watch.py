"""`spacy calib watch`: windows of a stream of texts, what accuracy to expect in each, and alarms where texts are no more like those of the fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import brief, calib_error
from .shared.checks import check_option
from .shared.command import argument, command, option
from .shared.evidence import Seen, show_other_weights
from .shared.options import TEXTS, Columns, FirstAttr, Format
from .shared.outputs import PICTURES
from .shared.records import FIELDS, Fields
from .shared.run import Run
from .shared.screen import Column, interval, msg, percent, show_rows, whole
from .shared.windows import accuracy_of_fit, holds_windows, read_windows, window_files
from .shared.writing import deliver, write_picture, write_pieces

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pipe.component import Calibrator
    from ..pipe.monitor import Monitor

# The periods of `watch.periods.EVERY`, which is not imported before it is needed.
PERIODS = ("day", "week", "month", "year", "decade")
DOCUMENTS = 200
# How often an interval holds the true value.
CONFIDENCE = 0.95
_SHOWN = 60


@dataclass(frozen=True)
class WatchOptions(Run):
    """What `watch` counts, and of what it warns."""

    data: Annotated[Path, argument("DATA", f"Texts: {TEXTS}; or windows that watch wrote (.jsonl, or a folder of them)")]
    _: KW_ONLY
    attr: FirstAttr = None
    columns: Columns = None
    # Gold is read as any text, and windows are of Docs.
    gold_preproc: bool = False
    doc_key: str | None = None
    window: Annotated[int | None, option("Documents of a window", show_default=str(DOCUMENTS))] = None
    by: Annotated[
        str | None,
        option(
            "Windows by date: the key of the lines of .jsonl, or of their meta, that holds it; beside --window a stream for each value of the key",
            metavar="KEY",
        ),
    ] = None
    every: Annotated[str | None, option("Period of a window, beside --by", words=PERIODS, show_default="day")] = None
    merge: Annotated[list[Path], option("Windows that watch wrote, to be added (file or folder; may be repeated)")] = field(
        default_factory=list
    )
    part: Annotated[
        str | None,
        option(
            "Name of the stream: windows of one name and number are added up", show_default="the name of DATA; none with --by"
        ),
    ] = None
    rate: Annotated[float, option("One false alarm in so many windows at most")] = 1000
    fail_on: Annotated[str | None, option("alarm: exit code 1 where a window with texts of DATA gives an alarm")] = None
    output: Annotated[
        Path | None,
        option("JSON Lines for the windows, one a line, which --merge reads; or a picture of them (.png, .svg, .pdf)", "-o"),
    ] = None
    format: Format = "table"

    def check_options(self) -> None:
        """RAISES C056: no rate, or options that say nothing beside each other."""
        check_option("--rate", 1 <= self.rate < 1e12, "a number of windows, 1 or more", self.rate)
        check_option("--fail-on", self.fail_on in (None, "alarm"), "alarm", repr(self.fail_on))
        check_option("--every", self.every is None or self.by is not None, "left out without --by", self.every)
        check_option("--every", self.every is None or self.window is None, "left out beside --window", self.every)
        check_option(
            "--part", self.part is None or not self.in_streams, "left out where each value of --by is a stream", self.part
        )

    def read_files(self) -> list[Path]:
        return self.merge

    @property
    def draws(self) -> bool:
        """Whether the output is a picture."""
        return self.output is not None and self.output.suffix.lower() in PICTURES

    @property
    def window_of_texts(self) -> int | str:
        """What a window of texts is to be."""
        return (self.every or PERIODS[0]) if self.by is not None and not self.in_streams else (self.window or DOCUMENTS)

    @property
    def in_streams(self) -> bool:
        """Whether each value of --by is a stream of its own."""
        return self.by is not None and self.window is not None


def exit_code(run: WatchOptions, result: dict[str, Any]) -> int:
    """1 where a window of DATA gives an alarm, and --fail-on asks for it."""
    return int(run.fail_on is not None and result["new_alarms"] > 0)


@command(
    WatchOptions,
    example="./calibrated texts.jsonl --by date --every week -o windows.jsonl",
    exit_code=exit_code,
)
def watch(run: WatchOptions) -> dict[str, Any]:
    """
    Count a stream of texts window by window, without keeping any text: the
    accuracy to be expected in each with an interval, and an alarm where texts
    are not like those the pipe was fitted on any more, at most one false alarm
    in --rate windows. Windows add up across workers and days (--merge).

    RETURNS (dict): "pipe", "component", "layer", "window" (documents, or the period), "rate", "confidence", "documents", "tokens", "alarms"
        of all windows, "new_alarms" of those with texts of DATA, "weights_changed" (see `SourceLookup.weights_changed`), "seen" (see
        `expect.record.SeenShare`; None for windows), and "windows": see `Monitor.lines`.
    RAISES C061: what draws pictures is not installed. C075: no token got a score. C241, C242: a text has no date. CalibError: every other fault of the input.
    """
    of_windows = holds_windows(run.data)
    window_files([*([run.data] if of_windows else []), *run.merge])  # each once
    if of_windows:
        for flag, given in (("--window", run.window), ("--by", run.by), ("--part", run.part), ("--columns", run.columns)):
            check_option(flag, given is None, "left out where DATA holds windows", given)
    elif run.by is not None and not run.in_streams:
        check_dates(run.data, run.by, str(run.window_of_texts), run.fields)
    from ..doc.annotations import plain_name

    nlp, pipe = run.open()
    older = read_windows(pipe, run.merge, run.rate, CONFIDENCE) if run.merge else None
    seen = None
    if of_windows:
        monitor = read_windows(pipe, [run.data], run.rate, CONFIDENCE)
    else:
        monitor = monitor_for(run, pipe, older)
        seen = count_texts(run, nlp, pipe, monitor)
    new = {(line["part"], line["at"]) for line in monitor.to_dict()["windows"]}
    found = (monitor if older is None else monitor.merge(older)).snapshot(closing=True)
    lines = found["windows"]
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": plain_name(pipe.fit_info.layer),
        "window": monitor.window,
        "rate": run.rate,
        "confidence": CONFIDENCE,
        "weights_changed": pipe.lookup.weights_changed(),
        "seen": seen,
        **{name: found[name] for name in ("documents", "tokens", "alarms")},
        "new_alarms": sum(line["alarm"] for line in lines if (line["part"], line["at"]) in new),
        "windows": lines,
    }
    if run.output is not None and run.draws:
        from ..pages.series_plots import plot_over_time

        title = f"{pipe.source.component or 'scores'} on {run.data.name}"
        write_picture(run.output, plot_over_time(lines, accuracy_of_fit(pipe), title=title).figure)
    elif run.output is not None:
        write_pieces(run.output, (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines))
    deliver(result, lambda: show(result), output=None, format=run.format, silent=run.silent)
    return result


def check_dates(path: Path, key: str, every: str, fields: Fields = FIELDS) -> None:
    """Look at all dates before the work begins. (Those of a FIFO, which can be read once only, are looked at as they come.)

    RAISES C241: a file cannot have dates. C242: a line has none. C074: see `read_texts`.
    """
    from .shared.examples import text_files, values_in
    from .shared.records import KEYED, suffix_of

    for file in text_files(path):
        if suffix_of(file) not in KEYED:
            raise calib_error("C241", path=file)
    for file, line, value in values_in(path, key, fields):
        _date(value, line, file, key, every)


def _date(given: Any, line: int, file: Path, key: str, every: str) -> Any:
    """What stands under the key. RAISES C242: that is no date."""
    from ..expect.periods import period_of

    try:
        period_of(given, every)
    except ValueError as error:
        why = "there is none" if given is None else f"{brief(repr(given))}: {brief(error, 160)}"
        raise calib_error("C242", line=line, path=file, key=key, every=every, why=why) from None
    return given


def monitor_for(run: WatchOptions, pipe: Calibrator, older: Monitor | None) -> Monitor:
    """What counts the texts. RAISES C236: the pipe keeps no record of its fit. C238: older windows are not of this size."""
    from ..pipe.monitor import Monitor

    window = run.window_of_texts
    named = run.part if run.part is not None else "" if isinstance(window, str) or run.in_streams else run.data.name
    monitor = Monitor(pipe, window, run.rate, named, confidence=CONFIDENCE)
    if older is not None:
        older.merge(monitor)  # which is empty: whether they can be added is told before the work begins
    return monitor


def count_texts(run: WatchOptions, nlp: Language, pipe: Calibrator, monitor: Monitor) -> dict[str, Any] | None:
    """Run the pipeline over the texts and count them; the Docs are let go one by one.

    RETURNS (dict | None): How much of them the fit has seen, see `seen_by`. RAISES C075: no token got a score. C242: a text has no date. C601, C602: no text has
    anything under the key of --by, or each something of its own.
    """
    from ..doc.collect import ORIGIN
    from ..doc.keys import check_names, name_of, value_of
    from .shared.evidence import FirstDoc, check_whole_documents
    from .shared.examples import read_through
    from .shared.run import pipes_to_run

    check_whole_documents(pipe.fit_info.row_unit, run.gold_preproc)
    first, seen = FirstDoc(nlp, pipe), Seen(pipe, gold=False)
    streams: dict[str | None, Monitor] = {}
    met: Counter[str | None] = Counter()

    def read(examples: Iterator[Example]) -> None:
        for example in seen.over(first.over(examples)):
            when, own = None, monitor
            if run.by is not None and run.in_streams:
                name = name_of(value_of(example.reference, run.by))
                met[name] += 1
                if name not in streams:
                    part = name or f"without {run.by}"
                    streams[name] = type(monitor)(pipe, monitor.window, run.rate, part, confidence=CONFIDENCE)
                own = streams[name]
            elif run.by is not None:
                value, line = value_of(example.reference, run.by), example.reference.user_data[ORIGIN]["line"]
                when = _date(value, line, run.data, run.by, str(monitor.window))
            own.update(example.predicted, when)

    examples = run.stream(nlp)
    for _ in read_through(nlp, examples, pipes_to_run(nlp, pipe), read, run.passing("Watching")):
        seen.add()
    if run.by is not None and run.in_streams:
        check_names(met, run.by)
    for stream in streams.values():
        monitor.merge(stream)
    if not any(line["counts"]["tokens"] for line in monitor.to_dict()["windows"]):
        raise first.silent()
    return seen.to_dict()


# Printing


def show(result: dict[str, Any]) -> None:
    """Print the windows, and what follows."""
    from ..doc.annotations import unit_of
    from ..expect.windows import words_of
    from ..pairs.documents import DOCUMENT, extent

    msg.divider(f"Texts over time: {result['component'] or 'the source'} ({result['layer']})")
    lines = result["windows"]
    msg.text(
        f"{extent(DOCUMENT, result['documents'], unit_of(result['layer']), result['tokens'])}, {_windows(len(lines))} of {words_of(result['window'])}"
    )
    show_other_weights(result["weights_changed"])
    show_seen_texts(result["seen"])
    show_windows(lines, result["confidence"], unit_of(result["layer"]) != DOCUMENT)
    show_alarms(result)


def show_seen_texts(seen: dict[str, Any] | None) -> None:
    """Warn of texts of the fit data."""
    if seen is not None and seen["many"]:
        msg.warn(
            f"{seen['seen']:,} of {seen['documents']:,} texts ({100 * seen['share']:.0f} % of the words) are among those that the pipe was fitted "
            "on: windows with them look more like the fit data than new texts do."
        )


def _windows(n: int) -> str:
    return f"{n:,} window{'' if n == 1 else 's'}"


def show_windows(lines: Sequence[dict[str, Any]], confidence: float, with_tokens: bool) -> None:
    """Print the windows; of very many those with an alarm and the last ones. with_tokens (bool): Whether rows are more than documents."""
    shown = [line for i, line in enumerate(lines) if line["alarm"] or i >= len(lines) - _SHOWN][-_SHOWN:]
    several = len({line["part"] for line in lines}) > 1
    columns = (
        Column("Window", "", lambda line: f"{line['part']} {line['at']}" if several else str(line["at"]), align="l"),
        Column("Documents", "documents", whole),
        *([Column("Tokens", "tokens", whole)] if with_tokens else []),
        Column("Expected", "expected", percent),
        Column(f"{100 * confidence:g} % interval", "", interval),
        Column("Verdict", "", _verdict, align="l"),
    )
    show_rows(shown, columns)
    if len(shown) < len(lines):
        msg.text(f"{len(lines) - len(shown):,} more: see --output or --format json")


def _verdict(line: Mapping[str, Any]) -> str:
    from ..expect.windows import differs_in

    return f"ALARM: {line['verdict']} ({differs_in(line)})" if line["alarm"] else str(line["verdict"])


def show_alarms(result: dict[str, Any]) -> None:
    """Print whether the expected values can be trusted."""
    if result["weights_changed"]:
        return
    judged = [line for line in result["windows"] if line["checks"]]
    promise = f"at most one false alarm in {result['rate']:,g} windows of texts like those of the fit"
    if result["alarms"]:
        msg.warn(
            f"{result['alarms']:,} of {_windows(len(judged))} {'gives' if result['alarms'] == 1 else 'give'} an alarm ({promise}): DO NOT TRUST what is expected there. On texts of another "
            "kind it can be too high or too low. Fit the pipe again on gold of this kind, or adapt it."
        )
    else:
        msg.good(f"No alarm in {_windows(len(judged))} ({promise}).")
    if any(line["stretch"] for line in judged):
        msg.text(
            "Documents are few and long: their stretches were compared, and the rate holds as far as these are like documents."
        )
