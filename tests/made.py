"""What tests of several rooms make: scores with known truth, Docs with given scores, corpora written by hand, categorizers."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import spacy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config, registry

from spacy_calib.calibration.token_fit import FitData
from spacy_calib.calibration.tokens import PredictedLabels
from spacy_calib.pairs.pairing import JudgedPairs, pair_up
from spacy_calib.pairs.scored_corpus import ScoredCorpus, ScoredSpans
from spacy_calib.pairs.scores import from_dense
from spacy_calib.pipe.component import Calibrator
from spacy_calib.types import Groups, Marginals, Pairs
from tests.conftest import examples_for, made_once, run_other_pipes

N_TAGS = 8
TOKEN_LABELS = [f"T{i}" for i in range(N_TAGS)]
# Of every 8 tags the frequent one is alone, and the last group holds five.
TOKEN_GROUPS = Groups(("1", "2", "3"), np.array([0, 1, 1, 2, 2, 2, 2, 2]))
TOKENS_PER_DOCUMENT = 20
# By how much the log-odds of the tags are off besides.
TOKEN_BIASES = (0.0, 0.6, -0.6, 0.3, 0.0, -0.3, 0.6, 0.0)


@dataclass(frozen=True)
class SampledTokens:
    """probabilities: What a model says, shape (n, N_TAGS). truth: What is so, likewise. gold: Drawn from it, shape (n,)."""

    probabilities: np.ndarray
    truth: np.ndarray
    gold: np.ndarray

    def __len__(self) -> int:
        return len(self.gold)


def sample_tokens(n: int, seed: int, sharpness: float = 1.4, biases: tuple[float, ...] = TOKEN_BIASES) -> SampledTokens:
    """n tokens; the model's logits are the true ones times the sharpness (above 1: it is too sure) plus a bias for each tag.

    Tags are the rarer the higher they are.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 1.5, (n, N_TAGS)) + np.linspace(0.7, -0.7, N_TAGS)
    truth = _softmax(logits)
    gold = (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    return SampledTokens(_softmax(sharpness * logits + np.array(biases)), truth, gold)


def _softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class ScoreTable:
    """Scores as a source hands them over: a dense array, a row of NaN for a token of which the source knows nothing."""

    probabilities: np.ndarray
    spans: None = None

    @property
    def n_tokens(self) -> int:
        return len(self.probabilities)

    def marginals_above(self, threshold: float) -> Marginals:
        return from_dense(self.probabilities, threshold)

    def scores_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.probabilities[rows, columns]


def labels_of_columns(table: ScoreTable, columns: np.ndarray) -> PredictedLabels:
    """SampledTokens that carry the labels of these columns, below 0 for none; the label of column k has the hash k + 1."""
    hashes = np.maximum(columns + 1, 0).astype(np.uint64)
    return PredictedLabels(hashes, np.arange(1, 1 + table.probabilities.shape[1], dtype=np.uint64), lambda: columns)


def fit_data(
    tokens: SampledTokens, threshold: float = 0.01, lowest: float | None = None, per_document: int = TOKENS_PER_DOCUMENT
) -> FitData:
    """What a token calibration is fitted on; documents of so many tokens. lowest (float | None): The threshold where not given."""
    pairs = pair_up(from_dense(tokens.probabilities, threshold if lowest is None else lowest), tokens.gold)
    return FitData(pairs, tokens.gold, pairs.rows // per_document, N_TAGS, threshold)


SCORED_TAGS = ["ADJ", "ADV", "NOUN", "VERB", "X"]


class TagScores(NamedTuple):
    """P: Raw scores of 600 units, shape (600, 5). y: Gold labels. documents: Of each unit, twelve in all."""

    P: NDArray[np.float64]
    y: NDArray[np.str_]
    documents: NDArray[np.intp]


def overconfident_scores() -> TagScores:
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.array([2.0, 1.0, 4.0, 3.0, 0.5]) / 4, 600)
    y = np.array([SCORED_TAGS[rng.choice(5, p=row)] for row in true])
    P = true**2
    return TagScores(P / P.sum(axis=1, keepdims=True), y, np.arange(600) // 50)


def judged_pairs(scores: Any, hits: Any, documents: Any, raw: Any = 0.5) -> JudgedPairs:
    """Pairs of one label, one a unit, with calibrated scores. raw: Raw scores, or one for all."""
    n = len(scores)
    pairs = Pairs(np.arange(n), np.zeros(n, dtype=np.intp), np.broadcast_to(raw, n).astype(float), np.array(hits, bool), n)
    return JudgedPairs(pairs, np.array(scores, dtype=float), np.array(documents))


GIVEN_LABELS = ("A", "B", "C", "D")
_BLANK = spacy.blank("xx")
_SOURCE = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": list(GIVEN_LABELS), "key": "probs", "subprobabilities": True}


def reads_given_scores(**settings: Any) -> Calibrator:
    """A pipe with these settings, not fitted."""
    return spacy.blank("xx").add_pipe("calib", config={"source": _SOURCE, **settings})


def doc_scored(scores: Sequence[Sequence[float]] | NDArray[np.float64]) -> Doc:
    """A Doc of tokens with these scores of GIVEN_LABELS; each carries its likeliest tag."""
    table = np.array(scores, dtype=np.float64)
    doc = Doc(_BLANK.vocab, words=["x"] * len(table), tags=[GIVEN_LABELS[tag] for tag in table.argmax(axis=1)])
    doc.user_data["probs"] = table
    return doc


def with_gold_tags(doc: Doc, tags: Sequence[int] | NDArray[np.intp]) -> Example:
    """The Doc beside gold of these tags."""
    return Example(doc, Doc(_BLANK.vocab, words=[token.text for token in doc], tags=[GIVEN_LABELS[tag] for tag in tags]))


# A token: (word, label, {tag: calibrated score}); the label "" is none, and the raw score is the square of the calibrated one.
HandToken = tuple[str, str, dict[str, float]]


def no_spans() -> ScoredSpans:
    none = np.zeros(0, dtype=np.intp)
    flags = np.zeros(0, dtype=np.int8)
    return ScoredSpans(none, none, none, none, np.zeros(0), np.zeros(0), flags, flags)


def corpus_by_rows(
    tokens: list[tuple[str, int, int, list[tuple[int, float, float]]]],
    names: tuple[str, ...],
    docs: list[int] | None = None,
    starts: list[int] | None = None,
    spans: ScoredSpans | None = None,
) -> ScoredCorpus:
    """tokens: (word, carried label, gold label, [(tag, raw, calibrated), ...]) each, labels as places in names, -1 where none. A word is
    followed by a space unless it ends in "_", which is taken off. starts: Tokens that begin a sentence, besides the first of a Doc.
    """
    n = len(tokens)
    of_doc = np.array([0] * n if docs is None else docs, dtype=np.intp)
    begins = np.r_[True, of_doc[1:] != of_doc[:-1]] if n else np.zeros(0, dtype=bool)
    begins[np.array(starts or [], dtype=np.intp)] = True
    labels = np.array([token[1] for token in tokens], dtype=np.intp)
    gold = np.array([token[2] for token in tokens], dtype=np.intp)
    scores = [(row, tag, raw, new) for row, token in enumerate(tokens) for tag, raw, new in token[3]]
    rows, tags = (np.array([score[i] for score in scores], dtype=np.intp) for i in (0, 1))
    raw, new = (np.array([score[i] for score in scores], dtype=np.float64) for i in (2, 3))
    own = tags == labels[rows]
    carried = np.full((2, n), np.nan)
    carried[:, rows[own]] = raw[own], new[own]
    return ScoredCorpus(
        names=names, docs=of_doc, n_docs=int(of_doc.max()) + 1 if n else 0,
        words=np.array([*(token[0].rstrip("_") for token in tokens), None], dtype=object)[:-1],
        spaces=np.array([not token[0].endswith("_") for token in tokens], dtype=bool), starts=begins,
        labels=labels, raw=carried[0], calibrated=carried[1], gold=gold,
        right=np.where((gold < 0) | (labels < 0), -1, labels == gold).astype(np.int8),
        rows=rows, tags=tags, columns=tags, tag_raw=raw, tag_calibrated=new,
        hits=np.where(gold[rows] < 0, -1, gold[rows] == tags).astype(np.int8),
        spans=no_spans() if spans is None else spans,
    )  # fmt: skip


def corpus_of(docs: list[list[list[HandToken]]], spans: list[tuple[int, int, int, str, float]] = ()) -> ScoredCorpus:
    """docs: Docs of sentences of hand_tokens. spans: (Doc, first token, the one after the last, label, calibrated score)."""
    rows = [(d, i == 0, *token) for d, doc in enumerate(docs) for sentence in doc for i, token in enumerate(sentence)]
    labels = [tag for *_, scores in rows for tag in scores] + [row[3] for row in rows if row[3]] + [span[3] for span in spans]
    names = list(dict.fromkeys(labels))
    number = {name: i for i, name in enumerate(names)} | {"": -1}
    tokens = [
        (word, number[tag], -1, [(number[one], s**2, s) for one, s in scores.items()]) for _, _, word, tag, scores in rows
    ]
    kinds, unknown = [np.intp] * 4 + [float] * 2, np.full(len(spans), -1, dtype=np.int8)
    columns = list(zip(*((d, a, b, number[label], s**2, s) for d, a, b, label, s in spans), strict=True)) or [()] * 6
    made = ScoredSpans(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)), unknown, unknown)
    starts = [i for i, row in enumerate(rows) if row[1]]
    return corpus_by_rows(tokens, tuple(names), [row[0] for row in rows], starts, made)


