"""The result of the component on a Doc, and `Doc._.coref`, which reads it; None if the Doc's words have changed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span

from ...doc.blocks import BLOCK_VERSION, add_block, checksum_of, delete_blocks, find_blocks
from ...types import Floats, Ints
from ..events.draws import make_rng
from ..events.sampling import AnnotationDraws
from . import ATTRIBUTE
from .inference.antecedents import Antecedents, Candidates, refit
from .inference.pairs import DENSE, MentionPairs, pair_probabilities
from .mentions import Mentions, digest, write_clusters
from .messages import calib_error


@dataclass(frozen=True, eq=False)
class CorefResult:
    """Coreference of one Doc, before it is stored.

    pairs (MentionPairs): Those that reach the threshold, before calibration. calibrated (Floats | None): Their calibrated
    probabilities. below_threshold (Floats): Probability of other pairs, by group; empty without calibration. first (Ints): The
    first mention of each mention's cluster.
    """

    mentions: Mentions
    antecedents: Antecedents
    pairs: MentionPairs
    calibrated: Floats | None
    below_threshold: Floats
    first: Ints


def write_result(doc: Doc, result: CorefResult) -> None:
    """Write a result on the Doc, in place of an older one."""
    delete_blocks(doc.user_data, ATTRIBUTE)
    mentions = result.mentions
    block: dict[str, Any] = {
        "version": BLOCK_VERSION,
        "words": _checksum(doc),
        **{name: getattr(mentions, name).astype(np.uint32) for name in ("starts", "ends", "heads", "kinds", "sentences")},
        "options": result.antecedents.candidates.starts.astype(np.uint32),
        "candidates": result.antecedents.candidates.earlier.astype(np.uint32),
        "chances": result.antecedents.probabilities,
        "later": result.pairs.later.astype(np.uint32),
        "earlier": result.pairs.earlier.astype(np.uint32),
        "raw": result.pairs.probabilities,
        "rest": result.below_threshold,
        "first": result.first.astype(np.uint32),
    }
    if result.calibrated is not None:
        block["calibrated"] = result.calibrated
    add_block(doc.user_data, ATTRIBUTE, block)


def _checksum(doc: Doc) -> int:
    return zlib.crc32(digest(doc).tobytes())


@dataclass(frozen=True, eq=False, repr=False)
class DocCoref:
    """Read-only view of the coreference of a Doc.

    mentions (tuple[Span, ...]): In text order; methods and arrays name a mention by its index here.
    pairs (MentionPairs): The pairs that reach the threshold, with their exact probability before calibration.
    calibrated (Floats | None): Their calibrated probability; None without calibration.
    antecedents (Antecedents): P(a_j) of each mention. first (Ints): First mention of each mention's cluster. mention_arrays
    (Mentions): Bounds, heads, kinds and sentences of the mentions.
    """

    mentions: tuple[Span, ...]
    pairs: MentionPairs
    calibrated: Floats | None
    antecedents: Antecedents
    first: Ints
    mention_arrays: Mentions
    doc: Doc
    _below_threshold: Floats

    def __len__(self) -> int:
        return len(self.mentions)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<DocCoref: {len(self)} mentions, {len(self.clusters)} clusters of several, {len(self.pairs)} pairs>"

    def probability(self, a: int, b: int) -> float:
        """Return P(mentions a and b name the same entity), raw without calibration. RAISES C360: there is no such mention."""
        index = self._pair_index(a, b)
        if a == b:
            return 1.0
        if self.calibrated is None:
            return 0.0 if index < 0 else float(self.pairs.probabilities[index])
        if index >= 0:
            return float(self.calibrated[index])
        later, earlier = np.array([max(a, b)]), np.array([min(a, b)])
        return float(self._below_threshold[self.mention_arrays.grouping.groups(later, earlier)][0])

    def raw(self, a: int, b: int) -> float:
        """Return `probability` before calibration, 0 for pairs below the threshold. RAISES C360: there is no such mention."""
        index = self._pair_index(a, b)
        return 1.0 if a == b else 0.0 if index < 0 else float(self.pairs.probabilities[index])

    def matrix(self) -> Floats:
        """Return `probability` of every pair as an array (n_mentions, n_mentions)."""
        full = self.pairs.matrix()
        if self.calibrated is not None:
            later, earlier = np.tril_indices(len(self), -1)
            full[later, earlier] = self._below_threshold[self.mention_arrays.grouping.groups(later, earlier)]
            full[self.pairs.later, self.pairs.earlier] = self.calibrated
            full[earlier, later] = full[later, earlier]
        return full

    def _pair_index(self, a: int, b: int) -> int:
        for number in (a, b):
            if not 0 <= number < len(self):
                raise calib_error("C360", given=len(self), number=number)
        return self.pairs.index_of(a, b)

    def sample(self, n: int = 100, seed: int = 0) -> Ints:
        """Sample clusterings without calibration: first mention of each one's cluster, (n, n_mentions). RAISES C001: n < 0."""
        return self.antecedents.sample(n, seed)

    def draws(self, n: int = 100, seed: int = 0, calibrated: bool = True) -> ClusterDraws:
        """Sample clusterings as near to the calibrated pairs as a model of antecedents can be; each makes a Doc.

        calibrated (bool): False samples from the model without calibration. RAISES C001: n or seed is negative. C415: too many
        mentions.
        """
        rng = make_rng(n, seed, get_string_id(self.doc.text))
        antecedents = self.antecedents
        target = self.pairs.probabilities
        if calibrated and self.calibrated is not None:
            if len(self) > DENSE:
                raise calib_error("C415", wanted=DENSE, given=len(self))
            antecedents, target = refit(antecedents, self.matrix()), self.calibrated
        result = target
        if len(self) <= DENSE:
            result = pair_probabilities(antecedents).matrix()[self.pairs.later, self.pairs.earlier]
        off = float(np.sqrt(np.mean((result - target) ** 2))) if len(target) else 0.0
        samples = antecedents.sample_from_uniform(rng.random((n, len(self))))
        return ClusterDraws(self.doc, np.ones(len(self)), self, samples, off)

    def clusters_in(self, first: Ints) -> list[list[Span]]:
        """Return the clusters of two or more mentions in a clustering, such as a row of `sample`."""
        return clusters_of(self.mentions, first)

    @property
    def clusters(self) -> list[list[Span]]:
        """The clusters of two or more mentions, as in `doc.spans`."""
        return self.clusters_in(self.first)


