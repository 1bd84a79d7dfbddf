"""Gold from several sources by name: `--gold NAME=PATH` where a pipe is fitted, `--gold-source NAME` and `--map-for` where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import calib_error
from ...pipe.settings import MAPS_FOR
from .checks import check_option, check_path
from .command import choice

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

NamedGold = Annotated[
    list[str],
    typer.Option(
        "--gold",
        metavar="NAME=PATH",
        help="Held-out gold of one of several sources (repeated), in the place of DATA, or beside it: DATA is called by the name of its file then",
    ),
]
GoldSource = Annotated[
    str | None,
    typer.Option(
        "--gold-source",
        metavar="NAME",
        help="Score by the gold of this source of the fit (its --gold NAME=PATH), where a Doc names none (Doc._.calib_source)",
    ),
]
MapFor = Annotated[
    str | None,
    choice(
        MAPS_FOR,
        "--map-for",
        help="Score all texts by the map of the fit's own texts, or by the one for texts of sources that it does not know (Doc._.calib_map)",
        show_default="by evidence, text by text",
    ),
]


def sources_of(given: Sequence[str], data: Path | None) -> dict[str, Path]:
    """Name -> where its gold lies, DATA first; {} where no source is named. given (Sequence[str]): What --gold says.

    RAISES C545: it is no NAME=PATH. C546: two sources of one name. C547: there is one source only. C056: a path that the system refuses.
    """
    found: dict[str, Path] = {}
    if given and data is not None:
        found[data.name if data.is_dir() else data.stem] = data
    for one in given:
        name, _, path = (part.strip() for part in one.partition("="))
        if not (name.isprintable() and name and path):
            raise calib_error("C545", given=one)
        if name in found:
            raise calib_error("C546", given=name)
        check_path("--gold", path)
        found[name] = Path(path)
    if len(found) == 1:
        raise calib_error("C547", given=next(iter(found)))
    return found


def go_by(pipes: Sequence[Calibrator], name: str | None, map_for: str | None) -> None:
    """Let those pipes score by the gold of a source that know it, and by a map, those that have two.

    RAISES C548: no pipe knows the source. C560: none has two maps. C056: there are no pipes.
    """
    from ...doc.gold import GoldSources

    for option, given in (("--gold-source", name), ("--map-for", map_for)):
        check_option(option, given is None or bool(pipes), "left out for a pipeline that is not calibrated", given)

    knowing = [pipe for pipe in pipes if name in pipe.fit_info.source_names]
    for pipe in knowing:
        pipe.gold_source = name
    for pipe in pipes if not knowing else ():
        GoldSources(pipe.name, pipe.fit_info.source_names).number(name)
    if map_for is None:
        return
    travelling = [pipe for pipe in pipes if pipe.tokens.portable is not None]
    if not travelling:
        raise calib_error("C560", name=pipes[0].name)
    for pipe in travelling:
        pipe.map_for = map_for


def sources_line(sources: Sequence[Mapping[str, Any]]) -> str:
    """Each source that a pipe was fitted on. sources (Sequence[Mapping]): See FitInfo."""
    return ", ".join(f"{one['name']} ({one['documents']:,} documents, {one['pairs']:,} pairs)" for one in sources)
