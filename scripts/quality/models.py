"""The models of the quality benchmark: how each is trained, once, and how its logits are read over gold words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import ROOT, bare, say
from numpy.typing import NDArray
from quality import readers
from quality.readers import Documents

from spacy_calib.annotations import columns_of, label_hashes
from spacy_calib.cli.fitting.new_calib import with_inline_recognizers
from spacy_calib.cli.shared.writing import write_folder
from spacy_calib.context.words import Words
from spacy_calib.pairs.scores import LogitScores
from spacy_calib.pipe.lookup import words_of
from spacy_calib.pipe.pipeline import load_pipeline
from spacy_calib.sources.heads import SoftmaxSource
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.sources.source import Source

BATCH = 128
SMALLEST = 1e-12
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Batches of other sizes round otherwise, and an even choice may then fall the other way.
MAY_DIFFER = 1e-4


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    config (str): In configs/. component (str): What is calibrated. max_steps (int): Of training at most.
    data (Callable): () -> (train, check): what it learns from, and what chooses the checkpoint.
    lang (str): Of the pipeline. eval_every (int): Steps between two looks at the check part. settings (tuple): Further overrides of the config.
    """

    config: str
    component: str
    max_steps: int
    data: Callable[[], tuple[Documents, Documents]]
    lang: str = "en"
    eval_every: int = 200
    settings: tuple[tuple[str, str], ...] = ()


TAGGER, MORPHOLOGIZER, NER = ("train_tok2vec", "tagger"), ("train_morphologizer", "morphologizer"), ("train_ner", "ner")
N_BROWN = 120


RECIPES = {
    # "!" is a tag there, and by default begins the name of a tag that a token does not have
    "ark": Recipe(
        *TAGGER,
        1000,
        lambda: readers.hold_out(readers.ark("train")),
        eval_every=100,
        settings=(("components.tagger.neg_prefix", "not-"),),
    ),
    "streusle": Recipe(*TAGGER, 2000, lambda: readers.hold_out(readers.streusle("train"))),
    "ptb": Recipe(*TAGGER, 2000, lambda: readers.hold_out(readers.ptb()["train"])),
    "brown": Recipe(*TAGGER, 4000, lambda: readers.brown_to_train(N_BROWN)),
    "ewt-morph": Recipe(*MORPHOLOGIZER, 3000, lambda: readers.hold_out(readers.ewt("train", "morphs"))),
    "porttinari": Recipe(
        *MORPHOLOGIZER, 2000, lambda: (readers.dante("porttinari", "train"), readers.dante("porttinari", "dev")), lang="pt"
    ),
    "wnut17": Recipe(*NER, 2400, lambda: readers.hold_out(readers.entities("wnut17", "train"))),
    "wikineural": Recipe(*NER, 3000, lambda: readers.hold_out(readers.entities("wikineural_en", "train"))),
}


def write_docs(documents: Documents, file: Path, size: int = readers.SENTENCES_PER_DOC) -> None:
    """A .spacy file of gold Docs, of at most `size` sentences each."""
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    DocBin(docs=(doc for _, doc in readers.make_docs(documents, Vocab(), size))).to_disk(file)


def run_training(config: str, folder: Path, overrides: Mapping[str, object]) -> None:
    """Train into `folder` in one thread by a file of configs/: model-best, and training.log with what spaCy said.

    Ends the program with the log's end if that fails.
    """
    arguments = [part for key, value in overrides.items() for part in (f"--{key}", str(value))]
    file = ROOT / "configs" / f"{config}.cfg"
    command = [sys.executable, "-m", "spacy", "train", str(file), "--output", str(folder), *arguments]
    log = folder / "training.log"
    with log.open("w") as output:
        process = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **ONE_THREAD})
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{log.read_text()[-2000:]}")


def train(recipe: Recipe, max_steps: int, folder: Path) -> None:
    """Train into `folder`, with the gold Docs of each part."""
    parts = dict(zip(("train", "check"), recipe.data(), strict=True))
    for part, documents in parts.items():
        write_docs(documents, folder / f"{part}.spacy")
    overrides = {
        "paths.train": folder / "train.spacy", "paths.dev": folder / "check.spacy", "nlp.lang": recipe.lang,
        "training.max_steps": max_steps, "training.eval_frequency": min(max_steps, recipe.eval_every),
        "training.logger.progress_bar": "false", **dict(recipe.settings),
    }  # fmt: skip
    run_training(recipe.config, folder, overrides)
    shutil.rmtree(folder / "model-last", ignore_errors=True)