def clusters_of(mentions: Sequence[Span], first: Ints) -> list[list[Span]]:
    """Return the clusters of two or more mentions, in text order."""
    by_first: dict[int, list[Span]] = {}
    for mention, first_mention in zip(mentions, first.tolist(), strict=True):
        by_first.setdefault(first_mention, []).append(mention)
    return [cluster for cluster in by_first.values() if len(cluster) > 1]


def coref_view(doc: Doc) -> DocCoref | None:
    """Return Doc._.coref: mentions and clusters; None without a result, and if the Doc's words changed."""
    for key, block in find_blocks(doc.user_data, ATTRIBUTE):
        try:
            ours = block["version"] == BLOCK_VERSION and checksum_of(block) == key[3]
            if ours and key[2] == 0 and block["words"] == _checksum(doc):
                return _view_of(doc, block)
        except Exception:  # a damaged block may be anything
            continue
    return None


def _view_of(doc: Doc, block: dict[str, Any]) -> DocCoref:
    """Return the view of a saved block of coreference."""

    def numbers(name: str) -> NDArray[np.intp]:
        return block[name].astype(np.intp)

    mentions = Mentions(*(numbers(name) for name in ("starts", "ends", "heads", "kinds", "sentences")))
    antecedents = Antecedents(Candidates(numbers("options"), numbers("candidates")), block["chances"])
    pairs = MentionPairs(numbers("later"), numbers("earlier"), block["raw"], len(mentions))
    spans = tuple(doc[a:b] for a, b in zip(mentions.starts.tolist(), mentions.ends.tolist(), strict=True))
    return DocCoref(spans, pairs, block.get("calibrated"), antecedents, numbers("first"), mentions, doc, block["rest"])


_PREFIX = "coref_clusters"


@dataclass(frozen=True, eq=False, repr=False)
class ClusterDraws(AnnotationDraws):
    """n sampled clusterings of a Doc. first (Ints): First mention of each mention's cluster, (n, n_mentions).

    off (float): Root mean square difference of the samples' and the calibrated probabilities, over `view.pairs`.
    """

    view: DocCoref
    first: Ints
    off: float

    def __len__(self) -> int:
        return len(self.first)

    def write(self, doc: Doc, number: int) -> None:
        """Write clusters of two or more into doc.spans["coref_clusters_1"] and so on, in place of those there."""
        clusters = self.view.clusters_in(self.first[number])
        write_clusters(doc, _PREFIX, [[doc[span.start : span.end] for span in cluster] for cluster in clusters])
