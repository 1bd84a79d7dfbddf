"""Evidence that an entity is right, in addition to its score, from tagger, parser, and the words in and around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc

from ...calibration.saved import Part
from ...calibration.solvers import log_odds, sigmoid
from ...calibration.spans import firsts_of
from ...calibration.steps import Predictions
from ...context.features import DocFunction
from ...context.words import Words
from ...schema import dict_of, number, record, text, tuple_of
from ...sources.heads import SoftmaxSource
from ...types import Floats, Ints, Spans
from . import names
from .names import JOINERS, NameLists, load_lists, match_lists

_LOG_ODDS_UNIT = 4.0  # log-odds range from -14 to 14; in this unit their coefficients are about as large as those of flags
_SYMBOLS = frozenset("@#:;/*_|<>")
_MAX_WORDS = 1 << 16  # size of the cache of words
_LETTERS = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]+)*\.?")
# Columns that depend on the letters of a word alone; and flags of each word that make the columns "lower" and "capitals".
_WORD_COLUMNS = ("letters", "address", "acronym", "initial", "symbol", "digit", "joiner")
_CASE_FLAGS = ("has letters", "in capitals", "has a capital")
# Columns of `EntityEvidence.read`, for each token. tagged, parsed: whether tagger and parser ran. lower, capitals: of the text.
COLUMNS = (
    "tagged", "parsed", "proper", "noun", "preposition", "depth", "argument", "article", "possessive", *_WORD_COLUMNS,
    "lower", "capitals", *names.COLUMNS,
)  # fmt: skip
_CAPITALS_SHARE = 0.9  # a text is in capitals if it has this share of words in capitals
# Name of a map, by the components and lists that it uses, richest first -> columns that show that these ran.
NEEDS = {
    "ner, tagger, parser, lists": ("tagged", "parsed", "listed"), "ner, tagger, lists": ("tagged", "listed"),
    "ner, lists": ("listed",), "ner, tagger, parser": ("tagged", "parsed"), "ner, tagger": ("tagged",), "ner": (),
}  # fmt: skip
EVIDENCE_OF = {"tagger": ("proper", "noun", "preposition"), "parser": ("depth", "argument")}  # component -> its columns
# Tags of proper nouns, of all nouns and of prepositions; dependency labels that names often have; words; parts of addresses.
_PROPER, _NOUN, _PREPOSITION = ("NNP", "NNPS"), ("NN", "NNS", "NNP", "NNPS"), ("IN", "TO")
_ARGUMENT = ("pobj", "nsubj", "nsubjpass", "dobj", "poss", "conj", "appos", "attr")
_ARTICLE, _POSSESSIVE, _ADDRESS = ("the",), ("'s", "’s", "'", "’"), ("http", ".com")


class EntityEvidence(Part):
    """A context of a calib pipe that collects evidence on tokens for EntityMap, and leaves the tokens' scores as they are.

    lists (dict[str, str] | None): Lists of names to look words up in: name of a list in the folder `lists` -> its checksum.
    """

    kind, registered = "@calib_contexts", "spacy-calib.EntityEvidence.v1"
    when = "always"
    shrinkage = None
    functions: tuple[DocFunction, ...] = ()

    def __init__(self, lists: dict[str, str] | None = None):
        self.lists = dict(lists or {})
        self._word_rows: dict[str, list[float]] = {}  # cache: word -> its flags by `_read_word`, and by `NameLists.describe`

    def settings(self) -> dict[str, Any]:
        return {"lists": self.lists}

    def functions_in(self, nlp: Language) -> tuple[DocFunction, ...]:
        """Return this context's feature functions for the Docs of a pipeline: one function, which computes all COLUMNS."""
        return (DocFunction(self.registered, partial(self.read, nlp)),)

    def apply(self, predictions: Predictions) -> Predictions:
        """Attach the evidence of all tokens to the predictions, for EntityMap; their scores stay as they are."""
        return predictions.replace_unchecked(view=predictions.words)

    def read(self, nlp: Language, docs: Sequence[Doc]) -> Floats:
        """Return the evidence of each token of some Docs, (n_tokens, len(COLUMNS))."""
        proper, is_tagged = _read_proper_nouns(nlp, docs)
        is_parsed = "parser" in nlp.pipe_names
        lists = load_lists(tuple(self.lists.items()))
        return np.concatenate(
            [self._read_doc(*doc_values, is_parsed, lists) for doc_values in zip(docs, proper, is_tagged, strict=True)]
        )

    def _read_doc(self, doc: Doc, proper: Floats, is_tagged: bool, is_parsed: bool, lists: NameLists | None) -> Floats:
        """Return the evidence of each token of a Doc, (n_tokens, len(COLUMNS)).

        proper (Floats): P(proper noun), (n_tokens,). is_tagged, is_parsed (bool): Whether the tagger could be read, and whether
        the pipeline has a parser. lists (NameLists | None): Lists of names to look words up in.
        """
        n, strings = len(doc), doc.vocab.strings
        tags, dependencies, lower_words = doc.to_array([attrs.TAG, attrs.DEP, attrs.LOWER]).reshape(n, 3).T

        def is_one_of(hashes: Any, words: Sequence[str]) -> Any:
            return np.isin(hashes, [strings.as_int(word) for word in words])

        return np.column_stack(
            [
                np.full(n, is_tagged and doc.has_annotation("TAG")),
                np.full(n, is_parsed and doc.has_annotation("DEP")),
                proper,
                is_one_of(tags, _NOUN),
                is_one_of(tags, _PREPOSITION),
                _depths(doc),
                is_one_of(dependencies, _ARGUMENT),
                is_one_of(lower_words, _ARTICLE),
                is_one_of(lower_words, _POSSESSIVE),
                self.read_words([token.text for token in doc], lists),
            ]
        )

    def read_words(self, words: Sequence[str], lists: NameLists | None) -> Floats:
        """Return COLUMNS from "letters" on for a Doc's words, (n_words, n_columns); columns of lists are 0 without `lists`."""
        if len(self._word_rows) > _MAX_WORDS:  # empty the cache
            self._word_rows = {}
        word_rows = self._word_rows  # the same dict to the end: another thread may begin a new one meanwhile
        for word in words:
            if word not in word_rows:
                word_rows[word] = _read_word(word) + ([] if lists is None else lists.describe(word))
        n, n_word, n_case = len(words), len(_WORD_COLUMNS), len(_CASE_FLAGS)
        n_list = 0 if lists is None else len(names.COLUMNS) + 1  # `NameLists.describe` adds a flag that `read` uses up
        table = np.array([word_rows[word] for word in words]).reshape(n, n_word + n_case + n_list)  # also without words
        word_columns, case_flags, list_rows = np.split(table, [n_word, n_word + n_case], axis=1)
        n_lettered, n_upper, n_capital = case_flags.sum(axis=0)
        is_lower = n_capital == 0
        in_capitals = not is_lower and n_upper >= _CAPITALS_SHARE * n_lettered
        list_columns = np.zeros((n, len(names.COLUMNS))) if lists is None else lists.read(words, list_rows)
        return np.column_stack([word_columns, np.full(n, is_lower), np.full(n, in_capitals), list_columns])


