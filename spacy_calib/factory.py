"""The factory `calib`, the only thing that every `Language()` imports of us: light, and it never fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from . import registry as _registry  # noqa: F401  (creates the registries that the config names)
from .attributes import DEFAULT_ATTR

if TYPE_CHECKING:
    from .component import Calibrator

DEFAULT_CONFIG: dict[str, Any] = {
    "attr": DEFAULT_ATTR,
    "threshold": 0.01,
    "normalize": False,
    "source": {"@calib_sources": "spacy-calib.Softmax.v1", "component": "tagger"},
    "grouping": {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 5},
    "recalibrator": {"@calib_recalibrators": "spacy-calib.Isotonic.v1"},
    "scorer": {"@scorers": "spacy-calib.Scorer.v1"},
}


@Language.factory(
    "calib",
    default_config=DEFAULT_CONFIG,
    assigns=["doc._.calib", "token._.calib_score", "token._.calib_raw", "token._.calib_scores"],
)
def make_calib(
    nlp: Language,
    name: str,
    attr: str,
    threshold: float,
    normalize: bool,
    source: Any,
    grouping: Callable[..., Any],
    recalibrator: Any,
    scorer: Callable[..., dict[str, Any]] | None,
) -> Calibrator:
    """Build the pipe.

    attr (str): Prefix of the attributes that it writes.
    threshold (float): Marginals below it take no part, in [0, 1).
    normalize (bool): Rescale a token's calibrated scores above the threshold so that they sum to 1.
    source (Source): Where marginals come from.
    grouping (Callable): (labels, tag counts) -> Groups.
    recalibrator (Recalibrator): Prototype, copied for every group.
    scorer (Callable | None): Called by `nlp.evaluate`.
    """
    from .component import Calibrator

    return Calibrator(
        nlp,
        name,
        attr=attr,
        threshold=threshold,
        normalize=normalize,
        source=source,
        grouping=grouping,
        recalibrator=recalibrator,
        scorer=scorer,
    )
