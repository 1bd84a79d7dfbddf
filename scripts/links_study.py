"""Are links of entities calibrated, and from how many labels? Names of WikiNEuRal (SPACY_CALIB_DATA) with made-up ambiguity, as Markdown.

    python scripts/links_study.py
    python scripts/links_study.py --identities 80 --judged 100 --draws 1 --groupings 1 --size 20

Identities are the names (PER, LOC, ORG) with 5 mentions or more in the train file. They are drawn into groups of 8, and in all texts each name of a group is
replaced by one word, so that only the rest of the sentence and the prior tell which of the 8 is meant. One identity of 6 is not in the knowledge base:
its gold is NIL. Priors are counts of the train file (each plus a half), what the knowledge base lacks among them. Vectors are those of latent semantic
analysis (Deerwester et al. 1990): 200 singular vectors of the words of the train file's sentences, by inverse document frequency; a sentence is the sum of
its words, an identity the mean of its sentences in the train file. The linker is spaCy's, with these vectors in the place of a trained encoding, prior and
context on. Size of vectors, groups and the linker's settings were chosen on dev and the first half of test.

Labels to fit on are of the first half of the test file, what is judged of the second half. Told is the mean over drawings of the groups, and for 100 and
50 labels over draws of these.
Log loss is of the gold among the candidates and NIL: by the prior, with what the candidates leave for NIL; by spaCy's score, in proportion, NIL likewise;
by the conditional logit; and behind the steps that `calib fit` chooses (auto, with a threshold of 1e-6), in proportion. ECE is of P(the chosen one is right), in 10 bins: raw, which
is spaCy's score of it, and `Span._.calib_link`. Its floor is what exactly true probabilities would show: the mean over DRAWN drawings of the hits by
these probabilities, each entity by itself (a sentence seldom has two).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from frame import blocks, data_lines, head, make_parser, row
from spacy import blank
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Model
from tqdm import tqdm

from spacy_calib.annotations.base import NIL
from spacy_calib.cli.fitting.settings import DEFAULTS
from spacy_calib.metrics.calibration_errors import ece
from spacy_calib.plugins.links import Options
from spacy_calib.types import Floats, Ints, Pairs

OF_GROUP, ONE_OF, DRAWN = 8, 6, 200
LEAST = 1e-6


class Sentence(NamedTuple):
    """words (list[str]): With the words of groups in the place of names. links: (place, identity) of each of these."""

    words: list[str]
    links: list[tuple[int, str]]


def named(file: str) -> Iterator[list[tuple[str, bool]]]:
    """The sentences of a file: each a list of (text, whether it is a name) of names and other words."""
    for lines in blocks(data_lines("wikineural_en", f"{file}.conll")):
        found: list[tuple[str, bool]] = []
        for word, tag in (line.split("\t")[:2] for line in lines):
            is_name = tag[2:] in ("PER", "LOC", "ORG")
            if is_name and tag.startswith("I-") and found and found[-1][1]:
                found[-1] = (f"{found[-1][0]} {word}", True)
            else:
                found.append((word, is_name))
        yield found


def ambiguous(sentences: list[list[tuple[str, bool]]], word_of: dict[str, str]) -> list[Sentence]:
    """Those that hold a name of a group. word_of (dict): Identity -> the word of its group."""
    made = []
    for sentence in sentences:
        links = [(place, text) for place, (text, is_name) in enumerate(sentence) if is_name and text in word_of]
        if links:
            made.append(Sentence([word_of[text] if is_name and text in word_of else text for text, is_name in sentence], links))
    return made


class Bag:
    """Encodes a sentence as the sum of its words' vectors, those of the words of groups left out."""

    def __init__(self, sentences: list[list[tuple[str, bool]]], hidden: set[str], size: int):
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import svds

        words = [{text.lower() for text, _ in sentence} for sentence in sentences]
        found = Counter(word for own in words for word in own)
        place = {word: i for i, word in enumerate(sorted(word for word, n in found.items() if n > 1))}
        weight = np.log(len(words) / np.array([found[word] for word in place]))
        rows, columns = np.array([(i, place[word]) for i, own in enumerate(words) for word in sorted(own & place.keys())]).T
        table = csr_matrix((weight[columns], (rows, columns)), shape=(len(words), len(place)))
        directions = svds(table, k=size, random_state=0)[2]
        self.hidden, self.size = hidden, size
        self.vectors = dict(zip(place, directions.T * weight[:, None], strict=True))

    def __call__(self, words: list[str]) -> Floats:
        nothing = np.zeros(self.size)
        return np.sum(
            [nothing, *(self.vectors.get(word.lower(), nothing) for word in words if word not in self.hidden)], axis=0
        )

    def model(self) -> Model[Any, Any]:
        def forward(model: Any, docs: list[Doc], is_train: bool) -> Any:
            return np.array([self([token.text for token in doc]) for doc in docs], dtype=np.float32), lambda d: []

        return Model("bag_of_words", forward)


