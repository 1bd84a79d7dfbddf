"""The nouns of the data flow, as frozen dataclasses over numpy arrays that are checked when built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import calib_error
from .schema import Saved, kept, several, text, whole, wholes

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Scores computed in float64 from float32 logits may pass 1 by a rounding error, never by more.
ROUNDING = 1e-9
# The label of tokens outside of all entities.
OUTSIDE = "O"
# The annotations whose columns name no labels: each unit has its own (what edit trees make of a word, what an entity may be linked to).
OPEN = ("lemma", "link")


Sum = TypeVar("Sum", bound="Adds")


class Adds:
    """A dataclass of sums: two of them add up, field by field. What one does not know (None) both do not know."""

    def __add__(self: Sum, other: Sum) -> Sum:
        kind: Any = type(self)
        return cast(Sum, kind(*(_sum(getattr(self, one.name), getattr(other, one.name)) for one in fields(kind))))


def _sum(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return None
    if isinstance(one, dict):
        return {key: _sum(value, other[key]) for key, value in one.items()}
    return tuple(map(_sum, one, other)) if isinstance(one, tuple) else one + other


def as_probabilities(name: str, values: ArrayLike) -> Floats:
    """A one-dimensional float64 array in [0, 1]. RAISES C001: wrong number of dimensions, NaN, or out of range."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise calib_error("C001", name=name, wanted="a one-dimensional array", given=f"one of shape {array.shape}")
    if array.size:
        low, high = array.min(), array.max()
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # NaN fails this too
            raise calib_error("C001", name=name, wanted="numbers in [0, 1]", given=f"a range of {low:.9g} to {high:.9g}")
        if low < 0 or high > 1:
            array = np.clip(array, 0.0, 1.0)
    return array


def as_finite(name: str, values: ArrayLike) -> Floats:
    """A one-dimensional float64 array of finite numbers. RAISES C001: anything else."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise calib_error("C001", name=name, wanted="a one-dimensional array of finite numbers", given="something else")
    return array


def check_lengths(what: str, of: str, n: int, others: Mapping[str, Sized]) -> None:
    """Check that arrays go together. of (str): A thing of the n. others: Name -> of each. RAISES C002: another length."""
    for name, values in others.items():
        if len(values) != n:
            raise calib_error("C002", what=what, first=of, second=name, n_first=n, n_second=len(values))


def as_hits(values: ArrayLike, n: int) -> NDArray[np.bool_]:
    """A boolean array of length n from booleans or zeros and ones. RAISES C001: other values. C002: another length."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise calib_error("C002", what="A set of pairs", first="score", second="hit", n_first=n, n_second=array.size)
    if array.dtype == np.bool_:
        return array
    hits = array.astype(np.bool_)
    if array.size and not np.array_equal(hits, array):
        raise calib_error("C001", name="hits", wanted="zeros and ones", given="other values")
    return hits


def as_weights(values: ArrayLike | None, n: int) -> Floats | None:
    """A float64 array of n weights > 0, or None. RAISES C001: not positive and finite. C002: another length."""
    if values is None:
        return None
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (n,):
        raise calib_error("C002", what="A set of pairs", first="score", second="weight", n_first=n, n_second=weights.size)
    if n and not (weights.min() > 0 and np.isfinite(weights.max())):
        raise calib_error("C001", name="weights", wanted="positive and finite", given="other values")
    return weights


@dataclass(frozen=True, eq=False)
class Marginals:
    """P(tag | sentence) of some tokens, sparse: the entries that a source kept, token by token.

    rows (Ints): Token of each entry, ascending, in [0, n_tokens).
    tags (Ints): Column of each entry's tag in the source's labels.
    scores (Floats): The marginal, in [0, 1].
    n_tokens (int): Number of tokens.
    names (Sequence[str] | None): The label of each entry where it is not labels[tag] (lemmas given by edit trees).
    """

    rows: Ints
    tags: Ints
    scores: Floats
    n_tokens: int
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.tags) == len(self.scores):
            raise calib_error(
                "C002", what="Marginals", first="row", second="score", n_first=len(self.rows), n_second=len(self.scores)
            )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def indptr(self) -> Ints:
        """Where each token's entries begin: shape (n_tokens + 1,)."""
        return self.rows.searchsorted(np.arange(self.n_tokens + 1))

    def take(self, index: Ints) -> Marginals:
        """Some of the entries, by ascending index; the tokens stay as many."""
        names = None if self.names is None else [self.names[i] for i in index.tolist()]
        return Marginals(self.rows[index], self.tags[index], self.scores[index], self.n_tokens, names)


