"""The component `calib_hmm`: a hidden Markov model, by counting (Nguyen & O'Connor 2015, section 4.2.2)."""

# No `from __future__ import annotations` here: spaCy reads the types that `initialize` takes, and resolves no strings.
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples

from ...schema import Form, above_zero, floats, lengths, list_of, record, text, whole
from .factory import HmmSettings
from .inference.chains import Potentials
from .labeller import SavedLabeller, chain_settings, check_settings
from .messages import calib_error

_ARRAYS = ("of_word", "follow", "first", "last")


def _find_contradiction(fields: dict[str, Any]) -> str:
    n, n_words = len(fields["cfg"]["labels"]), len(fields["words"])
    if len(set(fields["words"])) < n_words:
        return "each word stands in 'words' once"
    if not fields["of_word"].size:  # not initialized yet
        return lengths({"of_word": (0, 0), "follow": (0, 0), "first": 0, "last": 0, "words": 0}, fields)
    return lengths({"of_word": (n, n_words + 1), "follow": (n, n), "first": n, "last": n}, fields)


_SETTINGS = chain_settings({"pseudocount": above_zero, "rare": whole()})
_COUNTS, _TABLE = floats(0.0), floats(0.0, ndim=2)
_STATE = record(
    {
        "cfg": _SETTINGS,
        "words": list_of(text), "of_word": _TABLE, "follow": _TABLE, "first": _COUNTS, "last": _COUNTS,
    },
    _find_contradiction,
)  # fmt: skip


class HiddenMarkovModel(SavedLabeller):
    """A hidden Markov model, estimated from counts plus `pseudocount`.

    P(labels, words) = P(first label) P(word | label) P(next label | label) ..., each estimated as
    (count + pseudocount), divided by the sum of these. `initialize` learns at once; `update` does nothing.

    target (str), by_sentence (bool), constraints (list | None), overwrite (bool): See `ChainLabeller`.
    pseudocount (float): Greater than 0. rare (int): Words that occur at most so often also count for their class, which
    represents unknown words (digits, capitals, a hyphen, the last letters).
    RAISES C001: a setting out of range, no such target. C324: no such extension.
    """

    kind = "calib_hmm"

    def __init__(self, nlp: Language, name: str = "calib_hmm", **settings: Any):
        self.cfg = check_settings(_SETTINGS, HmmSettings(**settings))
        self.attach(nlp, name)
        self._follow = np.zeros((0, 0))
        self._first = self._last = np.zeros(0)
        self._words: dict[str, int] = {}
        self._of_word = np.zeros((0, 0))

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None, labels: Sequence[str] | None = None
    ) -> None:
        """Count words and labels. labels: From `spacy init labels`; None takes the examples'. RAISES C326: fewer than two labels."""
        validate_get_examples(get_examples, "HiddenMarkovModel.initialize")
        self.learn_labels(get_examples(), labels)
        sequences = [sequence for eg in get_examples() for sequence in self._gold_sequences(eg)]
        self._count(sequences)

    def _gold_sequences(self, example: Example) -> list[list[tuple[str, int]]]:
        """Return (word, column of its label) of each chain without gaps in the gold."""
        bounds, doc = self.gold_bounds(example), example.predicted
        gold = self.gold_columns(example, bounds).tolist()
        runs: list[list[tuple[str, int]]] = []
        for start, end in bounds:
            run: list[tuple[str, int]] = []
            for i in range(start, end):
                if gold[i] >= 0:
                    run.append((doc[i].text, gold[i]))
                    continue
                runs.append(run)
                run = []
            runs.append(run)
        return [run for run in runs if run]

    def _count(self, sequences: Sequence[Sequence[tuple[str, int]]]) -> None:
        """Count words and transitions. sequences: (word, column of its label) of each token."""
        n = len(self.labels)
        self._follow, self._first, self._last = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        frequency = Counter(word for sequence in sequences for word, _ in sequence)
        names = [word for word, count in frequency.items() if count > self.cfg["rare"]]
        names += sorted({word_class(word) for word, count in frequency.items() if count <= self.cfg["rare"]})
        self._words = {name: i for i, name in enumerate(names)}
        self._of_word = np.zeros((n, len(names) + 1))  # the last column: classes that do not occur
        for sequence in sequences:
            columns = np.array([column for _, column in sequence])
            self._first[columns[0]] += 1
            self._last[columns[-1]] += 1
            np.add.at(self._follow, (columns[:-1], columns[1:]), 1)
            np.add.at(self._of_word, (columns, self._word_columns(word for word, _ in sequence)), 1)

    def _word_columns(self, words: Iterable[str]) -> Any:
        """Return the column of each word in the table of counts: its own, or that of its class."""
        unknown = len(self._words)
        columns = self._words
        return np.array([columns[w] if w in columns else columns.get(word_class(w), unknown) for w in words], dtype=np.intp)

    def weights(self) -> Potentials:
        """Return log P(label | label), with the end of a sequence as one more label; and log P(first label)."""
        pseudocount = self.cfg["pseudocount"]
        table = np.column_stack([self._follow, self._last]) + pseudocount
        logs = np.log(table / table.sum(axis=1, keepdims=True))
        first = self._first + pseudocount
        return Potentials(logs[:, :-1], np.log(first / first.sum()), logs[:, -1])

    def label_scores(self, docs: Sequence[Doc]) -> list[Any]:
        """Return log P(word | label). RAISES C327: it is not initialized."""
        if not len(self._of_word):
            raise calib_error("C327", name=self.name)
        logs = self._word_logs()
        return [logs[self._word_columns(token.text for token in doc)] for doc in docs]

    def _word_logs(self) -> Any:
        """Return log P(word | label), a row for each word, computed once."""
        counts, logs = getattr(self, "_kept_logs", (None, None))
        if counts is not self._of_word:
            table = self._of_word + self.cfg["pseudocount"]
            logs = np.ascontiguousarray(np.log(table / table.sum(axis=1, keepdims=True)).T)
            self._kept_logs = (self._of_word, logs)
        return logs

    def learned_arrays(self) -> tuple[Any, ...]:
        """Return the counts, smaller tables last."""
        return self._of_word, self._follow, self._first, self._last

    @property
    def form(self) -> Form:
        return _STATE

    def _fitted_fields(self) -> dict[str, Any]:
        return {"words": list(self._words), **dict(zip(_ARRAYS, self.learned_arrays(), strict=True))}

    def _restore(self, fields: dict[str, Any]) -> None:
        self._words = {word: i for i, word in enumerate(fields["words"])}
        self._of_word, self._follow, self._first, self._last = (fields[name] for name in _ARRAYS)


def word_class(word: str) -> str:
    """Return the class of a rare or unknown word: its digits, capitals or hyphen, and its last three letters."""
    kind = "".join(
        mark
        for mark, holds in (
            ("9", any(map(str.isdigit, word))),
            ("A", word[:1].isupper()),
            ("a", word.islower()),
            ("-", "-" in word),
            (".", not any(map(str.isalnum, word))),
        )
        if holds
    )
    ending = word[-3:].lower() if len(word) > 3 and word.isalpha() else ""
    return f"<{kind}|{ending}>"
