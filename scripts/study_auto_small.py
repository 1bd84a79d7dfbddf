"""How much gold does `--method auto` need? Nested draws of documents of two treebanks, judged on other data, as Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/study_auto_small.py --draws 20

The tagger of en_core_web_sm, fitted on draws of UD English EWT dev (judged on its test) and of `gum_coref` train (judged on its dev). A draw is
an order of the documents (of EWT; ten sentences in a row of GUM): the first 200 tokens, the first 400 and so on are fitted on. The log loss
of `auto` is compared with the best of the fixed methods, that of the least mean over the draws, in percent of the raw loss; "above raw"
counts the draws after which the Brier score is worse than without a fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from frame import MODEL, default_cache, head, make_parser, row
from quality import readers
from quality.data import DataSet, Split, ewt_tagger
from quality.judge import LOSSES
from quality.models import load_head, read
from quality.ours import AUTO, Method, Task, chosen, fixed, scaled_only, tfg
from tqdm import tqdm

from spacy_calib.calibration.recalibrators import IsotonicRegression, Platt
from spacy_calib.calibration.scaling import MatrixScaling, TemperatureScaling
from spacy_calib.context.words import SHAPES, Words
from spacy_calib.types import Floats

SIZES = (200, 400, 800, 1600, 3200)
METHODS: dict[str, Method] = {
    AUTO: chosen(),
    "temperature scaling": scaled_only(TemperatureScaling()),
    "matrix scaling": scaled_only(MatrixScaling()),
    "SCW platt": fixed(tfg(1), Platt()),
    "TFG-5 platt": fixed(tfg(5), Platt()),
    "TFG-5 isotonic": fixed(tfg(5), IsotonicRegression()),
}


def gum_tagger() -> DataSet:
    """The tagger of en_core_web_sm on GUM: train to fit, dev to judge, a document being ten sentences in a row."""
    head = load_head(MODEL, "tagger")
    parts = []
    for part in ("train", "dev"):
        whole = readers.ewt(part, "tags", "gum_coref")
        parts.append(Split(*read(head, [text[k : k + 10] for text in whole for k in range(0, len(text), 10)])))
    counts = np.bincount(parts[0].gold[parts[0].gold >= 0], minlength=len(head.labels))
    return DataSet("gum-tagger", "", head.labels, tuple(counts.tolist()), False, 0.0, *parts)


def made_up(n: int = 2400, n_tags: int = 8) -> DataSet:
    """Tokens of a head that is twice as sure as it should be, in documents of 20."""
    rng = np.random.default_rng(0)

    def part() -> Split:
        true = rng.normal(0, 1.5, (n, n_tags)) - np.arange(n_tags) / 2
        chances = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
        gold = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        forms, flags = np.arange(n).astype(np.uint64) % 40, np.zeros(n, bool)
        words = Words(np.arange(0, n + 1, 20), forms, forms, dict.fromkeys(SHAPES, flags), ~flags)
        return Split((2 * true).astype(np.float32), gold, np.arange(n) // 20, words)

    fit, test = part(), part()
    counts = tuple(np.bincount(fit.gold, minlength=n_tags).tolist())
    return DataSet("made-up", "Made up", tuple("ABCDEFGHIJ"[:n_tags]), counts, False, 0.5, fit, test)


def drawn(data: DataSet, n_tokens: int, seed: int) -> DataSet:
    """The set with less to fit on: documents in an order of the seed, until they hold so many tokens."""
    documents, lengths = np.unique(data.fit.documents, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(documents))
    n = int(np.searchsorted(np.cumsum(lengths[order]), n_tokens)) + 1
    return replace(data, fit=data.fit.take(np.isin(data.fit.documents, documents[order[:n]])))


def losses(task: Task) -> Floats:
    """Of raw and of each method: log loss and Brier score of the test pairs, shape (1 + n_methods, 2)."""
    scores = [task.test.scores, *(method(task).scores for method in METHODS.values())]
    return np.array([[loss(own, task.test.hits).mean() for loss in LOSSES.values()] for own in scores])


def study(data: DataSet, sizes: Sequence[int], n_draws: int) -> None:
    """Print what fits on draws of a set lose."""
    names = list(METHODS)[1:]
    print(f"\n{data.name}, mean of {n_draws} draws\n")
    head(f"| tokens | raw | {' | '.join(METHODS)} | auto - best of the others | above raw |", 0)
    for size in sizes:
        draws = tqdm(range(n_draws), desc=f"{data.name} {size}", disable=None, leave=False)
        each = np.array([losses(Task(drawn(data, size, seed))) for seed in draws])
        mean, above = each[:, :, 0].mean(axis=0), int((each[:, 1, 1] > each[:, 0, 1]).sum())
        best = int(mean[2:].argmin())
        apart = f"{100 * (mean[1] - mean[2 + best]) / mean[0]:+.2f} % of raw ({names[best]})"
        row(f"{size:,}", *(f"{one:.4f}" for one in mean), apart, above)


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--draws", type=int, default=20, help="Draws of each set")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="Tokens to fit on")
    parser.add_argument("--made-up", action="store_true", help="Made-up tokens of few tags instead of the sets")
    options = parser.parse_args()
    if options.draws < 1:
        parser.error("--draws: at least 1")
    for data in [made_up()] if options.made_up else [ewt_tagger(default_cache()), gum_tagger()]:
        study(data, options.sizes, options.draws)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
