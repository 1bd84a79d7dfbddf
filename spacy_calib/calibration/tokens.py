"""From the probabilities that a source gave to calibrated ones: scaling, context, map of the group, normalization; and what is promised of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..pairs.build import leading
from ..pairs.marginals import Scores
from ..schema import Form, Misfit, Optional, listed, maybe, optional, registered
from ..types import Floats, Ints, Marginals, Pairs
from .adaptation.adaptation import Adaptation, move_all
from .cutoffs import Cutoffs
from .grouped import GROUPED, GroupedRecalibrator
from .intervals import GroupedVennAbers
from .portable import Portable
from .recalibrators import Recalibrator
from .recalibrators.base import MAP
from .recall_cutoffs import RecallCutoffs
from .scaling import Scaling
from .sets import ConformalSets


def check_normalize(normalize: bool | str) -> bool | str:
    """RAISES C001: neither True, False nor "other"."""
    if normalize not in (True, False, "other"):
        raise calib_error("C001", name="normalize", wanted='true, false or "other"', given=repr(normalize))
    return normalize


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The entries of some tokens that reach the threshold, after all steps; arrays of one length but for `out_of_reach`.

    marginals (Marginals): Raw. scores (Floats): Calibrated.
    low, high (Floats | None): Venn-Abers interval of each entry; None where the pipe keeps none.
    in_set (NDArray[bool] | None): Whether the tag is in the token's set. out_of_reach (NDArray[bool] | None): Of each token, whether no
        set short of all tags keeps the promise. None where the pipe makes no sets.
    view (Any): The tokens as the features of the context see them; None without context.
    away (NDArray[bool] | None): Of each token, whether its Doc got the portable map; None where the pipe has none.
    """

    marginals: Marginals
    scores: Floats
    low: Floats | None = None
    high: Floats | None = None
    in_set: NDArray[np.bool_] | None = None
    out_of_reach: NDArray[np.bool_] | None = None
    view: Any = None
    away: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class CalibratedEntries:
    """Single (token, tag) entries below the threshold. scores (Floats): Calibrated. low, high: As in Calibrated."""

    scores: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True, eq=False)
class CalibratedPairs:
    """Pairs that reach the threshold, after all steps. kept (Ints): Which of the given ones. scaled (Floats): What scaling and context make of them.
    scores (Floats): Calibrated. view (Any): As in Calibrated.
    """

    kept: Ints
    scaled: Floats
    scores: Floats
    view: Any


class Context(Protocol):
    """What a context learned; its class stands in a later room. functions: What it asks of Docs."""

    @property
    def functions(self) -> Any: ...

    def view(self, words: Any, rows: Ints, tags: Ints, scores: Floats) -> Any:
        """The tokens as its features see them. words: Of all tokens. rows, tags (Ints), scores (Floats): Of their entries, as the scaling gives them."""

    def calibrate(self, view: Any) -> Floats | None:
        """The scores of these entries; None where those of tokens stay as they are."""

    def calibrate_below(self, view: Any, rows: Ints, tags: Ints, scores: Floats) -> Floats | None:
        """The same of entries below the threshold."""

    def state(self) -> dict[str, Any]: ...


# Of a TokenCalibration; its parts of the registries are read where they are made.
TOKENS: dict[str, Form | Optional] = {
    "maps": maybe(GROUPED),
    "scaling": optional(maybe(registered("@calib_scalings"))),
    "context": optional(maybe(registered("@calib_contexts"))),
    "other": optional(maybe(MAP)),
    "intervals": optional(maybe(GROUPED)),
    "sets": optional(maybe(registered("@calib_sets"))),
    "adaptations": optional(maybe(listed(Adaptation.read))),
    "recall_cutoffs": optional(maybe(RecallCutoffs.read)),
    "label_cutoffs": optional(maybe(Cutoffs.read)),
    "portable": optional(maybe(Portable.read)),
}


