"""Recognizers with random weights, a trained one, and random Docs that hold presets, sentence starts and white space."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import spacy
from spacy.lang.xx import MultiLanguage
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from spacy.vocab import Vocab

from tests.conftest import LISTENER, run_upstream, train_briefly

TYPES = ("A", "B", "C-D")
WORDS = [f"w{i}" for i in range(40)]
SPACES = ["\n", "  "]
MISSING, IN, OUT, BEGIN = 0, 1, 2, 3
TOK2VEC = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 200, "window_size": 1,
           "maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None}  # fmt: skip


@dataclass(frozen=True)
class Draft:
    """What a Doc is made of, so that two recognizers can get the same one.

    words; sent_starts (True, False or None); iob (ENT_IOB) and kinds (entity type or "") that it holds beforehand.
    """

    words: tuple[str, ...]
    sent_starts: tuple[bool | None, ...]
    iob: tuple[int, ...]
    kinds: tuple[str, ...]

    def doc(self, vocab: Vocab) -> Doc:
        doc = Doc(vocab, words=list(self.words), sent_starts=list(self.sent_starts))
        columns = [[iob, vocab.strings.add(kind) if kind else 0] for iob, kind in zip(self.iob, self.kinds, strict=True)]
        if columns:
            array: Any = np.array(columns, dtype=np.uint64)
            doc.from_array(["ENT_IOB", "ENT_TYPE"], array)
        return doc


def docs_of(drafts: Sequence[Draft], vocab: Vocab) -> list[Doc]:
    return [draft.doc(vocab) for draft in drafts]


def plain(*texts: str) -> list[Draft]:
    """Drafts of these words, with nothing preset."""
    return [Draft(words, (None,) * len(words), (MISSING,) * len(words), ("",) * len(words)) for words in map(_split, texts)]


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def presets_none(rng: np.random.Generator, n: int, types: Sequence[str]) -> tuple[list[int], list[str]]:
    return [MISSING] * n, [""] * n


def presets_whole(rng: np.random.Generator, n: int, types: Sequence[str]) -> tuple[list[int], list[str]]:
    """Entities, blocked and outside tokens, as `Doc.set_ents` leaves them."""
    iob: list[int] = []
    kinds: list[str] = []
    while len(iob) < n:
        what = rng.choice(["missing", "missing", "missing", "outside", "blocked", "entity", "entity"])
        if what == "entity":
            length = min(int(rng.integers(1, 5)), n - len(iob))
            iob += [BEGIN] + [IN] * (length - 1)
            kinds += [str(rng.choice(types))] * length
        else:
            iob.append({"missing": MISSING, "outside": OUT, "blocked": BEGIN}[what])
            kinds.append("")
    return iob, kinds


def presets_wild(rng: np.random.Generator, n: int, types: Sequence[str]) -> tuple[list[int], list[str]]:
    """Anything: entities without a beginning, that change their type, or have none (`Token.ent_type_`, the retokenizer)."""
    iob = rng.choice([MISSING, MISSING, IN, IN, OUT, BEGIN], size=n).tolist()
    return iob, rng.choice([*types, types[0], ""], size=n).tolist()


PRESETS = {"none": presets_none, "whole": presets_whole, "wild": presets_wild}


def random_draft(rng: np.random.Generator, presets: str = "none", longest: int = 14, types: Sequence[str] = TYPES) -> Draft:
    """With white space and sentence starts; one in ten is empty, some have one token."""
    n = 0 if rng.random() < 0.1 else int(rng.integers(1, longest + 1))
    words = [str(rng.choice(SPACES if rng.random() < 0.1 else WORDS)) for _ in range(n)]
    starts = [[None, False, True][int(i)] for i in rng.choice(3, size=n, p=[0.45, 0.4, 0.15])]
    iob, kinds = PRESETS[presets](rng, n, types)
    return Draft(tuple(words), tuple(starts), tuple(iob), tuple(kinds))


def random_drafts(n: int, seed: int, presets: str = "none", longest: int = 14, types: Sequence[str] = TYPES) -> list[Draft]:
    rng = np.random.default_rng(seed)
    return [random_draft(rng, presets, longest, types) for _ in range(n)]


@dataclass(frozen=True)
class Shape:
    """Of a recognizer's model, as in spacy.TransitionBasedParser.v2."""

    use_upper: bool = True
    extra_state_tokens: bool = False
    maxout_pieces: int = 2

    def model(self, tok2vec: dict[str, Any] = TOK2VEC, state_type: str = "ner") -> dict[str, Any]:
        return {
            "@architectures": "spacy.TransitionBasedParser.v2", "state_type": state_type, "hidden_width": 16, "nO": None,
            "extra_state_tokens": self.extra_state_tokens, "maxout_pieces": self.maxout_pieces,
            "use_upper": self.use_upper, "tok2vec": tok2vec,
        }  # fmt: skip