def _read_proper_nouns(nlp: Language, docs: Sequence[Doc]) -> tuple[list[Floats], list[bool]]:
    """Return two lists with an item per Doc: P(proper noun) of its tokens (0 if unknown); whether the tagger could be read."""
    proper = [np.zeros(len(doc)) for doc in docs]
    tagger: Any = dict(nlp.pipeline).get("tagger")
    source = SoftmaxSource("tagger")
    proper_columns = [i for i, label in enumerate(getattr(tagger, "labels", ())) if label in _PROPER]
    if not proper_columns or not source.supports(tagger) or not source.is_trained(tagger):
        return proper, [False] * len(docs)
    is_tagged = [not obstacle for obstacle in source.missing(tagger, docs)]  # "": the tagger can be read on the Doc
    readable = [i for i, doc in enumerate(docs) if is_tagged[i] and len(doc)]
    if readable:
        scores = source.read(tagger, [docs[i] for i in readable])
        rows = np.arange(scores.n_tokens)
        probabilities = np.sum([scores.scores_at(rows, np.full(len(rows), column)) for column in proper_columns], axis=0)
        ends = np.cumsum([len(docs[i]) for i in readable])
        for i, probabilities_of_doc in zip(readable, np.split(probabilities, ends[:-1]), strict=True):
            proper[i] = probabilities_of_doc
    return proper, is_tagged


