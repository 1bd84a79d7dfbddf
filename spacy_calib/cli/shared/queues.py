"""Queues for annotation tools: what `rank` and `select` write in their formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .outputs import Output
from .results import write_pieces, write_text

if TYPE_CHECKING:
    from ...corpus.review.tasks import Task
    from .scored import ScoredModel

TOOLS = ("prodigy", "label-studio", "doccano")


def labels_file(output: Path | None, form: str) -> Path | None:
    """Where the labeling config of a Label Studio project goes, beside its queue; None for other formats."""
    return output.with_suffix(".labels.xml") if output is not None and form == "label-studio" else None


def queue_outputs(output: Path | None, form: str) -> list[Output]:
    """The files of a queue."""
    named = (("--output", output), ("the labeling config", labels_file(output, form)))
    return [Output(option, path) for option, path in named if path is not None]


def labels_of(model: ScoredModel, kind: str, met: Iterable[str]) -> Sequence[str]:
    """What an annotator chooses from; of a lemmatizer the lemmas that it gives here, not its edit trees.

    kind (str): What is a task. met (Iterable[str]): Labels with a score.
    """
    if model.layer == "lemma":
        return list(met)
    return model.span_labels if model.span_groups is not None and kind != "token" else model.labels


def queue_text(form: str, tasks: Sequence[Task], raw_cells: bool = False) -> Iterable[str]:
    """The queue piece by piece. form (str): One of WRITERS. raw_cells (bool): See `to_csv`."""
    from ...corpus.review.formats import WRITERS, to_csv

    return to_csv(tasks, raw_cells) if form == "csv" else WRITERS[form](tasks)


def write_queue(
    output: Path, form: str, tasks: Sequence[Task], labels: Sequence[str], kind: str, raw_cells: bool = False
) -> None:
    """Write the tasks, and what their tool needs besides. form, raw_cells: See `queue_text`. labels, kind: See `labels_of`.

    RAISES C055: a file cannot be written.
    """
    from ...corpus.review.formats import label_studio_config

    write_pieces(output, queue_text(form, tasks, raw_cells))
    config = labels_file(output, form)
    if config is not None:
        write_text(config, label_studio_config(labels, kind))
