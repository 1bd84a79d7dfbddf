"""The data sets of the quality benchmark: a model's logits on held-out data to fit on and on data to judge, with gold.

Each set is a folder `<cache>/quality/sets/<name>/` of arrays, made once; the models behind them are trained with the configs of the
repository, once too, into `<cache>/quality/models/`. Nothing of the fit or test data takes part in training: the checkpoint is
chosen on documents left out of train. SPACY_CALIB_DATA names the data; Porttinari and DANTEStocks come from the package dante-corpora.
Training runs in one thread with seed 0, so that a set is the same each time on the same machine.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from frame import MODEL, docs_in, say
from numpy.typing import NDArray
from quality import readers
from quality.models import RECIPES, load_head, read, trained
from quality.readers import Documents

from spacy_calib.cli.shared.writing import write_folder
from spacy_calib.context.words import Words

THRESHOLD = 0.01


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a data set, n tokens.

    logits (NDArray): Before the softmax, float32, shape (n, n_labels); for NER the logs of the marginals.
    gold (NDArray): Column of the gold label, shape (n,): -1 where the model does not know it, -2 where there is none.
    documents (NDArray): Number of the document, shape (n,), ascending.
    words (Words): What stands in the tokens, as hashes; its Docs are those that the model read.
    """

    logits: NDArray[np.float32]
    gold: NDArray[np.int64]
    documents: NDArray[np.int64]
    words: Words

    def take(self, mask: NDArray[np.bool_]) -> Split:
        """Some of the tokens, whole Docs of them. mask (NDArray): Which, shape (n,)."""
        words = self.words
        starts = np.cumsum([0, *np.diff(words.starts)[mask[words.starts[:-1]]]])
        chosen_words = Words(starts, words.forms[mask], words.endings[mask], words.shapes[mask], words.counts[mask])
        return Split(self.logits[mask], self.gold[mask], self.documents[mask], chosen_words)


@dataclass(frozen=True, eq=False)
class DataSet:
    """What a method is fitted on and judged on.

    labels (tuple): One per column of the logits. counts (tuple[int]): Gold frequency of each label in the model's training data, or
        else in the fit data. accuracy (float): Share of the test tokens with gold that the highest logit gets right.
    """

    name: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    accuracy: float
    fit: Split
    test: Split


def share_right(split: Split) -> float:
    """Accuracy over the tokens with gold."""
    has_gold = split.gold != -2
    return float((split.logits.argmax(axis=1) == split.gold)[has_gold].mean())


# Data sets


def ewt_tagger(cache: Path) -> DataSet:
    """The stock tagger of en_core_web_sm: its training data is not to be had, so the counts are those of the fit data."""
    documents = readers.ewt("dev", "tags"), readers.ewt("test", "tags")
    model = load_head(MODEL, "tagger")
    counts = model.counts(doc for _, doc in readers.make_docs(documents[0], model.nlp.vocab))
    fit, test = (Split(*read(model, part)) for part in documents)
    return DataSet("ewt-tagger", model.labels, counts, share_right(test), fit, test)


def of_trained(name: str, cache: Path) -> DataSet:
    """A data set of a model of ours."""
    recipe, parts = OF_TRAINED[name]
    folder = trained(recipe, cache)
    model = load_head(folder / "model-best", RECIPES[recipe].component)
    counts = model.counts(iter(docs_in(folder / "train.spacy", model.nlp.vocab)))
    fit, test = (Split(*read(model, part)) for part in parts())
    return DataSet(name, model.labels, counts, share_right(test), fit, test)


