"""Ask in the terminal about the entities of a queue; each answer is saved at once, in the format of Prodigy."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...cli.shared.writing import write_text
from ...errors.visible import visible
from .messages import calib_error
from .queue.formats import to_prodigy

if TYPE_CHECKING:
    from .queue.tasks import Task

ANSWERS, UNDO, QUIT = {"y": "accept", "n": "reject", "s": "ignore"}, "u", "q"


def ask_in_terminal(tasks: Sequence[Task], path: Path, anew: bool = False) -> int:
    """Ask about each task that has no answer in the file yet. RETURNS (int): Number of answered tasks.

    anew (bool): Ask about all; the first answer replaces the file.
    RAISES C055: the file cannot be written. C535: it has answers to other questions.
    """
    records, saved = [to_prodigy(task) for task in tasks], dict[int, str]()  # saved: number of a task -> line of its answer
    numbers = {_key_of(record): number for number, record in enumerate(records)}
    try:
        for line in path.read_text(encoding="utf8").splitlines() if path.exists() and not anew else ():
            saved[numbers[_key_of(json.loads(line))]] = line
    except (ValueError, KeyError, TypeError):
        raise calib_error("C535", path=path) from None
    while len(saved) < len(tasks):
        number = next(number for number in range(len(tasks)) if number not in saved)
        key = _ask(tasks[number], len(saved) + 1, len(tasks))
        if key == QUIT:
            break
        if key == UNDO and saved:
            saved.popitem()
        elif key in ANSWERS:
            saved[number] = json.dumps({**records[number], "_view_id": "ner", "answer": ANSWERS[key]})
        else:
            continue
        write_text(path, (f"{line}\n" for line in saved.values()))
    return len(saved)


def _key_of(record: dict[str, Any]) -> str:
    """Return the text and metadata of a question as JSON, by which its answer is recognized."""
    return json.dumps([record["text"], record["meta"]], sort_keys=True)


def _ask(task: Task, number: int, n: int) -> str:
    """Show a sentence with its entity marked (without the score, which would suggest an answer); return the key pressed."""
    (span,) = task.spans
    parts = (task.text[: span.start], task.text[span.start : span.end], task.text[span.end :])
    before, focus, after = (" ".join(visible(part, keep="\n\t").split()) for part in parts)
    question = f"{number:,} of {n:,}: is this {visible(span.label)}?  y)es n)o s)kip u)ndo q)uit"
    typer.echo(f"\n{before} >>>{focus}<<< {after}\n{question} ", nl=False)
    try:
        key = typer.getchar() if sys.stdin.isatty() else sys.stdin.readline() or QUIT
    except (EOFError, KeyboardInterrupt):
        key = QUIT
    typer.echo(visible(key.strip()))
    return key.strip().lower()[:1]