def _read_word(word: str) -> list[float]:
    """Return flags of a word: _WORD_COLUMNS (letters, address, acronym, initial, symbol, digit, joiner), then _CASE_FLAGS."""
    is_upper, lower = word.isupper(), word.lower()
    has_cased_letters, has_capital = lower != word.upper(), lower != word
    is_address, has_symbol = any(part in lower for part in _ADDRESS), not _SYMBOLS.isdisjoint(word)
    is_acronym = is_upper and word.isalpha() and 2 <= len(word) <= 5
    is_initial = is_upper and len(word) == 2 and word[1] == "."
    word_flags = (
        _LETTERS.fullmatch(word) is not None, is_address, is_acronym, is_initial, has_symbol, any(map(str.isdigit, word)),
        word in JOINERS,
    )  # fmt: skip
    return [float(flag) for flag in (*word_flags, has_cased_letters, is_upper, has_capital)]


def _depths(doc: Doc) -> Floats:
    """Return the number of arcs from each token to the root of its sentence, (n_tokens,); the root of a span has the minimum.

    Punctuation and white space without dependents get n_tokens - 1 (unless they are roots), as `Span.root` prefers any other
    token.
    """
    offsets = doc.to_array([attrs.HEAD]).reshape(-1).astype(np.int64)  # to each head, 0 at a root; unsigned in spaCy
    tokens = ancestors = np.arange(len(doc))
    has_dependents = np.isin(tokens, (tokens + offsets)[offsets != 0])
    is_punct_or_space = doc.to_array([attrs.IS_PUNCT, attrs.IS_SPACE]).reshape(-1, 2).any(axis=1)
    is_deepest = is_punct_or_space & (offsets != 0) & ~has_dependents
    depths = np.zeros(len(doc))
    # Each round climbs one arc. There are at most n rounds, even if heads form a cycle.
    while (has_head := offsets[ancestors] != 0).any() and depths.max(initial=0.0) < len(doc):
        depths += has_head
        ancestors = ancestors + offsets[ancestors]
    return np.where(is_deepest, len(doc) - 1.0, depths)


def _explain_unknown_name(fields: Mapping[str, Any]) -> str:
    """Return a clause on the first map or evidence in the saved `fields` of an EntityMap that has an unknown name; or ""."""
    unknown = [name for name in fields["maps_"] if name not in NEEDS]
    if unknown:
        return f"'maps_' has {unknown[0]!r}, which is none of {', '.join(NEEDS)}"
    # Evidence on no entities: only `SpanEvidence.column` knows all names, which may contain conditions.
    no_indices, no_scores, no_flags = np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=bool)
    spans = Spans(no_indices, no_indices, no_indices, no_scores, no_scores, no_flags)
    hashes, columns = no_indices.astype(np.uint64), {EntityEvidence.registered: np.zeros((0, len(COLUMNS)))}
    words = Words(np.zeros(1, dtype=np.intp), hashes, hashes, no_indices, no_flags, columns)
    evidence = SpanEvidence(spans, no_scores, words, fields["labels_"])
    for name in {name for table in fields["maps_"].values() for name in table}:
        try:
            evidence.column(name)
        except KeyError:
            return f"'maps_' has the evidence {name!r}, which is unknown"
    return ""


