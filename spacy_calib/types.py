"""Data types that are passed from sources to metrics: frozen dataclasses of numpy arrays, checked when they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import calib_error
from .schema import Serializable, saved_field, text, tuple_of, whole, wholes

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
# Scores computed in float64 from float32 logits may exceed 1 by a rounding error of this size.
ROUNDING = 1e-9
SINGLE_PRECISION = 1e-6  # the size of such an error for probabilities that were computed in single precision
OUTSIDE = "O"  # label of tokens outside of all entities
# Annotations whose labels differ from unit to unit: lemmas by edit trees, identities that an entity may be linked to.
OPEN = ("lemma", "link")
Sum = TypeVar("Sum", bound="FieldwiseSum")


class FieldwiseSum:
    """Base class of dataclasses that are added field by field; a field that is None in one object is None in the sum."""

    def __add__(self: Sum, other: Sum) -> Sum:
        kind: Any = type(self)
        return cast(Sum, kind(*(_sum(getattr(self, field.name), getattr(other, field.name)) for field in fields(kind))))


def _sum(a: Any, b: Any) -> Any:
    """Add two values of a field: numbers or arrays, or dicts or tuples of them, item by item; None if one is None."""
    if a is None or b is None:
        return None
    if isinstance(a, dict):
        return {key: _sum(value, b[key]) for key, value in a.items()}
    return tuple(map(_sum, a, b)) if isinstance(a, tuple) else a + b


def as_probabilities(name: str, values: ArrayLike) -> Floats:
    """Return values (`name` in errors) as a 1-D float64 array in [0, 1], rounding errors clipped. RAISES C001: they are not."""
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
    """Return values (`name` in errors) as a 1-D float64 array of finite numbers. RAISES C001: another shape, NaN, infinity."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise calib_error("C001", name=name, wanted="a one-dimensional array of finite numbers", given="something else")
    return array


def check_lengths(owner: str, reference: str, n: int, arrays: Mapping[str, Sized]) -> None:
    """Check that each array has n values. RAISES C002: one has another length.

    owner, reference (str): For the message: the object, such as "Spans", and the name of one of its n values, such as "start".
    arrays (Mapping): Name of one value, such as "end" -> array.
    """
    for name, values in arrays.items():
        if len(values) != n:
            raise calib_error("C002", what=owner, first=reference, second=name, n_first=n, n_second=len(values))