def hand_tokens(*scores: float) -> list[HandToken]:
    """A sentence whose hand_tokens carry A with these scores; the other tag is B."""
    return [(f"w{i}", "A", {"A": score, "B": 1 - score}) for i, score in enumerate(scores)]


# Two Docs of two sentences each, and an empty one between them. White space and a token without a label do not count.
SMALL_CORPUS = [
    [hand_tokens(0.9, 0.6), hand_tokens(0.75)],
    [],
    [[*hand_tokens(0.6, 0.6), ("\n", "A", {"A": 0.1}), ("x", "", {"B": 0.5})], [(" ", "A", {"A": 0.2})]],
]


# Before spaCy 3.7.5 the table of a bag of words has 262,144 rows.
SMALL_TABLE = registry.has("architectures", "spacy.TextCatBOW.v3")
CATEGORY_WORDS = {"film": ["actor", "scene", "plot"], "music": ["song", "band", "tune"], "food": ["bread", "soup", "wine"]}
_COMMON_WORDS = ["the", "a", "was", "good", "bad", "long", "new"]


def category_docs(n: int, seed: int, several: bool = False, vocab: object = None) -> list[Doc]:
    """n short texts with gold categories that their words tell nearly always. several (bool): Whether a text may have some of them, or none.

    Where a text has one, every twentieth has another than its words tell: a categorizer that is unsure must be wrong now and then.
    """
    rng = random.Random(seed)
    vocab = Language().vocab if vocab is None else vocab
    docs = []
    for _ in range(n):
        own = [name for name in CATEGORY_WORDS if rng.random() < 0.4] if several else [rng.choice(list(CATEGORY_WORDS))]
        words = [word for name in own for word in rng.sample(CATEGORY_WORDS[name], 2)] + rng.sample(_COMMON_WORDS, 3)
        words += [rng.choice(CATEGORY_WORDS[name]) for name in CATEGORY_WORDS if rng.random() < 0.3]
        rng.shuffle(words)
        doc = Doc(vocab, words=words)
        if not several and len(docs) % 20 == 9:
            own = [next(name for name in CATEGORY_WORDS if name not in own)]
        doc.cats = {name: float(name in own) for name in CATEGORY_WORDS}
        docs.append(doc)
    return docs