class EntityMap(Part):
    """A step that scores entities by a logistic regression on evidence, in place of their raw scores.

    It has a regression ("map") for each set of components (and lists) that may be at hand for a Doc. maps_ (Mapping): Key of
    NEEDS -> map: a name that `SpanEvidence.column` takes -> its coefficient. labels_ (tuple): Name of each label number.
    """

    kind, registered = "@calib_contexts", "spacy-calib.EntityMap.v1"
    _learned = ("labels_", "maps_")
    learned_form = record({"labels_": tuple_of(text), "maps_": dict_of(dict_of(number()))}, _explain_unknown_name)
    labels_: tuple[str, ...]
    maps_: Mapping[str, Mapping[str, float]]

    def apply(self, predictions: Predictions) -> Predictions:
        """Replace each entity's score by that of the first map in NEEDS whose components and lists were used on its Doc."""
        indices = predictions.kept_indices  # of the entities on the Docs; other candidates keep their scores
        if predictions.spans is None or not len(indices):
            return predictions
        spans = predictions.spans.take(indices)
        evidence = SpanEvidence(spans, predictions.raw[indices], predictions.view, self.labels_)
        scores, is_unscored = predictions.scores.copy(), np.ones(len(indices), dtype=bool)
        for name in (name for name in NEEDS if name in self.maps_):
            is_scored = is_unscored & evidence.has(NEEDS[name])
            if is_scored.any():
                scores[indices[is_scored]] = sigmoid(evidence.margins(self.maps_[name]))[is_scored]
            is_unscored &= ~is_scored
        return predictions.replace_unchecked(scores=scores)


