"""Does the interval of `spacy calib expect` hold the truth as often as it says? Fit and test documents are split anew each time, and fitted anew.

    python scripts/expect_splits.py --cache DIR [NAME ...]

The experiments are those of scripts/expect_table.py. Where the fit documents and those of the test set are of one source, both are pooled, and as
many as there are fit documents are drawn to fit on; else the documents of each test set are halved, and where it is not of another kind (*) half
of the fit documents is also judged on half of it. The maps are of the kind that `fit` chose, without scaling,
and the context of tokens is learned where `fit` asks for one. Tables go to stdout, messages to stderr.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from expect_table import EXPERIMENTS, MEASURES, inside, parser_of, write_experiment
from frame import head, row
from numpy.typing import NDArray
from tqdm import tqdm

from spacy_calib.calibration.recalibrators import Recalibrator
from spacy_calib.calibration.span_fit import SpanData, SpanFit, fit_spans
from spacy_calib.calibration.steps import Predictions, apply_steps
from spacy_calib.calibration.token_fit import CalibrationPlan, FitData, fit_tokens, score_held_out
from spacy_calib.cli.shared.examples import run_pipes, stream_examples
from spacy_calib.cli.shared.run import pipes_to_run
from spacy_calib.context.fit import fit_token_context
from spacy_calib.context.tokens import TokenContext
from spacy_calib.context.words import Words
from spacy_calib.pairs.build import JudgedPairs, top_pairs
from spacy_calib.pipe.fit_inputs import FitArguments, read_fit_inputs
from spacy_calib.pipe.record.drift import UnitScores
from spacy_calib.pipe.record.estimates import entity_estimates, expected_accuracy, token_sums
from spacy_calib.pipe.record.fit_record import entity_sums, record_fit
from spacy_calib.types import Groups, Ints, Pairs

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Material:
    """All that fits and judgements are made of.

    pairs (Pairs), documents (Ints): Of tokens with gold, and the document of each. spans (SpanData | None): Of all documents.
    labels (tuple[str, ...]), groups (Groups), prototype (Recalibrator): Of the maps. span_groups (Groups | None): Of those of spans.
    n_docs (int): Documents. context (TokenContext | None): Its settings. words (Words | None): What it looks at.
    """

    pairs: Pairs
    documents: Ints
    spans: SpanData | None
    labels: tuple[str, ...]
    groups: Groups
    prototype: Recalibrator
    span_groups: Groups | None
    n_docs: int
    context: TokenContext | None
    words: Words | None
    of_docs: Ints

    @classmethod
    def of(cls, nlp: Any, pipe: Any, files: list[Path], what: str) -> Material:
        """Read with the pipeline up to the calib pipe."""
        names = [name for name in pipes_to_run(nlp, pipe) if name != pipe.name]
        examples = run_pipes(
            nlp, [one for file in files for one in stream_examples(nlp, file)], names, silent=False, title=what
        )
        found = read_fit_inputs(pipe, examples, FitArguments())
        data, maps, spans = found.data, pipe.tokens.maps, found.spans
        n_docs = int(data.kept_documents.max()) + 1
        n_docs = n_docs if spans is None else len(spans.gold)
        return cls(
            data.kept_pairs, data.kept_documents, spans, found.source.labels, maps.groups, maps.prototype,
            pipe.spans.groups, n_docs, pipe.context, data.words, found.doc_documents,
        )  # fmt: skip

    def tokens_in(self, documents: Mask) -> FitData:
        """Those of some documents, whose rows and words begin at 0 then."""
        index = np.flatnonzero(documents[self.documents])
        own, words = self.pairs.take(index), None
        if self.words is not None:
            held = self.words
            docs = documents[self.of_docs]
            tokens = docs[held.docs]
            own = replace(own, rows=(np.cumsum(tokens) - 1)[own.rows])
            starts = np.cumsum(np.append(0, np.diff(held.starts)[docs]))
            columns = {name: said[tokens] for name, said in held.columns.items()}
            words = Words(starts, held.forms[tokens], held.endings[tokens], held.shapes[tokens], held.counts[tokens], columns)
        return FitData(own, np.zeros(0, dtype=np.intp), self.documents[index], len(self.labels), 0.0, words=words)

    def spans_in(self, documents: Mask) -> SpanData | None:
        """Those of some documents."""
        if self.spans is None:
            return None
        own, held = np.flatnonzero(documents[self.spans.documents]), self.spans
        return SpanData(held.spans.take(own), held.raw[own], held.hits[own], held.documents[own], held.gold * documents)

    def fit_spans(self, documents: Mask) -> SpanFit | None:
        spans = self.spans_in(documents)
        return None if spans is None or self.span_groups is None else fit_spans(spans, self.span_groups)


def held_of(material: Material, fit: Mask, test: Mask) -> dict[str, bool]:
    """Whether the interval of each measure holds the truth of the test documents. fit, test (Mask): Of documents."""
    n_docs, data, new = material.n_docs, material.tokens_in(fit), material.tokens_in(test)
    plan = CalibrationPlan(material.groups, material.groups, material.prototype, data.pairs.scores)
    if material.context is not None and data.words is not None:
        n_tags = len(material.labels)
        context = fit_token_context(
            material.context, data.pairs, data.unlabelled_pairs, data.documents, data.words, n_tags=n_tags
        )
        plan = plan if context.why else replace(plan, context=context).in_context(data)
    calibration, of_spans = fit_tokens(data, plan), material.fit_spans(fit)
    held_out = score_held_out(data, plan, calibration)
    record = record_fit(JudgedPairs(data.pairs, held_out, data.documents), n_docs, material.labels, of_spans)
    assert record is not None
    top = np.sort(top_pairs(new.pairs))
    given = Predictions.of_pairs(new.pairs, 0.0, new.words)
    scores = apply_steps(calibration.steps, given).scores[top]
    labels = [material.labels[tag] for tag in new.pairs.tags[top].tolist()]
    tokens = UnitScores(new.documents[top], n_docs, labels, new.pairs.scores[top], scores)
    found: dict[str, Any] = {"accuracy": expected_accuracy(record.tokens, token_sums(scores, tokens.documents, n_docs))}
    true = {"accuracy": float(new.pairs.hits[top].mean())}
    judged = material.spans_in(test)
    if of_spans is not None and of_spans.calibration.chosen is not None and judged is not None and record.entities is not None:
        known = judged.known_indices
        calibrated = of_spans.calibration.chosen.predict(judged.spans.take(known), judged.raw[known])
        spans = UnitScores(judged.documents[known], n_docs, None, judged.raw[known], calibrated)
        sums = entity_sums(tokens, spans)
        estimates = entity_estimates(record.entities, record.entities.sums(sums), float(sums.predicted.sum()))
        found |= {name: getattr(estimates, name) for name in MEASURES[1:]}
        right, gold = int(judged.pairs.hits.sum()), int(judged.gold.sum())
        true |= {"precision": right / len(known), "recall": right / gold, "f": 2 * right / (len(known) + gold)}
    return {name: inside(one._asdict(), true[name]) for name, one in found.items()}


def draws_of(pools: tuple[Ints, Ints], sizes: tuple[int, int], n: int, draws: int) -> Iterator[tuple[Mask, Mask]]:
    """Fit and test documents. pools (tuple): Those to draw either from. sizes (tuple): How many; test documents are no fit documents."""
    rng = np.random.default_rng(0)
    for _ in range(draws):
        fit, test = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        fit[rng.choice(pools[0], sizes[0], replace=False)] = True
        test[rng.choice(pools[1][~fit[pools[1]]], sizes[1], replace=False)] = True
        yield fit, test


def show(material: Material, title: str, pools: tuple[Ints, Ints], sizes: tuple[int, int], draws: int) -> None:
    """Print a row of the table."""
    held: dict[str, list[bool]] = {}
    for fit, test in tqdm(draws_of(pools, sizes, material.n_docs, draws), desc=title, total=draws, leave=False):
        for name, one in held_of(material, fit, test).items():
            held.setdefault(name, []).append(one)
    cells = [f"{100 * np.mean(held[name]):.1f}" if name in held else "-" for name in MEASURES]
    row(title, f"{sizes[0]:,}", f"{sizes[1]:,}", *cells)


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--most", type=int, default=2000, help="documents to fit on, and documents to judge on, at most")
    options = parser.parse_args()
    head("| split anew | fit documents | test documents | accuracy | precision | recall | F |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            nlp, pipe, files = write_experiment(name, options.cache.resolve(), Path(folder))
            n_fit = sum(1 for _ in stream_examples(nlp, files["fit"]))
            for title in EXPERIMENTS[name].tests:
                material = Material.of(nlp, pipe, [files["fit"], files[title]], title)
                every, half = np.arange(material.n_docs), min(options.most, (material.n_docs - n_fit) // 2)
                first, second = every[:n_fit], every[n_fit:]
                if EXPERIMENTS[name].one_kind and not title.endswith("*"):
                    sizes = min(options.most, n_fit), min(options.most, len(second))
                    show(material, title, (every, every), sizes, options.draws)
                    continue
                show(material, title, (second, second), (half, half), options.draws)
                if not title.endswith("*"):
                    show(material, f"{title}: halves of both", (first, second), (n_fit // 2, half), options.draws)
    return 0


if __name__ == "__main__":
    sys.exit(main())
