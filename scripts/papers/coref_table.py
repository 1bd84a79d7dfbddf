"""Coreference on GUM, after Nguyen & O'Connor (2015), section 5: how near the clusters come to the gold, and how true the probabilities of pairs are.

    python scripts/papers coref_table en_core_web_sm corpus/dev.spacy --train corpus/train.spacy --output dev.json --plot dev.png

The files are those of configs/gum_coref/scripts/convert.py: gold words and gold mentions. MODEL is a pipeline whose annotation the resolver reads. The
penalty (unless it is given) and the calibration of pairs come from cross-validation over the train documents, and nothing is chosen on DATA. All pairs of mentions are
judged: raw by their exact probability, calibrated, or below .01 by the share of such pairs of their kinds. Intervals resample documents. The same once more with
the mentions that the pipeline finds itself: of pairs those whose two mentions are in the gold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import bare, between, docs_in, estimated, head, make_parser, row, save_tables
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from tqdm import tqdm

from papers.coref.calibration import PairCalibration
from papers.coref.figures import FIGURES, NOTHING, Shares
from papers.coref.mentions import aligned_gold, clusters_in
from papers.coref.pairs import pair_probabilities
from papers.coref.resolver import MENTIONS, PREFIX, SPEAKERS, Resolver, clusters_of_several
from spacy_calib.metrics import brier, calibration_error, log_loss, noise_floor, resample_error
from spacy_calib.pairs.documents import folds_of
from spacy_calib.types import Floats, Ints

# Of Nguyen & O'Connor (2015), section 4 and figure 5.
BIN_SIZE, PAPER = 5000, 0.0087
LEAST = 0.01
# Adaptive bins of the pairs that reach LEAST.
_BINS = 10
_FOLDS = 5
# What the picture shows larger: probabilities and shares.
_CORNER = ((0.0, 0.16), (0.0, 0.26))


@dataclass(eq=False)
class Judged:
    """Every pair of mentions of all documents: its probabilities, whether it is one in the gold, its document; and the clusters' figures."""

    raw: list[Floats] = field(default_factory=list)
    calibrated: list[Floats] = field(default_factory=list)
    hits: list[Any] = field(default_factory=list)
    documents: list[Ints] = field(default_factory=list)
    figures: dict[str, Shares] = field(default_factory=lambda: dict.fromkeys(FIGURES, NOTHING))
    names: list[str] = field(default_factory=list)
    genres: list[str] = field(default_factory=list)
    # Mentions: of the predicted Docs, of those that are in the gold, of the gold.
    mentions: Ints = field(default_factory=lambda: np.zeros(3, dtype=np.intp))
    words: int = 0
    seconds: float = 0.0


def examples_of(nlp: Language, file: Path, gold_mentions: bool = True) -> Iterator[Example]:
    """Gold documents, with the same words and speakers on the predicted Doc, the same mentions or none, and nothing else."""
    for gold in docs_in(file, nlp.vocab):
        doc = bare(gold)
        for key in [SPEAKERS, *([MENTIONS] if gold_mentions else [])]:
            doc.spans[key] = [Span(doc, span.start, span.end, span.label) for span in gold.spans.get(key, ())]
        yield Example(doc, gold)


def train(nlp: Language, file: Path, penalty: float | None) -> Resolver:
    """Annotate the documents, and learn."""
    docs, golds, began = [], [], time.process_time()
    for example in tqdm(examples_of(nlp, file), desc="Reading", disable=None):
        docs.append(annotate(nlp, example.predicted))
        golds.append(aligned_gold(example, PREFIX, MENTIONS))
    resolver = Resolver(penalty).fit(docs, golds)
    took = time.process_time() - began
    size = f"{len(resolver.weights):,} weights, penalty {resolver.penalty:g}"
    print(f"Trained on {len(docs)} documents in {took:.0f} s of CPU time: {size}.")
    return resolver


def annotate(nlp: Language, doc: Doc) -> Doc:
    for _, pipe in nlp.pipeline:
        doc = pipe(doc)
    return doc


