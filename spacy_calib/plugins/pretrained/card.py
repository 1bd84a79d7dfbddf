"""Cards of pretrained calibrations: their pipeline, their fit data, and their quality on left-out sources."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from ...calibration.saved import UnreadableState, unpack
from ...errors import CalibError
from ...schema import MAX_DEPTH, InvalidState, anything, dict_of, list_of, maybe, nested_values, number, record, text, whole
from .messages import calib_error

# A package registers a function that returns its folder of cards, under the name of each card, PIPELINE-COMPONENT.
ENTRY_POINTS = "spacy_calib_pretrained"
FORMAT = "spacy-calib-pretrained"  # format name of packed parameters
_MAX_SIZE = 1 << 24  # maximum bytes of a file of a card, and of what its parameters unpack to
_FIGURES = record({"log_loss": number(), "brier": number(), "ece": number()})
# A source that the fit did not see, with at least these fields.
_LEFT_OUT = record({"source": text, "n": whole(), "raw": _FIGURES, "calibrated": _FIGURES, "fitted_on": text})
CUTOFFS = tuple(i / 100 for i in range(1, 100))  # the cut-offs whose precision a card has
# Fewer accepted entities than this count as precision 0 on a source; the worst source may be this much below the mean.
_MIN_ACCEPTED, _SLACK = 10, 0.1
_COUNTS = list_of(whole(), len(CUTOFFS), len(CUTOFFS))
_SOURCE_COUNTS = record({"right": whole(), "above": record({"accepted": _COUNTS, "right": _COUNTS})})
_CUTOFFS = record({"precision": number(0.0, 1.0), "cutoff": number(0.0, 1.0), "sources": list_of(_SOURCE_COUNTS, 1)})
_PROBE = record({"sentences": list_of(text), "n": whole(1), "mean": number(), "spread": number(0.0)})
CARD = record(
    {
        "checksum": text, "name": text, "language": text, "component": text, "labels": list_of(text), "pipeline": text,
        "licence": text, "fingerprints": dict_of(text), "settings": dict_of(anything), "parameters": text,
        "maps": maybe(dict_of(dict_of(number()))),
        "lists": maybe(dict_of(text)), "judged_exact": maybe(list_of(record({"bias": number(-1.0, 1.0)}))),
        "failing": list_of(text), "cutoffs": maybe(_CUTOFFS), "left_out": list_of(_LEFT_OUT),
        "by": text, "evidence": maybe(dict_of(dict_of(list_of(whole())))), "biases": dict_of(number(-1.0, 1.0)),
        "probe": _PROBE,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A pretrained calibration. folder (Path): Folder of its files. data (Mapping): Content of its JSON file (schema: CARD)."""

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
        """Name of the calib pipe that the card makes, and prefix of its attributes: "calib" for `Token._.calib_score`."""
        return str(self.data["settings"]["attr"])

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.data["labels"])

    @property
    def expected_bias(self) -> tuple[float, float]:
        """95 % prediction interval of the bias (mean score minus share right) on a new source, by Student's t."""
        from scipy.special import stdtrit

        biases = np.array(list(self.data["biases"].values()))
        if len(biases) < 2:  # no estimate of their spread: any bias is possible
            return -1.0, 1.0
        half_width = stdtrit(len(biases) - 1, 0.975) * biases.std(ddof=1) * np.sqrt(1 + 1 / len(biases))
        low, high = np.clip([biases.mean() - half_width, biases.mean() + half_width], -1.0, 1.0).tolist()
        return low, high

    @property
    def expected_bias_words(self) -> str:
        """Sentences that state the expected bias, and what counts as right."""
        low, high = map(_in_words, self.expected_bias)
        sentences = f"The mean score on texts of a new source is expected to be between {low} and {high} "
        sentences += f"(95 % prediction interval, from {self.biases_in_words})."
        if exact_biases := [row["bias"] for row in self.data.get("judged_exact") or ()]:
            by_exact = f"{_in_words(min(exact_biases))} to {_in_words(max(exact_biases))}"
            sentences += " An entity is right also if a leading article (the, a, an) is missing or added; "
            sentences += f"by exact spans the mean score was {by_exact} on these sources."
        return sentences

    @property
    def biases_in_words(self) -> str:
        """The data from which the expected bias is estimated, as words in a sentence."""
        return f"{len(self.data['biases'])} sources, each left out of a fit once"

    def choose_cutoff(self, precision: float | None) -> dict[str, float] | None:
        """Return the lowest cut-off with at least this precision of accepted entities; None takes the card's default one.

        RETURNS (dict | None): "precision" (requested), "cutoff"; "mean", "worst": mean and lowest precision on the card's
            sources; "kept": mean share of the right entities that are accepted. None if the card has no cut-offs.
        RAISES C839: no cut-off has this mean precision, with at most .1 less on the worst source.
        """
        cutoffs = self.data["cutoffs"]
        if cutoffs is None:
            return None
        results = evaluate_cutoffs(cutoffs["sources"])
        if precision is None:
            return {"precision": cutoffs["precision"], **results[CUTOFFS.index(cutoffs["cutoff"])]}
        lowest = lowest_cutoff(cutoffs["sources"], mean=precision, worst=precision - _SLACK)
        if lowest is None:
            best = max(results, key=lambda result: result["mean"])
            raise calib_error(
                "C839", card=self.name, precision=precision, slack=_SLACK, mean=f"{best['mean']:.2f}", cutoff=best["cutoff"]
            )
        return {"precision": precision, **lowest}

    def state(self) -> dict[str, Any]:
        """Return the learned state for a calib pipe, except fields that depend on its pipeline. RAISES C831: a damaged file."""
        file = self.folder / str(self.data["parameters"])
        try:
            return dict(unpack(_inflate(_read_bytes(file)), FORMAT))
        except (OSError, zlib.error, UnreadableState, ValueError) as error:
            raise calib_error("C831", card=self.name, path=file, why=error) from None