SHAPES = [Shape(upper, extra, pieces) for upper in (True, False) for extra in (False, True) for pieces in (1, 2)]


def random_pipeline(shape: Shape = Shape(), seed: int = 0, factory: str = "ner", **config: Any) -> Any:
    """A pipeline with a recognizer "ner" of TYPES whose weights are random, so that long and odd entities occur."""
    nlp: Any = spacy.blank("xx")
    ner = nlp.add_pipe(factory, name="ner", config={"model": shape.model(), **config})
    gold = Doc(nlp.vocab, words=list("abc"), ents=[f"B-{label}" for label in TYPES])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=list("abc")), gold)])
    randomize(ner, seed)
    return nlp


def randomize(ner: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for node in ner.model.walk():
        for name in node.param_names:
            node.set_param(name, rng.normal(size=node.get_param(name).shape).astype("f"))


FACTORIES = {"ner": "calib_ner", "beam_ner": "calib_beam_ner"}


def twin_of(nlp: Language) -> Any:
    """The same pipeline and weights; recognizers keep their probabilities."""
    config = nlp.config.copy()
    for block in config["components"].values():
        block["factory"] = FACTORIES.get(block["factory"], block["factory"])
    return MultiLanguage.from_config(config).from_bytes(nlp.to_bytes(), exclude=["tokenizer"])


@cache
def _saved_twins(shape: Shape, seed: int) -> tuple[Any, Any]:
    stock = random_pipeline(shape, seed)
    return stock, twin_of(stock)


def twins(shape: Shape = Shape(), seed: int = 0) -> tuple[Any, Any]:
    """(spaCy's recognizer, ours) with the same random weights; made once, so they must not be changed."""
    stock, ours = _saved_twins(shape, seed)
    return stock.get_pipe("ner"), ours.get_pipe("ner")


def recognize(ner: Any, docs: Sequence[Doc]) -> list[list[tuple[int, str]]]:
    """Run a recognizer; (ENT_IOB, ENT_TYPE) of every token of every Doc."""
    ner.set_annotations(docs, ner.predict(docs))
    return entity_tokens(docs)


def entity_tokens(docs: Sequence[Doc]) -> list[list[tuple[int, str]]]:
    return [[(token.ent_iob, token.ent_type_) for token in doc] for doc in docs]


def keys_of(found: Any) -> list[tuple[int, int, int]]:
    """(start, end, type) of entities."""
    return list(found.triples())


def path_probabilities(reading: Any) -> dict[tuple[int, int, str], float]:
    """(start, end, label) -> probability of all entities that a reading holds."""
    keys, probabilities = keys_of(reading.all_entities), reading.all_entities.path.tolist()
    return {(start, end, reading.types[kind]): p for (start, end, kind), p in zip(keys, probabilities, strict=True)}


def entity_keys(doc: Doc) -> list[tuple[int, int, str]]:
    """(start, end, label) of the entities on a Doc."""
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


FIRST = ["Ann", "Bob", "Paris", "Lee"]
PLACES = ["Rome", "Paris", "Lima", "Lee"]


def gold_doc(vocab: Vocab, i: int, rng: np.random.Generator) -> Doc:
    """A sentence with entities of two types; some names are of both, so that nobody can be sure."""
    patterns: list[list[tuple[str, str]]] = [
        [("she", "O"), ("saw", "O"), (str(rng.choice(FIRST)), "B-PER"), ("Lee", "I-PER"), (".", "O")],
        [("she", "O"), ("saw", "O"), (str(rng.choice(FIRST)), "B-PER"), (".", "O")],
        [("she", "O"), ("saw", "O"), (str(rng.choice(PLACES)), "B-LOC"), (".", "O")],
        [(str(rng.choice(FIRST)), "B-PER"), ("saw", "O"), ("New", "B-LOC"), (str(rng.choice(PLACES)), "I-LOC"), ("City", "I-LOC")],
    ]  # fmt: skip
    words, tags = zip(*patterns[i % len(patterns)], strict=True)
    return Doc(vocab, words=list(words), ents=list(tags), sent_starts=[j == 0 for j in range(len(words))])


def gold_examples(nlp: Language, n: int, seed: int) -> list[Example]:
    """Examples with an unannotated predicted Doc."""
    rng = np.random.default_rng(seed)
    golds = [gold_doc(nlp.vocab, i, rng) for i in range(n)]
    return [Example(Doc(nlp.vocab, words=[token.text for token in gold]), gold) for gold in golds]


@cache
def _train_recognizer(factory: str, listener: bool) -> Any:
    """(tok2vec,) ner: trained for a moment, so that scores are neither 0 nor 1."""
    fix_random_seed(0)
    nlp: Any = spacy.blank("xx")
    if listener:
        nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    nlp.add_pipe(factory, name="ner", config={"model": Shape().model(LISTENER if listener else TOK2VEC)})
    return train_briefly(nlp, gold_examples(nlp, 60, seed=1), 25, 0.01)


def trained(factory: str = "ner", listener: bool = False) -> Any:
    """A fresh copy of the trained pipeline, with recognizers of this factory."""
    stock = {ours: name for name, ours in FACTORIES.items()}.get(factory, factory)
    saved = _train_recognizer(stock, listener)
    config = saved["config"].copy()
    config["components"]["ner"]["factory"] = factory
    return MultiLanguage.from_config(config).from_bytes(saved["bytes"], exclude=["tokenizer"])


@cache
def trained_once(factory: str = "ner", listener: bool = False) -> Any:
    """The same copy for every test that asks for it: it must not be changed."""
    return trained(factory, listener)


TEXTS = ["she saw Ann Lee .", "Bob saw New Lima City", "", "she saw Paris .", "Lee saw Rome", "Paris Paris Paris"]


def source_config(component: str = "ner", **settings: Any) -> dict[str, Any]:
    return {"@calib_sources": "spacy-calib.Ner.v1", "component": component, **settings}


def add_calib(nlp: Any, name: str = "calib", *, attr: str | None = None, event: str = "exact", **settings: Any) -> Any:
    """A calib pipe over "ner", at the end of the pipeline. settings: Of the source."""
    config = {"source": source_config(**settings), "event": event, "attr": attr or name, "threshold": 0.0, "token_scores": True}
    grouping = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 2}
    return nlp.add_pipe("calib", name=name, config={**config, "grouping": grouping})


def fit_on(nlp: Any, calib: Any, n: int = 40, seed: int = 2) -> Any:
    """Fit a calib pipe on made-up sentences that the other pipes of the pipeline have run over."""
    examples = gold_examples(nlp, n, seed)
    with nlp.select_pipes(disable=[name for name, pipe in nlp.pipeline if type(pipe) is type(calib)]):
        run_upstream(nlp, examples)
    return calib.fit(examples)
