"""What does `calib adapt` do to documents that were left out? Adapted to a few labelled ones, at home and to other annotators, as Markdown.

    python scripts/study_adapt.py --cache DIR home --documents 5 20
    python scripts/study_adapt.py --cache DIR gold --documents 5 20 --draws 20

A calibration is fitted by `auto`, adapted to some documents of other texts drawn at random, and judged on the rest of these. The sets:

- gold: en_core_web_sm, calibrated on EWT dev, on gold of other annotators: GUM, and the Penn Treebank sample;
- home: fit and test documents of one kind: the Penn Treebank sample, EWT, ARK tweets and STREUSLE (the last three are sets of
  scripts/quality/data.py).

Log loss is that of the likeliest tag, in percent of the raw loss above (or below) what it is without adapting: means over the targets of
a set. "Worst tag": of the tags with 100 tokens or more on the rest, the farthest that the mean score of a tag's pairs is from the share
of them that is right; and in what share of the draws this is at most .15. SPACY_CALIB_DATA names the data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from frame import MODEL, blocks, data_lines, head, make_parser, row
from quality import readers
from quality.data import DataSet, Split, load, prepare
from quality.models import load_head, read, trained
from quality.ours import Task, applied
from quality.readers import Documents, Sentence
from tqdm import tqdm

from spacy_calib.calibration.adaptation.adaptation import Adaptation, GoldEntries
from spacy_calib.calibration.token_fit import fit_tokens
from spacy_calib.context.words import Words
from spacy_calib.metrics import log_losses
from spacy_calib.pairs.build import find_top
from spacy_calib.types import Floats, Groups

# Of a tag, to be judged by itself; and how far it may be off.
FEWEST_OF_TAG, MOST_OFF = 100, 0.15


# Data


def gum() -> Documents:
    """Documents of GUM with gold words and XPOS; a space stands behind the parts of a contraction."""
    document, sentences = "", []
    for lines in (block for split in ("train", "dev") for block in blocks(data_lines("gum_coref", f"{split}.conllu"))):
        document = next((line[14:].split()[0] for line in lines if line.startswith("# newdoc id = ")), document)
        rows = [line.split("\t") for line in lines if line.partition("\t")[0].isdigit()]
        tags = {"tags": [one[4] for one in rows]}
        sentences.append(Sentence(document, [one[1] for one in rows], tags, ["SpaceAfter=No" not in one[9] for one in rows]))
    return readers.documents_of(sentences)


def read_part(model: str, documents: Documents) -> tuple[Split, tuple[str, ...]]:
    """(what a tagger says of some documents, its labels)."""
    tagger = load_head(model, "tagger")
    return Split(*read(tagger, documents)), tagger.labels


def as_set(name: str, labels: tuple[str, ...], fit: Split, test: Split) -> DataSet:
    counts = tuple(np.bincount(fit.gold[fit.gold >= 0], minlength=len(labels)).tolist())
    return DataSet(name, name, labels, counts, False, 0.0, fit, test)


def home(cache: Path) -> Iterator[DataSet]:
    """Fit and test documents of one kind."""
    parts, model = readers.ptb(), str(trained("ptb", cache) / "model-best")
    (fit, labels), (test, _) = (read_part(model, parts[name]) for name in ("fit", "test"))
    yield as_set("ptb", labels, fit, test)
    for name in ("ewt-tagger", "ark", "streusle"):
        yield load(prepare(name, cache))


def gold(cache: Path) -> Iterator[DataSet]:
    """Other annotators."""
    fit, labels = read_part(MODEL, readers.ewt("dev", "tags"))
    ptb = [one for part in readers.ptb().values() for one in part]
    for name, documents in (("gum", gum()), ("ptb", ptb)):
        yield as_set(name, labels, fit, read_part(MODEL, documents)[0])


def made_up(n: int = 2400, n_tags: int = 8) -> DataSet:
    """Tokens of a tagger that is twice as confident as it should be, in documents of 20."""
    rng = np.random.default_rng(0)

    def part() -> Split:
        logits = rng.normal(0, 1.5, (n, n_tags)) - np.arange(n_tags) / 2
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        tags = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        forms, flags = np.arange(n).astype(np.uint64) % 40, np.zeros(n, bool)
        words = Words(np.arange(0, n + 1, 20), forms, forms, flags.astype(np.intp), ~flags)
        return Split((2 * logits).astype(np.float32), tags, np.arange(n) // 20, words)

    return as_set("made up", tuple("ABCDEFGHIJ"[:n_tags]), part(), part())


SETS: dict[str, Callable[[Path], Iterator[DataSet]]] = {"gold": gold, "home": home}


# Judging


@dataclass(frozen=True, eq=False)
class Target:
    """Texts that a calibration is adapted to. entries (GoldEntries): With calibrated scores. raw (Floats): Their raw ones. groups (Groups): Of the tags."""

    name: str
    entries: GoldEntries
    raw: Floats
    groups: Groups

    @classmethod
    def of(cls, held: DataSet) -> Target:
        task = Task(held)
        chosen, _ = task.chosen
        scores = applied(fit_tokens(task.data, chosen), task)
        pairs = task.test
        entries = GoldEntries(scores, pairs.hits, find_top(pairs.rows, pairs.scores), pairs.tags, task.documents)
        return cls(held.name, entries, pairs.scores, task.groups)

    def judge(self, n_documents: int, draws: int) -> Floats:
        """Log loss of the likeliest tag, above that without adapting in percent of the raw one; how far the worst tag is off, without and
        with; and whether with adapting that is at most MOST_OFF: means over the draws.
        """
        rng = np.random.default_rng(0)
        every = np.unique(self.entries.documents)
        return np.mean([self._judge(rng.permutation(every)[:n_documents]) for _ in range(draws)], axis=0)

    def _judge(self, labelled: np.ndarray) -> list[float]:
        seen = np.isin(self.entries.documents, labelled)
        rest = self.entries.take(np.flatnonzero(~seen))
        adaptation = Adaptation.fit(self.entries.take(np.flatnonzero(seen)), self.groups)
        adapted, own = adaptation.adjust(rest.scores, rest.is_top, rest.tags), rest.is_top
        scores = (self.raw[~seen], rest.scores, adapted)
        raw, before, after = (log_losses(one[own], rest.hits[own]).mean() for one in scores)
        off = [worst_tag(one, rest) for one in scores[1:]]
        return [100 * (after - before) / raw, *off, float(off[1] <= MOST_OFF)]


def worst_tag(scores: Floats, entries: GoldEntries) -> float:
    """How far the mean score of a tag's pairs is from the share of them that is right: the farthest; 0 where no tag has enough tokens."""
    n, hits, scored = (np.bincount(entries.tags, weights=one) for one in (np.ones(len(scores)), entries.hits, scores))
    judged = hits >= FEWEST_OF_TAG
    return float((np.abs(scored - hits)[judged] / n[judged]).max(initial=0.0))


