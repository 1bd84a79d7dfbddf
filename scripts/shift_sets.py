"""Pipelines that are calibrated in domain, and gold in domain and out of domain: what shift_table.py looks at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo import prepare, train_pipeline
from frame import MODEL
from quality import readers
from quality.models import trained, write_docs
from quality.readers import Documents, Sentence

TO_WIKINEURAL = {
    "person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG", "creative-work": "MISC", "product": "MISC",
}  # fmt: skip
OF_SPACY = {
    "PERSON": "PER", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "ORG": "ORG", "WORK_OF_ART": "MISC", "PRODUCT": "MISC",
    **dict.fromkeys(("NORP", "EVENT", "LAW", "LANGUAGE", "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"), ""),
}  # fmt: skip
# Of WikiNEuRal's test sentences, the first of so many.
EVERY = 3
WHOLE = 10**9


@dataclass(frozen=True)
class Experiment:
    """A pipeline that is calibrated in domain.

    fit (Path): Gold in domain. in_domain (dict[str, Path]): Other gold in domain, by name. out_of_domain (dict[str, Path]): Gold of other kinds of text.
    options (dict): Of `spacy calib fit`.
    """

    model: str
    component: str
    fit: Path
    in_domain: dict[str, Path] = field(default_factory=dict)
    out_of_domain: dict[str, Path] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def write(documents: Documents, file: Path, size: int = WHOLE) -> Path:
    write_docs(documents, file, size)
    return file


def porttinari(cache: Path, folder: Path) -> Iterator[Experiment]:
    """The demo's morphologizer: news in domain, theses and tweets out of domain. A Doc has ten sentences, or is a tweet."""
    corpus, training = cache / "demo" / "corpus", cache / "demo" / "training"
    if not (training / "model-best").exists():
        corpus.mkdir(parents=True, exist_ok=True)
        prepare(corpus)
        train_pipeline(corpus, training, None)
    out_of_domain = {"PetroGold": corpus / "petrogold.spacy", "DANTEStocks": corpus / "dantestocks.spacy"}
    in_domain, options = {"Porttinari test": corpus / "test.spacy"}, {"train_data": corpus / "train.spacy"}
    yield Experiment(str(training / "model-best"), "morphologizer", corpus / "fit.spacy", in_domain, out_of_domain, options)


def ewt(cache: Path, folder: Path) -> Iterator[Experiment]:
    """The tagger of en_core_web_sm: EWT in domain, and each genre out of domain, where the maps are fitted on all others. A Doc is a document."""
    parts = {split: readers.ewt(split, "tags") for split in ("dev", "test")}
    files = {split: write(documents, folder / f"ewt-{split}.spacy") for split, documents in parts.items()}
    yield Experiment(MODEL, "tagger", files["dev"], {"EWT test": files["test"]})
    every = parts["dev"] + parts["test"]
    for genre in sorted({genre_of(document) for document in every}):
        own, others = (
            write([one for one in every if (genre_of(one) == genre) == is_own], folder / f"{genre}-{is_own}.spacy")
            for is_own in (True, False)
        )
        yield Experiment(MODEL, "tagger", others, out_of_domain={f"EWT {genre}": own})


def genre_of(document: list[Sentence]) -> str:
    """Of a document of EWT: what its name begins with."""
    return document[0].document.partition("-")[0]


def wikineural(cache: Path, folder: Path) -> Iterator[Experiment]:
    """A small recognizer: Wikipedia in domain, WNUT-17 out of domain. A Doc is a sentence."""
    yield entities_of("small", str(trained("wikineural", cache) / "model-best"), folder)


def en_core_web_sm(cache: Path, folder: Path) -> Iterator[Experiment]:
    """The recognizer of en_core_web_sm on the same."""
    label_map = ",".join(f"{own}={other}" for own, other in OF_SPACY.items())
    yield entities_of("en_core_web_sm", MODEL, folder, label_map=label_map)


def entities_of(name: str, model: str, folder: Path, **options: Any) -> Experiment:
    dev, test = (
        write(readers.entities("wikineural_en", split, every), folder / f"wikineural-{split}.spacy")
        for split, every in (("dev", 1), ("test", EVERY))
    )
    tweets = write(readers.entities("wnut17", "test", rename=TO_WIKINEURAL), folder / "wnut17.spacy")
    return Experiment(model, "ner", dev, {f"WikiNEuRal, {name}": test}, {f"WNUT-17, {name}": tweets}, options)


EXPERIMENTS = {made.__name__: made for made in (porttinari, ewt, wikineural, en_core_web_sm)}
