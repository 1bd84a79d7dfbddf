"""What to do about an error, by the command that reports it (no advice names an option that it lacks) and the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import entry_points

# The entry point that reports an error: Python, else the name of a command.
PYTHON = "python"
# State of the pipeline: without a calibration, with one from a card, with a fitted one.
STOCK, PRETRAINED, FITTED = "stock", "pretrained", "fitted"
ANY = ""
_entry = ContextVar("entry_point", default=PYTHON)
# Key -> (entry point, state) -> what to do. Keys are codes of messages, or names of reasons that several messages quote.
Advice = Mapping[str, Mapping[tuple[str, str], str]]
SECOND_PASS, UNKNOWN_LABELS = "second pass", "unknown labels"
ADVICE: Advice = {
    "C027": {
        (ANY, ANY): "with gold run `python -m spacy calib fit MODEL DATA OUTPUT` first",
        (PYTHON, ANY): "with gold call `spacy_calib.fit(model, data, output)` first",
    },
    "C031": {
        (ANY, ANY): "or fit on it: `python -m spacy calib fit MODEL DATA OUTPUT --component {component} --map {map}`",
        ("fit", ANY): "or map its labels to those of the data (--map {map})",
        **dict.fromkeys((("adapt", ANY), ("audit", ANY), ("evaluate", ANY), ("threshold", ANY)), "or map its labels to those of the data (--map {map})"),
        (PYTHON, ANY): "or map its labels to those of the data in `spacy_calib.fit` (label_map='{map}')",
    },
    "C065": {
        (ANY, ANY): "with gold calibrate one that does: `python -m spacy calib fit MODEL DATA OUTPUT --component ner`",
        (PYTHON, ANY): "with gold calibrate one that does: `spacy_calib.fit(model, data, output, component='ner')`",
    },
    "C080": {
        (ANY, ANY): "give data annotated with it, or calibrate that: `python -m spacy calib fit MODEL DATA OUTPUT --component {first}`",
        ("fit", ANY): "give data annotated with it, or choose that: --component {first}",
        ("evaluate", ANY): "give data annotated with it, or choose that: --component {first}",
        ("audit", ANY): "give data annotated with it, or choose that: --component {first}",
        ("threshold", ANY): "give data annotated with it",
        (PYTHON, ANY): "give data annotated with it, or choose that in `spacy_calib.fit` (component='{first}')",
    },
    "C151": {
        (ANY, ANY): "or fit: `python -m spacy calib fit MODEL DATA OUTPUT --component {component} --map {map}`",
        **dict.fromkeys((("adapt", ANY), ("audit", ANY), ("evaluate", ANY), ("threshold", ANY)), "or map its labels to those of the data (--map {map})"),
        (PYTHON, ANY): "or fit: `spacy_calib.fit(model, data, output, component='{component}', label_map='{map}')`",
    },
    "C164": {
        (ANY, ANY): "fit on it: `python -m spacy calib fit MODEL DATA OUTPUT --component {component} --map {map}`, or count them as misses with --allow-unknown",
        **dict.fromkeys((("adapt", ANY), ("fit", ANY)), "map its labels to those of the data (--map {map}), or count them as misses with --allow-unknown"),
        **dict.fromkeys((("evaluate", ANY), ("threshold", ANY)), "map its labels to those of the data (--map {map})"),
        (PYTHON, ANY): "map its labels to those of the data in `spacy_calib.fit` (label_map='{map}'), or count them as misses (allow_unknown=True)",
    },
    "C697": {
        (ANY, ANY): "or fit on them: `python -m spacy calib fit MODEL DATA OUTPUT --component {component} --map {map}`",
        **dict.fromkeys((("adapt", ANY), ("audit", ANY), ("evaluate", ANY), ("fit", ANY)), "or map its labels to those of the data (--map {map})"),
        (PYTHON, ANY): "or map its labels to those of the data in `spacy_calib.fit` (label_map='{map}')",
    },
    UNKNOWN_LABELS: {
        (ANY, ANY): "`fit --map` renames them",
        **dict.fromkeys((("adapt", ANY), ("audit", ANY), ("evaluate", ANY), ("fit", ANY), ("threshold", ANY)), "--map renames them"),
    },
    "CW01": {(ANY, ANY): "fit it on held-out gold, with `python -m spacy calib fit MODEL DATA OUTPUT` or its method fit(examples)"},
    SECOND_PASS: {
        (ANY, ANY): "fit it again without --second-pass (`python -m spacy calib fit MODEL DATA OUTPUT`)",
        ("fit", ANY): "leave out --second-pass",
        (ANY, PRETRAINED): "",
        (PYTHON, ANY): "save the pipeline, and with gold fit it from its folder (`spacy_calib.fit(folder, data, output)`)",
        (PYTHON, PRETRAINED): "",
    },
}  # fmt: skip
# Plug-ins add their advice under this group of entry points: any name -> a mapping like ADVICE.
ENTRY_POINTS = "spacy_calib_advice"


@contextmanager
def entered_by(command: str) -> Iterator[None]:
    """Let errors raised in a block advise for this command (its options), rather than for Python."""
    token = _entry.set(command)
    try:
        yield
    finally:
        _entry.reset(token)


def advise(key: str, state: str = ANY, **values: object) -> str:
    """Return the advice of core and plug-ins under a key of ADVICE. state (str): Such as FITTED. values: Its fields."""
    entry = _entry.get()
    lines = []
    for table in (ADVICE, *_added_advice()):
        choices = table.get(key, {})
        keys = ((entry, state), (PYTHON if entry == PYTHON else ANY, state), (entry, ANY), (ANY, ANY))
        lines.append(next((choices[choice] for choice in keys if choice in choices), ""))
    return "; ".join(line.format(**values) for line in lines if line)


@cache
def _added_advice() -> tuple[Advice, ...]:
    """Return the tables of plug-ins. One that cannot be imported is left out: an error must not fail for want of advice."""
    tables = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            tables.append(point.load())
        except Exception:
            continue
    return tuple(tables)
