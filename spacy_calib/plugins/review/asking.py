"""Ask about the entities of a queue in the terminal; each answer is saved at once, as Prodigy exports it.

Works on any terminal, and with answers on standard input, one a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...cli.shared.outputs import path_errors
from ...errors.visible import visible
from .messages import calib_error
from .queue.formats import to_prodigy

if TYPE_CHECKING:
    from .queue.tasks import Task

ANSWERS = {"y": "accept", "n": "reject", "s": "ignore"}
UNDO, QUIT = "u", "q"
_KEYS = "y)es n)o s)kip u)ndo q)uit"


def ask_in_terminal(tasks: Sequence[Task], path: Path) -> int:
    """Ask about each task that has no answer in the file, which is made if need be. RETURNS (int): Answered tasks.

    RAISES C055: the file cannot be written. C535: it has answers to other questions.
    """
    with path_errors(path):
        saved = _read_saved(path, {_key_of(to_prodigy(task)): number for number, task in enumerate(tasks)})
        answered = {number for number, _ in saved}
        waiting = [number for number in reversed(range(len(tasks))) if number not in answered]
        while waiting:
            key = _ask(tasks[waiting[-1]], len(saved) + 1, len(tasks))
            if key == QUIT:
                break
            if key == UNDO and saved:
                number, size = saved.pop()
                os.truncate(path, path.stat().st_size - size)
                waiting.append(number)
            elif key in ANSWERS:
                record = {**to_prodigy(tasks[waiting[-1]]), "_view_id": "ner", "answer": ANSWERS[key]}
                line = json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
                with path.open("ab") as file:  # closed after each answer, which is then on the disk
                    file.write(line)
                saved.append((waiting.pop(), len(line)))
    return len(saved)


def _read_saved(path: Path, numbers: dict[tuple[Any, ...], int]) -> list[tuple[int, int]]:
    """Return (number of the task, bytes of its line) of each saved answer; a last line that was cut off is removed.

    numbers (dict): Key of a task -> its number. RAISES C535: there are answers to other questions.
    """
    saved = []
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        try:
            number = numbers.get(_key_of(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            number = None
        if not line.endswith(b"\n"):
            os.truncate(path, path.stat().st_size - len(line))
        elif number is None:
            raise calib_error("C535", path=path)
        else:
            saved.append((number, len(line)))
    return saved


def _key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    meta = record["meta"]
    return (record["text"], meta["doc"], meta["sentence"], meta["asked"], json.dumps(meta.get("sample"), sort_keys=True))


def _ask(task: Task, number: int, n: int) -> str:
    """Show a sentence with its entity marked, without the score, which would suggest an answer; return the key."""
    (span,) = task.spans
    before, focus, after = task.text[: span.start], task.text[span.start : span.end], task.text[span.end :]
    parts = (" ".join(visible(part, keep="\n\t").split()) for part in (before, focus, after))
    marked = "{} >>>{}<<< {}".format(*parts).strip()
    typer.echo(f"\n{marked}\n{number:,} of {n:,}: is this {visible(span.label)}?  {_KEYS} ", nl=False)
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        typer.echo()
        return line.strip().lower()[:1] if line else QUIT
    try:
        key = typer.getchar()
    except (EOFError, KeyboardInterrupt):
        key = QUIT
    typer.echo(visible(key))
    return key.lower()