def unannotated_examples(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Examples whose predicted Docs hold the same words and nothing else."""
    return [Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in docs]


def categorizer_model(factory: str) -> dict[str, Any]:
    """A bag of words, with a small table where spaCy lets one choose."""
    bow = {"exclusive_classes": factory == "textcat", "ngram_size": 1, "no_output_layer": False}
    table = {"length": 1024} if SMALL_TABLE else {}
    return {"model": {"@architectures": f"spacy.TextCatBOW.v{3 if SMALL_TABLE else 2}", **bow, **table}}


@cache
def trained_categorizer(factory: str) -> dict[str, Any]:
    """A pipeline of one `textcat` or `textcat_multilabel`, with labels film, music, food: config and bytes."""
    return made_once(factory, lambda: _train_categorizer(factory))


def _train_categorizer(factory: str) -> dict[str, Any]:
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory, config=categorizer_model(factory))
    examples = unannotated_examples(nlp, category_docs(100, 31, factory != "textcat", nlp.vocab))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(12):
        nlp.update(examples, sgd=optimizer)
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


def revive_categorizer(factory: str = "textcat") -> Language:
    saved = trained_categorizer(factory)
    return load_model_from_config(saved["config"]).from_bytes(saved["bytes"])


def fitted_categorizer(factory: str = "textcat", n: int = 120, **settings: Any) -> Language:
    """The same with a calib pipe fitted on n texts."""
    nlp = revive_categorizer(factory)
    source = {"@calib_sources": "spacy-calib.Textcat.v1", "component": factory}
    grouping = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 1}
    calib = nlp.add_pipe("calib", config={"source": source, "grouping": grouping, **settings})
    calib.fit(categorized(nlp, category_docs(n, 32, factory != "textcat", nlp.vocab)))
    return nlp


def categorized(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Examples whose predicted Docs have passed the pipes before `calib`."""
    examples = unannotated_examples(nlp, docs)
    with nlp.select_pipes(disable=["calib"] if "calib" in nlp.pipe_names else []):
        for example in examples:
            example.predicted = nlp(example.predicted)
    return examples


def examples_before_calib(nlp: Language, n: int, seed: int) -> list[Example]:
    """Examples of made-up sentences whose predicted Docs have passed all pipes but `calib`."""
    return run_other_pipes(nlp, examples_for(nlp, n, seed=seed))
