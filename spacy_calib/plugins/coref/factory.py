"""The factory of `calib_coref`, its settings and its attribute: light, as every `Language()` imports them."""

# No `from __future__ import annotations` here: confection of spaCy before 3.8.12 cannot resolve annotations as strings.
import contextlib
from dataclasses import dataclass
from typing import Any

from spacy.tokens import Doc

from ...errors import CalibError
from ...pipe.settings import block_or_none, component_factory
from . import ATTRIBUTE


def coref_of(doc: Doc) -> Any:
    """Return the coreference of a Doc: the getter of Doc._.coref."""
    from .view import coref_view

    return coref_view(doc)


def register_coref(name: str) -> None:
    """Register Doc._.coref. name (str): The component's, for the message. RAISES C358: another package owns it."""
    if not Doc.has_extension(ATTRIBUTE):
        Doc.set_extension(ATTRIBUTE, getter=coref_of)
    elif Doc.get_extension(ATTRIBUTE)[2] is not coref_of:
        from .messages import calib_error  # every Language() imports this module

        raise calib_error("C358", name=name)


@dataclass(eq=False, repr=False, kw_only=True)
class CorefSettings:
    """The settings of a coreference resolver.

    mentions (str): Key of `doc.spans` whose spans are the mentions; without it: entities, noun chunks and pronouns.
    prefix (str): Clusters of two or more mentions are in `doc.spans` under prefix_1 and so on, also in gold Docs.
    speakers (str): Key of `doc.spans` whose spans' labels name the speakers, if known.
    window (int): Number of candidates right before a mention, and maximum number of earlier ones with the same head word.
    least (int): Minimum number of documents with a feature; rarer ones are left out. penalty (float | None): Strength of the
    L2 penalty on the weights; None lets cross-validation choose.
    learn_on (str): Learn from the "gold" mentions, or those that are "found".
    clusters (str): "best" takes the top antecedent of each mention, "sample" the one of 100 samples nearest to all pairs.
    threshold (float): Pairs of lower probability are not stored. recalibrator (Recalibrator | None): Calibrates pairs, by kind,
    fitted on cross-validated documents; None leaves them raw. context (bool): Use a logistic regression on kinds, distance and
    expected cluster sizes instead, from ten documents on.
    """

    mentions: str = "coref_mentions"
    prefix: str = "coref_clusters"
    speakers: str = "speakers"
    window: int = 50
    least: int = 2
    penalty: float | None = None
    learn_on: str = "gold"
    clusters: str = "best"
    threshold: float = 0.01
    recalibrator: Any = block_or_none("@calib_recalibrators", "spacy-calib.Beta.v1")
    context: bool = True


_OTHERS = ("coref_muc", "coref_b3", "coref_ceaf", "coref_smce", "coref_smce_raw")
SCORE_WEIGHTS = {"coref_lea": 1.0, **dict.fromkeys(_OTHERS)}

with contextlib.suppress(CalibError):  # somebody else may own the name, and importing this package must not break spaCy
    register_coref("calib_coref")

make_calib_coref = component_factory(
    "calib_coref",
    ".plugins.coref.component:CoreferenceResolver",
    CorefSettings,
    assigns=["doc.spans", "doc._.coref"],
    default_score_weights=SCORE_WEIGHTS,
)