class TokenCalibration:
    """The steps between a source's probability and `Token._.calib_score`.

    scaling (Scaling | None): Fitted; weighs the tags of a token anew before the threshold cuts them off.
    context (Context | None): Fitted; moves what the scaling gives by the word and what surrounds it.
    maps (GroupedRecalibrator | None): Fitted; of the scores that scaling and context give. None passes them through.
    normalize (bool | str): True divides a token's scores by their sum; "other" by their sum and the calibrated probability that the
        right tag is none of them. other (Recalibrator | None): The map of that probability.
    intervals (GroupedVennAbers | None): Fitted. sets (ConformalSets | None): Fitted.
    adaptations (tuple[Adaptation, ...]): Steps after the maps, in order, which make scores true on new kinds of text.
    recall_cutoffs (RecallCutoffs | None): The scores from which tokens are flagged. label_cutoffs (Cutoffs | None): Those from which the category
        of a document is accepted. Both belong to these maps: a new fit has none.
    portable (Portable | None): The map for Docs of sources that the fit does not know.
    """

    def __init__(
        self,
        maps: GroupedRecalibrator | None = None,
        *,
        scaling: Scaling | None = None,
        context: Context | None = None,
        normalize: bool | str = False,
        other: Recalibrator | None = None,
        intervals: GroupedVennAbers | None = None,
        sets: ConformalSets | None = None,
        adaptations: tuple[Adaptation, ...] = (),
        recall_cutoffs: RecallCutoffs | None = None,
        label_cutoffs: Cutoffs | None = None,
        portable: Portable | None = None,
    ):
        self.maps = maps
        self.scaling = scaling
        self.context = context
        self.normalize = normalize
        self.other = other
        self.intervals = intervals
        self.sets = sets
        self.adaptations = adaptations
        self.recall_cutoffs = recall_cutoffs
        self.label_cutoffs = label_cutoffs
        self.portable = portable

    # Applying

    def calibrate(self, scores: Scores, threshold: float, words: Any = None, map_for: str | None = None) -> Calibrated:
        """The calibrated probabilities of all entries that reach the threshold. words: Of the tokens; a context looks at them.
        map_for (str | None): The map that all Docs get, see `Portable.away`.
        """
        every = scores.above(lowest_score(threshold, self.scaling))
        kept, scaled, view = self._front(every.rows, every.tags, every.scores, threshold, words)
        marginals = every if self.scaling is None else every.take(kept)
        rows, tags = marginals.rows, marginals.tags
        leads = self._leads(rows, marginals.scores)
        away = None if self.portable is None else self.portable.away(words, view.unknown, map_for)[words.docs]
        mapped = self._travelled(self._map(scaled, tags), rows, marginals.scores, away)
        adapted = move_all(self.adaptations, mapped, leads, tags)
        calibrated = self.normalized(rows, scaled, adapted)
        low, high = self._interval(scaled, tags, leads)
        in_set = out_of_reach = None
        if self.sets is not None:
            in_set, out_of_reach = self.sets.predict(rows, tags, calibrated, marginals.n_tokens)
            out_of_reach[silent_tokens(scores, rows)] = True
        return Calibrated(marginals, calibrated, low, high, in_set, out_of_reach, view, away)

    def calibrate_pairs(self, pairs: Pairs, threshold: float, normalize: bool = True, words: Any = None) -> CalibratedPairs:
        """The pairs that reach the threshold, after all steps.

        pairs (Pairs): All of their tokens that reach the lowest score that takes part. normalize (bool): Whether the last step is taken too.
        words: Of all tokens, which then must all have their pairs here; a context looks at them. The portable map is not asked.
        """
        kept, scaled, view = self._front(pairs.rows, pairs.tags, pairs.scores, threshold, words)
        rows, tags = pairs.rows[kept], pairs.tags[kept]
        adapted = move_all(self.adaptations, self._map(scaled, tags), self._leads(rows, pairs.scores[kept]), tags)
        return CalibratedPairs(kept, scaled, self.normalized(rows, scaled, adapted) if normalize else adapted, view)

    def calibrate_entries(
        self, scores: Scores, threshold: float, rows: Ints, tags: Ints, raw: Floats, view: Any = None, away: Any = None
    ) -> CalibratedEntries:
        """The calibrated probabilities of single entries below the threshold; they are not normalized.

        rows, tags (Ints), raw (Floats): Token, tag and raw probability of each. view, away: See `Calibrated`.
        """
        scaled = raw
        if self.scaling is not None and len(rows):
            every = scores.above(lowest_score(threshold, self.scaling))
            beside = np.flatnonzero(np.isin(every.rows, rows))
            joined = np.concatenate([every.scores[beside], raw])
            of_floor = self.scaling.floor
            counted = np.concatenate([every.scores[beside] >= of_floor, np.zeros(len(raw), dtype=bool)])
            all_rows, all_tags = np.append(every.rows[beside], rows), np.append(every.tags[beside], tags)
            scaled = self.scaling.scale(all_rows, all_tags, joined, counted)[len(beside) :]
        if self.context is not None:
            moved = self.context.calibrate_below(view, rows, tags, scaled)
            scaled = scaled if moved is None else moved
        leads = np.zeros(len(rows), dtype=bool)  # what leads reaches the threshold
        adapted = move_all(self.adaptations, self._travelled(self._map(scaled, tags), rows, raw, away), leads, tags)
        return CalibratedEntries(adapted, *self._interval(scaled, tags, leads))

    def _front(self, rows: Ints, tags: Ints, scores: Floats, threshold: float, words: Any) -> tuple[Ints, Floats, Any]:
        """(index of the entries that reach the threshold, what scaling and context make of these, how the context sees the tokens).

        rows, tags (Ints), scores (Floats): Of all entries that reach the lowest score that takes part.
        """
        kept, scaled = np.flatnonzero(scores >= threshold), scores
        if self.scaling is not None:
            counted = None if threshold >= self.scaling.floor else scores >= self.scaling.floor
            scaled = self.scaling.scale(rows, tags, scores, counted)
        scaled = scaled[kept]
        if self.context is None:
            return kept, scaled, None
        view = self.context.view(words, rows[kept], tags[kept], scaled)
        moved = self.context.calibrate(view)
        return kept, scaled if moved is None else moved, view

    def _leads(self, rows: Ints, raw: Floats) -> NDArray[np.bool_]:
        """Whether each entry is its token's likeliest one by the raw scores; asked by the adaptations alone."""
        return leading(rows, raw) if self.adaptations else np.zeros(len(rows), dtype=bool)

    def _map(self, scaled: Floats, tags: Ints) -> Floats:
        return scaled.copy() if self.maps is None else self.maps.predict(scaled, tags)

    def _travelled(self, mapped: Floats, rows: Ints, raw: Floats, away: NDArray[np.bool_] | None) -> Floats:
        """The scores that the maps give, those of Docs that got the portable map by that. raw (Floats): Of the same entries."""
        if self.portable is None or away is None or not away.any():
            return mapped
        return np.where(away[rows], self.portable.blend(mapped, raw), mapped)

    def _interval(self, judged: Floats, tags: Ints, leads: NDArray[np.bool_]) -> tuple[Floats | None, Floats | None]:
        """judged (Floats): What the intervals are fitted on: what scaling and context give."""
        if self.intervals is None:
            return None, None
        low, high = self.intervals.interval(judged, tags)
        return move_all(self.adaptations, low, leads, tags), move_all(self.adaptations, high, leads, tags)

    def normalized(self, rows: Ints, scaled: Floats, calibrated: Floats) -> Floats:
        """The calibrated scores divided by the sum of their token, as the setting `normalize` says; a sum of 0 divides nothing.

        rows (Ints): Token of each entry, ascending. scaled (Floats): Scores before the maps, which tell what is left to all other tags.
        """
        if not self.normalize or not len(rows):
            return calibrated
        n = int(rows[-1]) + 1
        sums: NDArray[Any] = np.bincount(rows, weights=calibrated, minlength=n)
        if self.normalize == "other":
            rest = rest_of(rows, scaled, n)
            sums = sums + (rest if self.other is None else self.other.predict(rest))
        of_row = np.where(sums > 0, sums, 1.0)[rows]
        return calibrated / of_row

    # Saving

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        names = ("maps", "scaling", "context", "other", "intervals", "sets", "portable", "recall_cutoffs", "label_cutoffs")
        parts = {name: getattr(self, name) for name in names}
        held = {name: None if part is None else part.state() for name, part in parts.items()}
        return {**held, "adaptations": [one.state() for one in self.adaptations] or None}

    @classmethod
    def from_state(
        cls, state: dict[str, Any], normalize: bool | str, load: Callable[[dict[str, Any]], Any]
    ) -> TokenCalibration:
        """Rebuild from a state that TOKENS has read.

        load (Callable): Rebuilds one part from its state by its registered name.
        RAISES Misfit: a part is not fitted, or not to as many tags as the maps.
        """

        def part(name: str, rebuild: Callable[[dict[str, Any]], Any] = load) -> Any:
            return None if state[name] is None else rebuild(state[name])

        made = cls(
            part("maps", lambda held: GroupedRecalibrator.from_state(held, load)),
            scaling=part("scaling"),
            context=part("context"),
            normalize=normalize,
            other=part("other"),
            intervals=part("intervals", GroupedVennAbers.from_state),
            sets=part("sets"),
            adaptations=tuple(state["adaptations"] or ()),
            recall_cutoffs=state["recall_cutoffs"],
            label_cutoffs=state["label_cutoffs"],
            portable=state["portable"],
        )
        made._check_loaded()
        return made

    def _check_loaded(self) -> None:
        """RAISES Misfit: see `from_state`."""
        if self.portable is not None and self.context is None:
            raise Misfit("portable", "beside a context")
        if self.other is not None and not self.other.fitted:
            raise Misfit("other", "fitted")
        n_tags = None if self.maps is None else len(self.maps.groups.of_tag)
        tags = {
            "scaling": None if self.scaling is None else self.scaling.n_tags,
            "intervals": None if self.intervals is None else len(self.intervals.groups.of_tag),
            "sets": None if self.sets is None else self.sets.n_tags,
        }
        for name, n in tags.items():
            if n is not None and n != n_tags:
                raise Misfit(name, f"fitted to as many tags as the maps ({n_tags})")


def lowest_score(threshold: float, *scalings: Scaling | None) -> float:
    """Scores below it take no part: the threshold, or the floor of a scaling."""
    return min([threshold, *(scaling.floor for scaling in scalings if scaling is not None)])


def silent_tokens(scores: Scores, rows: Ints) -> Ints:
    """The tokens of which a source says nothing (entities that were set before it).

    rows (Ints): Token of each entry that it gave.
    """
    bare = np.flatnonzero(np.bincount(rows, minlength=scores.n_tokens) == 0)
    return bare[np.isnan(scores.at(bare, np.zeros(len(bare), dtype=np.intp)))]


def rest_of(rows: Ints, scaled: Floats, n_tokens: int) -> Floats:
    """The probability that is left to all tags without an entry, shape (n_tokens,)."""
    return np.clip(1.0 - np.bincount(rows, weights=scaled, minlength=n_tokens), 0.0, 1.0)
