"""The factories of sequence models and their settings: light, as every `Language()` imports them."""

# No `from __future__ import annotations` here: the confection of spaCy before 3.8.12 reads the annotations of a factory as they are
# and cannot resolve strings.
from dataclasses import dataclass, field
from typing import Any

from spacy.pipeline.tagger import DEFAULT_TAGGER_MODEL

from ...pipe.settings import component_factory

_CRF_MODEL = {"@architectures": "spacy-calib.Chain.v1", "tok2vec": DEFAULT_TAGGER_MODEL["tok2vec"], "nO": None}


@dataclass(kw_only=True)
class ChainSettings:
    """Settings of every labeller: those of ChainLabeller."""

    target: str = "tag"
    by_sentence: bool = True
    constraints: list[list[str]] | None = None
    overwrite: bool = False


@dataclass(kw_only=True)
class CrfSettings(ChainSettings):
    """Settings of `calib_crf`: those of ConditionalRandomField."""

    model: Any = field(metadata={"default": _CRF_MODEL})
    loss: str = "likelihood"
    by_sentence: bool = False
    label_smoothing: float = 0.0
    neg_prefix: str = "!"


@dataclass(kw_only=True)
class HmmSettings(ChainSettings):
    """Settings of `calib_hmm`: those of HiddenMarkovModel."""

    pseudocount: float = 1.0
    rare: int = 1


@dataclass(kw_only=True)
class FeatureSettings(ChainSettings):
    """Settings of labellers over sparse features: those of FeatureLabeller."""

    features: str | list[str] = "spelling"
    least: int = 1


@dataclass(kw_only=True)
class OnlineSettings(FeatureSettings):
    """Settings of `calib_online`: those of OnlineLabeller."""

    rule: str = "cw"
    settings: dict[str, float] | None = None


@dataclass(kw_only=True)
class CrfsuiteSettings(FeatureSettings):
    """Settings of `calib_crfsuite`: those of CrfsuiteLabeller."""

    c2: float = 1.0
    max_iterations: int = 100


# Of the default target; each component corrects them for its own (`ChainLabeller.name`).
_META: dict[str, Any] = {"assigns": ["token.tag"], "default_score_weights": {"tag_acc": 1.0}}

_CRFSUITE, _ONLINE = ".plugins.sequence.crfsuite:CrfsuiteLabeller", ".plugins.sequence.online:OnlineLabeller"

make_calib_crf = component_factory("calib_crf", ".plugins.sequence.crf:ConditionalRandomField", CrfSettings, **_META)
make_calib_hmm = component_factory("calib_hmm", ".plugins.sequence.hmm:HiddenMarkovModel", HmmSettings, **_META)
make_calib_online = component_factory("calib_online", _ONLINE, OnlineSettings, **_META)
make_calib_crfsuite = component_factory("calib_crfsuite", _CRFSUITE, CrfsuiteSettings, **_META)


# Way of measuring confidence -> the components that it can read.
WAYS = {
    "kd_pc": "it reads calib_online, whose weights have variances",
    "kd_fixed": "it reads calib_online and heads over token vectors (calib_crf, tagger, morphologizer, senter)",
    "kbv": "it reads sequence models (calib_crf, calib_hmm, calib_online, calib_crfsuite)",
    "wkbv": "it reads sequence models (calib_crf, calib_hmm, calib_online, calib_crfsuite)",
    "delta": "it reads sequence models (calib_crf, calib_hmm, calib_online, calib_crfsuite)",
}
# The ways that sample weights, with a variance that is scaled.
SAMPLING_WAYS = ("kd_pc", "kd_fixed")
