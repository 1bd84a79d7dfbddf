"""The options of `spacy calib evaluate`, and what each of its outputs is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ...errors import calib_error
from ..shared.checks import check_option
from ..shared.command import option
from ..shared.options import Format, OnlyAttr
from ..shared.outputs import PICTURES, Output, is_stream
from ..shared.run import Run

PAGES = (".html", ".htm")
KINDS = ("reliability", "top", "groups", "errors", "coverage")
# --unit -> what is judged.
UNITS = {"token": "tokens", "entity": "entities", "document": "documents"}


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Run):
    """What `evaluate` judges, by what, and what it makes of it."""

    needs_gold = True

    output: Annotated[
        list[Path],
        option(
            "File for the result, by suffix: .json the numbers, .html a page, .png, .svg or .pdf a picture; a folder gets all "
            "pictures (may be repeated)",
            "-o",
        ),
    ] = field(default_factory=list)  # type: ignore[assignment]
    kind: Annotated[
        str | None,
        option("Which picture", "-k", words=(*KINDS, "all"), show_default="reliability; in a folder all, beside --tag none"),
    ] = None
    tags: Annotated[list[str], option("A picture of this tag (may be repeated)", "--tag", "-T")] = field(default_factory=list)
    unit: Annotated[
        str | None,
        option("What pictures are of", "-u", words=tuple(UNITS), show_default="entity or document where the pipe scores them"),
    ] = None
    attr: OnlyAttr = None
    component: Annotated[
        str | None,
        option(
            "Judge this component, by its raw scores where it is not calibrated",
            "-C",
            show_default="all fitted pipes; where there is none, the tagger",
        ),
    ] = None
    bins: Annotated[
        int | None, option("Number of bins, of equally many scores each; else that of the fit", "-b", show_default="10")
    ] = None
    by: Annotated[
        str | None,
        option(
            "Judge by itself, too, each part of the data whose documents share a value of this key, as genre or year: of Doc.user_data, or a function of calib_keys",
            metavar="KEY",
        ),
    ] = None
    against: Annotated[
        str | None,
        option("Another pipeline, calibrated or not: is it better on this gold, and where is it worse?", metavar="OTHER"),
    ] = None
    find_slices: Annotated[bool, option("Search for parts of the data whose scores are off")] = False
    groups: Annotated[
        int | None, option("Judge by this many groups of about equally frequent tags; else by those of the fit")
    ] = None
    format: Format = "table"

    def __post_init__(self) -> None:
        given: Any = self.output
        paths = [] if given is None else [given] if isinstance(given, (str, Path)) else given
        object.__setattr__(self, "output", [Path(path) for path in paths])
        super().__post_init__()

    def check_options(self) -> None:
        """RAISES C056: an output of another kind, or options that do not go together. C097: one file for several pictures."""
        for path in self.output:
            wanted = "a file that ends in .json, .html, .png, .svg or .pdf, or a folder for pictures"
            check_option("--output", kind_of(path) != "", wanted, path)
        self.pictures  # noqa: B018  (names what is asked for)

    @property
    def pages(self) -> list[Path]:
        """The files of the page."""
        return [path for path in self.output if kind_of(path) == "page"]

    @property
    def pictures(self) -> list[tuple[str, Path]]:
        """Name and file of each picture. RAISES C097: one file for several pictures."""
        found = []
        for path in self.output:
            kind = kind_of(path)
            if kind == "pictures":
                found += [(name, path / f"{name}.png") for name in self.names(KINDS)]
            elif kind == "picture":
                names = self.names(KINDS[:1])
                if len(names) > 1:
                    raise calib_error("C097", path=path, pictures=", ".join(names))
                found.append((names[0], path))
        return found

    def names(self, default: Sequence[str] = ()) -> list[str]:
        """The pictures that are asked for. default (Sequence[str]): Where no option says which."""
        if self.kind is None:
            kinds = [] if self.tags else list(default)
        else:
            kinds = list(KINDS) if self.kind == "all" else [self.kind]
        return [*kinds, *(["tags"] if self.tags else [])]

    def outputs(self) -> list[Output]:
        plain = [path for path in self.output if kind_of(path) in ("numbers", "page")]
        return [Output("--output", path) for path in (*plain, *(path for _, path in self.pictures))]


def kind_of(path: Path) -> str:
    """What a file is to hold, by its suffix: "numbers", "page", "picture", of a folder "pictures"; "" of any other."""
    kinds = {".json": "numbers", **dict.fromkeys(PAGES, "page"), **dict.fromkeys(PICTURES, "picture")}
    if is_stream(path):
        return "numbers"
    return kinds.get(path.suffix.lower()) or ("pictures" if path.is_dir() or not path.suffix else "")
