"""Which card is for a pipeline, and whether its scores are like those that the card was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language

from ...calibration.recalibrators.logistic import log_odds
from ...pairs.build import leading
from ...pipe.component import Calibrator
from ...sources.fingerprint import fingerprint
from ...types import Floats
from .card import Card, all_cards
from .evidence import CLIP
from .messages import calib_error

# How far the mean raw log-odds of the card's sentences may be from the card's, in its spreads; and the share of its
# predictions that there must be at least. Random weights are some 3 spreads away, pipelines of other sizes .2.
_FAR, _FEWEST = 0.75, 0.5


@dataclass(frozen=True)
class Match:
    """A card for a component. transferred (bool): It was fitted on the scores of other weights."""

    card: Card
    transferred: bool


def find_matches(nlp: Language, components: Sequence[str] | str | None, card: Card | None) -> list[Match]:
    """The cards for a pipeline, one for each component.

    components (Sequence[str] | str | None): Which are calibrated; None takes all that there are cards for and that are not disabled.
    card (Card | None): Takes the place of the one that would be found.
    RAISES C069: a component is disabled. C834: no card is for a component, or none for any. C835: the card is for another component
        or other labels.
    """
    cards = list(all_cards()) if card is None else [card]
    requested = [components] if isinstance(components, str) else components
    names = list(dict.fromkeys([candidate.component for candidate in cards] if requested is None else requested))
    matches, disabled = [], []
    for name in names:
        labels = tuple(getattr(dict(nlp.components).get(name), "labels", ()))
        fitting = [candidate for candidate in cards if labels and candidate.is_for(str(nlp.lang), name, labels)]
        if fitting and name in nlp.disabled:
            disabled.append(name)
        elif fitting:
            matches.append(_best(nlp, fitting))
        elif requested is not None or card is not None:
            raise _no_card(nlp, _describe(nlp, name), cards, card)
    if disabled and (requested is not None or not matches):
        raise calib_error("C069", name=disabled[0])
    if not matches and requested is None:
        whole = f"any component of the pipeline ({', '.join(nlp.component_names)})"
        raise _no_card(nlp, whole if nlp.component_names else "a pipeline without components", cards, card)
    return matches


def _describe(nlp: Language, component: str) -> str:
    return f"component '{component}'" + ("" if component in nlp.component_names else ", which is not in the pipeline")


def _best(nlp: Language, cards: Sequence[Card]) -> Match:
    """The card with the fewest components whose weights are others, the first of those.

    A component that only gives evidence (the tagger, to entities) may be missing or disabled: the card has a map without it.
    """

    def n_changed(card: Card) -> int:
        present = {card.component, *nlp.pipe_names}
        return sum(_weights(nlp, name) != digest for name, digest in card.data["fingerprints"].items() if name in present)

    best = min(cards, key=n_changed)
    return Match(best, n_changed(best) > 0)


def _weights(nlp: Language, component: str) -> str:
    pipe = dict(nlp.components).get(component)
    return "" if pipe is None else fingerprint(nlp, pipe)


def _no_card(nlp: Language, component: str, cards: Sequence[Card], card: Card | None) -> Exception:
    if card is not None:
        wanted = f"component '{card.component}' of language '{card.data['language']}' with {len(card.labels)} labels"
        return calib_error("C835", card=card.name, wanted=wanted, component=component, language=nlp.lang)
    known = ", ".join(f"{other.data['pipeline']} ({other.component})" for other in cards) or "nothing"
    return calib_error("C834", component=component, language=nlp.lang, known=known)


def probe(nlp: Language, pipe: Calibrator, sentences: Sequence[str]) -> Floats:
    """The raw log-odds of what a component predicts in some sentences: of each token's top label, or of each entity.

    pipe (Calibrator): Not fitted yet, or passed over: its source is read. Pipes after it do not run.
    """
    source, component = pipe.source, pipe.lookup.to_fit()
    order = nlp.pipe_names
    later = order[order.index(source.component) + 1 :]
    docs = list(nlp.pipe(sentences, disable=later))
    scores = source.read(component, docs)
    if scores.spans is not None:
        entities = scores.spans.take(scores.spans.chosen)
        return log_odds(source.raw_span_scores(entities), CLIP)
    marginals = scores.above(0.01)
    return log_odds(marginals.scores[leading(marginals.rows, marginals.scores)], CLIP)


def check_scores(match: Match, raw_log_odds: Floats) -> None:
    """RAISES C836: the scores on the card's sentences are not like those that it was fitted on."""
    expected: Any = match.card.data["probe"]
    mean = float(raw_log_odds.mean()) if len(raw_log_odds) else float("nan")
    near = abs(mean - expected["mean"]) <= _FAR * expected["spread"]
    if not (near and _FEWEST * expected["n"] <= len(raw_log_odds) <= expected["n"] / _FEWEST) or not np.isfinite(mean):
        raise calib_error(
            "C836", card=match.card.name, component=match.card.component, n=len(raw_log_odds), mean=f"{mean:.2f}", wanted_n=expected["n"],
            wanted=f"{expected['mean']:.2f}", spread=f"{expected['spread']:.2f}",
        )  # fmt: skip