def as_hits(values: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Return a boolean array of length n from booleans or zeros and ones. RAISES C001: other values. C002: another length."""
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
    """Return a float64 array of n weights > 0, or None. RAISES C001: not positive and finite. C002: another length."""
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
    """P(label | sentence) of n_tokens tokens as a sparse matrix of n entries, each a token, a label and its probability.

    rows (Ints): Token of each entry, ascending. tags (Ints): Label of each entry, as a column of the source's labels.
    scores (Floats): Probability of each entry, in [0, 1]. n_tokens (int): Number of tokens.
    names (Sequence[str] | None): Label of each entry if columns are no labels: for lemmas the columns are edit trees.
    """

    rows: Ints
    tags: Ints
    scores: Floats
    n_tokens: int
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_lengths("Marginals", "row", len(self.rows), {"score": self.scores, "tag": self.tags})

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def indptr(self) -> Ints:
        """Index of the first entry of each token, and the number of entries, shape (n_tokens + 1,), as in a CSR matrix."""
        return self.rows.searchsorted(np.arange(self.n_tokens + 1))

    def take(self, index: Ints) -> Marginals:
        """Return the entries at these ascending indices; n_tokens stays."""
        names = None if self.names is None else [self.names[i] for i in index.tolist()]
        return Marginals(self.rows[index], self.tags[index], self.scores[index], self.n_tokens, names)


@dataclass(frozen=True, eq=False)
class Spans:
    """n labelled spans (entities, for instance). A row is the number of a token, counted over all Docs.

    starts, ends (Ints): First row of each span, and last row + 1, shape (n,). labels (Ints): Index in the source's span labels.
    token_scores (Floats): Marginal of the span's label at each of its tokens, shape (sum(ends - starts),).
    scores (Floats): The source's own probability of each span, in [0, 1].
    on_doc (NDArray[bool]): True if the span is on the Doc, False if the source only considers it as a candidate.
    further_scores (Floats | None): k more scores of each span, in [0, 1], which its recalibrator uses too, shape (n, k).
    """

    starts: Ints
    ends: Ints
    labels: Ints
    token_scores: Floats
    scores: Floats
    on_doc: NDArray[np.bool_]
    further_scores: Floats = None  # type: ignore[assignment]  # an array once it is built

    def __post_init__(self) -> None:
        if self.further_scores is None:
            object.__setattr__(self, "further_scores", np.zeros((len(self.starts), 0)))
        arrays = {"end": self.ends, "label": self.labels, "score": self.scores, "on_doc": self.on_doc}
        arrays["further score"] = self.further_scores
        check_lengths("Spans", "start", len(self.starts), arrays)
        check_lengths("Spans", "token", int((self.ends - self.starts).sum()), {"token score": self.token_scores})

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, keep: NDArray[Any]) -> Spans:
        """Return the spans that `keep` selects: ascending indices, or a boolean for each span."""
        index = np.flatnonzero(keep) if keep.dtype == np.bool_ else keep
        return Spans(
            self.starts[index], self.ends[index], self.labels[index], self.token_scores[self._tokens_of(index)],
            self.scores[index], self.on_doc[index], self.further_scores[index],
        )  # fmt: skip

    def without_further_scores(self) -> Spans:
        """Return the same spans without `further_scores`: they become an array of shape (n, 0)."""
        return replace(self, further_scores=np.zeros((len(self), 0)))

    def _tokens_of(self, index: Ints) -> Ints:
        """Return the indices into `token_scores` of the tokens of the spans at `index`, span by span."""
        all_sizes = self.ends - self.starts
        all_firsts = np.cumsum(all_sizes) - all_sizes  # index in `token_scores` of the first token of each span
        firsts, sizes = all_firsts[index], all_sizes[index]
        new_firsts = np.cumsum(sizes) - sizes  # first token of each span among the selected ones
        return np.repeat(firsts - new_firsts, sizes) + np.arange(sizes.sum())


def stack_spans(parts: Sequence[Spans], n_tokens: Sequence[int]) -> Spans:
    """Concatenate the spans of consecutive Docs (parts), with rows counted from the first Doc. n_tokens: Tokens of each Doc."""
    no_rows = np.zeros(0, dtype=np.intp)
    if not parts:
        return Spans(no_rows, no_rows, no_rows, np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
    columns = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Spans)}
    offsets = np.repeat(np.cumsum([0, *n_tokens])[: len(parts)], [len(part) for part in parts])
    return Spans(**{**columns, "starts": columns["starts"] + offsets, "ends": columns["ends"] + offsets})


@dataclass(frozen=True, eq=False)
class Pairs:
    """n (token, tag) pairs: the score of each, and whether the tag is the gold tag.

    rows (Ints): Token (or document, or entity) of each pair, ascending. tags (Ints): Tag of each, as a column of the labels.
    scores (Floats): Raw marginal of each pair, in [0, 1]. hits (NDArray[bool]): True for each pair whose tag is the gold tag.
    n_units (int): Number of tokens (documents, entities), including those without a pair.
    RAISES C001: scores or hits out of range. C002: arrays of different lengths.

        >>> import numpy as np
        >>> pairs = Pairs(np.array([0, 0, 1]), np.array([2, 0, 2]), np.array([0.7, 0.2, 0.9]), np.array([True, False, True]), 2)
        >>> pairs.take(pairs.scores > 0.5).rows.tolist()
        [0, 1]
    """

    rows: Ints
    tags: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    n_units: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", as_probabilities("scores", self.scores))
        object.__setattr__(self, "hits", as_hits(self.hits, len(self.scores)))
        for name in ("row", "tag"):
            check_lengths("Pairs", name, len(getattr(self, f"{name}s")), {"score": self.scores})

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def empty(cls) -> Pairs:
        no_rows = np.zeros(0, dtype=np.intp)
        return cls(no_rows, no_rows, np.zeros(0), np.zeros(0, dtype=bool), 0)

    def take(self, index: NDArray[Any]) -> Pairs:
        """Return the pairs that `index` selects: indices, or a boolean for each pair; n_units stays."""
        return self._with_arrays(self.rows[index], self.tags[index], self.scores[index], self.hits[index])

    def with_scores(self, scores: Floats) -> Pairs:
        """Return the same pairs with other scores. RAISES C001: values out of range. C002: another number of scores."""
        probabilities = as_probabilities("scores", scores)
        check_lengths("Pairs", "row", len(self), {"score": probabilities})
        return self._with_arrays(self.rows, self.tags, probabilities, self.hits)

    def _with_arrays(self, rows: Ints, tags: Ints, scores: Floats, hits: NDArray[np.bool_]) -> Pairs:
        """Build pairs from checked arrays without checking them again: a fit selects pairs hundreds of times."""
        pairs = object.__new__(Pairs)
        vars(pairs).update(rows=rows, tags=tags, scores=scores, hits=hits, n_units=self.n_units)
        return pairs


@dataclass(frozen=True, eq=False)
class Groups(Serializable):
    """A partition of the tags into groups; each group has its own recalibrator.

    names (tuple[str, ...]): Names of the groups, in order. of_tag (Ints): Index of each tag's group, shape (n_tags,); -1 for a
    tag without one, which uses the pooled recalibrator. counts (Ints): Gold frequency of each tag, shape (n_tags,).
    n_singletons (int): Number of groups at the front that hold one tag each, whatever its frequency ("O" of entities).

        >>> import numpy as np
        >>> groups = Groups(("frequent", "rare"), np.array([0, 1, 1]), counts=np.array([90, 4, 6]))
        >>> groups.find(np.array([2, 0, 7])).tolist(), groups.tags_in(1).tolist(), groups.sizes
        ([1, 0, -1], [2, 1], [1, 2])
    """

    names: tuple[str, ...] = saved_field(tuple_of(text))
    of_tag: Ints = saved_field(wholes(-1))
    counts: Ints = saved_field(wholes(), lambda: np.zeros(0, dtype=np.intp))
    n_singletons: int = saved_field(whole(), 0, key="alone")

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_tag", np.asarray(self.of_tag, dtype=np.intp))
        counts = np.asarray(self.counts, dtype=np.intp)
        object.__setattr__(self, "counts", counts if counts.size else np.zeros(len(self.of_tag), dtype=np.intp))

    def __len__(self) -> int:
        return len(self.names)

    def find(self, tags: Ints) -> NDArray[Any]:
        """Return the index of each tag's group; -1 for a tag without one and for labels that were appended after the fit."""
        # The last element, -1, is for all labels appended after the fit. int16 compares and sorts several times as fast.
        group_by_tag = np.append(self.of_tag, -1).astype(np.int16 if len(self) < 1 << 15 else np.intp)
        if len(tags) and tags.max() > len(self.of_tag):
            tags = np.minimum(tags, len(self.of_tag))
        return group_by_tag[tags]

    def tags_in(self, group: int) -> Ints:
        """Return the tags of a group as columns, by falling gold frequency, ties by column."""
        members = np.flatnonzero(self.of_tag == group)
        return members[np.argsort(-self.counts[members], kind="stable")]

    @property
    def sizes(self) -> list[int]:
        """Number of tags in each group."""
        return np.bincount(self.of_tag[self.of_tag >= 0], minlength=len(self.names)).tolist()

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        """Return why saved fields do not fit together, or "". "alone" (n_singletons) is at most the number of groups."""
        if len(fields["counts"]) != len(fields["of_tag"]):
            return f"{len(fields['of_tag'])} tags have groups, {len(fields['counts'])} have counts"
        if fields["of_tag"].max(initial=-1) >= len(fields["names"]) or fields["alone"] > len(fields["names"]):
            return f"there are {len(fields['names'])} groups, but tags or singletons of more"
        return ""


@dataclass(frozen=True, eq=False)
class BinTable:
    """The n non-empty bins of some pairs: number of pairs (or sum of weights), mean score and share of hits of each, (n,)."""

    counts: Floats
    mean_score: Floats
    mean_hit: Floats

    def __len__(self) -> int:
        return len(self.counts)


# (labels, their gold frequencies) -> groups.
Grouping = Callable[[Sequence[str], Mapping[str, int]], Groups]
