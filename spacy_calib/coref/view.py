"""What the component leaves on a Doc, and `Doc._.coref`, which reads it; None where the Doc's words have changed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span

from ..doc.blocks import BLOCK_VERSION, add_block, delete_blocks, held_blocks, print_of
from ..doc.sampling import Draws
from ..errors import calib_error
from ..expect.draws import generator
from ..types import Floats, Ints
from . import ATTRIBUTE
from .inference.antecedents import Antecedents, Candidates, refit
from .inference.pairs import DENSE, MentionPairs, pair_chances
from .mentions import Mentions, digest, write_clusters


@dataclass(frozen=True, eq=False)
class Resolved:
    """What was found in a Doc: mentions and antecedents.

    pairs (MentionPairs): Those that reach the threshold, before calibration. calibrated (Floats | None): Of each pair, None
    without calibration. rest (Floats): Probability of other pairs, by group; () without. first (Ints): The
    clustering: the first mention of each mention's cluster.
    """

    mentions: Mentions
    antecedents: Antecedents
    pairs: MentionPairs
    calibrated: Floats | None
    rest: Floats
    first: Ints


def write_resolved(doc: Doc, found: Resolved) -> None:
    """Put a result on the Doc, in place of an older one."""
    delete_blocks(doc.user_data, ATTRIBUTE)
    held = found.mentions
    block: dict[str, Any] = {
        "version": BLOCK_VERSION,
        "words": _checksum(doc),
        **{name: getattr(held, name).astype(np.uint32) for name in ("starts", "ends", "heads", "kinds", "sentences")},
        "options": found.antecedents.candidates.starts.astype(np.uint32),
        "candidates": found.antecedents.candidates.earlier.astype(np.uint32),
        "chances": found.antecedents.chances,
        "later": found.pairs.later.astype(np.uint32),
        "earlier": found.pairs.earlier.astype(np.uint32),
        "raw": found.pairs.chances,
        "rest": found.rest,
        "first": found.first.astype(np.uint32),
    }
    if found.calibrated is not None:
        block["calibrated"] = found.calibrated
    add_block(doc.user_data, ATTRIBUTE, block)


def _checksum(doc: Doc) -> int:
    return zlib.crc32(digest(doc).tobytes())


@dataclass(frozen=True, eq=False, repr=False)
class DocCoref:
    """Read-only view of the coreference of a Doc.

    mentions (tuple[Span, ...]): In the order of the text; elsewhere they are numbers.
    pairs (MentionPairs): The pairs that reach the threshold, with their exact probability before calibration.
    calibrated (Floats | None): Their calibrated probability; None where the component is not calibrated.
    antecedents (Antecedents): P(a_j) of each mention. first (Ints): First mention of each mention's cluster.
    found (Mentions): Tokens, heads, kinds and sentences of the mentions. doc (Doc): Whose mentions.
    """

    mentions: tuple[Span, ...]
    pairs: MentionPairs
    calibrated: Floats | None
    antecedents: Antecedents
    first: Ints
    found: Mentions
    doc: Doc
    _rest: Floats

    def __len__(self) -> int:
        """How many mentions there are."""
        return len(self.mentions)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        """The numbers of mentions, clusters and pairs."""
        return f"<DocCoref: {len(self)} mentions, {len(self.clusters)} clusters of several, {len(self.pairs)} pairs>"

    def probability(self, one: int, other: int) -> float:
        """P(two mentions name the same), by their numbers: calibrated, or as `raw`. RAISES C360: no such mention."""
        place = self._place(one, other)
        if one == other:
            return 1.0
        if self.calibrated is None:
            return 0.0 if place < 0 else float(self.pairs.chances[place])
        if place >= 0:
            return float(self.calibrated[place])
        late, early = np.array([max(one, other)]), np.array([min(one, other)])
        return float(self._rest[self.found.places.groups(late, early)][0])

    def raw(self, one: int, other: int) -> float:
        """The model's exact probability, 0 for pairs below the threshold. RAISES C360: there is no such mention."""
        place = self._place(one, other)
        return 1.0 if one == other else 0.0 if place < 0 else float(self.pairs.chances[place])

    def matrix(self) -> Floats:
        """`probability` of every pair as an array (n_mentions, n_mentions)."""
        full = self.pairs.matrix()
        if self.calibrated is not None:
            later, earlier = np.tril_indices(len(self), -1)
            full[later, earlier] = self._rest[self.found.places.groups(later, earlier)]
            full[self.pairs.later, self.pairs.earlier] = self.calibrated
            full[earlier, later] = full[later, earlier]
        return full

    def _place(self, one: int, other: int) -> int:
        for number in (one, other):
            if not 0 <= number < len(self):
                raise calib_error("C360", given=len(self), number=number)
        return self.pairs.where(one, other)

    def sample(self, n: int = 100, seed: int = 0) -> Ints:
        """Clusterings drawn from the model before calibration: first mention of each one's cluster, (n, n_mentions).

        RAISES C001: n is negative.
        """
        return self.antecedents.sample(n, seed)

    def draws(self, n: int = 100, seed: int = 0, calibrated: bool = True) -> ClusterDraws:
        """Clusterings, drawn as near to the calibrated pairs as a model of antecedents can be; each makes a Doc.

        calibrated (bool): False draws from the model as it is, as without calibration. RAISES C001: n or seed is negative.
        C415: too many mentions for calibrated draws.
        """
        from .view import draw_clusters

        return draw_clusters(self, n, seed, calibrated)

    def clustered(self, first: Ints) -> list[list[Span]]:
        """The clusters of two or more mentions in a clustering, such as a row of `sample`."""
        return clusters_of(self.mentions, first)

    @property
    def clusters(self) -> list[list[Span]]:
        """The clusters of two or more mentions that the component chose, as in `doc.spans`."""
        return self.clustered(self.first)


