"""Cards: what a pretrained calibration is for, what it was fitted on, and how well it did on sources that it did not see."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np

from ...calibration.saved import UnreadableState, unpack
from ...errors import CalibError
from ...schema import InvalidState, anything, dict_of, list_of, maybe, number, record, text, whole
from .messages import calib_error

# Wheels register a function that returns a folder of cards under the name of each card in it, PIPELINE-COMPONENT.
ENTRY_POINTS = "spacy_calib_pretrained"
# By this name the parameters of a card are packed.
FORMAT = "spacy-calib-pretrained"
_FIGURES = record({"log_loss": number(), "brier": number(), "ece": number()})
# A source that the fit did not see; what else a table reports of it is for readers.
_LEFT_OUT = record(
    {"source": text, "n": whole(), "raw": _FIGURES, "calibrated": _FIGURES, "fitted_on": text},
)
# The default cut-off, and what each of CUTOFFS accepts on the sources left out.
CUTOFFS = tuple(i / 100 for i in range(1, 100))
# With fewer accepted entities no precision is reached on a source; so far may the worst source be below the mean.
_FEWEST, _SLACK = 10, 0.1
_COUNTS = list_of(whole(), len(CUTOFFS), len(CUTOFFS))
_REACHED = record({"right": whole(), "above": record({"accepted": _COUNTS, "right": _COUNTS})})
_CUTOFFS = record({"precision": number(0.0, 1.0), "cutoff": number(0.0, 1.0), "sources": list_of(_REACHED, 1)})
_PROBE = record({"sentences": list_of(text), "n": whole(1), "mean": number(), "spread": number(0.0)})
CARD = record(
    {
        "name": text, "language": text, "component": text, "labels": list_of(text), "pipeline": text, "licence": text,
        "fingerprints": dict_of(text), "settings": dict_of(anything), "parameters": text, "maps": maybe(dict_of(dict_of(number()))),
        "lists": maybe(dict_of(text)), "without_gold": list_of(text), "failing": list_of(text), "cutoffs": maybe(_CUTOFFS), "left_out": list_of(_LEFT_OUT),
        "by": text, "evidence": maybe(dict_of(dict_of(list_of(whole())))), "biases": dict_of(number(-1.0, 1.0)), "reported": text, "probe": _PROBE,
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
    def expected_bias(self) -> tuple[float, float]:
        """The 95 % predictive interval of mean score less share right on a new source, by Student's t from those left out in turn."""
        from scipy.special import stdtrit

        biases = np.array(list(self.data["biases"].values()))
        if len(biases) < 2:
            return -1.0, 1.0
        half = stdtrit(len(biases) - 1, 0.975) * biases.std(ddof=1) * np.sqrt(1 + 1 / len(biases))
        low, high = np.clip([biases.mean() - half, biases.mean() + half], -1.0, 1.0).tolist()
        return low, high

    @property
    def expected_bias_words(self) -> str:
        """The same as a sentence, and what else was reported of further sources."""
        low, high = (f"{abs(bias):.3f} too {'high' if bias > 0 else 'low'}" for bias in self.expected_bias)
        sentence = f"The mean score on texts of a new source is expected to be between {low} and {high} (95 %, by {len(self.data['biases'])} sources left out)."
        return " ".join(filter(None, (sentence, self.data["reported"])))

    def choose_cutoff(self, precision: float | None) -> dict[str, float] | None:
        """Choose the default cut-off, or that for a precision, with what it reaches, see `evaluate_cutoffs`; None for a card without.

        RAISES C839: no cut-off reaches the precision.
        """
        cutoffs = self.data["cutoffs"]
        if cutoffs is None:
            return None
        results = evaluate_cutoffs(cutoffs["sources"])
        if precision is None:
            return {"precision": cutoffs["precision"], **results[CUTOFFS.index(cutoffs["cutoff"])]}
        chosen = lowest_cutoff(cutoffs["sources"], precision, precision - _SLACK)
        if chosen is None:
            best = max(results, key=lambda result: result["mean"])
            raise calib_error(
                "C839", card=self.name, precision=precision, slack=_SLACK, mean=f"{best['mean']:.2f}", cutoff=best["cutoff"]
            )
        return {"precision": precision, **chosen}

    def state(self) -> dict[str, Any]:
        """What a pipe of this card has learned, but for what the matched pipeline adds. RAISES C831: the file is damaged."""
        file = self.folder / str(self.data["parameters"])
        try:
            return dict(unpack(zlib.decompress(file.read_bytes()), FORMAT))
        except (OSError, zlib.error, UnreadableState, ValueError) as error:
            raise calib_error("C831", card=self.name, path=file, why=error) from None


def card_folder() -> Path:
    """The cards of this package."""
    return Path(__file__).parent / "cards"


def read_card(file: Path) -> Card:
    """RAISES C831: the file cannot be read, or is no card."""
    try:
        data = json.loads(file.read_text(encoding="utf8"))
        CARD(data, "card")
    except (OSError, ValueError, InvalidState) as error:
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


def evaluate_cutoffs(sources: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return for each of CUTOFFS the "mean" and the "worst" precision of what it accepts, and the mean share "kept" of what is right.

    sources (Sequence): "right" entities of each, and "above" each cut-off how many are "accepted" and "right".
    """
    accepted, right = (np.array([source["above"][key] for source in sources]) for key in ("accepted", "right"))
    precision = np.where(accepted >= _FEWEST, right / np.maximum(accepted, 1), 0.0)
    recall = right / np.maximum([[source["right"]] for source in sources], 1)
    columns = np.stack([CUTOFFS, precision.mean(axis=0), precision.min(axis=0), recall.mean(axis=0)], axis=1)
    return [dict(zip(("cutoff", "mean", "worst", "kept"), row, strict=True)) for row in columns.tolist()]


def lowest_cutoff(sources: Sequence[Mapping[str, Any]], mean: float, worst: float, step: int = 1) -> dict[str, float] | None:
    """Return the lowest cut-off with these precisions; None if none has. step (int): Only multiples of so many hundredths are tried."""
    results = evaluate_cutoffs(sources)[step - 1 :: step]
    return next((result for result in results if result["mean"] >= mean and result["worst"] >= worst), None)
