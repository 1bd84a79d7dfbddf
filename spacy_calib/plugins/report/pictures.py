"""The pictures of `calib evaluate`: their numbers and their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...cli.evaluate_command import PICTURE_KINDS
from ...cli.evaluating.evaluation import Evaluation
from ...cli.evaluating.outputs import Section
from ...cli.shared.evidence import check_bins
from ...cli.shared.outputs import PICTURES
from ...cli.shared.run import unit_of
from ...cli.shared.screen import msg
from .messages import calib_error

KINDS = PICTURE_KINDS
# Unit -> kind of the view.
UNITS = {"token": "tokens", "entity": "entities", "document": "documents"}


def write_pictures(
    evaluation: Evaluation,
    paths: Sequence[Path],
    kind: str | None = None,
    tags: Sequence[str] | None = None,
) -> list[Section]:
    """Write the pictures of the first pipe, and return sections with their numbers.

    RAISES C005, C030, C098: as `picture_numbers` does. C055: a file cannot be written. C097: one file for several
    pictures.
    """
    targets = picture_files(paths, kind, tags)
    names = list(dict.fromkeys([name for name, _ in targets] or picture_names(kind, tags)))
    if not names:
        return []
    numbers = picture_numbers(evaluation, names, tags or ())
    if targets:
        _draw_and_write(numbers, targets, picture_title(evaluation, numbers))
    shows = [Section("", "", "", {"name": name, "path": path}, _show_file) for name, path in targets]
    return [Section(numbers["pipe"], "tokens", "pictures", numbers), *shows]


def _show_file(file: Mapping[str, Any], _: str) -> None:
    msg.good(f"{'the tags asked for' if file['name'] == 'tags' else file['name']}: {file['path']}")


def picture_names(kind: str | None, tags: Sequence[str] | None, default: Sequence[str] = ()) -> list[str]:
    """Return the names of the requested pictures. default (Sequence[str]): Names without --kind and --tag."""
    kinds = (list(default) if not tags else []) if kind is None else list(KINDS) if kind == "all" else [kind]
    return [*kinds, *(["tags"] if tags else [])]


def picture_files(paths: Iterable[Path], kind: str | None, tags: Sequence[str] | None) -> list[tuple[str, Path]]:
    """Return (name, file) of each picture. RAISES C097: one file for several pictures."""
    pictures: list[tuple[str, Path]] = []
    for path in paths:
        if path.suffix.lower() not in PICTURES:
            pictures += [(name, path / f"{name}.png") for name in picture_names(kind, tags, KINDS)]
            continue
        names = picture_names(kind, tags, KINDS[:1])
        if len(names) > 1:
            raise calib_error("C097", path=path, pictures=", ".join(names))
        pictures.append((names[0], path))
    return pictures


def picture_numbers(evaluation: Evaluation, names: Iterable[str], tags: Sequence[str]) -> dict[str, Any]:
    """Return the numbers of pictures of the first pipe.

    names (Iterable[str]): Names of pictures, perhaps with "tags". RETURNS (dict): "pipe", "unit", "pairs", and "numbers": name
    -> panels as in `plugins.report.plot_data.Panel`, or rows as in `metrics.table.ErrorRow`.
    RAISES C005: there are fewer pairs than bins. C030: no pipe has scores with gold. C098: it has no such tag.
    """
    from .plot_data import picture_rows

    pipes = evaluation.fitted_pipes()
    if not pipes:
        raise evaluation.nothing_to_show()
    pipe, _, pipe_evaluation = pipes[0]
    unit = unit_of(pipe, None)
    view = pipe_evaluation.units[UNITS[unit]]
    for tag in tags:
        if tag not in view.labels:
            available = ", ".join(view.labels[:60]) + (", ..." if len(view.labels) > 60 else "")
            raise calib_error("C098", name=pipe.name, tag=tag, available=available)
    check_bins(len(view), view.n_bins, pipe.threshold)
    errors = evaluation.table_of(pipe.name, view.kind)["errors"]
    numbers = {name: picture_rows(name, view, errors, tags) for name in names}
    return {"pipe": pipe.name, "unit": unit, "pairs": len(view.pairs), "numbers": numbers}


def picture_title(evaluation: Evaluation, numbers: Mapping[str, Any]) -> str:
    """Return the title of all pictures. numbers (Mapping): The dict that `picture_numbers` returns."""
    pipe, _, pipe_evaluation = evaluation.fitted_pipes()[0]
    model = f"{pipe.source.component or 'scores'} of {evaluation.name} {evaluation.version}".strip()
    fitted_on = " = THE FIT DATA" if pipe_evaluation.gold_scores.overlap and pipe_evaluation.gold_scores.overlap["many"] else ""
    return f"{model}, evaluated on {evaluation.run.data.name}{fitted_on} ({UNITS[numbers['unit']]})"


def _draw_and_write(numbers: Mapping[str, Any], targets: Sequence[tuple[str, Path]], title: str) -> None:
    """Draw all pictures, then write them. numbers (Mapping): The dict of `picture_numbers`. targets: (name, file) of each. RAISES C055: a file cannot be written."""
    from ...cli.shared.writing import write_file
    from ...optional import picture_bytes
    from .plots import draw_picture

    figures = [(path, draw_picture(name, numbers["numbers"][name], title)) for name, path in targets]
    files = [(path, picture_bytes(figure, path.suffix.lower())) for path, figure in figures]
    for path, content in files:
        write_file(path, content)
