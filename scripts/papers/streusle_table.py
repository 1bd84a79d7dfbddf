"""Table 1 of Kranzlein et al. (2021) for STREUSLE's lextags: a CRF and a softmax head over one encoder, raw and calibrated, as Markdown.

    python ../../scripts/papers streusle_table --plot errors.png          # in configs/streusle_lsr, after its commands `convert` and `train`

As in the paper (section 4.2): scores of .01 and above, 10 adaptive bins, 5 tag frequency groups counted on train, maps learned on dev and judged
on test; SCW has one map for all tags, TFG one for each group. Beside them what the package adds: vector and matrix scaling before TFG isotonic, and
`calib fit` as it is (--method auto) for pipelines. A document is a review: all intervals resample reviews, those of differences the same ones.

The paper's numbers are of a CRF over BERT. Tables go to stdout, messages to stderr. Exit code 1 where a claim does not hold.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from frame import between, docs_in, estimated, head, make_parser, one_sentence, row, save_tables, say, verdict

import spacy_calib
from papers.reading import TagScores, read_tags
from papers.streusle_crf import SPLITS, judged_docs
from papers.streusle_pictures import NONE, TECHNIQUES, draw
from spacy_calib import TagCalibrator
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.cli.shared.examples import stream_examples
from spacy_calib.cli.shared.run import score
from spacy_calib.metrics import (
    Interval,
    brier,
    error_interval,
    log_loss,
    noise_floor,
    paired_difference,
    smce,
)
from spacy_calib.metrics.by_document import ResampledFigure, resamples
from spacy_calib.metrics.calibration_errors import group_slices
from spacy_calib.pairs.bins import assign, make_binner
from spacy_calib.pairs.documents import document_codes
from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.types import Floats, Groups, Ints, Pairs

THRESHOLD, N_BINS, N_GROUPS = 0.01, 10, 5
AUTO = "auto"
# What is fitted on arrays: name -> parameters of TagCalibrator.
FITS: dict[str, dict[str, Any]] = {
    f"{kind} {name}": {"method": method, "n_groups": n}
    for name, method in TECHNIQUES.items()
    for kind, n in (("SCW", 1), ("TFG", N_GROUPS))
} | {f"{scaling} scaling, TFG isotonic": {"method": "isotonic", "scaling": scaling} for scaling in ("vector", "matrix")}
# Table 1 of the paper, LSR: SMCE, GMCE of groups 1 and 5.
PAPER = {
    NONE: (0.0330, 0.0356, 0.0553),
    "SCW histogram": (0.0086, 0.0298, 0.0409),
    "TFG histogram": (0.0110, 0.0222, 0.0145),
    "SCW isotonic": (0.0130, 0.0161, 0.0374),
    "TFG isotonic": (0.0124, 0.0132, 0.0142),
    "SCW scaling binning": (0.0144, 0.0105, 0.0534),
    "TFG scaling binning": (0.0159, 0.0269, 0.0153),
}


# What is judged


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model and its scores. groups (Groups): The five tag frequency groups, by train. scored (dict): Pairs of test with what each
    method makes of their scores."""

    name: str
    groups: Groups
    parts: Mapping[str, TagScores]
    scored: Mapping[str, JudgedPairs]

    @property
    def raw(self) -> JudgedPairs:
        return next(iter(self.scored.values()))

    def scores(self, method: str) -> Floats:
        return self.raw.pairs.scores if method == NONE else self.scored[method].calibrated


def calibrate(
    parts: Mapping[str, TagScores], labels: Sequence[str], counts: Mapping[str, int]
) -> Iterator[tuple[str, JudgedPairs]]:
    """Each of FITS, learned on dev: (name, test judged)."""
    dev, test = parts["dev"], parts["test"]
    for name, parameters in FITS.items():
        calibrator = TagCalibrator(classes=labels, tag_counts=counts, threshold=THRESHOLD, **parameters)
        calibrator.fit(dev.chances, dev.gold, groups=dev.documents)
        yield name, calibrator.judge(test.chances, test.gold, groups=test.documents)


def automatic(folder: Path, component: str, corpus: Path) -> JudgedPairs:
    """What `calib fit` makes by itself, with context where that is no worse."""
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "calibrated"
        spacy_calib.fit(folder, corpus / "dev.spacy", out, component=component, train_data=corpus / "train.spacy")
        nlp = spacy.load(out)
    pipe: Any = nlp.get_pipe("calib")
    say(f"  auto: {pipe.fit_info.method}")
    return score(nlp, pipe, stream_examples(nlp, corpus / "test.spacy")).pairs()