def linking(sentences: list[list[tuple[str, bool]]], word_of: dict[str, str], seed: int, size: int) -> Language:
    """A pipeline whose linker knows the identities of the groups, but for one of ONE_OF."""
    train = ambiguous(sentences, word_of)
    bag, counts = Bag(sentences, set(word_of.values()), size), Counter(text for one in train for _, text in one.links)
    sums = dict.fromkeys(word_of, np.zeros(size))
    for one in train:
        for _, text in one.links:
            sums[text] = sums[text] + bag(one.words) / counts[text]
    lacking = lacks(word_of, seed)
    nlp = blank("xx")
    nlp.add_pipe("sentencizer")
    linker: Any = nlp.add_pipe("entity_linker", config={"entity_vector_length": size, "overwrite": True})

    def load(vocab: Any) -> InMemoryLookupKB:
        kb = InMemoryLookupKB(vocab, entity_vector_length=size)
        known = [text for text in word_of if text not in lacking]
        kb.set_entities(known, [counts[text] for text in known], [sums[text].tolist() for text in known])
        for word in dict.fromkeys(word_of.values()):
            group = [text for text in word_of if word_of[text] == word]
            total = sum(counts[text] + 0.5 for text in group)
            own = [text for text in group if text not in lacking]
            kb.add_alias(word, own, [(counts[text] + 0.5) / total for text in own])
        return kb

    linker.set_kb(load)
    linker.model = bag.model()
    return nlp


