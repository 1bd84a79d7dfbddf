"""Which sentences are worth labelling? Quality against words labelled, for several orders of selection.

    SPACY_CALIB_DATA=../shared/data python scripts/simulate_active_learning.py --output curves.json --plot curves.png
    python scripts/simulate_active_learning.py --strategies least-confident least-confident:raw margin margin:raw random

After Mejer & Crammer (2010), section 6 and Figures 5 and 6, on the English Web Treebank unless other files are given. A run starts from
--start random sentences of the training part. Each round trains a tagger for --steps more updates of --update-words words, drawn from all that is
labelled; measures quality on the test part; fits a calib pipe anew on --dev-words words of the dev part (labelled text too, the same for
every order, and not among the words counted); and labels --round-words words more, chosen from --candidates random sentences of the rest.
The steps are the same for every order, and so are, with one seed, the first weights and the first sentences. All is counted in words,
since a sentence with a doubtful token tends to be a long one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from frame import COLORS, bare, docs_in, ewt_file, head, make_parser, new_figure, one_sentence, row, save_figure, save_tables
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from spacy.vocab import Vocab
from tqdm import tqdm

from spacy_calib.annotations import get_annotation
from spacy_calib.gold.collect import scored_corpus
from spacy_calib.pairs.keyed import digest
from spacy_calib.pairs.scored_corpus import ScoredCorpus
from spacy_calib.plugins.review.queue.choosing import QueuePlan, UnitPool, queue_of, select_units
from spacy_calib.plugins.review.queue.orders import LABEL

STRATEGIES = ("least-confident", "least-confident:raw", "expected-errors", "expected-errors:per-word", "margin", "random")


class Strategy(NamedTuple):
    """An order of selection, by its words: one of LABEL, and ":raw" and ":per-word" behind it."""

    name: str
    by: str
    signal: str
    per_word: bool

    @classmethod
    def parse(cls, words: str) -> Strategy:
        """RAISES ValueError: there is no such order."""
        by, *rest = words.split(":")
        per_word = "per-word" in rest
        unknown = set(rest) - {"calibrated", "raw", "per-word"}
        if by not in LABEL or by == "rare-tag" or unknown or (per_word and not LABEL[by].adds_up):
            raise ValueError(f"--strategies has {words!r}, which is no order of selection")
        return cls(words, by, "raw" if "raw" in rest else "calibrated", per_word)

    @property
    def needs_calibration(self) -> bool:
        return self.by != "random" and self.signal == "calibrated"


@dataclass(frozen=True)
class Curve:
    """What one run reached.

    words (list[int]): Labelled at the end of each round. sentences (list[int]): The same in sentences. quality (list[float]): On the test part.
    """

    strategy: str
    seed: int
    words: list[int]
    sentences: list[int]
    quality: list[float]


# Data


def n_words(doc: Doc) -> int:
    return sum(not token.is_space for token in doc)


def first_words(docs: Sequence[Doc], words: int, rng: random.Random) -> list[Doc]:
    """Random Docs of that many words in all, or all of them."""
    drawn = rng.sample(docs, len(docs))
    before = np.cumsum([0, *map(n_words, drawn)])[:-1]
    return drawn[: int(np.searchsorted(before, words))]


# Training


def make_pipeline(options: argparse.Namespace, train: Sequence[Doc], vocab: Vocab) -> Language:
    """An untrained pipeline that knows the labels, and the calib pipe behind it."""
    nlp = spacy.blank("en", vocab=vocab)
    width = options.width
    nlp.add_pipe("tok2vec", config={"model": {
        "@architectures": "spacy.HashEmbedCNN.v2", "width": width, "depth": 2, "embed_size": 2000, "window_size": 1, "maxout_pieces": 3,
        "subword_features": True, "pretrained_vectors": None,
    }})  # fmt: skip
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": width}
    tagger: Any = nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    for label in sorted({token.tag_ for doc in train for token in doc if token.tag_}):
        tagger.add_label(label)
    source = {"@calib_sources": "spacy-calib.Softmax.v1", "component": "tagger"}
    nlp.add_pipe("calib", config={"source": source, "recalibrator": {"@calib_recalibrators": "spacy-calib.Isotonic.v1"}})
    return nlp


def updates(labelled: Sequence[Doc], steps: int, words: int, rng: random.Random) -> Iterator[list[Example]]:
    """Batches of at least that many words, in epochs over the labelled sentences."""
    batch: list[Example] = []
    size = 0
    while steps:
        for doc in rng.sample(labelled, len(labelled)):
            batch.append(Example(bare(doc), doc))
            size += len(doc)
            if size >= words and steps:
                yield batch
                batch, size, steps = [], 0, steps - 1


def predict(nlp: Language, docs: Sequence[Doc], last: str) -> list[Doc]:
    """The pipes up to one of them, over the bare words."""
    names = nlp.pipe_names[: nlp.pipe_names.index(last) + 1]
    with nlp.select_pipes(enable=names):
        return list(nlp.pipe(bare(doc) for doc in docs))


def quality(predicted: Sequence[Doc], gold: Sequence[Doc]) -> float:
    """Accuracy of the tags."""
    said, wanted = ([token.tag for doc in docs for token in doc] for docs in (predicted, gold))
    return sum(ours == theirs for ours, theirs in zip(said, wanted, strict=True)) / max(1, len(wanted))


# Selection


def next_batch(
    nlp: Language, strategy: Strategy, rest: Sequence[Doc], dev: Sequence[Doc], words: int, n_candidates: int, seed: int
) -> list[int]:
    """Places in `rest` of the sentences to label now."""
    places = random.Random(seed).sample(range(len(rest)), min(n_candidates, len(rest)))
    candidates = [rest[i] for i in places]
    plan = QueuePlan("document", LABEL[strategy.by], per_word=strategy.per_word, max_words=words)
    if strategy.by == "random":
        chosen = select_units(at_random(candidates, seed), plan).order
    else:
        queue = queue_of([scored(nlp, strategy, candidates, dev)], plan, lambda _: None)
        chosen = queue.corpus.docs[queue.units.firsts[queue.order]]
    return [places[i] for i in chosen.tolist()]


def at_random(docs: Sequence[Doc], seed: int) -> UnitPool:
    """Each Doc as a unit, in a random order."""
    keys = np.array([digest(doc.text) for doc in docs], dtype=np.uint64)
    words = np.array([n_words(doc) for doc in docs], dtype=np.int32)
    scores = np.random.default_rng(seed).permutation(len(docs)).astype(float)
    return UnitPool(np.arange(len(docs)), words, scores, words, keys, np.zeros(len(docs), dtype=np.int8))


def scored(nlp: Language, strategy: Strategy, candidates: Sequence[Doc], dev: Sequence[Doc]) -> ScoredCorpus:
    """What is said of the candidates; raw scores in the place of calibrated ones where the order is by those."""
    calib: Any = nlp.get_pipe("calib")
    if strategy.needs_calibration:
        calib.fit(Example(ours, gold) for ours, gold in zip(predict(nlp, dev, "tagger"), dev, strict=True))
    examples = (Example(doc, bare(doc)) for doc in predict(nlp, candidates, "calib"))
    corpus = scored_corpus(examples, "calib", get_annotation("tag"), calib.lookup.labels())
    return replace(corpus, calibrated=corpus.raw, tag_calibrated=corpus.tag_raw) if strategy.signal == "raw" else corpus


# One run


def run(strategy: Strategy, seed: int, data: dict[str, list[Doc]], options: argparse.Namespace, bar: Any) -> Curve:
    """The curve of one order and seed."""
    fix_random_seed(seed)
    rng = random.Random(seed)
    rest = rng.sample(data["train"], len(data["train"]))
    labelled, rest = rest[: options.start], rest[options.start :]
    dev = first_words(data["dev"], options.dev_words, rng)
    nlp = make_pipeline(options, data["train"], data["train"][0].vocab)
    first = [Example(bare(doc), doc) for doc in labelled]
    optimizer = nlp.initialize(lambda: first)
    curve = Curve(strategy.name, seed, [], [], [])
    while True:
        for batch in updates(labelled, options.steps, options.update_words, rng):
            nlp.update(batch, sgd=optimizer, drop=0.1)
        curve.words.append(sum(map(n_words, labelled)))
        curve.sentences.append(len(labelled))
        curve.quality.append(quality(predict(nlp, data["test"], "tagger"), data["test"]))
        bar.update()
        bar.set_postfix_str(f"{strategy.name}, {curve.words[-1]:,} words: {curve.quality[-1]:.4f}")
        wanted = min(options.round_words, options.max_words - curve.words[-1])
        now = seed + 1000 * len(curve.words)
        chosen = next_batch(nlp, strategy, rest, dev, wanted, options.candidates, now) if wanted > 0 else []
        if not chosen:
            return curve
        taken = set(chosen)
        labelled = labelled + [rest[i] for i in chosen]
        rest = [doc for i, doc in enumerate(rest) if i not in taken]


# What came out


def words_needed(words: Sequence[int], reached: Sequence[float], wanted: float) -> float | None:
    """How many words it takes to get there: the first crossing of the straight lines between the best values so far; None if never."""
    best = np.maximum.accumulate(reached)
    after = int(np.searchsorted(best, wanted))
    if after == len(best):
        return None
    if after == 0:
        return float(words[0])
    share = (wanted - best[after - 1]) / (best[after] - best[after - 1])
    return float(words[after - 1] + share * (words[after] - words[after - 1]))


def summarize(curves: Sequence[Curve], max_words: int) -> dict[str, dict[str, Any]]:
    """For each order: quality at the end, and the words that it took to reach what random with the same seed reached with all; each with
    mean and standard deviation over seeds.
    """
    last = min(curve.words[-1] for curve in curves)
    random_runs = {curve.seed: curve for curve in curves if curve.strategy == "random"}
    found = {}
    for name in dict.fromkeys(curve.strategy for curve in curves):
        own = [curve for curve in curves if curve.strategy == name]
        found[name] = {"last": spread([float(np.interp(last, curve.words, curve.quality)) for curve in own])}
        pairs = [(curve, random_runs[curve.seed]) for curve in own if curve.seed in random_runs]
        if pairs:
            goals = [float(np.interp(max_words, other.words, other.quality)) for _, other in pairs]
            needed = [words_needed(curve.words, curve.quality, goal) for (curve, _), goal in zip(pairs, goals, strict=True)]
            found[name]["as_random"] = {"goals": goals, **spread(needed)}
    return found


def spread(values: Any) -> dict[str, Any]:
    """Mean and standard deviation over seeds; None where a seed has no value."""
    seeds = [None if value is None else float(value) for value in values]
    known = [value for value in seeds if value is not None]
    whole = len(known) == len(seeds)
    deviation = float(np.std(known, ddof=1)) if whole and len(known) > 1 else None
    return {"mean": float(np.mean(known)) if whole else None, "deviation": deviation, "seeds": seeds}


HEADS = {"last": "accuracy at the end", "as_random": "words to reach what random does with all"}


def show(summary: dict[str, dict[str, Any]]) -> None:
    """Print a Markdown table."""
    keys = [key for key in HEADS if key in next(iter(summary.values()))]
    head(f"| order | {' | '.join(HEADS[key] for key in keys)} |")
    for name, one in summary.items():
        row(name, *(as_text(one[key], "{:.4f}" if key == "last" else "{:,.0f}") for key in keys))


def as_text(value: dict[str, Any], form: str) -> str:
    """Mean and, with several seeds, standard deviation."""
    if value["mean"] is None:
        return f"not reached by {value['seeds'].count(None)} of {len(value['seeds'])}"
    deviation = "" if value["deviation"] is None else f" ± {form.format(value['deviation'])}"
    return form.format(value["mean"]) + deviation


def draw(path: Path, curves: Sequence[Curve], title: str) -> None:
    """Quality against words, and how far it lies above that of random with the same seed: the mean over seeds as a line, from the lowest
    to the highest seed as a band. An order has one colour; by raw scores it is dotted and has no band.

    RAISES CalibError: matplotlib is not installed.
    """
    figure = new_figure(9.6, 4.4)
    left, right = figure.subplots(1, 2)
    grid = np.linspace(max(curve.words[0] for curve in curves), min(curve.words[-1] for curve in curves), 60)
    at = {(c.strategy, c.seed): np.interp(grid, c.words, c.quality) for c in curves}
    names = list(dict.fromkeys(curve.strategy for curve in curves))
    kinds = list(dict.fromkeys(name.replace(":raw", "") for name in names if name != "random"))
    for name in names:
        color = "black" if name == "random" else COLORS[kinds.index(name.replace(":raw", "")) % len(COLORS)]
        style = {"color": color, "linewidth": 1.5, "linestyle": "--" if name == "random" else ":" if ":raw" in name else "-"}
        seeds = [seed for other, seed in at if other == name]
        left.plot(grid, np.mean([at[name, seed] for seed in seeds], axis=0), **style, label=name)
        ahead = [100 * (at[name, seed] - at["random", seed]) for seed in seeds if ("random", seed) in at]
        if ahead:
            right.plot(grid, np.mean(ahead, axis=0), **style)
            if style["linestyle"] == "-":
                right.fill_between(grid, np.min(ahead, axis=0), np.max(ahead, axis=0), color=color, alpha=0.1, linewidth=0)
    left.legend(frameon=False, loc="lower right", fontsize="small")
    for ax, what in ((left, "accuracy"), (right, "points above random with the same seed")):
        ax.set(xlabel="words labelled", ylabel=what)
        ax.locator_params(axis="x", nbins=5)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize="medium")
    save_figure(path, figure, 80)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser(__doc__, cache=True, output=True, plot=True)
    for part in ("train", "dev", "test"):
        parser.add_argument(f"--{part}", type=Path, help="a .spacy file; else this part of the English Web Treebank")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), help="orders: ORDER[:raw][:per-word]")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each order")
    parser.add_argument("--start", type=int, default=50, help="sentences labelled at first")
    parser.add_argument("--max-words", type=int, default=20_000, help="words labelled at the end")
    parser.add_argument("--round-words", type=int, default=1_500, help="words labelled in a round")
    parser.add_argument("--candidates", type=int, default=2_000, help="sentences that a round chooses from")
    parser.add_argument("--dev-words", type=int, default=2_000, help="words of the dev part to calibrate on")
    parser.add_argument("--steps", type=int, default=100, help="updates in a round")
    parser.add_argument("--update-words", type=int, default=250, help="words of an update")
    parser.add_argument("--width", type=int, default=64, help="of the network")
    options = parser.parse_args(arguments)
    try:
        options.strategies = [Strategy.parse(words) for words in options.strategies]
    except ValueError as error:
        parser.error(str(error))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    vocab = spacy.blank("en").vocab
    files = {part: getattr(options, part) or ewt_file(part, options.cache) for part in ("train", "dev", "test")}
    data = {part: [sent.as_doc() for doc in docs_in(file, vocab) for sent in doc.sents] for part, file in files.items()}
    n_rounds = 1 + -(-options.max_words // options.round_words)
    jobs = [(strategy, seed) for seed in range(options.seeds) for strategy in options.strategies]
    with one_sentence():
        with tqdm(total=n_rounds * len(jobs), unit="round", disable=None) as bar:
            curves = [run(strategy, seed, data, options, bar) for strategy, seed in jobs]
        summary = summarize(curves, options.max_words)
        show(summary)
        save_tables(options.output)
        if options.plot is not None:
            draw(options.plot, curves, f"Accuracy against words labelled, {options.seeds} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