def load(name: str, training: Path, corpus: Path) -> Model:
    """A model with all that is fitted to it: NAME.npz of streusle_crf.py, or the pipeline NAME/model-best."""
    say(f"{name} ...")
    file, folder = training / f"{name}.npz", training / name / "model-best"
    nlp: Any = spacy.blank("en") if file.exists() else spacy.load(folder)
    golds = {split: docs_in(corpus / f"{split}.spacy", nlp.vocab) for split in SPLITS}
    counts = Counter(token.tag_ for doc in golds["train"] for token in doc)
    examples = judged_docs(golds)
    if file.exists():
        parts = {split: read_arrays(file, split, docs) for split, docs in examples.items()}
    else:
        parts = {split: read_tags(nlp, nlp.pipe_names[-1], docs) for split, docs in examples.items()}
    labels = parts["test"].labels
    pairs_by_set = dict(calibrate(parts, labels, counts))
    if not file.exists():
        pairs_by_set[AUTO] = automatic(folder, nlp.pipe_names[-1], corpus)
    return Model(name, tag_frequency_groups(labels, counts, N_GROUPS), parts, pairs_by_set)


def read_arrays(file: Path, split: str, docs: Sequence[Any]) -> TagScores:
    with np.load(file) as arrays:
        labels = arrays["labels"].tolist()
        chances = arrays[f"chances_{split}"].astype(np.float64)
        return TagScores.from_predictions(labels, chances, [labels[i] for i in arrays[f"best_{split}"].tolist()], docs)


# Figures


@dataclass(frozen=True)
class Error:
    """A calibration error. low, high (float): 95 % interval of the true one. floor (float): 95 % quantile that true scores would show."""

    error: float
    low: float
    high: float
    floor: float


@dataclass(frozen=True)
class Row:
    """A line of the table. groups (list): GMCE of each group."""

    model: str
    method: str
    smce: Error
    groups: list[Error]
    brier: float
    log_loss: float


def error_of(pairs: Pairs, scores: Floats, documents: Ints) -> Error:
    """SMCE of these pairs; all 0 where there is none."""
    interval = error_interval(scores, pairs.hits, documents, N_BINS)
    floor = noise_floor(scores, N_BINS)
    if interval is None or floor is None:
        return Error(0.0, 0.0, 0.0, 0.0)
    return Error(smce(pairs, scores, N_BINS) or 0.0, interval.low or 0.0, interval.high or 0.0, floor.q95)


def row_of(model: Model, method: str) -> Row:
    pairs, documents, scores = model.raw.pairs, model.raw.documents, model.scores(method)
    of_groups = [
        error_of(pairs.take(method_rows), scores[method_rows], documents[method_rows])
        for method_rows in group_slices(pairs, model.groups)
    ]
    whole = error_of(pairs, scores, documents)
    return Row(model.name, method, whole, of_groups, brier(scores, pairs.hits) or 0.0, log_loss(scores, pairs.hits) or 0.0)


def against(model: Model, method: str, rival: str, share: float = 1.0) -> Interval | None:
    """GMCE of the last group under `method`, less `share` of that under `rival`, with its interval by review. Noise of the bins is in both, and
    more of it in resamples: that speaks against `method` where share is below 1."""
    method_rows = group_slices(model.raw.pairs, model.groups)[-1]
    pairs, documents = model.raw.pairs.take(method_rows), model.raw.documents[method_rows]
    bins = {}
    for name in (method, rival):
        scores = model.scores(name)[method_rows]
        bins[name] = scores - pairs.hits, assign(scores, make_binner(N_BINS)(scores))

    def error(name: str, weights: Floats) -> float:
        gaps, places = bins[name]
        sums, counts = np.bincount(places, weights * gaps), np.bincount(places, weights)
        return float(np.sqrt((sums**2 / np.maximum(counts, 1e-9)).sum() / weights.sum()))

    def difference(weights: Floats) -> float:
        return error(method, weights) - share * error(rival, weights)

    codes, n_documents = document_codes(documents, len(pairs))
    weights = (column[codes] for counts in resamples(n_documents, 1000, seed=0) for column in counts.T)
    values = np.array([difference(weight) for weight in weights])
    return ResampledFigure(difference(np.ones(len(pairs))), values, n_documents).interval()


# Claims


class Claim(NamedTuple):
    """said (str): What is claimed. verdict (str): held, not shown, not held. why (str): The figures."""

    said: str
    verdict: str
    why: str


