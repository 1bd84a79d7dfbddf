"""Evidence that an entity is right beside the recognizer's score: the tagger, the parser and the words around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc

from ...calibration.recalibrators.logistic import log_odds, sigmoid
from ...calibration.saved import Part
from ...calibration.spans import firsts_of
from ...calibration.steps import Predictions
from ...context.features import DocFunction
from ...context.words import Words
from ...schema import dict_of, number, record, text, tuple_of
from ...sources.softmax import SoftmaxSource
from ...types import Floats, Ints, Spans
from . import names
from .names import NameLists, load_lists, name_flags

# Probabilities are clipped to this distance from 0 and 1 before their log-odds are taken.
CLIP = 1e-6
# Log-odds reach from -14 to 14: in these units a coefficient is as large as that of a flag.
_UNIT = 4.0
_SYMBOLS = frozenset("@#:;/*_|<>")
# So many words are remembered.
_MOST_WORDS = 1 << 16
_LETTERS = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]+)*\.?")
# What the letters of a word show, by itself.
_OF_WORD = ("letters", "address", "acronym", "initial", "symbol", "digit", "lettered", "upper", "capital")
# What is known of each token, the columns of `EntityEvidence.read`. tagged, parsed: whether the tagger and the parser ran. lower,
# capitals: the form of the text that it is in.
COLUMNS = (
    "tagged", "parsed", "proper", "noun", "preposition", "depth", "argument", "article", "possessive", *_OF_WORD[:6], "lower", "capitals",
    *names.COLUMNS,
)  # fmt: skip
# Names of evidence that is weighed for each type by itself: "proper*PERSON".
_BY_TYPE = ("type", "proper", "one word", "log-odds", "noun after", "preposition before")
# Forms of a text that have weights of their own, "lower: type*PERSON": no capital letter, and nine words in ten in capitals.
FORMS = ("lower", "capitals")
_IN_CAPITALS = 0.9
# Which components and lists each map looks at, the richest first.
NEEDS = {
    "ner, tagger, parser, lists": ("tagged", "parsed", "listed"), "ner, tagger, lists": ("tagged", "listed"), "ner, lists": ("listed",),
    "ner, tagger, parser": ("tagged", "parsed"), "ner, tagger": ("tagged",), "ner": (),
}  # fmt: skip
LISTS = ", lists"
# Which columns each of these components fills.
EVIDENCE_OF = {"tagger": ("proper", "noun", "preposition"), "parser": ("depth", "argument")}


@dataclass(frozen=True)
class Wording:
    """What the evidence is called in a tag set, a scheme of dependencies and a language.

    proper, noun, preposition (tuple[str, ...]): Tags of proper nouns, of all nouns, and of words before a place.
    argument (tuple[str, ...]): Dependencies that names often have. article, possessive (tuple[str, ...]): Words, in lower
        case. address (tuple[str, ...]): Parts of web addresses.
    """

    proper: Sequence[str] = ("NNP", "NNPS")
    noun: Sequence[str] = ("NN", "NNS", "NNP", "NNPS")
    preposition: Sequence[str] = ("IN", "TO")
    argument: Sequence[str] = ("pobj", "nsubj", "nsubjpass", "dobj", "poss", "conj", "appos", "attr")
    article: Sequence[str] = ("the",)
    possessive: Sequence[str] = ("'s", "’s", "'", "’")
    address: Sequence[str] = ("http", ".com")


class EntityEvidence(Part):
    """In the place of a context of tokens: shows entities what the tagger, the parser and the words say. Token scores stay.

    tagger (str): The component whose P(proper noun) is read, by its head on the vectors that are on the Doc.
    lists (Mapping[str, str] | None): Name of a list -> its checksum, see `load_lists`. wording: See Wording.
    """

    kind, registered = "@calib_contexts", "spacy-calib.EntityEvidence.v1"
    when = "always"
    shrinkage = None
    functions: tuple[DocFunction, ...] = ()

    def __init__(self, tagger: str = "tagger", lists: dict[str, str] | None = None, **wording: list[str]):
        self.tagger = tagger
        self.lists = dict(lists or {})
        self.wording = Wording(**wording)
        # What is known of each word that was read so far.
        self._word_rows: dict[str, list[float]] = {}

    def settings(self) -> dict[str, Any]:
        wording = {name: list(words) for name, words in vars(self.wording).items()}
        return {"tagger": self.tagger, "lists": self.lists, **wording}

    def functions_in(self, nlp: Language) -> tuple[DocFunction, ...]:
        """The features that ask Docs of this pipeline."""
        return (DocFunction(self.registered, partial(self.read, nlp)),)

    def apply(self, predictions: Predictions) -> Predictions:
        """Show the words of all tokens to the step of entities."""
        return predictions.replace_unchecked(view=predictions.words)

    def read(self, nlp: Language, docs: Sequence[Doc]) -> Floats:
        """What is known of each token, of shape (n_tokens, len(COLUMNS))."""
        proper, is_tagged = self._proper(nlp, docs)
        is_parsed = "parser" in nlp.pipe_names
        lists = load_lists(tuple(self.lists.items()))
        return np.concatenate(
            [self._read_doc(*of_doc, is_parsed, lists) for of_doc in zip(docs, proper, is_tagged, strict=True)]
        )

    def _proper(self, nlp: Language, docs: Sequence[Doc]) -> tuple[list[Floats], list[bool]]:
        """(P(proper noun) of each token of each Doc, whether the tagger could be read there)."""
        proper = [np.zeros(len(doc)) for doc in docs]
        tagger: Any = dict(nlp.pipeline).get(self.tagger)
        source = SoftmaxSource(self.tagger)
        columns = [i for i, label in enumerate(getattr(tagger, "labels", ())) if label in self.wording.proper]
        if not columns or not source.supports(tagger) or not source.is_trained(tagger):
            return proper, [False] * len(docs)
        is_tagged = [not why for why in source.missing(tagger, docs)]
        places = [i for i, doc in enumerate(docs) if is_tagged[i] and len(doc)]
        if places:
            scores = source.read(tagger, [docs[i] for i in places])
            rows = np.arange(scores.n_tokens)
            probabilities = np.sum([scores.scores_at(rows, np.full(len(rows), column)) for column in columns], axis=0)
            parts = np.split(probabilities, np.cumsum([len(docs[i]) for i in places])[:-1])
            for i, part in zip(places, parts, strict=True):
                proper[i] = part
        return proper, is_tagged

    def _read_doc(self, doc: Doc, proper: Floats, is_tagged: bool, is_parsed: bool, lists: NameLists | None) -> Floats:
        strings, wording, n = doc.vocab.strings, self.wording, len(doc)
        columns = doc.to_array([attrs.TAG, attrs.DEP, attrs.LOWER, attrs.SPACY]).reshape(n, 4)
        hashes = [[strings.as_int(word) for word in words] for words in vars(wording).values()]
        is_tagged = is_tagged and doc.has_annotation("TAG")
        is_parsed = is_parsed and doc.has_annotation("DEP")
        of_words = self.read_words([token.text for token in doc], columns[:, 3].tolist(), lists)
        return np.column_stack(
            [
                np.full(n, is_tagged), np.full(n, is_parsed), proper,
                np.isin(columns[:, 0], hashes[1]), np.isin(columns[:, 0], hashes[2]), _depths(doc),
                np.isin(columns[:, 1], hashes[3]), np.isin(columns[:, 2], hashes[4]), np.isin(columns[:, 2], hashes[5]), of_words,
            ]
        )  # fmt: skip

    def read_words(self, words: Sequence[str], spaces: Sequence[Any], lists: NameLists | None) -> Floats:
        """The columns from "letters" on, which the words of one Doc alone decide. spaces: Whether a space follows each."""
        if len(self._word_rows) > _MOST_WORDS:
            self._word_rows = {}
        rows = self._word_rows
        for word in words:
            if word not in rows:
                row = _read_word(word, self.wording.address)
                rows[word] = row if lists is None else row + lists.describe(word)
        n, n_own = len(words), len(_OF_WORD)
        width = n_own + (0 if lists is None else len(names.COLUMNS) + 1)
        table = np.array([rows[word] for word in words]).reshape(n, width)
        n_lettered, n_upper, n_capital = table[:, 6:n_own].sum(axis=0)
        is_lower = n_capital == 0
        in_capitals = not is_lower and n_upper >= _IN_CAPITALS * n_lettered
        listed = np.zeros((n, len(names.COLUMNS))) if lists is None else lists.read(words, spaces, table[:, n_own:])
        return np.column_stack([table[:, :6], np.full(n, is_lower), np.full(n, in_capitals), listed])


def _read_word(word: str, address: Sequence[str]) -> list[float]:
    """The values of _OF_WORD."""
    is_upper, lower = word.isupper(), word.lower()
    return [
        float(value) for value in (
            _LETTERS.fullmatch(word) is not None, any(part in lower for part in address), is_upper and word.isalpha() and 2 <= len(word) <= 5,
            is_upper and len(word) == 2 and word[1] == ".", any(map(_SYMBOLS.__contains__, word)), any(map(str.isdigit, word)),
            lower != word.upper(), is_upper, lower != word,
        )
    ]  # fmt: skip


def _depths(doc: Doc) -> Floats:
    """How many arcs each token is away from the root of its sentence: the root of a span is its least deep token.

    As in `Span.root`, punctuation and white space that nothing depends on count as deepest.
    """
    heads = doc.to_array([attrs.HEAD]).reshape(-1).astype(np.int64)  # relative, as unsigned numbers
    place = np.arange(len(doc))
    flags = doc.to_array([attrs.IS_PUNCT, attrs.IS_SPACE]).reshape(-1, 2).any(axis=1)
    is_last = flags & (heads != 0) & ~np.isin(place, (place + heads)[heads != 0])
    depths = np.zeros(len(doc))
    while (moves := heads[place] != 0).any() and depths.max(initial=0.0) < len(doc):
        depths += moves
        place = place + heads[place]
    return np.where(is_last, len(doc) - 1.0, depths)


class EntityMap(Part):
    """The step of entities: a logistic regression on evidence, in the place of the raw score.

    Each map is a table, name of the evidence -> coefficient. The richest one is used whose components ran on the Doc.
    labels_ (tuple[str, ...]): Of the spans' columns. maps_ (Mapping): Key of NEEDS -> table.
    """

    kind, registered = "@calib_contexts", "spacy-calib.EntityMap.v1"
    _learned = ("labels_", "maps_")
    learned_form = record({"labels_": tuple_of(text), "maps_": dict_of(dict_of(number()))})
    labels_: tuple[str, ...]
    maps_: Mapping[str, Mapping[str, float]]

    def apply(self, predictions: Predictions) -> Predictions:
        """Replace the scores of the entities on the Docs."""
        indices = predictions.kept_indices
        if predictions.spans is None or not len(indices):
            return predictions
        spans = predictions.spans.take(indices)
        evidence = SpanEvidence(spans, predictions.raw[indices], predictions.view, self.labels_)
        scores, open_spans = predictions.scores.copy(), np.ones(len(indices), dtype=bool)
        for needs in (name for name in NEEDS if name in self.maps_):
            is_scored = open_spans & evidence.has(NEEDS[needs])
            if is_scored.any():
                scores[indices[is_scored]] = sigmoid(evidence.margins(self.maps_[needs]))[is_scored]
            open_spans &= ~is_scored
        return predictions.replace_unchecked(scores=scores)


class SpanEvidence:
    """Evidence of n entities, by name.

    spans (Spans): In the tokens of the view. raw (Floats): Their scores. view (Words): With the columns of EntityEvidence.
    labels (Sequence[str]): Of the spans' columns.
    """

    def __init__(self, spans: Spans, raw: Floats, view: Words, labels: Sequence[str]):
        self.spans, self.raw, self.labels = spans, raw, labels
        self._firsts, self._lengths = firsts_of(spans), spans.ends - spans.starts
        self._tokens = np.repeat(spans.starts - self._firsts, self._lengths) + np.arange(self._lengths.sum())
        self._columns = dict(zip(COLUMNS, view.columns[EntityEvidence.registered].T, strict=True))
        self._docs = np.concatenate([view.docs, [-1]])  # -1 is the Doc of the places before the first token and after the last
        self._values: dict[str, Callable[[], Any]] = {
            "constant": lambda: np.ones(len(spans)),
            "type": lambda: 1.0,
            "log-odds": lambda: log_odds(raw, CLIP),
            "path": lambda: log_odds(spans.scores, CLIP) / _UNIT,
            "proper": lambda: log_odds(self._reduce("proper", np.minimum), CLIP) / _UNIT,
            "one word": lambda: self._lengths == 1,
            "letters": lambda: self._columns["letters"][spans.ends - 1],
            "proper before": lambda: self._value_at("proper", spans.starts - 1),
            "proper after": lambda: self._value_at("proper", spans.ends),
            "noun after": lambda: self._value_at("noun", spans.ends),
            "preposition before": lambda: self._value_at("preposition", spans.starts - 1),
            "article": lambda: self._columns["article"][spans.starts],
            "possessive": lambda: self._columns["possessive"][spans.ends - 1],
            "argument": lambda: self._columns["argument"][self._roots()],
            "address": lambda: self._reduce("address", np.maximum),
            "acronym": lambda: (
                self._columns["acronym"][spans.starts] * (self._lengths == 1) * (1 - self._columns["capitals"][spans.starts])
            ),
            "initial": lambda: self._reduce("initial", np.maximum),
            "symbol": lambda: self._reduce("symbol", np.maximum),
            "digit": lambda: self._reduce("digit", np.maximum),
        }

    def has(self, needs: Sequence[str]) -> Any:
        """Whether the components behind these columns ran on the Doc of each entity."""
        flags = [self._columns[name][self.spans.starts] > 0 for name in needs]
        return np.all([np.ones(len(self.spans), dtype=bool), *flags], axis=0)

    def margins(self, table: Mapping[str, float]) -> Floats:
        """The sum of coefficient times evidence."""
        return np.sum([weight * self.column(name) for name, weight in table.items()], axis=0)

    def column(self, name: str) -> Floats:
        """The values of one piece of evidence. name (str): "path", by type "proper*PERSON", or in one form of text "lower: log-odds"."""
        form, _, inner = name.rpartition(": ")
        if form:
            return self._columns[form][self.spans.starts] * self.column(inner)
        if name in self._flags:
            return np.asarray(self._flags[name], dtype=np.float64)
        evidence, _, label = name.partition("*")
        values = np.asarray(self._values[evidence](), dtype=np.float64)
        if not label:
            return values
        return values * (self.spans.labels == (self.labels.index(label) if label in self.labels else -1))

    @cached_property
    def _flags(self) -> dict[str, Any]:
        """What lists say, of an entity without its leading article and its possessive."""
        starts, ends = self.spans.starts, self.spans.ends
        ends = ends - ((self._columns["possessive"][ends - 1] > 0) & (ends - starts > 1))
        starts = starts + ((self._columns["article"][starts] > 0) & (ends - starts > 1))
        types = np.array(self.labels)[self.spans.labels]
        return name_flags(types, self._columns, starts, ends)

    def _value_at(self, name: str, places: Ints) -> Floats:
        """A column at a neighbour of each entity; 0 where that is in another Doc."""
        n = len(self._docs) - 1
        places = np.where((places < 0) | (places >= n), n, places)
        is_same_doc = self._docs[places] == self._docs[self.spans.starts]
        return np.where(is_same_doc, np.append(self._columns[name], 0.0)[places], 0.0)

    def _reduce(self, name: str, function: np.ufunc) -> Floats:
        return np.asarray(function.reduceat(self._columns[name][self._tokens], self._firsts))

    def _roots(self) -> Ints:
        """The root of each entity: the first of its tokens that are nearest to the sentence's root."""
        depths = self._columns["depth"]
        return np.array(
            [start + int(depths[start:end].argmin()) for start, end in zip(self.spans.starts, self.spans.ends, strict=True)]
        )


def evidence_names(types: Sequence[str]) -> dict[str, list[str]]:
    """The names of the evidence that each map without lists looks at. types (Sequence[str]): Entity labels that are scored."""
    by_type = {name: [f"{name}*{kind}" for kind in types] for name in _BY_TYPE}
    shape = ["acronym*PERSON", "acronym*GPE", "acronym*ORG", "initial*PERSON", "symbol", "digit"]
    simple = ["constant", "log-odds", *by_type["type"], *by_type["one word"], *shape]
    of_form = [f"{form}: {name}" for form in FORMS for name in (*by_type["type"], "log-odds")]
    of_tagger = [*by_type["proper"], "letters", "proper before", "proper after", *(f"{form}: proper" for form in FORMS)]
    of_parser = [*by_type["noun after"], *by_type["preposition before"], "article", "possessive", "argument", "path", "address"]
    return {
        "ner, tagger, parser": [*simple, *of_form, *of_tagger, *of_parser], "ner, tagger": [*simple, *of_form, *of_tagger],
        "ner": [*simple, *of_form, *by_type["log-odds"]],
    }  # fmt: skip