# Name -> recipe of the model, what reads (fit, test); the quick ones first. Porttinari-base is Portuguese news (UPOS+FEATS), of which 65 % train.
OF_TRAINED: dict[str, tuple[str, Callable[[], tuple[Documents, Documents]]]] = {
    # ARK Twitter (Oct27); a document is a tweet
    "ark": ("ark", lambda: (readers.ark("dev"), readers.ark("test"))),
    # Judged on Daily547, later tweets
    "ark-shift": ("ark", lambda: (readers.ark("dev"), readers.ark("daily547"))),
    # Lextags; a document is a review
    "streusle": ("streusle", lambda: (readers.streusle("dev"), readers.streusle("test"))),
    # Three fifths of the files of the Penn Treebank sample train; a document is a file
    "ptb": ("ptb", lambda: (readers.ptb()["fit"], readers.ptb()["test"])),
    "porttinari": ("porttinari", lambda: (readers.dante("porttinari", "fit"), readers.dante("porttinari", "test"))),
    # Fit on half of DANTEStocks, judged on the other half; a document is a tweet
    "tweets": ("porttinari", lambda: (readers.dante("dantestocks", "fit"), readers.dante("dantestocks", "test"))),
    "tweets-shift": ("porttinari", lambda: (readers.dante("porttinari", "fit"), readers.dante("dantestocks", "test"))),
    # Type-level marginals; each part is from other platforms, and a document is a sentence
    "wnut17": ("wnut17", lambda: (readers.entities("wnut17", "dev"), readers.entities("wnut17", "test"))),
    "ewt-morph": ("ewt-morph", lambda: (readers.ewt("dev", "morphs"), readers.ewt("test", "morphs"))),
    "brown": ("brown", lambda: (readers.brown("dev"), readers.brown("test"))),
    # Judged on every fifth sentence
    "wikineural": (
        "wikineural",
        lambda: (readers.entities("wikineural_en", "dev"), readers.entities("wikineural_en", "test", step=5)),
    ),
}
# Name -> what makes it in memory, given the cache
DATA_SETS: dict[str, Callable[[Path], DataSet]] = {
    "ewt-tagger": ewt_tagger,
    **{name: partial(of_trained, name) for name in OF_TRAINED},
}
ABOUT = ("name", "labels", "counts", "accuracy")
# Of a part: its own, and those of its words
ARRAYS = ("logits", "gold", "documents")
OF_WORDS = ("starts", "forms", "endings", "shapes", "counts")


def write(data: DataSet, folder: Path) -> None:
    """Put a data set into an existing folder."""
    about = {key: getattr(data, key) for key in ABOUT}
    (folder / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    for part in ("fit", "test"):
        split: Split = getattr(data, part)
        arrays = {**vars(split), **vars(split.words)}
        for array in (*ARRAYS, *OF_WORDS):
            np.save(folder / f"{part}_{array}.npy", arrays[array])


def is_whole(folder: Path) -> bool:
    """It is there, with the words that sets made earlier do not have."""
    return all((folder / f"{part}_{array}.npy").exists() for part in ("fit", "test") for array in (*ARRAYS, *OF_WORDS))


def prepare(name: str, cache: Path) -> Path:
    """The folder of a data set, made if it is not there: whole or not at all."""
    folder = cache / "quality" / "sets" / name
    if not is_whole(folder):
        shutil.rmtree(folder, ignore_errors=True)
        say(f"Making {name} ...")
        data = DATA_SETS[name](cache)
        write_folder(folder, lambda partial: write(data, partial))
    return folder


def load(folder: Path) -> DataSet:
    """A data set from its folder; the arrays stay on the disk until they are read."""
    about = json.loads((folder / "about.json").read_text(encoding="utf8"))
    labels, counts = tuple(about.pop("labels")), tuple(about.pop("counts"))
    return DataSet(**about, labels=labels, counts=counts, fit=load_split(folder, "fit"), test=load_split(folder, "test"))


def load_split(folder: Path, part: str) -> Split:
    logits, gold, documents = (np.load(folder / f"{part}_{array}.npy", mmap_mode="r") for array in ARRAYS)
    return Split(logits, gold, documents, Words(*(np.load(folder / f"{part}_{array}.npy") for array in OF_WORDS)))