def _in_words(bias: float) -> str:
    """Return a bias as a text, such as "0.020 too high"."""
    return f"{abs(bias):.3f} too {'high' if bias > 0 else 'low'}"


def card_folder() -> Path:
    """Return the folder with the cards of this package."""
    return Path(__file__).parent / "cards"


def read_card(file: Path) -> Card:
    """Read a card from its JSON file. RAISES C831: the file cannot be read, is no card, or does not match its checksum."""
    try:
        data = json.loads(_read_bytes(file).decode("utf8"))
        if any(depth > MAX_DEPTH for _, depth in nested_values(data)):
            raise RecursionError(f"it is nested more than {MAX_DEPTH} deep")
        CARD({"judged_exact": None, **data}, "card")  # raises InvalidState; some cards have no "judged_exact"
        if with_checksum(data, file.parent) != data:
            raise ValueError("the checksum does not match")
    except (OSError, ValueError, RecursionError, InvalidState) as error:
        raise calib_error("C831", card=file.stem, path=file, why=error) from None
    return Card(file.parent, data)


def with_checksum(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a card's content with a new checksum. It covers the content and, if `folder` has their file, the parameters."""
    content = json.dumps({**data, "checksum": ""}, sort_keys=True).encode()
    file = folder / str(data["parameters"])
    parameters = _read_bytes(file) if file.is_file() else b""
    return {**data, "checksum": hashlib.sha256(content + parameters).hexdigest()}


def _read_bytes(file: Path) -> bytes:
    """Read a file of a card. RAISES ValueError: it is too large to be one."""
    if file.stat().st_size > _MAX_SIZE:
        raise ValueError(f"it has more than {_MAX_SIZE:,} bytes")
    return file.read_bytes()


def _inflate(data: bytes) -> bytes:
    """Unpack parameters. RAISES ValueError: they are too large, or cut off. zlib.error: damaged."""
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(data, _MAX_SIZE)
    if not unpacker.eof:
        raise ValueError(f"it is cut off, or unpacks to more than {_MAX_SIZE:,} bytes")
    return content


def all_cards() -> Iterator[Card]:
    """Yield our cards, then the ones that packages register. RAISES C831: unreadable card. C832: a package gives no folder."""
    yield from map(read_card, sorted(card_folder().glob("*.json")))
    # A package registers its one function under the name of each of its cards.
    for point in {point.value: point for point in entry_points(group=ENTRY_POINTS)}.values():
        try:
            folder = Path(point.load()())
            files = sorted(file for file in folder.iterdir() if file.suffix == ".json")
        except CalibError:
            raise
        except Exception as error:  # anything that another package's module may raise
            raise calib_error("C832", name=point.name, value=point.value, why=f"{type(error).__name__}: {error}") from None
        yield from map(read_card, files)


def find_card(name: str | Path) -> Card:
    """Return the card with a name, or in a JSON file. RAISES C831: it cannot be read. C833: there is no such card."""
    if str(name).endswith(".json"):
        return read_card(Path(name))
    cards = list(all_cards())
    for card in cards:
        if card.name == name:
            return card
    raise calib_error("C833", given=name, known=", ".join(card.name for card in cards) or "none")


def evaluate_cutoffs(sources: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return the precision and recall at each of CUTOFFS on some sources, which are data sets that the fit did not see.

    sources (Sequence): Each has "right", its number of right entities, and "above", two lists with a number for each cut-off:
    "accepted" entities, and "right" ones among them. RETURNS (list[dict]): "cutoff"; "mean", "worst": mean and lowest precision
    of the sources, 0 if fewer than 10 entities are accepted; "kept": mean share of the right entities that are accepted.
    """
    n_accepted, n_right = (np.array([source["above"][key] for source in sources]) for key in ("accepted", "right"))
    precision = np.where(n_accepted >= _MIN_ACCEPTED, n_right / np.maximum(n_accepted, 1), 0.0)  # (n_sources, n_cutoffs)
    recall = n_right / np.maximum([[source["right"]] for source in sources], 1)
    columns = np.stack([CUTOFFS, precision.mean(axis=0), precision.min(axis=0), recall.mean(axis=0)], axis=1)
    return [dict(zip(("cutoff", "mean", "worst", "kept"), row, strict=True)) for row in columns.tolist()]


def lowest_cutoff(sources: Sequence[Mapping[str, Any]], mean: float, worst: float, step: int = 1) -> dict[str, float] | None:
    """Return the lowest cut-off with at least this mean and worst precision over the sources, or None if none has.

    sources (Sequence): Counts of each source, as for `evaluate_cutoffs`. step (int): Distance of the cut-offs to try, in
    hundredths: 5 tries .05, .10 ... RETURNS (dict | None): "cutoff"; its "mean" and "worst" precision; "kept": mean recall.
    """
    results = evaluate_cutoffs(sources)[step - 1 :: step]  # the first of CUTOFFS is .01
    return next((result for result in results if result["mean"] >= mean and result["worst"] >= worst), None)
