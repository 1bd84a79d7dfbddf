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

# Keys: those of answers, with the answer as Prodigy saves it, and two others.
ANSWERS, UNDO, QUIT = {"y": "accept", "n": "reject", "s": "ignore"}, "u", "q"


def ask_in_terminal(tasks: Sequence[Task], path: Path, anew: bool = False) -> int:
    """Ask about each task that has no answer in the file of answers yet. RETURNS (int): Number of answered tasks.

    path (Path): File of answers. anew (bool): Ask about all; the first answer replaces the file.
    RAISES C055: the file cannot be written. C535: it has answers to other questions.
    """
    records = [to_prodigy(task) for task in tasks]
    index_of_question = {_question_of(record): index for index, record in enumerate(records)}
    answer_lines: dict[int, str] = {}  # index of a task -> line of the file with its answer, in the order of the answers
    try:
        for line in path.read_text(encoding="utf8").splitlines() if path.exists() and not anew else ():
            answer_lines[index_of_question[_question_of(json.loads(line))]] = line
    except (ValueError, KeyError, TypeError):
        raise calib_error("C535", path=path) from None
    while len(answer_lines) < len(tasks):
        index = next(index for index in range(len(tasks)) if index not in answer_lines)
        key = _ask(tasks[index], len(answer_lines) + 1, len(tasks))
        if key == QUIT:
            break
        if key == UNDO and answer_lines:
            answer_lines.popitem()  # the last answer
        elif key in ANSWERS:
            answer_lines[index] = json.dumps({**records[index], "_view_id": "ner", "answer": ANSWERS[key]})
        else:  # another key: ask again
            continue
        write_text(path, (f"{line}\n" for line in answer_lines.values()))
    return len(answer_lines)


def _question_of(record: dict[str, Any]) -> str:
    """Return the text and metadata of a question as JSON, by which its answer is recognized."""
    return json.dumps([record["text"], record["meta"]], sort_keys=True)


def _ask(task: Task, number: int, n: int) -> str:
    """Ask question `number` of n: show sentence and entity, but no score, which would suggest an answer. Return the key."""
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
