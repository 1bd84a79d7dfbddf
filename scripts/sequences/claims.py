"""The claims of Mejer & Crammer (2010), each with the interval of a difference: held where it lies on the claimed side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from spacy_calib.types import Floats

from .judge import Sampled, f_measure, sample_counts
from .learning import RULES

# F of table 2; (F, percent of wrong words) of table 3.
TABLE_2 = {
    "np": {"arow": 0.946, "cw": 0.947, "pa": 0.946, "perceptron": 0.944},
    "spanish": {"arow": 0.775, "cw": 0.774, "pa": 0.773, "perceptron": 0.756},
}
TABLE_3 = {
    "np": {"cw": (0.943, 2.34), "crf": (0.936, 2.66)},
    "spanish": {"cw": (0.729, 4.09), "crf": (0.740, 2.05)},
}
NAMES = {
    "arow": "AROW", "cw": "CW", "pa": "5-best PA", "perceptron": "perceptron", "crf": "CRF", "kd_pc": "KD-PC", "kd_fixed": "KD-Fixed",
    "delta": "Delta", "wkbv": "WKBV", "kbv": "KBV", "random": "random",
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """words (str): What the paper says. difference (Sampled): Greater than 0 where it is so. digits (int): Of the number printed."""

    words: str
    difference: Sampled
    digits: int = 4

    def row(self) -> dict[str, Any]:
        low, high = self.difference.interval
        figures = {"difference": self.difference.estimate, "low": low, "high": high}
        return {"claim": self.words, **figures, "verdict": self.difference.verdict}


def learner_claims(counts: Mapping[str, list[Floats]], n_samples: int) -> Iterator[Claim]:
    """AROW >= CW >= PA >= perceptron, and AROW > perceptron, on the folds that both have. counts: Learner -> COUNTS of each sentence, of each
    fold."""
    for one, other in (*zip(RULES, RULES[1:], strict=False), (RULES[0], RULES[-1])):
        n = min(len(counts.get(one, ())), len(counts.get(other, ())))
        if n:
            f = sample_counts({name: counts[name][:n] for name in (one, other)}, f_measure, n_samples)
            yield Claim(f"F: {NAMES[one]} at least {NAMES[other]} (folds: {n})", f[one] - f[other])


def crf_claims(corpus: str, f: Mapping[str, Sampled], wrong: Mapping[str, Sampled]) -> Iterator[Claim]:
    """Table 3: which of CW and CRF has the better F, and fewer wrong words."""
    paper = TABLE_3[corpus]
    better, worse = sorted(paper, key=lambda name: -paper[name][0])
    yield Claim(f"F: {NAMES[better]} above {NAMES[worse]}", f[better] - f[worse])
    fewer, more = sorted(paper, key=lambda name: paper[name][1])
    yield Claim(f"wrong words, %: fewer by {NAMES[fewer]} than by {NAMES[more]}", wrong[more] - wrong[fewer], 2)


def way_claims(figures: Mapping[tuple[str, str], dict[str, Sampled]], random: Sampled) -> Iterator[Claim]:
    """Section 5 and its figures. figures: Of each (learner, way). random (Sampled): Share of wrong words."""
    own = {way: values for (of, way), values in figures.items() if of == "cw"}
    precision = {"random": random, **{way: values["average_precision"] for way, values in own.items()}}
    for one, other in (("kbv", "random"), ("wkbv", "kbv"), ("delta", "wkbv"), ("kd_pc", "delta"), ("kd_fixed", "delta")):
        yield Claim(f"average precision: {NAMES[one]} above {NAMES[other]}", precision[one] - precision[other])
    for way in ("kd_pc", "kd_fixed"):
        words = f"wrong words in the first 5,000: {NAMES[way]} more than Delta (the paper: about 100 more)"
        yield Claim(words, own[way]["found"] - own["delta"]["found"], 0)
    crf = figures["crf", "crf"]
    for way, values in (("kd_fixed", own["kd_fixed"]), ("crf", crf), ("wkbv", own["wkbv"])):
        yield Claim(f"RMSE: KD-PC below {NAMES[way]}", values["rmse"] - own["kd_pc"]["rmse"])
    yield Claim("WKBV too modest: right - sure above 0", -own["wkbv"]["too_sure"])
    yield Claim("CRF too sure: sure - right above 0", crf["too_sure"])


def repair_claims(
    figures: Mapping[tuple[str, str], dict[str, Sampled]], after: Mapping[tuple[str, str], dict[str, Sampled]]
) -> Iterator[Claim]:
    """Whether isotonic regression makes a way truer; and whether that is as true as the CRF then."""
    for name, values in figures.items():
        yield Claim(f"log loss: {NAMES[name[1]]} lower after isotonic regression", values["log_loss"] - after[name]["log_loss"])
    for name, values in after.items():
        if name[0] == "cw" and ("crf", "crf") in after:
            words = f"log loss, both after isotonic regression: CRF below {NAMES[name[1]]}"
            yield Claim(words, values["log_loss"] - after["crf", "crf"]["log_loss"])


def over_folds(one: list[float], other: list[float]) -> tuple[float, float]:
    """95 % interval of the mean difference, paired by fold (Student's t, as the paper tests it)."""
    differences = np.array(one) - np.array(other)
    if len(differences) < 2:
        return (float("-inf"), float("inf"))
    half = student.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)