def show(name: str, targets: Sequence[Target], n_documents: int, draws: int) -> None:
    wanted = [one for one in targets if len(np.unique(one.entries.documents)) >= 2 * n_documents]
    if wanted:
        each = np.array([one.judge(n_documents, draws) for one in wanted])
        loss, before, after, near = each.mean(axis=0)
        figures = f"{loss:+.2f}", f"{each[:, 0].max():+.2f}", f"{before:.3f}", f"{after:.3f}", f"{100 * near:.0f} %"
        row(name, len(wanted), n_documents, draws, *figures)


def main() -> int:
    parser = make_parser(__doc__, SETS, cache=True)
    parser.add_argument("--documents", type=int, nargs="+", default=[2, 5, 20], help="labelled documents")
    parser.add_argument("--draws", type=int, default=10, help="of labelled documents")
    parser.add_argument("--made-up", action="store_true", help="made-up tokens of few tags instead of the sets")
    options = parser.parse_args()
    titles = "likeliest tag: % of raw | worst target | worst tag before | after | at most .15"
    head(f"| set | targets | documents | draws | {titles} |")
    if options.made_up:
        show("made up", [Target.of(made_up())], options.documents[0], options.draws)
        return 0
    for name in options.names:
        targets = [Target.of(held) for held in tqdm(SETS[name](options.cache), desc=name, disable=None, leave=False)]
        for n_documents in options.documents:
            show(name, targets, n_documents, options.draws)
    return 0


if __name__ == "__main__":
    sys.exit(main())