@dataclass(frozen=True, eq=False)
class Spans:
    """Labelled stretches of tokens that a source found; n spans over the rows of some tokens.

    starts, ends (Ints): First row, and the one after the last, shape (n,).
    labels (Ints): Column of the label in the source's span labels.
    token_scores (Floats): The marginal of the span's label at each of its tokens, shape (sum(ends - starts),).
    own (Floats): The probability that the source itself gives the span, in [0, 1].
    chosen (NDArray[bool]): False for one that the source held but did not put on the Doc.
    beside (Floats | None): k more scores of each, in [0, 1], which a map looks at too, shape (n, k); None for none.
    """

    starts: Ints
    ends: Ints
    labels: Ints
    token_scores: Floats
    own: Floats
    chosen: NDArray[np.bool_]
    beside: Floats = None  # type: ignore[assignment]  # an array once it is built

    def __post_init__(self) -> None:
        if self.beside is None:
            object.__setattr__(self, "beside", np.zeros((len(self.starts), 0)))
        others = {"end": self.ends, "label": self.labels, "own": self.own, "chosen": self.chosen, "beside": self.beside}
        check_lengths("Spans", "start", len(self.starts), others)
        check_lengths("Spans", "token", int((self.ends - self.starts).sum()), {"token score": self.token_scores})

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, keep: NDArray[Any]) -> Spans:
        """Some of the spans. keep (NDArray): Their indices, ascending, or booleans."""
        index = np.flatnonzero(keep) if keep.dtype == np.bool_ else keep
        return Spans(
            self.starts[index], self.ends[index], self.labels[index], self.token_scores[self._tokens_of(index)],
            self.own[index], self.chosen[index], self.beside[index],
        )  # fmt: skip

    def alone(self) -> Spans:
        """The same without scores beside their own."""
        return replace(self, beside=np.zeros((len(self), 0)))

    def _tokens_of(self, index: Ints) -> Ints:
        """Where the token scores of these spans stand."""
        lengths = self.ends - self.starts
        firsts = (np.cumsum(lengths) - lengths)[index]
        wanted = lengths[index]
        return np.repeat(firsts - (np.cumsum(wanted) - wanted), wanted) + np.arange(wanted.sum())


