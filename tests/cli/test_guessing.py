"""Somebody has a fitted pipeline and guesses words and texts: he finds nothing but what docs/questions.md admits."""

import itertools
import string
from pathlib import Path

import numpy as np
import pytest
import spacy
from scipy.optimize import lsq_linear
from spacy.language import Language
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.annotations import get_annotation
from spacy_calib.gold.scored_corpora import scored_corpus
from spacy_calib.pairs.keyed import digest
from spacy_calib.pairs.scored_corpus import ScoredCorpus
from spacy_calib.pipe.component import Calibrator
from spacy_calib.pipe.record.drift import UnitScores
from spacy_calib.pipe.record.fit_record import read_record
from tests.cli.conftest import CONTEXT, calib, docs_in, entity_docs, ok, save_docs
from tests.conftest import gold_doc, made_up_sentences

STATE = Path("calib") / "calibration.msgpack"
# Met in the gold twice; three words of one ending, each met once.
RARE, ENDINGS = "zyxomma", ["aqqwe", "bqqwe", "cqqwe"]


@pytest.fixture(scope="module")
def secret(tmp_path_factory) -> Path:
    """A file of gold with rare words."""
    vocab, sentences = Vocab(), made_up_sentences(150, 5)
    for place, word in zip((3, 30, 60, 61, 62), (RARE, RARE, *ENDINGS), strict=True):
        sentences[place] = [("the", "DET"), (word, "NOUN"), *sentences[place]]
    docs = {doc.text: doc for doc in (gold_doc(vocab, sentence) for sentence in sentences)}
    return save_docs(tmp_path_factory.mktemp("secret") / "gold.spacy", list(docs.values()))


@pytest.fixture(scope="module")
def fitted(model, secret) -> Path:
    """A pipeline that was fitted on it, with context."""
    path = secret.parent / "fitted"
    ok(calib("fit", model, secret, path, "--method", "isotonic", CONTEXT, "--silent"))
    return path


def guesses(path: Path) -> list[int]:
    """What a dictionary gives, all endings of three letters, and digests of texts."""
    docs = docs_in(path)
    words = {form for doc in docs for token in doc for form in (token.text.lower(), token.text[-3:])}
    endings = map("".join, itertools.product(string.ascii_lowercase, repeat=3))
    texts = (text for doc in docs for text in (doc.text, *(sentence.text for sentence in doc.sents)))
    named = [one for one in map(get_string_id, {*words, *endings}) if one >= 1 << 32]  # others are numbers of symbols: "acl"
    return [*named, *map(digest, texts)]


