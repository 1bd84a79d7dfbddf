"""Tables and claims from the files of a run, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from frame import between, head, row

from spacy_calib.types import Floats

from .judge import FIRST, WAYS, Quarters, Sampled, ece_of, sample_counts, sample_ways, wrong_percent
from .learning import RULES, f_measure
from .runs import read_job

# F of table 2; (F, percent of wrong words) of table 3.
TABLE_2 = {
    "np": {"arow": 0.946, "cw": 0.947, "pa": 0.946, "perceptron": 0.944},
    "spanish": {"arow": 0.775, "cw": 0.774, "pa": 0.773, "perceptron": 0.756},
}
TABLE_3 = {"np": {"cw": (0.943, 2.34), "crf": (0.936, 2.66)}, "spanish": {"cw": (0.729, 4.09), "crf": (0.740, 2.05)}}
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


def learner_claims(counts: Mapping[str, list[Floats]], n_samples: int) -> Iterator[Claim]:
    """AROW >= CW >= PA >= perceptron, and AROW > perceptron, on the folds that both have. counts: Learner -> COUNTS of each sentence, of each
    fold."""
    for one, rival in (*zip(RULES, RULES[1:], strict=False), (RULES[0], RULES[-1])):
        n = min(len(counts.get(one, ())), len(counts.get(rival, ())))
        if n:
            f = sample_counts({name: counts[name][:n] for name in (one, rival)}, f_measure, n_samples)
            yield Claim(f"F: {NAMES[one]} at least {NAMES[rival]} (folds: {n})", f[one] - f[rival])


def crf_claims(corpus: str, f: Mapping[str, Sampled], wrong: Mapping[str, Sampled]) -> Iterator[Claim]:
    """Table 3: which of CW and CRF has the better F, and fewer wrong words."""
    paper = TABLE_3[corpus]
    better, worse = sorted(paper, key=lambda name: -paper[name][0])
    yield Claim(f"F: {NAMES[better]} above {NAMES[worse]}", f[better] - f[worse])
    fewer, higher = sorted(paper, key=lambda name: paper[name][1])
    yield Claim(f"wrong words, %: fewer by {NAMES[fewer]} than by {NAMES[higher]}", wrong[higher] - wrong[fewer], 2)


def way_claims(figures: Mapping[tuple[str, str], dict[str, Sampled]], random: Sampled) -> Iterator[Claim]:
    """Section 5 and its figures. figures: Of each (learner, way). random (Sampled): Share of wrong words."""
    own = {way: values for (learner, way), values in figures.items() if learner == "cw"}
    precision = {"random": random, **{way: values["average_precision"] for way, values in own.items()}}
    for name, rival in (("kbv", "random"), ("wkbv", "kbv"), ("delta", "wkbv"), ("kd_pc", "delta"), ("kd_fixed", "delta")):
        yield Claim(f"average precision: {NAMES[name]} above {NAMES[rival]}", precision[name] - precision[rival])
    for way in ("kd_pc", "kd_fixed"):
        words = f"wrong words in the first 5,000: {NAMES[way]} more than Delta (the paper: about 100 more)"
        yield Claim(words, own[way]["found"] - own["delta"]["found"], 0)
    crf = figures["crf", "crf"]
    for way, values in (("kd_fixed", own["kd_fixed"]), ("crf", crf), ("wkbv", own["wkbv"])):
        yield Claim(f"RMSE: KD-PC below {NAMES[way]}", values["rmse"] - own["kd_pc"]["rmse"])
    yield Claim("WKBV too modest: right - sure above 0", -own["wkbv"]["too_sure"])
    yield Claim("CRF too sure: sure - right above 0", crf["too_sure"])


def repair_claims(
    figures: Mapping[tuple[str, str], dict[str, Sampled]], calibrated_figures: Mapping[tuple[str, str], dict[str, Sampled]]
) -> Iterator[Claim]:
    """Whether isotonic regression makes a way truer; and whether that is as true as the CRF then."""
    for name, values in figures.items():
        yield Claim(
            f"log loss: {NAMES[name[1]]} lower after isotonic regression",
            values["log_loss"] - calibrated_figures[name]["log_loss"],
        )
    for name, values in calibrated_figures.items():
        if name[0] == "cw" and ("crf", "crf") in calibrated_figures:
            words = f"log loss, both after isotonic regression: CRF below {NAMES[name[1]]}"
            yield Claim(words, values["log_loss"] - calibrated_figures["crf", "crf"]["log_loss"])


@dataclass(frozen=True, eq=False)
class Found:
    """All numbers of one corpus.

    f (dict): Of each learner over its folds. folds (dict): How many. f_claims (list): Of learners. quarters (Quarters): Of confidence.
    f_split, wrong (dict): Of CW and CRF there. figures, after (dict): Of each (learner, way), before and after calibration.
    random (dict): Learner -> share of wrong words.
    """

    corpus: str
    f: dict[str, Sampled]
    folds: dict[str, int]
    f_claims: list[Claim]
    quarters: Quarters
    f_split: dict[str, Sampled]
    wrong: dict[str, Sampled]
    figures: dict[tuple[str, str], dict[str, Sampled]]
    after: dict[tuple[str, str], dict[str, Sampled]]
    random: dict[str, Sampled]

    @property
    def claims(self) -> dict[str, list[Claim]]:
        """By the title of a table."""
        claim_list = list(self.f_claims)
        if ("cw", "kd_pc") in self.figures:
            claim_list += [*crf_claims(self.corpus, self.f_split, self.wrong), *way_claims(self.figures, self.random["cw"])]
        return {"Claims": claim_list, "Calibration on top": list(repair_claims(self.figures, self.after))}


def read_found(folder: Path, corpus: str, n_samples: int) -> Found:
    quarters = Quarters.read(folder, corpus)
    counts: dict[str, list[Floats]] = {}
    for path in (*sorted(folder.glob(f"learners-{corpus}-*.npz")), *sorted(folder.glob(f"pa-{corpus}-*.npz"))):
        arrays, _ = read_job(path)
        for name, values in arrays.items():
            if name.startswith("counts_"):
                counts.setdefault(name[len("counts_") :], []).append(values)
    wrong = sample_counts(quarters.counts, wrong_percent, n_samples)
    random = {name: Sampled(one.estimate / 100, one.draws / 100) for name, one in wrong.items()}
    return Found(
        corpus, sample_counts(counts, f_measure, n_samples), {name: len(parts) for name, parts in counts.items()}, list(learner_claims(counts, n_samples)),
        quarters, sample_counts(quarters.counts, f_measure, n_samples), wrong,
        sample_ways(quarters.ways, n_samples), sample_ways(quarters.after, n_samples), random,
    )  # fmt: skip


def show(results: Found) -> None:
    """Print all tables of a corpus."""
    print(f"\n## {results.corpus}")
    if results.f:
        _show_learners(results)
    if results.figures:
        _show_split(results)
        _show_ways(results)
        _show_chosen(results)
    for title, claims in results.claims.items():
        if claims:
            print(f"\n{title}\n")
            head("| claim | difference | 95 % | |")
        for name in claims:
            form = f"+.{name.digits}f"
            bounds = between(name.difference.interval, form)
            row(name.words, f"{name.difference.estimate:{form}}", bounds, name.difference.verdict)


def _show_learners(results: Found) -> None:
    print()
    head("| learner | folds | F | 95 % | paper |")
    for rule in (name for name in RULES if name in results.f):
        values, paper = results.f[rule], f"{TABLE_2[results.corpus][rule]:.3f}"
        row(NAMES[rule], results.folds[rule], f"{values.estimate:.4f}", between(values.interval), paper)


def _show_split(results: Found) -> None:
    print()
    head("| learner | F | paper | wrong words | paper |")
    for name, (f, wrong) in TABLE_3[results.corpus].items():
        if name in results.wrong:
            ours = f"{results.f_split[name].estimate:.4f}", f"{results.wrong[name].estimate:.2f} %"
            row(NAMES[name], ours[0], f"{f:.3f}", ours[1], f"{wrong:.2f} %")


def _show_ways(results: Found) -> None:
    print()
    titles = f"average precision | wrong of first {FIRST:,} | RMSE | after | sure - right | log loss | after | ECE | after |"
    head(f"| learner | confidence | {titles}", 2)
    for learner in ("cw", "crf"):
        if learner in results.random:
            row(NAMES[learner], "random", f"{results.random[learner].estimate:.3f}", *"-" * 8)
        for way in (one for one in WAYS if (learner, one) in results.figures):
            name = learner, way
            one, calibrated_figures = (
                {key: values.estimate for key, values in of[name].items()} for of in (results.figures, results.after)
            )
            errors = (f"{ece_of(ways[name]):.4f}" for ways in (results.quarters.ways, results.quarters.after))
            rmse = f"{one['rmse']:.3f}", f"{calibrated_figures['rmse']:.3f}", f"{one['too_sure']:+.4f}"
            losses = f"{one['log_loss']:.4f}", f"{calibrated_figures['log_loss']:.4f}"
            row(NAMES[learner], NAMES[way], f"{one['average_precision']:.3f}", f"{one['found']:,.0f}", *rmse, *losses, *errors)


def _show_chosen(results: Found) -> None:
    print()
    head("| quarter | phi | scale of KD-PC | of KD-Fixed |", 0)
    for number, notes in enumerate(results.quarters.notes, 1):
        scales = (max(learner, key=learner.__getitem__) for learner in notes["precision_by_scale"].values())
        row(number, notes["settings"]["cw"]["phi"], *(f"{float(scale):.4f}" for scale in scales))