def evaluate_held_out(pipe: Resolver) -> None:
    """Pairs of the train documents by weights that did not see them, calibrated by maps that did not see them either."""
    documents = pipe.held_out
    folds = folds_of(np.arange(len(documents)), min(_FOLDS, len(documents)))
    calibrated_scores: list[Floats] = []
    for document, fold in zip(documents, folds, strict=True):
        train_docs = [candidate for candidate, other_fold in zip(documents, folds, strict=True) if other_fold != fold]
        maps = PairCalibration.fit(train_docs)
        calibrated_scores.append(maps.predict(document.pairs, document.grouping))
    scores = {
        "raw": np.concatenate([document.pairs.probabilities for document in documents]),
        "calibrated": np.concatenate(calibrated_scores),
    }
    hits = np.concatenate([document.hits(*document.ends) for document in documents])
    numbers = np.repeat(np.arange(len(documents)), [len(document.pairs) for document in documents])
    name = f"Train documents, held out: pairs of .01 and more, {_BINS} adaptive bins"
    errors_of(name, scores, hits, numbers, n_bins=_BINS)


def judge(nlp: Language, pipe: Resolver, file: Path, gold_mentions: bool = True) -> Judged:
    results = Judged()
    examples = examples_of(nlp, file, gold_mentions)
    for number, example in enumerate(tqdm(examples, desc="Judging", disable=None)):
        doc = annotate(nlp, example.predicted)
        began = time.process_time()
        view = pipe.resolve(doc)
        results.seconds += time.process_time() - began
        results.words += len(doc)
        results.names.append(str(example.reference.user_data.get("id", number)))
        results.genres.append(str(example.reference.user_data.get("genre", "")))
        gold = aligned_gold(example, PREFIX, MENTIONS)
        bounds = zip(view.mentions.starts.tolist(), view.mentions.ends.tolist(), strict=True)
        is_gold = np.array([bound in gold for bound in bounds], dtype=bool)
        results.mentions += [len(is_gold), is_gold.sum(), len(gold)]
        clusters = clusters_in(view.mentions, gold)
        later, earlier = np.tril_indices(len(view.mentions), -1)
        in_gold = is_gold[later] & is_gold[earlier]
        later, earlier = later[in_gold], earlier[in_gold]
        results.raw.append(pair_probabilities(view.antecedents).matrix()[later, earlier])
        results.calibrated.append(view.matrix()[later, earlier])
        results.hits.append(clusters[later] == clusters[earlier])
        results.documents.append(np.full(len(later), number))
        for name, figure in FIGURES.items():
            results.figures[name] += figure(view.clusters, clusters_of_several(gold))
    return results


def errors_of(name: str, scores: dict[str, Floats], hits: Any, documents: Ints, **bins: int) -> None:
    """Print the calibration error of raw and calibrated scores, each with interval and noise floor, and their difference."""
    print(f"\n**{name}**: {len(hits):,} pairs, {np.mean(hits):.2%} in one cluster\n")
    head("| pairs | error | 95 % interval of the true error | noise floor, 95 % quantile | log loss | Brier |")
    errors: dict[str, Any] = {kind: resample_error(values, hits, documents, **bins) for kind, values in scores.items()}
    for kind, values in scores.items():
        interval, floor = errors[kind].interval(), noise_floor(values, **bins)
        assert floor is not None
        losses = log_loss(values, hits) or 0.0, brier(values, hits) or 0.0
        cells = f"{errors[kind].estimate:.4f}", between((interval.low, interval.high)), f"{floor.mean:.4f}, {floor.q95:.4f}"
        row(kind, *cells, *(f"{document:.5f}" for document in losses))
    print(f"\ncalibrated less raw: {estimated(errors['calibrated'].difference(errors['raw']), '.4f')}")