def trained(name: str, cache: Path, max_steps: int | None = None) -> Path:
    """The folder with model-best of a recipe, trained if it is not there.

    max_steps (int | None): In place of the recipe's, to try things out; a model of its own.
    """
    recipe = RECIPES[name]
    steps = recipe.max_steps if max_steps is None else max_steps
    folder = cache / "quality" / "models" / f"{name}-{steps}"
    if not folder.exists():
        say(f"Training {name}: configs/{recipe.config}.cfg, at most {steps:,} steps ...")
        write_folder(folder, lambda partial: train(recipe, steps, partial))
    return folder


# Reading


@dataclass(frozen=True)
class Head:
    """A loaded pipeline and the component of it that is calibrated."""

    nlp: Any
    source: Source

    @property
    def pipe(self) -> Any:
        return self.nlp.get_pipe(self.source.component)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.source.labels(self.pipe)

    def counts(self, golds: Iterator[Any]) -> tuple[int, ...]:
        """Gold frequency of each label."""
        counts = Counter(self.source.count_gold(self.pipe, golds))
        return tuple(counts[label] for label in self.labels)


def load_head(model: str | Path, component: str) -> Head:
    """A recognizer is loaded as one that keeps its probabilities (calib_ner)."""
    nlp = with_inline_recognizers(load_pipeline(str(model)), str(model), [component])
    return Head(nlp, NerSource(component, granularity="type") if component == "ner" else SoftmaxSource(component))


def logits_of(head: Head, docs: Sequence[Any]) -> NDArray[np.float32]:
    """The logits of the tokens of some Docs on which the component ran.

    RAISES ValueError: the Docs do not hold what the component reads, or the head has a temperature of its own.
    """
    why = next(filter(None, head.source.missing(head.pipe, docs)), "")
    if why:
        raise ValueError(why)
    scores: Any = head.source.read(head.pipe, docs)
    if getattr(scores, "temperature", 1.0) != 1.0:
        raise ValueError("The head divides its logits by a temperature.")
    if isinstance(scores, LogitScores):
        return scores.logits.astype(np.float32)
    return np.log(np.maximum(scores.probabilities, SMALLEST)).astype(np.float32)


def read(head: Head, documents: Documents) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], Words]:
    """Run the pipeline up to the component over gold words and spaces.

    RETURNS: logits, gold, documents and words, as data.Split has them.
    RAISES ValueError: the highest logit is not the tag that the pipeline sets (not asked of NER, which decodes with constraints).
    """
    from spacy import util
    from spacy.training import Example

    nlp, annotation = head.nlp, head.source.annotation(head.pipe)
    hashes = label_hashes(head.labels)
    numbers: list[int] = []
    lengths: list[int] = []
    logits, golds, words, n_differ = [], [], [], 0

    with nlp.select_pipes(enable=["tok2vec", head.source.component]):
        for batch in util.minibatch(readers.make_docs(documents, nlp.vocab), size=BATCH):
            docs = list(nlp.pipe(bare(gold, nlp.vocab) for _, gold in batch))
            counts = logits_of(head, docs)
            labels = np.concatenate([annotation.hashes(doc) for doc in docs])
            n_differ += int((hashes[counts.argmax(axis=1)] != labels).sum())
            logits.append(counts)
            words.append(words_of(docs, first=annotation.kind.first_unit))
            golds += [annotation.aligned_gold(Example(doc, gold)) for doc, (_, gold) in zip(docs, batch, strict=True)]
            numbers += [number for number, _ in batch]
            lengths += map(len, docs)
    n_tokens = sum(lengths)
    say(f"  {n_differ:,} of {n_tokens:,} tokens carry another label than that of the highest logit")
    if n_differ > MAY_DIFFER * n_tokens and not isinstance(head.source, NerSource):
        raise ValueError("The logits are not those that the pipeline chose its tags by.")
    gold = columns_of(np.concatenate(golds), head.labels).astype(np.int64)
    return np.concatenate(logits), gold, np.repeat(np.array(numbers, dtype=np.int64), lengths), Words.concatenate(words)
