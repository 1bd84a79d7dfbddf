"""The three parts of the experiments, fold by fold; what is in the folder already is not run again."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from papers.chains.best import best_through
from sklearn.metrics import average_precision_score

from spacy_calib.cli.shared.writing import write_file
from spacy_calib.types import Floats, Ints

from .data import Sentences
from .learning import (
    RULES,
    Tuning,
    answers,
    chains_of,
    choose_scale,
    choose_settings,
    confidences,
    counts_of,
    crf_marginals,
    train,
    train_crf,
)

PARTS = ("confidence", "learners", "pa")


@dataclass(frozen=True)
class Plan:
    """folder (Path): Of the answers. folds (int): Of the learners. quarters (int): Parts for confidence, each is judged by models of the
    others. rounds (int): Passes over training data. run (int | None): No more folds, quarters than these."""

    folder: Path
    folds: int = 10
    quarters: int = 4
    rounds: int = 10
    seed: int = 0
    run: int | None = None
    tuning: Tuning = field(default_factory=Tuning)


@dataclass(frozen=True)
class Job:
    """One file of a part."""

    part: str
    corpus: str
    number: int

    def path(self, folder: Path) -> Path:
        return folder / f"{self.part}-{self.corpus}-{self.number}.npz"


def jobs_of(plan: Plan, parts: Iterable[str], corpora: Iterable[str]) -> Iterator[Job]:
    """In the order in which they are run: each part of all corpora, a fold of one after a fold of the other."""
    numbers = {"confidence": plan.quarters, "learners": plan.folds, "pa": plan.folds}
    corpora = list(corpora)
    for part in parts:
        for number in range(min(numbers[part], plan.run or numbers[part])):
            for corpus in corpora:
                yield Job(part, corpus, number)


def run_job(job: Job, data: Sentences, plan: Plan) -> None:
    """Run it and write its file, unless it is there."""
    path = job.path(plan.folder)
    if path.exists():
        return
    began = time.process_time()
    found, notes = (run_quarter if job.part == "confidence" else run_fold)(data, plan, job)
    notes["seconds"] = round(time.process_time() - began, 1)
    held = io.BytesIO()
    np.savez_compressed(held, notes=np.array(json.dumps(notes)), **found)
    write_file(path, held.getvalue())


def read_job(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arrays, notes) of a file."""
    with np.load(path) as held:
        arrays = {name: held[name] for name in held.files}
    return arrays, json.loads(str(arrays.pop("notes")))


def parts_of(n: int, count: int, number: int, seed: int) -> tuple[Ints, Ints]:
    """(training, judged) sentences of part `number` of `count`."""
    of = np.random.default_rng(seed).permutation(n) % count
    return np.flatnonzero(of != number), np.flatnonzero(of == number)


def run_fold(data: Sentences, plan: Plan, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Table 2: COUNTS of each sentence of the fold by each learner, settings chosen on its training part. PA, which takes longest, has files of
    its own."""
    training, judged = parts_of(len(data), plan.folds, job.number, plan.seed)
    found: dict[str, Any] = {"sentences": judged}
    notes: dict[str, Any] = {"settings": {}}
    for rule in RULES:
        if (rule == "pa") != (job.part == "pa"):
            continue
        settings = choose_settings(data, training, rule, plan.seed, plan.tuning)
        learner = train(data, training, rule, plan.rounds, plan.seed, settings)
        found[f"counts_{rule}"] = counts_of(data, answers(data, learner, judged), judged)
        notes["settings"][rule] = settings
    return found, notes


def run_quarter(data: Sentences, plan: Plan, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Table 3 and figures 2 to 4: each way's confidence in each word of the quarter, by CW, and of CRFsuite."""
    training, judged = parts_of(len(data), plan.quarters, job.number, plan.seed + 1)
    settings = choose_settings(data, training, "cw", plan.seed, plan.tuning)
    precision = choose_scale(data, training, "cw", plan.rounds, plan.seed, settings, plan.tuning)
    learner, crf = train(data, training, "cw", plan.rounds, plan.seed, settings), train_crf(data, training)
    scales = {way: max(of_way, key=of_way.__getitem__) for way, of_way in precision.items()}
    gold = data.gold_of(judged)
    found: dict[str, Any] = {"sentences": judged}
    for name, one in (("cw", learner), ("crf", crf)):
        said = answers(data, one, judged)
        own = np.concatenate(said)
        found |= {f"counts_{name}": counts_of(data, said, judged), f"right_{name}": own == gold}
        if one is crf:
            found["sure_crf_crf"] = crf_marginals(data, crf, judged, own)
        else:
            sure = confidences(data, learner, judged, own, scales, plan.seed)
            found |= {"lengths": np.array([len(words) for words in said])} | {f"sure_cw_{way}": of for way, of in sure.items()}
    return found, {"settings": {"cw": settings}, "precision_by_scale": precision}


# Two readings of the paper's formula of Delta: how far below the best labelling is one with another label at a word? Of all labellings with another
# label there the best one counts (`Confidence.v1`, way delta), or only those that agree with the best labelling at all other words.


class Readings(NamedTuple):
    """words (int): That were judged. differ (float): The share of them whose gap is another one. best, alone (float): Average precision of
    finding wrong words by the gap, of each reading."""

    words: int
    differ: float
    best: float
    alone: float


def gaps_alone(scores: Floats, transitions: Floats, said: Ints) -> Floats:
    """How much a labelling loses at least where the label of one word alone is changed, of each word."""
    given = np.array(scores, dtype=np.float64)
    given[1:] += transitions[said[:-1]]
    given[:-1] += transitions[:, said[1:]].T
    return gap_of(given, said)


def gap_of(given: Floats, said: Ints) -> Floats:
    """How far the highest score of another label lies below that of the label that was said, of each row."""
    rows, others = np.arange(len(said)), np.array(given, dtype=np.float64)
    others[rows, said] = -np.inf
    return np.asarray(given[rows, said] - others.max(axis=1))


def compare_readings(data: Sentences, plan: Plan, quarter: int) -> Readings:
    """Of a quarter of the sentences, by CW of the others, as `run` has it."""
    training, judged = parts_of(len(data), plan.quarters, quarter, plan.seed + 1)
    learner = train(data, training, "cw", plan.rounds, plan.seed, choose_settings(data, training, "cw", plan.seed, plan.tuning))
    said = answers(data, learner, judged)
    own = np.concatenate(said)
    chains = chains_of(data, learner, judged)
    through = chains.unpack(best_through(chains))  # the best labelling with each label at each word
    best = np.concatenate([gap_of(one, of_words) for one, of_words in zip(through, said, strict=True)])
    transitions = learner.transitions(learner.mean)
    alone = np.concatenate([
        gaps_alone(learner.scores(learner.mean, data.rows[i]), transitions, one)
        for i, one in zip(judged.tolist(), said, strict=True)
    ])  # fmt: skip
    wrong = own != data.gold_of(judged)
    return Readings(
        len(own),
        float(np.mean(~np.isclose(best, alone))),
        float(average_precision_score(wrong, -best)),
        float(average_precision_score(wrong, -alone)),
    )