def claims_of_accuracy(models: Sequence[Model]) -> Iterator[Claim]:
    """Of each encoder with both heads: names are ENCODER-crf and ENCODER-softmax."""
    by_name = {model.name: model for model in models}
    for name, crf in by_name.items():
        encoder, _, kind = name.rpartition("-")
        if kind == "crf" and f"{encoder}-softmax" in by_name:
            ours, rival = crf.parts["test"], by_name[f"{encoder}-softmax"].parts["test"]
            gain = paired_difference(1 - ours.right, 1 - rival.right, ours.documents)
            why = f"errors of the CRF less those of softmax {estimated(gain, '+.2f', 100)} points"
            yield Claim(f"{encoder}: the CRF is at least as accurate as softmax", verdict(gain), why)


def claims_of_groups(models: Sequence[Model], rows: Sequence[Row]) -> Iterator[Claim]:
    """Of each model: the last group's error is more than halved, or within the floor; and TFG is better there than SCW."""
    for model in models:
        method_rows = {part.method: part for part in rows if part.model == model.name}
        raw_error = method_rows[NONE].groups[-1].error
        for method in ("TFG isotonic", "TFG histogram", "TFG scaling binning", *([AUTO] if AUTO in method_rows else [])):
            last = method_rows[method].groups[-1]
            is_halved, gain = against(model, method, NONE, 0.5), against(model, method, NONE)
            at_floor = last.error <= last.floor
            why = (
                f"{raw_error:.4f} to {last.error:.4f}, floor {last.floor:.4f}{' (within)' if at_floor else ''}; "
                f"less half of raw {estimated(is_halved)}; less raw {estimated(gain)}"
            )
            claim = f"{model.name}: {method} more than halves GMCE of group 5, or reaches the floor"
            yield Claim(claim, "held" if at_floor else verdict(is_halved), why)
        for technique in TECHNIQUES:
            gain = against(model, f"TFG {technique}", f"SCW {technique}")
            claim = f"{model.name}: TFG {technique} has less GMCE in group 5 than SCW"
            yield Claim(claim, verdict(gain), f"TFG less SCW {estimated(gain)}")


# Showing


def show(models: Sequence[Model], rows: Sequence[Row], claims: Sequence[Claim]) -> None:
    likeliest = "mean probability of the likeliest tag"
    head(f"| model | accuracy train / dev / test | {likeliest} | pairs | tags | pairs in group 1 / 5 |", 3)
    for model in models:
        parts = model.parts.values()
        pairs, slices = model.raw.pairs, group_slices(model.raw.pairs, model.groups)
        right, sureness = [part.right for part in parts], [part.sureness for part in parts]
        shares = (" / ".join(f"{100 * np.mean(one):.1f}" for one in method_rows) for method_rows in (right, sureness))
        row(model.name, *shares, f"{len(pairs):,}", len(np.unique(pairs.tags)), f"{len(slices[0]):,} / {len(slices[-1]):,}")
    print()
    head("| scores | model | SMCE | GMCE 1 | GMCE 5 | interval of GMCE 5 | Brier | log loss |", 2)
    for method in (NONE, *FITS, AUTO):
        if method in PAPER:
            row(method, "the paper, BERT CRF", *(f"{one:.4f}" for one in PAPER[method]), "-", "-", "-")
        for method_rows in (one for one in rows if one.method == method):
            last = method_rows.groups[-1]
            errors = (f"{one.error:.4f} ({one.floor:.4f})" for one in (method_rows.smce, method_rows.groups[0], last))
            row(
                method,
                method_rows.model,
                *errors,
                between((last.low, last.high)),
                f"{method_rows.brier:.4f}",
                f"{method_rows.log_loss:.4f}",
            )
    print()
    head("| claim | verdict | figures |", 3)
    for claim in claims:
        row(*claim)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True, plot=True)
    parser.add_argument("models", nargs="*", help="ENCODER-crf and ENCODER-softmax; all of --training where none is named")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder with train, dev and test.spacy")
    parser.add_argument(
        "--training", type=Path, default=Path("training"), help="folder with MODEL/model-best, or MODEL.npz of streusle_crf"
    )
    parser.add_argument("--plot-groups", type=Path, help="PNG or SVG file for the paper's Figure 3; --plot is its Figure 2")
    options = parser.parse_args(arguments)
    gain = [path.parent.name for path in options.training.glob("*/model-best")] + [
        path.stem for path in options.training.glob("*.npz")
    ]
    names = options.models or sorted(gain, reverse=True)
    if not names:
        raise SystemExit(f"There is no model in {options.training}; train some first (`python -m spacy project run train`).")
    with one_sentence():
        models = [load(name, options.training, options.corpus) for name in names]
        rows = [row_of(model, method) for model in models for method in (NONE, *model.scored)]
        claims = [*claims_of_accuracy(models), *claims_of_groups(models, rows)]
        for path, by_group in ((options.plot, False), (options.plot_groups, True)):
            if path is not None:
                draw(path, models, rows, by_group)
        show(models, rows, claims)
        save_tables(options.output)
    return 0
