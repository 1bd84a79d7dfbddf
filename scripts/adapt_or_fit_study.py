"""Labelled sentences for a pipeline with pretrained entities: fit anew, adapt the card, or leave it? A comparison, as Markdown.

    python scripts/adapt_or_fit_study.py --cache DIR choose
    python scripts/adapt_or_fit_study.py --cache DIR judge

The rule of `calibration.replacement` was chosen on `choose`: four sources, each with a card that was fitted without it, two that no card saw,
and three planted shifts. `judge` has two others that no card saw, and two other planted shifts. Documents are drawn until so many sentences are labelled; what `calib fit` and
`calib adapt` make of them is judged on up to 1,500 other documents by log loss per entity, and so is what the rule takes, which sees
held-out scores of the labelled documents alone. "Above the card": draws in which what was chosen loses more than the card by over .03.
ORG that the gold of a planted shift lacks counts as wrong, as for gold that is complete. `--event exact` judges by exact spans, which is
what the fit then learns, and the card does not. SPACY_CALIB_DATA names the data.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from frame import MODEL, head, make_parser, row, save_tables, say
from pretrain.entities import Judged, fit_map, judge_examples
from pretrain.sources import ENTITIES, TO_THREE, Source, rows_of_words, to_examples
from quality.readers import Documents
from spacy import util
from spacy.training import Example

from spacy_calib.calibration.adaptation.adaptation import OF_PRETRAINED_SPANS, GoldEntries
from spacy_calib.calibration.adaptation.fitting import AdaptationFit
from spacy_calib.calibration.replacement import ADAPTED, FIT, PRESENT, compare_losses
from spacy_calib.cli.fitting.new_calib import add_calib, block_to_fit
from spacy_calib.gold.reading import from_files
from spacy_calib.metrics import log_losses
from spacy_calib.pipe.loading import load_with_factories
from spacy_calib.plugins.pretrained.evidence import NEEDS
from spacy_calib.types import Floats, Groups, Ints

SIZES, DRAWS = (30, 100, 300), 20
# So many other documents judge a draw, at most.
MOST = 1500
FULL = next(iter(NEEDS))
CARD_EVENT = "article"
KINDS = ("raw", "card", "adapt", "fit")
KIND_OF = {PRESENT: "card", ADAPTED: "adapt", FIT: "fit"}
# So much more log loss than the card's counts as above it.
ABOVE = 0.03


# Data


def crossner(field: str) -> Documents:
    """A field of CrossNER in runs of ten sentences."""
    sentences = [sentence for (sentence,) in rows_of_words("crossner", field)]
    return [sentences[start : start + 10] for start in range(0, len(sentences), 10)]


def without_gold(source: Source, label: str, share: float) -> Source:
    """The same source without a random share of its gold entities of one type."""

    def read() -> Documents:
        rng, documents = random.Random(0), source.read()
        for sentence in (sentence for document in documents for sentence in document):
            dropped = False
            for i, tag in enumerate(sentence.gold["ents"]):
                dropped = dropped and tag.startswith("I-") or tag == f"B-{label}" and rng.random() < share
                if dropped:
                    sentence.gold["ents"][i] = "O"
        return documents

    return replace(source, name=f"{source.name} - {share:g} {label}", read=read)


def _sources() -> dict[str, list[tuple[Source, str]]]:
    """Set -> its sources, each with the source that its card was fitted without, "" for a card of all four."""
    by_name = {source.name: source for source in ENTITIES}

    def field(name: str) -> tuple[Source, str]:
        return Source(f"CrossNER {name}", "", "", "MIT", partial(crossner, name), TO_THREE, fitted=False), ""

    def shifted(name: str, label: str, share: float) -> tuple[Source, str]:
        return without_gold(by_name[name], label, share), name

    return {
        "choose": [
            *((source, source.name) for source in ENTITIES),
            *(field(name) for name in ("science", "ai")),
            *(shifted(*how) for how in (("UNER-PUD", "LOC", 1.0), ("WNUT-17", "PER", 0.5), ("Broad Twitter", "ORG", 1.0))),
        ],
        "judge": [
            *(field(name) for name in ("politics", "music")),
            *(shifted(*how) for how in (("UNER-EWT", "ORG", 1.0), ("Broad Twitter", "PER", 0.5))),
        ],
    }


@dataclass(frozen=True, eq=False)
class Texts:
    """A source that the pipeline has read. examples (list): One of each document. n_sentences (Ints): Of each. judged (Judged): Its entities."""

    name: str
    label_map: dict[str, str]
    examples: list[Example]
    n_sentences: Ints
    judged: Judged

    @property
    def documents(self) -> Ints:
        """The document of each entity whose gold is known."""
        return self.judged.documents[self.judged.chosen]

    def draw(self, size: int, seed: int) -> tuple[Ints, Ints]:
        """(labelled documents, documents to judge by): random ones, until so many sentences are labelled; of the others MOST at most."""
        order = np.random.default_rng(seed).permutation(len(self.examples))
        n = int(np.searchsorted(np.cumsum(self.n_sentences[order]), size)) + 1
        return np.sort(order[:n]), np.sort(order[n : n + MOST])


def read_texts(nlp: Any, source: Source) -> Texts:
    say(f"Reading {source.name}")
    documents = [document for document in source.read() if any(sentence.words for sentence in document)]
    with nlp.select_pipes(enable=["tok2vec", "tagger", "parser", "ner"]):
        examples = list(to_examples(nlp, documents, source.size))
    judged = judge_examples(nlp, examples, source.label_map)
    assert all(len(example.predicted) for example in examples)
    return Texts(source.name, source.label_map, examples, np.array([len(document) for document in documents]), judged)


# What is made of labelled documents


def fit_scores(nlp: Any, texts: Texts, labelled: Ints, others: Ints, event: str) -> tuple[Floats, Floats]:
    """(held-out scores of the entities of labelled documents, scores of those of others) by `calib fit` with its defaults."""
    _, (name, settings) = block_to_fit(nlp, None, {"component": "ner", "event": event})
    calib: Any = add_calib(nlp, name, settings, texts.label_map)
    calib.fit(from_files([[texts.examples[i] for i in labelled]]), min_pairs=10, n_bins=10)
    docs = [texts.examples[i].predicted for i in others]
    batches = [calib.predict(batch).batch.spans for batch in util.minibatch(docs, 256)]
    scores = np.concatenate([batch.calibrated[batch.spans.on_doc] for batch in batches])
    nlp.remove_pipe(name)
    return calib.held_out_spans.held_out, scores


def adapt_scores(entries: GoldEntries, groups: Groups, train: Ints, test: Ints) -> tuple[Floats, Floats]:
    """(held-out scores of entities of labelled documents, scores of others) by `calib adapt`."""
    fit, others = AdaptationFit.from_entries(entries.take(train), groups, OF_PRETRAINED_SPANS), entries.take(test)
    held_out = entries.scores[train] if fit.held_out is None else fit.held_out
    return held_out, fit.adaptation.adjust(others.scores, others.is_top, others.tags)


def compare(nlp: Any, texts: Texts, table: Mapping[str, float], draw: tuple[Ints, Ints], event: str) -> dict[str, Any]:
    """Losses of entities by each kind: held out on labelled documents, with the document of each, and the mean on others."""
    judged, documents = texts.judged, texts.documents
    train, test = (np.flatnonzero(np.isin(documents, part)) for part in draw)
    scores, raw, right = judged.score(table), judged.raw[judged.chosen], judged.right(event)
    entries = GoldEntries(
        scores, judged.right(CARD_EVENT), np.ones(len(scores), dtype=bool), judged.evidence.spans.labels, documents
    )
    groups = Groups(judged.labels, np.arange(len(judged.labels)))
    kinds = {
        "raw": (raw[train], raw[test]), "card": (scores[train], scores[test]), "adapt": adapt_scores(entries, groups, train, test),
        "fit": fit_scores(nlp, texts, *draw, event),
    }  # fmt: skip
    return {
        "documents": documents[train],
        "held_out": {kind: log_losses(of_train, right[train]) for kind, (of_train, _) in kinds.items()},
        "test": {kind: float(log_losses(of_test, right[test]).mean()) for kind, (_, of_test) in kinds.items()},
    }


def gather(which: str, event: str, cache: Path) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """Yield (source, sentences, what each draw gave)."""
    nlp: Any = None
    texts_by_name: dict[str, Texts] = {}

    def texts_of(source: Source) -> Texts:
        nonlocal nlp
        nlp = nlp or load_with_factories(MODEL, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
        if source.name not in texts_by_name:
            texts_by_name[source.name] = read_texts(nlp, source)
        return texts_by_name[source.name]

    for source, left_out in _sources()[which]:
        table: Any = None
        for size in SIZES:
            file = cache / "adapt_or_fit" / f"{source.name}-{event}-{size}.pkl".replace(" ", "_")
            if not file.exists():
                if table is None:
                    others = [texts_of(other).judged for other in ENTITIES if other.name != left_out]
                    table = fit_map(FULL, others, CARD_EVENT)
                texts = texts_of(source)
                say(f"{source.name}: {size} sentences")
                draws = [compare(nlp, texts, table, texts.draw(size, seed), event) for seed in range(DRAWS)]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(pickle.dumps(draws))
            yield source.name, size, pickle.loads(file.read_bytes())


# The table


def choose(draw: Mapping[str, Any]) -> str:
    """What the rule takes."""
    losses = {kind: draw["held_out"][way] for kind, way in ((PRESENT, "card"), (ADAPTED, "adapt"), (FIT, "fit"))}
    return compare_losses(losses, draw["documents"]).winner if len(draw["documents"]) else PRESENT


def show_row(name: str, size: int, draws: Sequence[Mapping[str, Any]]) -> None:
    """Print the means over the draws."""
    winners = [choose(draw) for draw in draws]
    losses = {kind: np.array([draw["test"][kind] for draw in draws]) for kind in KINDS}
    chosen = np.array([draw["test"][KIND_OF[winner]] for draw, winner in zip(draws, winners, strict=True)])
    means = [float(losses[kind].mean()) for kind in KINDS]
    entities = np.mean([len(draw["documents"]) for draw in draws])
    above = int((chosen > losses["card"] + ABOVE).sum())
    taken = "/".join(str(winners.count(winner)) for winner in KIND_OF)
    row(
        name, size, f"{entities:.0f}", *(f"{mean:.3f}" for mean in means), f"{chosen.mean():.3f}",
        f"{chosen.mean() - min(means[1:]):+.3f}", f"{chosen.mean() - means[3]:+.3f}", above, taken,
    )  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__, _sources(), cache=True, output=True)
    parser.add_argument(
        "--event",
        default=CARD_EVENT,
        choices=(CARD_EVENT, "exact"),
        help="when an entity is right (default: article, that of the card)",
    )
    arguments = parser.parse_args()
    for which in arguments.names:
        print(f"\n{which}, event {arguments.event}, {DRAWS} draws\n")
        head(
            "| source | sentences | entities | raw | card | adapt | fit | chosen | less the best | less fit | above the card | card/adapt/fit taken |",
        )
        for name, size, draws in gather(which, arguments.event, arguments.cache):
            show_row(name, size, draws)
    save_tables(arguments.output)


if __name__ == "__main__":
    main()
