"""The factories of sequence models: light, since every `Language()` imports them."""

# No `from __future__ import annotations` here: the confection of spaCy before 3.8.12 reads the annotations of a factory as they are
# and cannot resolve strings.
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.pipeline.tagger import DEFAULT_TAGGER_MODEL

if TYPE_CHECKING:
    from .crf import ConditionalRandomField
    from .crfsuite import CrfsuiteLabeller
    from .hmm import HiddenMarkovModel
    from .online.component import OnlineLabeller

# Of the default settings; each component corrects them for its target (`ChainLabeller.name`).
_CHAIN_META: dict[str, Any] = {"assigns": ["token.tag"], "default_score_weights": {"tag_acc": 1.0}}
_CRF_CONFIG: dict[str, Any] = {
    "model": {
        "@architectures": "spacy-calib.Chain.v1",
        "tok2vec": DEFAULT_TAGGER_MODEL["tok2vec"],
        "nO": None,
    },
    "target": "tag",
    "loss": "likelihood",
    "by_sentence": False,
    "constraints": None,
    "label_smoothing": 0.0,
    "neg_prefix": "!",
    "overwrite": False,
}


@Language.factory("calib_crf", default_config=_CRF_CONFIG, **_CHAIN_META)
def make_calib_crf(
    nlp: Language,
    name: str,
    model: Any,
    target: str,
    loss: str,
    by_sentence: bool,
    constraints: list[list[str]] | None,
    label_smoothing: float,
    neg_prefix: str,
    overwrite: bool,
) -> "ConditionalRandomField":
    """Build a conditional random field. See ConditionalRandomField."""
    from .crf import ConditionalRandomField

    made = ConditionalRandomField(
        nlp.vocab,
        model,
        name,
        target=target,
        loss=loss,
        by_sentence=by_sentence,
        constraints=constraints,
        label_smoothing=label_smoothing,
        neg_prefix=neg_prefix,
        overwrite=overwrite,
    )
    made.taken_by = nlp
    return made


_HMM_CONFIG: dict[str, Any] = {
    "target": "tag", "by_sentence": True, "constraints": None, "pseudocount": 1.0, "rare": 1, "overwrite": False,
}  # fmt: skip


@Language.factory("calib_hmm", default_config=_HMM_CONFIG, **_CHAIN_META)
def make_calib_hmm(
    nlp: Language,
    name: str,
    target: str,
    by_sentence: bool,
    constraints: list[list[str]] | None,
    pseudocount: float,
    rare: int,
    overwrite: bool,
) -> "HiddenMarkovModel":
    """Build a hidden Markov model. See HiddenMarkovModel."""
    from .hmm import HiddenMarkovModel

    made = HiddenMarkovModel(
        nlp.vocab,
        name,
        target=target,
        by_sentence=by_sentence,
        constraints=constraints,
        pseudocount=pseudocount,
        rare=rare,
        overwrite=overwrite,
    )
    made.taken_by = nlp
    return made


_FEATURES_CONFIG: dict[str, Any] = {
    "target": "tag", "by_sentence": True, "constraints": None, "features": "spelling", "least": 1, "overwrite": False,
}  # fmt: skip


@Language.factory("calib_online", default_config={**_FEATURES_CONFIG, "rule": "cw", "settings": None}, **_CHAIN_META)
def make_calib_online(
    nlp: Language,
    name: str,
    target: str,
    by_sentence: bool,
    constraints: list[list[str]] | None,
    rule: str,
    settings: dict[str, float] | None,
    features: str | list[str],
    least: int,
    overwrite: bool,
) -> "OnlineLabeller":
    """Build a labeller that learns online. See OnlineLabeller."""
    from .online.component import OnlineLabeller

    made = OnlineLabeller(
        nlp.vocab,
        name,
        target=target,
        by_sentence=by_sentence,
        constraints=constraints,
        rule=rule,
        settings=settings,
        features=features,
        least=least,
        overwrite=overwrite,
    )
    made.taken_by = nlp
    return made


@Language.factory("calib_crfsuite", default_config={**_FEATURES_CONFIG, "c2": 1.0, "max_iterations": 100}, **_CHAIN_META)
def make_calib_crfsuite(
    nlp: Language,
    name: str,
    target: str,
    by_sentence: bool,
    constraints: list[list[str]] | None,
    c2: float,
    max_iterations: int,
    features: str | list[str],
    least: int,
    overwrite: bool,
) -> "CrfsuiteLabeller":
    """Build a conditional random field of CRFsuite. See CrfsuiteLabeller."""
    from .crfsuite import CrfsuiteLabeller

    made = CrfsuiteLabeller(
        nlp.vocab,
        name,
        target=target,
        by_sentence=by_sentence,
        constraints=constraints,
        c2=c2,
        max_iterations=max_iterations,
        features=features,
        least=least,
        overwrite=overwrite,
    )
    made.taken_by = nlp
    return made
