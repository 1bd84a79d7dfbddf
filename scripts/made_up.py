"""Made-up data, as small as the scripts of this folder can do with, in the form of the real data sets."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

WORDS = {
    "DT": ("DET", "Definite=Def", "the a this every"),
    "NN": ("NOUN", "Number=Sing", "dog bank market price book light report run study duck"),
    "NNS": ("NOUN", "Number=Plur", "dogs banks prices books reports runs"),
    "VBD": ("VERB", "Tense=Past", "saw bought closed found read opened"),
    "VBZ": ("VERB", "Tense=Pres", "sees buys reports runs books studies"),
    "JJ": ("ADJ", "Degree=Pos", "old light open new green"),
    "RB": ("ADV", "_", "early often back well"),
    "IN": ("ADP", "_", "in on of under like"),
    "NNP": ("PROPN", "Number=Sing", "Anna Paris Google Smith May"),
    ".": ("PUNCT", "_", ". ! ?"),
}
TEMPLATES = ("DT JJ NN VBD DT NN IN NNP .", "NNP VBZ NNS IN DT NN RB .", "DT NNS IN NNP VBD RB .", "NNP VBD DT JJ NNS .")
ENTITIES = {"NNP": {"Anna": "PERSON", "Smith": "PERSON", "Paris": "GPE", "Google": "ORG", "May": "DATE"}}
NOISE = 0.08


class Word(NamedTuple):
    form: str
    upos: str
    tag: str
    feats: str


def sentences(n: int, seed: int) -> Iterator[list[Word]]:
    """Sentences of words that a tagger may well take for something else; some gold tags are wrong."""
    rng = random.Random(seed)
    for _ in range(n):
        made = []
        for slot in rng.choice(TEMPLATES).split():
            tag = rng.choice(list(WORDS)) if rng.random() < NOISE else slot
            upos, feats, _ = WORDS[tag]
            made.append(Word(rng.choice(WORDS[slot][2].split()), upos, tag, feats))
        yield made


def conllu(n: int, seed: int, sent_id: str, per_document: int = 2) -> str:
    """Sentences as CoNLL-U. sent_id (str): With {document} and {sentence} in it."""
    blocks = []
    for number, sentence in enumerate(sentences(n, seed)):
        document, place = divmod(number, per_document)
        lines = [f"# newdoc id = {seed}-{document}"] if not place else []
        lines += [
            f"# sent_id = {sent_id.format(document=document, sentence=place)}",
            f"# text = {' '.join(word.form for word in sentence)}",
        ]
        lines += [
            f"{i}\t{w.form}\t{w.form}\t{w.upos}\t{w.tag}\t{w.feats}\t{i - 1}\tdep\t_\t_" for i, w in enumerate(sentence, 1)
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n\n"


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A gzipped file of the shared data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def write_treebanks(folder: Path) -> None:
    """data/ud_english_ewt and some tweets as SPACY_CALIB_DATA has them, and a package `dante` with the files of dante-corpora."""
    for seed, (split, n) in enumerate({"dev": 480, "test": 240, "train": 120}.items()):
        path = folder / "data" / "ud_english_ewt" / f"{split}.conllu.gz"
        write_lines(path, [conllu(n, seed, f"{split}-{{document}}-{{sentence}}")])
    tweets = (f"{w.form}\t{w.tag}" if w else "" for s in sentences(60, 7) for w in (*s, None))
    write_lines(folder / "data" / "ark_twpos" / "test.tsv.gz", tweets)
    banks = {
        "porttinari": "FOLHA_DOC{document}_SENT{sentence}",
        "petrogold": "{document}_0-{sentence}",
        "dantestocks": "t{document}x{sentence}",
    }
    for seed, (name, sent_id) in enumerate(banks.items()):
        path = folder / "dante" / "data" / name / "annotated.conllu"
        path.parent.mkdir(parents=True)
        path.write_text(conllu(800 if name == "porttinari" else 120, 10 + seed, sent_id), encoding="utf8")
    (folder / "dante" / "__init__.py").touch()


def write_polarity(folder: Path) -> None:
    """data/sentence_polarity: snippets of a label and a text, of nouns and of words that one label has more often."""
    rng = random.Random(8)
    words = {"pos": ["fine", "warm", "clever", "funny"], "neg": ["dull", "cold", "empty", "loud"]}
    for split, n in {"train": 400, "dev": 200, "test": 200}.items():
        lines = []
        for _ in range(n):
            label = rng.choice(("pos", "neg"))
            own, other = words[label], words["neg" if label == "pos" else "pos"]
            said = [rng.choice(own if rng.random() < 0.6 else other) for _ in range(3)]
            lines.append(f"{label}\ta {' '.join(said)} {rng.choice(WORDS['NN'][2].split())} .")
        write_lines(folder / "data" / "sentence_polarity" / f"{split}.tsv.gz", lines)


def write_chunks(folder: Path) -> None:
    """data/conll2000: noun phrases, a word, its tag and its chunk on each line; the word before tells most of it."""
    rng = random.Random(9)
    for split, n in {"train": 60, "test": 30}.items():
        lines = []
        for _ in range(n):
            for _ in range(rng.randint(1, 3)):
                noun = "I-NP" if rng.random() < 0.9 else "B-NP"
                lines += ["the DT B-NP", f"{rng.choice(('dog', 'duck', 'light'))} NN {noun}", "ran VBD B-VP"]
            lines.append("")
        write_lines(folder / "data" / "conll2000" / f"{split}.txt.gz", lines)


def write_names(folder: Path) -> None:
    """data/wikineural_en: a word and its entity tag on each line; each of 48 names goes with words of its own."""
    rng = random.Random(11)
    for split, n in {"train": 700, "test": 500}.items():
        lines = []
        for _ in range(n):
            name = rng.randrange(48)
            about = f"in-{name if rng.random() < 0.7 else rng.randrange(48)}"
            lines += [f"Name-{name}\tB-PER", "went\tO", f"{about}\tO", f"{rng.choice(('often', 'never'))}\tO", ".\tO", ""]
        write_lines(folder / "data" / "wikineural_en" / f"{split}.conll.gz", lines)


def write_letters(folder: Path) -> None:
    """data/ocr_letters: words of a few letters, each letter 16 x 8 pixels of which a fifth are turned over."""
    rng = np.random.default_rng(10)
    (folder / "data" / "ocr_letters").mkdir()
    shapes = rng.random((26, 128)) < 0.3
    known = [rng.integers(0, 26, rng.integers(2, 6)) for _ in range(8)]
    words = [known[i] for i in rng.integers(0, len(known), 220)]
    labels = np.concatenate(words)
    pixels = shapes[labels] ^ (rng.random((len(labels), 128)) < 0.2)
    offsets = np.cumsum([0, *map(len, words)])
    path = folder / "data" / "ocr_letters" / "letters.npz"
    np.savez(
        path, pixels_packed=np.packbits(pixels, axis=1), labels=labels.astype(np.int8), word_offsets=offsets.astype(np.int32)
    )


def write_entities(path: Path, n: int, seed: int) -> None:
    """Gold entities with the labels of the model."""
    vocab = Vocab()
    docs = []
    for sentence in sentences(n, seed):
        doc = Doc(vocab, words=[word.form for word in sentence], sent_starts=[i == 0 for i in range(len(sentence))])
        named = [(i, ENTITIES["NNP"].get(word.form)) for i, word in enumerate(sentence)]
        doc.set_ents([Span(doc, i, i + 1, label) for i, label in named if label], default="outside")
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)


def write_heads(folder: Path) -> Path:
    """Gold tags, and a CRF and a tagger that learned from them for a moment, as configs/streusle_lsr has them."""
    nlps = {"tiny-crf": spacy.blank("en"), "tiny-softmax": spacy.blank("en")}
    golds = {}
    for name in nlps:
        (folder / name).mkdir(parents=True)
    for seed, split in enumerate(("train", "dev", "test")):
        made = sentences(150, 30 + seed)
        golds[split] = [Doc(nlps["tiny-crf"].vocab, words=[w.form for w in one], tags=[w.tag for w in one]) for one in made]
        DocBin(docs=golds[split]).to_disk(folder / f"{split}.spacy")
    for (name, nlp), component in zip(nlps.items(), ("calib_crf", "tagger"), strict=True):
        nlp.add_pipe(component)
        examples = [Example(Doc(nlp.vocab, words=[token.text for token in gold]), gold) for gold in golds["train"]]
        optimizer = nlp.initialize(partial(iter, examples))
        for _ in range(8):
            nlp.update(examples, sgd=optimizer)
        nlp.to_disk(folder / name / "model-best")
    return folder


def write_coref(path: Path, n: int, seed: int) -> None:
    """Gold clusters: names, and the pronoun that follows."""
    rng, vocab = random.Random(seed), Vocab()
    docs = []
    for _ in range(n):
        names = [rng.choice(("Anna", "Smith", "May")) for _ in range(6)]
        again = ["he" if rng.random() < 0.8 else "Paris" for _ in names]
        words = [word for pair in zip(names, again, strict=True) for word in (pair[0], "saw", "it", ".", pair[1], "slept", ".")]
        doc = Doc(vocab, words=words, sent_starts=[i % 7 in (0, 4) for i in range(len(words))])
        for number, name in enumerate(dict.fromkeys(names), start=1):
            places = [7 * i for i, one in enumerate(names) if one == name]
            doc.spans[f"coref_clusters_{number}"] = [doc[i : i + 1] for place in places for i in (place, place + 4)]
        doc.spans["coref_mentions"] = [doc[i : i + 1] for i in range(len(words)) if i % 7 in (0, 4)]
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)


def write_data(folder: Path) -> None:
    """All that stands where SPACY_CALIB_DATA points, in `data`, and the package `dante`."""
    for write in (write_treebanks, write_polarity, write_chunks, write_names, write_letters):
        write(folder)
