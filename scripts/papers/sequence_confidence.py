"""Confidence in what sequence learners say: the experiments of Mejer & Crammer (2010), with calibration on top.

    python scripts/papers sequence_confidence check
    python scripts/papers sequence_confidence readings --run 1
    python scripts/papers sequence_confidence run --folder work
    python scripts/papers sequence_confidence tables --folder work --pictures pictures

`readings` compares two readings of the paper's formula of Delta. `run` writes what each learner and each way of confidence says of each
word, fold by fold, and goes on where it stopped; then it prints the tables. `tables` makes tables, claims with intervals, and pictures from those files.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from frame import head, make_parser, one_sentence, row, save_tables, say

from papers.sequences.data import CORPORA, read_sentences
from papers.sequences.learning import SCALES, Tuning
from papers.sequences.pictures import draw_all
from papers.sequences.runs import Plan, compare_readings, jobs_of, run_job
from papers.sequences.tables import read_found, show


def check(corpora: Sequence[str]) -> int:
    """Print whether the corpora are those of the paper. RETURNS (int): 1 where one is not."""
    wrong = 0
    head("| corpus | sentences | words | paper | features |")
    for name in corpora:
        data, paper = read_sentences(name), CORPORA[name]
        wrong += (len(data), data.n_words) != (paper.sentences, paper.words)
        sizes = f"{paper.sentences:,}; {paper.words:,}"
        row(name, f"{len(data):,}", f"{data.n_words:,}", sizes, f"{data.n_features:,}")
    return min(1, wrong)


def readings(corpora: Sequence[str], plan: Plan, n: int | None) -> int:
    """Print both readings of Delta, of each corpus and quarter."""
    head("| corpus | quarter | words | other gaps | average precision | within the labelling |")
    for name in corpora:
        data = read_sentences(name, n)
        for quarter in range(min(plan.quarters, plan.run or plan.quarters)):
            results = compare_readings(data, plan, quarter)
            precisions = f"{results.best:.3f}", f"{results.alone:.3f}"
            row(name, quarter + 1, f"{results.words:,}", f"{100 * results.differ:.1f} %", *precisions)
    return 0


def plan_of(options: argparse.Namespace) -> Plan:
    """Small where few sentences are read."""
    small = options.most is not None
    tuning = Tuning(100, 30, 1, SCALES[::8], 8) if small else Tuning()
    return Plan(options.folder, rounds=options.rounds, seed=options.seed, run=options.run, tuning=tuning)


def make_options() -> argparse.ArgumentParser:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("command", choices=("check", "readings", "run", "tables"))
    parser.add_argument("--corpora", nargs="+", choices=list(CORPORA), default=list(CORPORA))
    parser.add_argument("--folder", type=Path, default=Path("work"), help="Where the answers are kept")
    parser.add_argument("--run", type=int, help="No more folds or quarters than these")
    parser.add_argument("--rounds", type=int, default=10, help="Passes over the training data")
    parser.add_argument("--most", type=int, help="Read no more sentences, for a quick look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=300, help="Of sentences, for intervals")
    parser.add_argument("--pictures", type=Path, help="Folder for the pictures")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = make_options().parse_args(arguments)
    if options.command == "check":
        return check(options.corpora)
    plan = plan_of(options)
    if options.command == "readings":
        return readings(options.corpora, plan, options.most)
    if options.command == "run":
        options.folder.mkdir(parents=True, exist_ok=True)
        data = {name: read_sentences(name, options.most) for name in options.corpora}
        for job in jobs_of(plan, options.corpora):
            say(f"{job.part} {job.corpus} {job.number}")
            run_job(job, data[job.corpus], plan)
    results = [read_found(options.folder, corpus, options.samples) for corpus in options.corpora]
    for result in results:
        show(result)
    with one_sentence():
        save_tables(options.output)
        if options.pictures is not None:
            draw_all(options.pictures, results)
    return 0