class SpanEvidence:
    """The evidence on n entities; `column` computes each piece by its name.

    spans (Spans): The entities; their token numbers count the tokens of `view`. raw (Floats): Their raw scores, (n,). view
    (Words): All tokens of the Docs, with COLUMNS from EntityEvidence. labels (Sequence[str]): Name of each label number.
    """

    def __init__(self, spans: Spans, raw: Floats, view: Words, labels: Sequence[str]):
        """Prepare a function for each name of evidence: a piece is computed only if a map uses it."""
        self.spans, self.labels = spans, labels
        self._columns = dict(zip(COLUMNS, view.columns[EntityEvidence.registered].T, strict=True))
        self._index_tokens()
        self._docs = np.concatenate([view.docs, [-1]])  # -1 is the Doc of indices before the first token and after the last
        self._values: dict[str, Callable[[], Any]] = {
            "constant": lambda: np.ones(len(spans)),
            "type": lambda: 1.0,  # "type*ORG" is the intercept of this entity type
            "log-odds": lambda: log_odds(raw),
            "path": lambda: log_odds(spans.scores) / _LOG_ODDS_UNIT,  # probability of the recognizer's decisions
            "proper": lambda: log_odds(self._reduce("proper", np.minimum)) / _LOG_ODDS_UNIT,
            "one word": lambda: self._lengths == 1,
            "letters": lambda: self._columns["letters"][self._tokens[self._lasts]],
            "proper before": lambda: self._value_at("proper", spans.starts - 1),
            "proper after": lambda: self._value_at("proper", spans.ends),
            "noun after": lambda: self._value_at("noun", spans.ends),
            "preposition before": lambda: self._value_at("preposition", spans.starts - 1),
            "article": lambda: self._columns["article"][self._tokens[self._firsts]],
            "possessive": lambda: self._columns["possessive"][spans.ends - 1],
            "argument": lambda: self._columns["argument"][self._roots()],
            "acronym": lambda: (
                self._reduce("acronym", np.maximum) * (self._lengths == 1) * (1 - self._columns["capitals"][spans.starts])
            ),
            **{name: partial(self._reduce, name, np.maximum) for name in ("address", "initial", "symbol", "digit")},
        }

    def _index_tokens(self) -> None:
        """Set `_tokens`, the tokens of all entities without joiners inside ("Zeta-Jones" has two), and for each entity their
        number (`_lengths`) and the index in `_tokens` of the first and last (`_firsts`, `_lasts`)."""
        spans = self.spans
        firsts, lengths = firsts_of(spans), spans.ends - spans.starts  # firsts: index in `tokens` of each entity's first token
        # The tokens of all entities, one entity after the other: each entity counts up from its start.
        tokens = np.repeat(spans.starts - firsts, lengths) + np.arange(lengths.sum())
        is_inside = (tokens > np.repeat(spans.starts, lengths)) & (tokens < np.repeat(spans.ends - 1, lengths))
        is_word = ~(is_inside & (self._columns["joiner"][tokens] > 0))
        self._tokens, self._lengths = tokens[is_word], np.add.reduceat(is_word, firsts, dtype=np.intp)
        self._firsts = np.cumsum(self._lengths) - self._lengths
        self._lasts = self._firsts + self._lengths - 1

    def has(self, needs: Sequence[str]) -> Any:
        """Return for each entity, (n,), whether its Doc has all of `needs`, a value of NEEDS such as ("tagged", "listed")."""
        # These columns repeat a flag of the Doc at each token, so that an entity's first token has it.
        flags = [self._columns[name][self.spans.starts] > 0 for name in needs]
        return np.all([np.ones(len(self.spans), dtype=bool), *flags], axis=0)

    def margins(self, table: Mapping[str, float]) -> Floats:
        """Return the log-odds of each entity, (n,): the sum of coefficients times evidence. table: Evidence -> coefficient."""
        return np.sum([weight * self.column(name) for name, weight in table.items()], axis=0)

    def column(self, name: str) -> Floats:
        """Return one piece of evidence for each entity, (n,).

        name (str): Name of the evidence, such as "path", perhaps with conditions. "lower: path*ORG" is "path" if the Doc has no
        capitals (its column "lower" is 1) and the entity's label is ORG, else 0. RAISES KeyError: an unknown name.
        """
        condition, _, unconditional_name = name.rpartition(": ")
        if condition:  # a flag of the Doc, such as "lower"
            return self._columns[condition][self.spans.starts] * self.column(unconditional_name)
        if name in self._flags:
            return np.asarray(self._flags[name], dtype=np.float64)
        evidence, _, label = name.partition("*")
        values = np.asarray(self._values[evidence](), dtype=np.float64)
        if not label:
            return values
        label_number = self.labels.index(label) if label in self.labels else -1  # -1: no entity has it
        return values * (self.spans.labels == label_number)

    @cached_property
    def _flags(self) -> dict[str, Any]:
        """Evidence from the lists of names, as `match_lists` returns it: its name -> whether each entity has it, (n,)."""
        columns = {name: self._columns[name][self._tokens] for name in ("article", "possessive", *names.COLUMNS)}
        # Leave out a possessive at the end, then an article at the start, unless no word remains.
        ends = self._lasts + 1 - ((columns["possessive"][self._lasts] > 0) & (self._lengths > 1))
        starts = self._firsts + ((columns["article"][self._firsts] > 0) & (ends - self._firsts > 1))
        types = np.array(self.labels)[self.spans.labels]
        return match_lists(types, columns, starts, ends, self._firsts, self._lasts)

    def _value_at(self, name: str, tokens: Ints) -> Floats:
        """Return a column's value at one token per entity (`tokens`), (n,); 0 if the token is outside of the entity's Doc."""
        n = len(self._docs) - 1  # number of tokens, and index of the -1 that ends _docs
        tokens = np.where((tokens < 0) | (tokens >= n), n, tokens)
        is_same_doc = self._docs[tokens] == self._docs[self.spans.starts]
        return np.where(is_same_doc, np.append(self._columns[name], 0.0)[tokens], 0.0)

    def _reduce(self, name: str, function: np.ufunc) -> Floats:
        """Return the minimum or maximum (`function`) of a column over the tokens of each entity, (n,)."""
        return np.asarray(function.reduceat(self._columns[name][self._tokens], self._firsts))

    def _roots(self) -> Ints:
        """Return the root of each entity, (n,): the first of its tokens with the fewest arcs to the sentence's root."""
        depths = self._columns["depth"][self._tokens]
        roots = [first + int(depths[first : last + 1].argmin()) for first, last in zip(self._firsts, self._lasts, strict=True)]
        return self._tokens[np.array(roots, dtype=np.intp)]