def test_no_dictionary_and_no_text_tells_what_is_in_a_state(fitted, secret):
    state = (fitted / STATE).read_bytes()
    assert RARE.encode() not in state
    asked = np.array(guesses(secret), dtype=np.uint64)
    for start, order in itertools.product(range(8), ("<u8", ">u8")):
        assert not np.isin(np.frombuffer(state[start : start + (len(state) - start) // 8 * 8], dtype=order), asked).any()


def test_with_the_salt_of_a_pipeline_a_guess_tells_frequent_words_alone(fitted):
    """What questions.md admits: a word that was met three times or more."""
    nlp = spacy.load(fitted)
    known = nlp.get_pipe("calib").tokens.context.vocabulary_

    def guessed(words):
        from spacy_calib.pipe.lookup import words_of

        forms, endings = known.find_indices(words_of([Doc(nlp.vocab, words=words)]))
        return (forms >= 0).tolist(), (endings >= 0).tolist()

    assert guessed([RARE]) == ([False], [False])
    assert guessed(ENDINGS) == ([False] * 3, [True] * 3)
    assert guessed(["the", "nowhere"])[0][0]


def test_fits_differ_in_the_salt_and_not_in_what_they_say(fitted, model, secret, tmp_path):
    states, scores = set(), set()
    ok(calib("fit", model, secret, tmp_path / "again", "--method", "isotonic", CONTEXT, "--silent"))
    for path in (fitted, tmp_path / "again"):
        doc = spacy.load(path)("the old zyxomma saw a light duck .")
        states.add((path / STATE).read_bytes())
        scores.add(tuple(token._.calib_score for token in doc))
    assert (len(states), len(scores)) == (2, 1)


def test_the_data_of_a_fit_is_known_again(fitted, secret):
    assert "JUDGED ON THE FIT DATA" in calib("evaluate", fitted, secret).text


N_CANDIDATES, N_SECRETS, N_NEAREST = 1200, 20, 40


def candidate_names() -> list[str]:
    """1,200 names, in an order that says nothing."""
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    names = ["".join(parts).capitalize() + "x" for parts in itertools.product(syllables, repeat=2)]
    return [names[i] for i in np.random.default_rng(4).permutation(len(names))[:N_CANDIDATES]]


def corpus_in(nlp: Language, pipe: Calibrator, docs: list[Doc]) -> ScoredCorpus:
    """The scores of tags and entities of these texts, as the pipeline gives them."""
    predicted = nlp.pipe(Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs)
    examples = [Example(one, doc) for one, doc in zip(predicted, docs, strict=True)]
    return scored_corpus(examples, pipe.attr, get_annotation(pipe.fit_info.layer), pipe.lookup.labels())


def calib_of(nlp: Language) -> Calibrator:
    return next(pipe for name, pipe in nlp.components if name.startswith("calib"))


def frame_doc(vocab: Vocab, name: str, n_words: int) -> Doc:
    """ "Write to NAME ." with words in between, if there are more than four."""
    rest = itertools.cycle([("the", "DET"), ("old", "ADJ"), ("dog", "NOUN"), ("saw", "VERB"), ("a", "DET"), ("duck", "NOUN")])
    words = [("Write", "VERB"), ("to", "DET"), (name, "NOUN"), *itertools.islice(rest, n_words - 4), (".", "PUNCT")]
    doc = gold_doc(vocab, words)
    doc.set_ents([Span(doc, 2, 3, "PER")], default="outside")
    return doc


def arrays_in(value: object) -> list[np.ndarray]:
    if isinstance(value, (dict, list, tuple)):
        return [array for part in (value.values() if isinstance(value, dict) else value) for array in arrays_in(part)]
    return [np.asarray(value)] if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind in "iuf" else []


class Attacker:
    """Has the saved pipeline, all texts of the fit but the secret ones, their frame, and the names that may stand in it."""

    def __init__(self, path: Path, known: list[Doc], candidates: list[Doc]):
        self.nlp = spacy.load(path)
        self.pipe = calib_of(self.nlp)
        self.record = read_record(self.pipe)
        self.known, self.candidates = self.units(known), self.units(candidates)

    def units(self, docs: list[Doc]) -> list[UnitScores]:
        corpus = corpus_in(self.nlp, self.pipe, docs)
        return [UnitScores.from_tokens(corpus, self.pipe.lookup.labels()), UnitScores.from_spans(corpus)]

    def by_histogram(self) -> np.ndarray:
        """How far the scores of each candidate are from any row of the tables with a row for each document.

        A table of so many columns has counts between the edges of an array with one number less.
        """
        arrays, distances = arrays_in(self.record.state()), {}
        for units, table, edges in itertools.product(self.candidates, arrays, arrays):
            if table.ndim == 2 and len(table) >= N_SECRETS and edges.shape == (table.shape[1] - 1,):
                bins = units.documents * table.shape[1] + np.searchsorted(edges, units.raw, side="right")
                counts = np.bincount(bins, minlength=N_CANDIDATES * table.shape[1]).reshape(N_CANDIDATES, -1)
                distances.setdefault(len(table), 0)
                distances[len(table)] = distances[len(table)] + np.abs(counts[:, None] - table).sum(axis=2)
        for sums in arrays:
            if sums.ndim == 1 and len(sums) in distances:  # of the calibrated scores of each document
                own = np.bincount(self.candidates[0].documents, self.candidates[0].calibrated, N_CANDIDATES)
                distances[len(sums)] = distances[len(sums)] + np.abs(own[:, None] - sums)
        return sum((rows.min(axis=1) for rows in distances.values()), np.zeros(N_CANDIDATES))

    def by_sums(self, with_labels: bool) -> np.ndarray:
        """Minus the weights of the candidates that explain best what the known texts leave of the saved means."""
        profile = self.record.profile
        known = profile.sums_of(*self.known).totals
        alone = [[units.of_documents(np.array([i])) for units in self.candidates] for i in range(N_CANDIDATES)]
        matrix = np.array([[*profile.sums_of(*units).totals, 1.0] for units in alone]).T
        saved = [*profile.means[:-1] * profile.tokens, profile.means[-1] * profile.entities, profile.tokens, profile.entities]
        left = np.array([*(np.array(saved) - known), N_SECRETS])
        if not with_labels:
            matrix, left = (np.delete(values, np.s_[2:-4], axis=0) for values in (matrix, left))
        scale = np.maximum(matrix.std(axis=1), 1e-6)
        return -lsq_linear(matrix / scale[:, None], left / scale, (0.0, 1.0)).x


def framed_gold(folder: Path, component: str, n_words: int) -> tuple[Path, list[Doc], list[Doc], list[int]]:
    """A file of gold with 20 names in the frame; its other Docs; a Doc for each candidate; which of them are in the file."""
    vocab = Vocab()
    candidates = [frame_doc(vocab, name, n_words) for name in candidate_names()]
    secrets = np.random.default_rng(9).permutation(N_CANDIDATES)[:N_SECRETS].tolist()
    made_up = [gold_doc(vocab, sentence) for sentence in made_up_sentences(150, 5)]
    known = list({doc.text: doc for doc in (made_up if component == "tagger" else entity_docs(100, 5, vocab))}.values())
    docs = [*known, *(candidates[i] for i in secrets)]
    shuffled = [docs[i] for i in np.random.default_rng(1).permutation(len(docs))]
    return save_docs(folder / "gold.spacy", shuffled), known, candidates, secrets


def scores_of(nlp: Language, docs: list[Doc]) -> np.ndarray:
    corpus = corpus_in(nlp, calib_of(nlp), docs)
    scores = np.concatenate([corpus.tag_raw, corpus.spans.raw, corpus.spans.calibrated])
    return np.unique(scores[(scores > 1e-9) & (scores < 1 - 1e-9)])


@pytest.mark.parametrize(("component", "options"), [
    ("tagger", ["-m", "isotonic", "--groups", "5", "--always"]), ("tagger", ["-m", "histogram", "--groups", "5", "--always"]),
    ("ner", ["-m", "scaling-binning", "--always"]), ("ner", []),
])  # fmt: skip
def test_no_saved_number_is_the_score_of_a_text(component, options, model, ner_model, tmp_path):
    """Points of an isotonic map and edges of bins were: of 20 names 16 were among the 40 nearest of 1,200 guesses, now at most 4."""
    gold, known, candidates, secrets = framed_gold(tmp_path, component, 4)
    path = tmp_path / "fitted"
    ok(calib("fit", model if component == "tagger" else ner_model, gold, path, "-C", component, *options, "--silent"))
    if not options:
        ok(calib("threshold", path, gold, "-C", "calib_ent", "-p", ".6", "-r", ".8", "-a", tmp_path / "cut", "--silent"))
        path = tmp_path / "cut"
    nlp = spacy.load(path)
    saved = np.concatenate([array.ravel() for array in arrays_in(calib_of(nlp)._state()) if array.dtype.kind == "f"])
    assert (saved > 0).any()
    assert not (np.abs(saved[:, None] - scores_of(nlp, [*known, *(candidates[i] for i in secrets)])) < 1e-12).any()


@pytest.mark.parametrize("n_words", [4, 200])
@pytest.mark.parametrize("component", ["tagger", "ner"])
def test_no_name_in_a_frame_is_found_by_a_guess(component, n_words, model, ner_model, tmp_path):
    gold, known, candidates, secrets = framed_gold(tmp_path, component, n_words)
    ok(calib("fit", model if component == "tagger" else ner_model, gold, tmp_path / "fitted", "-C", component, "--silent"))
    attacker, noise = Attacker(tmp_path / "fitted", known, candidates), np.random.default_rng(0).random(N_CANDIDATES)
    for attack in (attacker.by_histogram, lambda: attacker.by_sums(False), lambda: attacker.by_sums(True)):
        nearest = np.lexsort((noise, attack()))[:N_NEAREST].tolist()  # of equally near ones any
        assert len({*nearest} & {*secrets}) <= 2