def show(results: Judged) -> None:
    """Print everything."""
    print()
    head("| clusters of two or more | precision | recall | F |")
    for name, shares in results.figures.items():
        row(name.upper(), *(f"{document:.3f}" for document in (shares.p, shares.r, shares.f)))
    ours, counts, gold = results.mentions.tolist()
    print(f"\n{ours:,} mentions, {counts:,} of them among the {gold:,} of the gold.")
    columns = (results.raw, results.calibrated, results.hits, results.documents)
    raw, calibrated_scores, hits, documents = (np.concatenate(values) for values in columns)
    scores = {"raw": raw, "calibrated": calibrated_scores}
    errors_of(f"All pairs, bins of {BIN_SIZE:,} (paper: {PAPER})", scores, hits, documents, bin_size=BIN_SIZE)
    rows = np.flatnonzero(raw >= LEAST)
    likely = {kind: values[rows] for kind, values in scores.items()}
    name = f"Pairs of .01 and more before calibration, {_BINS} adaptive bins"
    errors_of(name, likely, hits[rows], documents[rows], n_bins=_BINS)
    by_genre(np.array(results.genres)[documents[rows]], likely, hits[rows])
    by_document(results)
    seconds = 1000 * results.seconds / results.words
    print(f"\n{seconds:.3f} s of CPU time for 1,000 words, from the parse to the clusters.")


def by_genre(of_pair: Any, scores: dict[str, Floats], hits: Any) -> None:
    """Print the calibration error within each genre. of_pair: The genre of each pair."""
    print()
    head("| genre | pairs of .01 and more | in one cluster | raw | calibrated |")
    for name in np.unique(of_pair).tolist():
        values = np.flatnonzero(of_pair == name)
        errors = (calibration_error(document[values], hits[values], n_bins=_BINS) for document in scores.values())
        row(name, f"{len(values):,}", *(f"{document:.3f}" for document in (np.mean(hits[values]), *errors)))


def by_document(results: Judged) -> None:
    """Print what was expected of each document, and how far documents spread: log(gold pairs / expected pairs)."""
    print()
    head("| document | pairs | in one cluster | expected, raw | expected, calibrated |")
    ratios: dict[str, list[float]] = {"raw": [], "calibrated": []}
    for name, raw_scores, better, gold in zip(results.names, results.raw, results.calibrated, results.hits, strict=True):
        row(name, f"{len(gold):,}", f"{gold.sum():,}", f"{raw_scores.sum():,.0f}", f"{better.sum():,.0f}")
        for kind, values in (("raw", raw_scores), ("calibrated", better)):
            ratios[kind].append(float(np.log((gold.sum() + 1) / (values.sum() + 1))))
    for kind, off in ratios.items():
        text = f"mean {np.mean(off):+.2f}, deviation {np.std(off, ddof=1) if len(off) > 1 else 0.0:.2f}"
        print(f"\n{kind}: log(pairs in one cluster / expected) of a document: {text}")


def draw(results: Judged, file: Path) -> None:
    """Reliability of the pairs that reach LEAST, before and after; the corner in which most bins lie once more, larger."""
    from spacy_calib.plugins.report.plot_data import reliability_panel
    from spacy_calib.plugins.report.plots import LOOKS, draw_curve, draw_panels

    raw, calibrated_scores, hits = (np.concatenate(values) for values in (results.raw, results.calibrated, results.hits))
    rows = raw >= LEAST
    panel = reliability_panel(raw[rows], calibrated_scores[rows], hits[rows], "Do two mentions name the same?", n_bins=_BINS)
    figure = draw_panels([panel], measure="error (SMCE)", histograms=True)
    ax, below = figure.axes
    ax.set_ylabel("share of pairs in one cluster")
    below.set_xlabel("probability that they name the same")
    corner = ax.inset_axes((0.54, 0.06, 0.44, 0.44), xlim=_CORNER[0], ylim=_CORNER[1])
    corner.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
    for name, look in LOOKS.items():
        draw_curve(corner, getattr(panel, name), name, look)
    corner.tick_params(labelsize="x-small")
    ax.indicate_inset_zoom(corner, edgecolor="0.6")
    figure.savefig(file, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True, plot=True)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--penalty", type=float, help="of the squared weights; left out, cross-validation chooses it")
    options = parser.parse_args(arguments)
    nlp = spacy.load(options.model)
    resolver = train(nlp, options.train, options.penalty)
    results = judge(nlp, resolver, options.data)
    show(results)
    print("\n## Mentions that the pipeline finds: entities, noun chunks, pronouns; pairs of those that are in the gold")
    show(judge(nlp, resolver, options.data, gold_mentions=False))
    evaluate_held_out(resolver)
    save_tables(options.output)
    if options.plot is not None:
        draw(results, options.plot)
    return 0