def clusters_of(mentions: Sequence[Span], first: Ints) -> list[list[Span]]:
    """The clusters of two or more mentions, in the order of the text."""
    held: dict[int, list[Span]] = {}
    for mention, own in zip(mentions, first.tolist(), strict=True):
        held.setdefault(own, []).append(mention)
    return [cluster for cluster in held.values() if len(cluster) > 1]


def coref_view(doc: Doc) -> DocCoref | None:
    """Doc._.coref: the mentions of a Doc and who is who; None without a result, and where the Doc's words changed."""
    for key, block in held_blocks(doc.user_data, ATTRIBUTE):
        try:
            ours = block["version"] == BLOCK_VERSION and print_of(block) == key[3]
            if ours and key[2] == 0 and block["words"] == _checksum(doc):
                return _view_of(doc, block)
        except Exception:  # a damaged block may be anything
            continue
    return None


def _view_of(doc: Doc, block: dict[str, Any]) -> DocCoref:
    def numbers(name: str) -> NDArray[np.intp]:
        return block[name].astype(np.intp)

    found = Mentions(*(numbers(name) for name in ("starts", "ends", "heads", "kinds", "sentences")))
    antecedents = Antecedents(Candidates(numbers("options"), numbers("candidates")), block["chances"])
    pairs = MentionPairs(numbers("later"), numbers("earlier"), block["raw"], len(found))
    spans = tuple(doc[a:b] for a, b in zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    return DocCoref(spans, pairs, block.get("calibrated"), antecedents, numbers("first"), found, doc, block["rest"])


_PREFIX = "coref_clusters"


@dataclass(frozen=True, eq=False, repr=False)
class ClusterDraws(Draws):
    """Clusterings. view (DocCoref): Of its mentions. first (Ints): First mention of each one's cluster, (n, n_mentions).

    off (float): Root mean square difference of the draws' and the calibrated probabilities, over `view.pairs`.
    """

    view: DocCoref
    first: Ints
    off: float

    def __len__(self) -> int:
        return len(self.first)

    def write(self, doc: Doc, number: int) -> None:
        """Put clusters of two or more into doc.spans["coref_clusters_1"] and so on, in place of those there."""
        clusters = self.view.clustered(self.first[number])
        write_clusters(doc, _PREFIX, [[doc[span.start : span.end] for span in cluster] for cluster in clusters])


def draw_clusters(view: DocCoref, n: int, seed: int, calibrated: bool) -> ClusterDraws:
    """n clusterings. seed (int): Decides the draws, with the text. calibrated (bool): By the calibrated pairs.

    RAISES C001: n or seed is negative. C415: more than 1,000 mentions with calibrated pairs.
    """
    rng = generator(n, seed, get_string_id(view.doc.text))
    antecedents = view.antecedents
    wanted = view.pairs.chances
    if calibrated and view.calibrated is not None:
        if len(view) > DENSE:
            raise calib_error("C415", wanted=DENSE, given=len(view))
        antecedents, wanted = refit(antecedents, view.matrix()), view.calibrated
    reached = pair_chances(antecedents).matrix()[view.pairs.later, view.pairs.earlier] if len(view) <= DENSE else wanted
    off = float(np.sqrt(np.mean((reached - wanted) ** 2))) if len(wanted) else 0.0
    drawn = antecedents.drawn(rng.random((n, len(view))))
    return ClusterDraws(view.doc, np.ones(len(view)), view, drawn, off)
