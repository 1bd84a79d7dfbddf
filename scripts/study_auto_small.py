"""How much gold does `--method auto` need? Nested draws of documents of two treebanks, judged on other documents, as Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/study_auto_small.py --draws 20
    python scripts/study_auto_small.py --sets craft childes --save after.npz --against before.npz

The tagger of en_core_web_sm on UD English EWT dev and `gum_coref` train; by name also on samples of CRAFT and UD English CHILDES. A draw is an
order of the documents (of EWT; else ten sentences in a row): the first 200 tokens, the first 400 and so on are fitted on, and documents of the
second half are judged. The log loss of `auto` is compared with the best of the fixed methods, that of the lowest mean over the draws, and with
that of another version of the code (--against, a file that --save wrote), in percent of the raw loss. "Above raw" counts the draws after which
the Brier score is worse than without a fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from frame import MODEL, head, make_parser, row
from quality import readers
from quality.data import DataSet, Split
from quality.judge import LOSSES
from quality.models import load_head, read
from quality.ours import AUTO, Method, Task, chosen, fixed, scaled_only, tfg
from tqdm import tqdm

from spacy_calib.calibration.recalibrators import IsotonicRegression, Platt
from spacy_calib.calibration.scaling import TemperatureScaling, VectorScaling
from spacy_calib.context.words import Words
from spacy_calib.types import Floats

SIZES = (200, 400, 800, 1600)
# At most so many are judged.
TEST_TOKENS = 12_000
METHODS: dict[str, Method] = {
    AUTO: chosen(),
    "temperature scaling": scaled_only(TemperatureScaling()),
    "vector scaling": scaled_only(VectorScaling(1000.0)),
    "SCW platt": fixed(tfg(1), Platt()),
    "TFG-5 isotonic": fixed(tfg(5), IsotonicRegression()),
}


# Name -> (part, folder) of the data, and whether a document is ten sentences in a row.
SETS = {
    "ewt": ("dev", "ud_english_ewt", False),
    "gum": ("train", "gum_coref", True),
    "craft": ("sample", "craft_tags", True),
    "childes": ("sample", "ud_english_childes", True),
}


def read_tagger(name: str) -> DataSet:
    """The tagger of en_core_web_sm on one part of a treebank, to be split by `draw_documents`."""
    part, folder, in_tens = SETS[name]
    head, documents = load_head(MODEL, "tagger"), readers.ewt(part, "tags", folder)
    if in_tens:
        documents = [text[k : k + 10] for text in documents for k in range(0, len(text), 10)]
    split = Split(*read(head, documents))
    return DataSet(name, "", head.labels, (), False, 0.0, split, split)


def made_up(n: int = 2400, n_tags: int = 8) -> DataSet:
    """Tokens of a head that is twice as sure as it should be, in documents of 20."""
    rng = np.random.default_rng(0)

    def part() -> Split:
        true = rng.normal(0, 1.5, (n, n_tags)) - np.arange(n_tags) / 2
        chances = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
        gold = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        forms, flags = np.arange(n).astype(np.uint64) % 40, np.zeros(n, bool)
        words = Words(np.arange(0, n + 1, 20), forms, forms, flags.astype(np.intp), ~flags)
        return Split((2 * true).astype(np.float32), gold, np.arange(n) // 20, words)

    fit, test = part(), part()
    counts = tuple(np.bincount(fit.gold, minlength=n_tags).tolist())
    return DataSet("made-up", "Made up", tuple("ABCDEFGHIJ"[:n_tags]), counts, False, 0.5, fit, test)


def draw_documents(data: DataSet, sizes: Sequence[int], seed: int) -> Iterator[DataSet]:
    """For each size a data set to fit on so many tokens, in an order of the documents; all are judged on the second half."""
    documents, lengths = np.unique(data.fit.documents, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(documents))
    n_tokens = np.cumsum(lengths[order])
    half = int(np.searchsorted(n_tokens, n_tokens[-1] / 2)) + 1
    last = int(np.searchsorted(n_tokens, n_tokens[half - 1] + TEST_TOKENS)) + 1
    test = data.fit.take(np.isin(data.fit.documents, documents[order[half:last]]))
    for size in sizes:
        n_documents = min(half, int(np.searchsorted(n_tokens, size)) + 1)
        fit = data.fit.take(np.isin(data.fit.documents, documents[order[:n_documents]]))
        counts = np.bincount(fit.gold[fit.gold >= 0], minlength=len(data.labels))
        yield replace(data, counts=tuple(counts.tolist()), fit=fit, test=test)


def losses(task: Task) -> Floats:
    """Of raw and of each method: log loss and Brier score of the test pairs, shape (1 + n_methods, 2)."""
    scores = [task.test.scores, *(method(task).scores for method in METHODS.values())]
    return np.array([[loss(own, task.test.hits).mean() for loss in LOSSES.values()] for own in scores])


def study(data: DataSet, sizes: Sequence[int], n_draws: int, before: Floats | None) -> Floats:
    """Print the losses of fits on draws of a set. RETURNS (Floats): Shape (n_draws, n_sizes, 1 + n_methods, 2).

    before (Floats | None): What this returned for another version of the code.
    """
    names = list(METHODS)[1:]
    print(f"\n{data.name}, mean of {n_draws} draws\n")
    others = "" if before is None else " auto - before |"
    head(f"| tokens | raw | {' | '.join(METHODS)} | auto - best of the others | above raw |{others}", 0)
    draws = tqdm(range(n_draws), desc=data.name, disable=None, leave=False)
    every = np.array([[losses(Task(part)) for part in draw_documents(data, sizes, seed)] for seed in draws])
    for k, size in enumerate(sizes):
        each = every[:, k]
        mean, above = each[:, :, 0].mean(axis=0), int((each[:, 1, 1] > each[:, 0, 1]).sum())
        best = int(mean[2:].argmin())
        cells = [f"{100 * (mean[1] - mean[2 + best]) / mean[0]:+.2f} % of raw ({names[best]})", above]
        if before is not None:
            cells.append(f"{100 * (mean[1] - before[:, k, 1, 0].mean()) / mean[0]:+.2f} % of raw")
        row(f"{size:,}", *(f"{loss:.4f}" for loss in mean), *cells)
    return every


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--draws", type=int, default=20, help="Draws of each set")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="Tokens to fit on")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=["ewt", "gum"], help="Data sets")
    parser.add_argument("--save", type=Path, help=".npz file for the losses of all draws")
    parser.add_argument("--against", type=Path, help="Such a file, of another version of the code and the same draws")
    parser.add_argument("--made-up", action="store_true", help="Made-up tokens of few tags instead of the sets")
    options = parser.parse_args()
    if options.draws < 1:
        parser.error("--draws: at least 1")
    before = {} if options.against is None else dict(np.load(options.against))
    found = {}
    for data in [made_up()] if options.made_up else map(read_tagger, options.sets):
        found[data.name] = study(data, options.sizes, options.draws, before.get(data.name))
        if options.save is not None:
            np.savez_compressed(options.save, **found)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