def stack_spans(parts: Sequence[Spans], n_tokens: Sequence[int]) -> Spans:
    """The spans of Docs that follow one another. n_tokens (Sequence[int]): Tokens of each Doc."""
    offsets = np.cumsum([0, *n_tokens])[: len(parts)]
    none = np.zeros(0, dtype=np.intp)
    return Spans(
        np.concatenate([none, *(part.starts + offset for part, offset in zip(parts, offsets, strict=True))]),
        np.concatenate([none, *(part.ends + offset for part, offset in zip(parts, offsets, strict=True))]),
        np.concatenate([none, *(part.labels for part in parts)]),
        np.concatenate([np.zeros(0), *(part.token_scores for part in parts)]),
        np.concatenate([np.zeros(0), *(part.own for part in parts)]),
        np.concatenate([np.zeros(0, dtype=bool), *(part.chosen for part in parts)]),
        np.concatenate([part.beside for part in parts]) if parts else np.zeros((0, 0)),
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """(token, tag) pairs with their score and whether the tag is the gold one.

    rows (Ints): The token (or document, entity) of each pair, ascending.
    tags (Ints): The tag of each pair, as a column of the labels.
    scores (Floats): The raw marginal, in [0, 1].
    hits (NDArray[bool]): True if the tag is the gold tag.
    n_units (int): Tokens (documents, entities) that were looked at, with or without a pair.
    """

    rows: Ints
    tags: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    n_units: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", as_probabilities("scores", self.scores))
        object.__setattr__(self, "hits", as_hits(self.hits, len(self.scores)))
        for name in ("rows", "tags"):
            if len(getattr(self, name)) != len(self.scores):
                raise calib_error(
                    "C002", what="Pairs", first=name[:-1], second="score",
                    n_first=len(getattr(self, name)), n_second=len(self.scores),
                )  # fmt: skip

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def none(cls) -> Pairs:
        """The pairs of no tokens."""
        none = np.zeros(0, dtype=np.intp)
        return cls(none, none, np.zeros(0), np.zeros(0, dtype=bool), 0)

    def take(self, index: NDArray[Any]) -> Pairs:
        """Some of the pairs, by index or booleans; the tokens that were looked at stay as many."""
        return self._checked(self.rows[index], self.tags[index], self.scores[index], self.hits[index])

    def with_scores(self, scores: Floats) -> Pairs:
        """The same pairs with other scores. RAISES C001: values out of range. C002: not as many."""
        given = as_probabilities("scores", scores)
        if len(given) != len(self):
            raise calib_error("C002", what="Pairs", first="row", second="score", n_first=len(self), n_second=len(given))
        return self._checked(self.rows, self.tags, given, self.hits)

    def _checked(self, rows: Ints, tags: Ints, scores: Floats, hits: NDArray[np.bool_]) -> Pairs:
        """Pairs of arrays that were checked already: a fit takes parts of its pairs some hundred times."""
        made = object.__new__(Pairs)
        vars(made).update(rows=rows, tags=tags, scores=scores, hits=hits, n_units=self.n_units)
        return made


@dataclass(frozen=True, eq=False)
class Groups(Saved):
    """Which group each tag belongs to.

    names (tuple[str, ...]): The groups, in order.
    of_tag (Ints): Index of each tag's group, shape (n_tags,); -1 where a tag has none and uses the pooled map.
    counts (Ints): Gold frequency of each tag, shape (n_tags,).
    alone (int): How many groups in front hold one tag each and are kept whatever the frequencies are.
    """

    names: tuple[str, ...] = kept(several(text))
    of_tag: Ints = kept(wholes(-1))
    counts: Ints = kept(wholes(), lambda: np.zeros(0, dtype=np.intp))
    alone: int = kept(whole(), 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_tag", np.asarray(self.of_tag, dtype=np.intp))
        counts = np.asarray(self.counts, dtype=np.intp)
        object.__setattr__(self, "counts", counts if counts.size else np.zeros(len(self.of_tag), dtype=np.intp))

    def __len__(self) -> int:
        return len(self.names)

    def of(self, tags: Ints) -> NDArray[Any]:
        """The group of each of these tags; -1 for tags without one or past the end (labels appended later)."""
        # Small integers compare and sort several times as fast as wide ones.
        padded = np.append(self.of_tag, -1).astype(np.int16 if len(self) < 1 << 15 else np.intp)
        if len(tags) and tags.max() > len(self.of_tag):
            tags = np.minimum(tags, len(self.of_tag))
        return padded[tags]

    def tags_in(self, group: int) -> Ints:
        """The columns of the tags in this group, most frequent first, equal ones by column."""
        members = np.flatnonzero(self.of_tag == group)
        return members[np.argsort(-self.counts[members], kind="stable")]

    @property
    def sizes(self) -> list[int]:
        """Number of tags in each group."""
        return np.bincount(self.of_tag[self.of_tag >= 0], minlength=len(self.names)).tolist()

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        if len(held["counts"]) != len(held["of_tag"]):
            return f"{len(held['of_tag'])} tags have groups, {len(held['counts'])} have counts"
        if held["of_tag"].max(initial=-1) >= len(held["names"]) or held["alone"] > len(held["names"]):
            return f"there are {len(held['names'])} groups"
        return ""


@dataclass(frozen=True, eq=False)
class BinTable:
    """What the bins hold; empty bins are left out.

    counts (Floats): Pairs (or their weight) in each bin.
    mean_score (Floats): Mean score of each bin.
    mean_hit (Floats): Share of hits in each bin.
    """

    counts: Floats
    mean_score: Floats
    mean_hit: Floats

    def __len__(self) -> int:
        return len(self.counts)


# (labels, their gold frequencies) -> groups.
Grouping = Callable[[Sequence[str], Mapping[str, int]], Groups]
