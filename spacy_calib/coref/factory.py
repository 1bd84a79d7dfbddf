"""The factory of `calib_coref`: light, since every `Language()` imports it."""

# No `from __future__ import annotations` here: the confection of spaCy before 3.8.12 reads the annotations of a factory as they are
# and cannot resolve strings.
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from .attribute import register_quietly

if TYPE_CHECKING:
    from .component import CoreferenceResolver

_CONFIG: dict[str, Any] = {
    "mentions": "coref_mentions",
    "prefix": "coref_clusters",
    "speakers": "speakers",
    "window": 50,
    "least": 2,
    "penalty": None,
    "learn_on": "gold",
    "clusters": "best",
    "threshold": 0.01,
    "recalibrator": {"@calib_recalibrators": "spacy-calib.Beta.v1"},
    "context": True,
}


SCORE_WEIGHTS = {
    "coref_lea": 1.0,
    "coref_muc": None,
    "coref_b3": None,
    "coref_ceaf": None,
    "coref_smce": None,
    "coref_smce_raw": None,
}

register_quietly()


@Language.factory(
    "calib_coref", assigns=["doc.spans", "doc._.coref"], default_config=_CONFIG, default_score_weights=SCORE_WEIGHTS
)
def make_calib_coref(
    nlp: Language,
    name: str,
    mentions: str,
    prefix: str,
    speakers: str,
    window: int,
    least: int,
    penalty: float | None,
    learn_on: str,
    clusters: str,
    threshold: float,
    recalibrator: Any,
    context: bool,
) -> "CoreferenceResolver":
    """Build a resolver of coreference. See CoreferenceResolver."""
    from .component import CoreferenceResolver

    return CoreferenceResolver(
        nlp.vocab,
        name,
        mentions=mentions,
        prefix=prefix,
        speakers=speakers,
        window=window,
        least=least,
        penalty=penalty,
        learn_on=learn_on,
        clusters=clusters,
        threshold=threshold,
        recalibrator=recalibrator,
        context=context,
    )
