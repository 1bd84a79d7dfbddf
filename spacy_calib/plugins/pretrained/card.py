"""Cards: what a pretrained calibration is for, what it was fitted on, and how well it did on sources that it did not see."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ...calibration.saved import Unreadable, unpack
from ...errors import CalibError
from ...schema import Misfit, anything, keyed, listed, maybe, number, record, text, whole
from .messages import calib_error

# Wheels register a function that returns a folder of cards under the name of each card in it, PIPELINE-COMPONENT.
ENTRY_POINTS = "spacy_calib_pretrained"
# By this name the parameters of a card are packed.
FORMAT = "spacy-calib-pretrained"
_FIGURES = record({"log_loss": number(), "brier": number(), "ece": number()})
# A source that was left out; what else a table says of it is for readers.
_LEFT_OUT = record(
    {"source": text, "n": whole(), "raw": _FIGURES, "calibrated": _FIGURES, "fitted_on": text},
)
_PROBE = record({"sentences": listed(text), "n": whole(1), "mean": number(), "spread": number(0.0)})
CARD = record(
    {
        "name": text, "language": text, "component": text, "labels": listed(text), "pipeline": text, "licence": text,
        "fingerprints": keyed(text), "settings": keyed(anything), "parameters": text, "maps": maybe(keyed(keyed(number()))),
        "without_gold": listed(text), "failing": listed(text), "cutoffs": maybe(keyed(anything)), "left_out": listed(_LEFT_OUT), "probe": _PROBE,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A card as its file says. folder (Path): Where it and its parameters are. data (Mapping): All that it says."""

    folder: Path
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def component(self) -> str:
        return str(self.data["component"])

    @property
    def attr(self) -> str:
        """The name of its pipe, and the prefix of the attributes."""
        return str(self.data["settings"]["attr"])

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the component."""
        return tuple(self.data["labels"])

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest error of calibration (ECE) on sources that the fit did not see."""
        errors = [row["calibrated"]["ece"] for row in self.data["left_out"]]
        return (min(errors), max(errors)) if errors else (0.0, 0.0)

    def state(self) -> dict[str, Any]:
        """What a pipe of this card has learned, but for what the matched pipeline adds. RAISES C831: the file is damaged."""
        file = self.folder / str(self.data["parameters"])
        try:
            return dict(unpack(zlib.decompress(file.read_bytes()), FORMAT))
        except (OSError, zlib.error, Unreadable, ValueError) as error:
            raise calib_error("C831", card=self.name, path=file, why=error) from None

    def is_for(self, language: str, component: str, labels: Sequence[str]) -> bool:
        """Whether it is for this component of a pipeline: the same language, name and labels."""
        return (self.data["language"], self.component, self.labels) == (language, component, tuple(labels))


def card_folder() -> Path:
    """The cards of this package."""
    return Path(__file__).parent / "cards"


def read_card(file: Path) -> Card:
    """RAISES C831: the file cannot be read, or is no card."""
    try:
        data = json.loads(file.read_text(encoding="utf8"))
        CARD(data, "card")
    except (OSError, ValueError, Misfit) as error:
        raise calib_error("C831", card=file.stem, path=file, why=error) from None
    return Card(file.parent, data)


def all_cards() -> Iterator[Card]:
    """The cards of all installed packages, ours first.

    RAISES C831: see `read_card`. C832: a package registers what is no folder of cards.
    """
    functions: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.module != __name__, point.name)):
        functions.setdefault(point.value, point)
    for point in functions.values():
        try:
            folder = Path(point.load()())
            files = sorted(file for file in folder.iterdir() if file.suffix == ".json")
        except CalibError:
            raise
        except Exception as error:  # whatever the module of another package raises
            raise calib_error("C832", name=point.name, value=point.value, why=f"{type(error).__name__}: {error}") from None
        yield from map(read_card, files)


def find_card(name: str | Path) -> Card:
    """The card of this name, or in this JSON file. RAISES C831: see `read_card`. C833: there is none."""
    if str(name).endswith(".json"):
        return read_card(Path(name))
    cards = list(all_cards())
    for card in cards:
        if card.name == name:
            return card
    raise calib_error("C833", given=name, known=", ".join(card.name for card in cards) or "none")