def lacks(word_of: dict[str, str], seed: int) -> set[str]:
    texts = list(word_of)
    return set(np.random.default_rng([2, seed]).choice(texts, len(texts) // ONE_OF, replace=False).tolist())


def example(nlp: Language, sentence: Sentence, lacking: set[str]) -> Example:
    """Entities on both Docs, links on the gold, and on the predicted one what the linker says."""
    docs = [Doc(nlp.vocab, words=sentence.words) for _ in range(2)]
    for doc, gold in zip(docs, (False, True), strict=True):
        links = [(place, NIL if text in lacking else text) for place, text in sentence.links]
        doc.ents = [Span(doc, place, place + 1, label="NAME", kb_id=text if gold else "") for place, text in links]
    return Example(nlp.get_pipe("entity_linker")(nlp.get_pipe("sentencizer")(docs[0])), docs[1])


class Judged(NamedTuple):
    """options (Options): Of entities with gold. gold (Ints): The right option of each."""

    options: Options
    gold: Ints


def judged(nlp: Language, examples: list[Example]) -> Judged:
    options = Options.from_docs(nlp.get_pipe("entity_linker"), [one.predicted for one in examples])
    wanted = [entity.kb_id_ for one in examples for entity in one.reference.ents]
    places = [
        next(i for i in range(first, last) if options.names[i] == name)
        for name, first, last in zip(wanted, options.starts[:-1].tolist(), options.starts[1:].tolist(), strict=True)
    ]
    return Judged(options, np.array(places, dtype=np.intp))


def loss(scores: Floats, data: Judged) -> float:
    """Mean log loss of the gold, by shares of the scores of each entity."""
    sums = np.add.reduceat(scores, data.options.starts[:-1])
    return float(-np.log(np.clip(scores[data.gold] / sums, LEAST, 1)).mean())


def with_rest(scores: Floats, data: Judged) -> Floats:
    """The scores, and for NIL what the priors of its candidates leave."""
    made = np.maximum(scores, LEAST)
    made[data.options.nil] = np.maximum(1.0 - np.add.reduceat(data.options.prior, data.options.starts[:-1]), LEAST)
    return made


def chosen_error(scores: Floats, hits: Any) -> float:
    n = np.arange(len(scores))
    return float(ece(Pairs(n, np.zeros(len(n), dtype=np.intp), np.clip(scores, 0, 1), hits, len(n))) or 0.0)


def floor_of(scores: Any) -> float:
    """The error of `chosen_error` where the scores are exactly true."""
    rng = np.random.default_rng(4)
    return float(np.mean([chosen_error(scores, rng.random(len(scores)) < scores) for _ in range(DRAWN)]))


class Told(NamedTuple):
    logit: float
    steps: float
    error: float
    floor: float


def fitted(nlp: Language, fit: list[Example], judge: list[Example], data: Judged) -> Told:
    """What a calib pipe fitted on some examples says of others."""
    if "calib" in nlp.pipe_names:
        nlp.remove_pipe("calib")
    source = {"@calib_sources": "spacy-calib.EntityLinker.v1", "component": "entity_linker"}
    calib: Any = nlp.add_pipe("calib", config={**DEFAULTS, "source": source, "threshold": LEAST})
    calib.fit(fit)
    read = calib.source.read(nlp.get_pipe("entity_linker"), [one.predicted for one in judge])
    of_option = dict(
        zip(zip(read.marginals.rows.tolist(), read.marginals.names or (), strict=True), read.marginals.scores, strict=True)
    )
    rows = np.repeat(data.options.rows, np.diff(data.options.starts)).tolist()
    logit = np.array([of_option[row, name] for row, name in zip(rows, data.options.names, strict=True)])
    links = [entity for doc in calib.pipe(one.predicted for one in judge) for entity in doc.ents]
    steps = np.array([entity._.calib_links.get(name, LEAST) for entity, name in _each(links, data.options)])
    hits = [data.options.names[place] == entity.kb_id_ for entity, place in zip(links, data.gold.tolist(), strict=True)]
    scores = np.array([entity._.calib_link or 0.0 for entity in links])
    return Told(loss(logit, data), loss(steps, data), chosen_error(scores, np.array(hits)), floor_of(scores))


def _each(links: list[Span], options: Options) -> Iterator[tuple[Span, str]]:
    for entity, first, last in zip(links, options.starts[:-1].tolist(), options.starts[1:].tolist(), strict=True):
        yield from ((entity, name) for name in options.names[first:last])


def some(examples: list[Example], n: int, seed: int) -> list[Example]:
    """Examples with n entities together, drawn."""
    found: list[Example] = []
    for place in np.random.default_rng([3, seed]).permutation(len(examples)).tolist():
        if sum(len(one.reference.ents) for one in found) < n:
            found.append(examples[place])
    return found


def study(
    train: list[list[tuple[str, bool]]], test: list[list[tuple[str, bool]]], options: Any, seed: int
) -> dict[str, Floats]:
    """What is known of each row of the table, for one drawing of the groups: the cells, NaN for none; and under "" what it is of."""
    counts = Counter(text for sentence in train for text, is_name in sentence if is_name)
    texts = sorted(text for text, n in counts.items() if n >= 5)
    texts = np.random.default_rng([1, seed]).permutation(texts)[: options.identities].tolist()
    word_of = {text: f"Name{number // OF_GROUP}" for number, text in enumerate(texts[: len(texts) // OF_GROUP * OF_GROUP])}
    nlp, lacking = linking(train, word_of, seed, options.size), lacks(word_of, seed)
    halves = [ambiguous(part, word_of) for part in (test[: len(test) // 2], test[len(test) // 2 :])]
    fit, judge = ([example(nlp, one, lacking) for one in part] for part in (halves[0], halves[1][: options.judged]))
    data = judged(nlp, judge)
    given, linked = data.options, [entity.kb_id_ for one in judge for entity in one.predicted.ents]
    chosen = np.maximum.reduceat(given.score, given.starts[:-1])
    hits = np.array([given.names[place] == link for place, link in zip(data.gold.tolist(), linked, strict=True)])
    none, n_fit = np.nan, sum(len(one.reference.ents) for one in fit)
    found = {
        "": np.array([len(word_of), n_fit, len(hits), hits.mean()]),
        "prior": np.array([loss(with_rest(given.prior, data), data), none, none, none]),
        "spaCy's score": np.array([loss(with_rest(given.score, data), data), none, chosen_error(chosen, hits), none]),
        "conditional logit, all labels": np.array(fitted(nlp, fit, judge, data)),
    }
    for n in (100, 50):
        draws = [
            fitted(nlp, some(fit, n, draw), judge, data)
            for draw in tqdm(range(options.draws), desc=f"{n} labels", disable=None)
        ]
        found[f"conditional logit, {n} labels"] = np.mean(draws, axis=0)
    return found


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--identities", type=int, default=400, help="identities at most, in groups of 8")
    parser.add_argument("--judged", type=int, default=100_000, help="sentences that are judged, at most")
    parser.add_argument("--draws", type=int, default=10, help="draws of 100 and of 50 labels, of each drawing of groups")
    parser.add_argument("--size", type=int, default=200, help="of vectors")
    parser.add_argument("--groupings", type=int, default=3, help="drawings of the groups, whose mean is told")
    options = parser.parse_args()
    train, test = list(named("train")), list(named("test"))
    found = [study(train, test, options, seed) for seed in range(options.groupings)]
    rows = {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}
    n_identities, n_fit, n_judged, right = rows.pop("").tolist()
    print(
        f"{n_identities:.0f} identities, {n_fit:.0f} labels to fit on, {n_judged:.0f} entities judged, {right:.3f} of the links right\n"
    )
    head("| by | log loss | behind the steps | ECE of P(chosen is right) | its floor |")
    for name, cells in rows.items():
        row(name, *("-" if np.isnan(cell) else f"{cell:.3f}" for cell in cells.tolist()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
