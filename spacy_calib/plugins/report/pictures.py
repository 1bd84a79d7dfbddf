"""The pictures of `calib evaluate`: their numbers and their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cli.evaluating.options import picture_files, picture_names
from ...cli.shared.screen import first_of
from .messages import calib_error

if TYPE_CHECKING:
    from ...pipe.evaluation import Evaluation, PipeTable, UnitTable


def write_pictures(
    evaluation: Evaluation, paths: Sequence[Path], kind: str | None = None, tags: Sequence[str] | None = None
) -> dict[str, Any]:
    """Write the pictures of the first pipe in an evaluation, and return their numbers, by `picture_numbers`.

    paths: Files, or folders for several pictures; if there are none, nothing is written. kind (str | None): Name of a picture,
    or "all"; None draws "tags" if `tags` are named, else "reliability" in a file and all in a folder. tags: Tags to draw.
    RAISES C005, C098: as `picture_numbers`. C055: a file cannot be written. C097: one file for several pictures.
    """
    targets = picture_files(paths, kind, tags)  # (name of a picture, its file)
    names = list(dict.fromkeys([name for name, _ in targets] or picture_names(kind, tags)))
    numbers = picture_numbers(evaluation, names, tags or ())
    if targets:
        from ...cli.shared.writing import write_file
        from ...optional import picture_bytes
        from .plots import draw_picture

        title = picture_title(evaluation)
        figures = [(path, draw_picture(name, numbers["numbers"][name], title)) for name, path in targets]
        files = [(path, picture_bytes(figure, path.suffix.lower())) for path, figure in figures]
        for path, content in files:  # after all are drawn
            write_file(path, content)
    return numbers


def picture_numbers(evaluation: Evaluation, names: Iterable[str], tags: Sequence[str]) -> dict[str, Any]:
    """Return the numbers of pictures of the first pipe in an evaluation.

    names (Iterable[str]): Of "reliability", "top", "groups", "tags", "errors", "coverage". tags (Sequence[str]): Of the picture
    "tags". RETURNS (dict): "pipe" (name), "unit" (word for a token etc.), "pairs" (number of scores with gold), "numbers":
    name of each picture -> its rows, from `plot_data.picture_rows`.
    RAISES C005: there are fewer pairs than bins. C098: the pipe has no such tag.
    """
    from .plot_data import picture_rows

    table = evaluation.shown[0]
    unit = unit_to_draw(table)
    view = unit.view
    for tag in tags:
        if tag not in view.labels:
            raise calib_error("C098", name=table.pipe.name, tag=tag, available=first_of(view.labels, 60))
    if len(view) < view.n_bins:
        raise calib_error("C005", n_pairs=len(view), threshold=table.pipe.threshold, minimum=view.n_bins)
    numbers = {name: picture_rows(name, view, unit.figures["errors"], tags) for name in names}
    unit_word = "entity" if view.kind == "entities" else table.annotation.kind.unit
    return {"pipe": table.pipe.name, "unit": unit_word, "pairs": len(view.pairs), "numbers": numbers}


def unit_to_draw(table: PipeTable) -> UnitTable:
    """Return the table of a pipe's entities if it scores any, else of its tokens or documents; of a parser that of tokens."""
    units = list(table.units.values())  # entities come before tokens or documents; the "entities" of a parser are sentences
    return units[-1 if table.annotation.kind.of_arcs else 0]


def picture_title(evaluation: Evaluation) -> str:
    """Return the title of an evaluation's pictures: component, pipeline, data, a warning if these are the fit data, unit."""
    table = evaluation.shown[0]
    model = f"{table.component or 'scores'} of {evaluation.name} {evaluation.version}".strip()
    fitted_on = " = THE FIT DATA" if table.seen and table.seen["many"] else ""
    return f"{model}, evaluated on {evaluation.data}{fitted_on} ({unit_to_draw(table).view.kind})"
