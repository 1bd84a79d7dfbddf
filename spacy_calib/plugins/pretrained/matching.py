"""Which card is for a pipeline, and whether its scores are like those that the card was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...calibration.recalibrators.logistic import log_odds
from ...calibration.registered import REGISTRIES
from ...pairs.build import find_top
from ...pairs.label_map import shorten_list
from ...pipe.component import Calibrator
from ...pipe.loading import component_faults, trained_pipes
from ...sources.fingerprint import fingerprint
from ...types import Floats
from .card import Card, all_cards
from .evidence import CLIP, COLUMNS, EVIDENCE_OF, EntityEvidence
from .messages import calib_error

# How far the mean raw log-odds of the card's sentences may be from the card's, in its spreads; and the share of its
# predictions that there must be at least. Random weights are some 3 spreads away, pipelines of other sizes .2.
_FAR, _FEWEST = 0.75, 0.5
# Evidence correlates with the card's by .98 and more in a pipeline of another size, by .4 and less with random weights.
_CORRELATION = 0.75


@dataclass(frozen=True)
class Match:
    """A card for a component.

    component (str): Its name in the pipeline. changed (tuple[str, ...]): Components with other weights than the card's.
    """

    card: Card
    component: str
    changed: tuple[str, ...] = ()


def find_matches(
    nlp: Language, components: Sequence[str] | str | None, card: Card | None, by: str = ""
) -> tuple[list[Match], dict[str, str]]:
    """Find the cards for a pipeline, one for each component, whatever that is called.

    components (Sequence[str] | str | None): Which are calibrated; None takes all that there are cards for and that are not disabled.
    card (Card | None): Takes the place of the one that would be found. by (str): What the labels are merged to.
    RETURNS (tuple): The matches; of a component that has labels of a card, but gets none: name -> why.
    RAISES C069: a component is disabled. C834: no card is for a component, or none for any. C835: the card is for another component
        or other labels.
    """
    cards = [candidate for candidate in all_cards() if candidate.data["by"] == by] if card is None else [card]
    requested = [components] if isinstance(components, str) else components
    rivals_by_attr: dict[str, list[Match]] = {}
    disabled, reasons = [], {}
    for name in nlp.component_names if requested is None else dict.fromkeys(requested):
        pipe = dict(nlp.components).get(name)
        similar = [candidate for candidate in cards if candidate.data["language"] == nlp.lang and _reads(candidate, pipe)]
        fitting = [candidate for candidate in similar if candidate.labels == tuple(pipe.labels)]  # type: ignore[union-attr]
        if fitting and name in nlp.disabled:
            disabled.append(name)
        elif fitting:
            match = _best(nlp, fitting, name)
            rivals_by_attr.setdefault(match.card.attr, []).append(match)
        elif similar:
            reasons[name] = _compare_labels(similar[0].labels, tuple(pipe.labels))  # type: ignore[union-attr]
        if not fitting and requested is not None:
            where = "" if name in nlp.component_names else ", which is not in the pipeline"
            raise _no_card(nlp, f"component '{name}'{where}", cards, card, reasons.get(name, ""))
    matches = {attr: min(rivals, key=lambda match: len(match.changed)) for attr, rivals in rivals_by_attr.items()}
    for attr, rivals in rivals_by_attr.items():
        reasons |= {
            other.component: f"'{attr}' reads '{matches[attr].component}'" for other in rivals if other is not matches[attr]
        }
    if disabled and (requested is not None or not matches):
        raise calib_error("C069", name=disabled[0])
    if not matches:
        whole = f"any component of the pipeline ({', '.join(nlp.component_names)})"
        why = "; ".join(f"component '{name}': {reason}" for name, reason in reasons.items())
        raise _no_card(nlp, whole if nlp.component_names else "a pipeline without components", cards, card, why)
    return list(matches.values()), reasons


def _reads(card: Card, pipe: Any) -> bool:
    """Whether the source of a card reads this component, which has half of the card's labels at least."""
    if len(set(card.labels) & set(getattr(pipe, "labels", ()))) < len(card.labels) / 2:
        return False
    settings = dict(card.data["settings"]["source"])
    return bool(REGISTRIES["calib_sources"].get(settings.pop("@calib_sources"))(**settings).supports(pipe))


def _compare_labels(expected: Sequence[str], labels: Sequence[str]) -> str:
    """How labels differ from those of a card."""
    more, fewer = ([label for label in one if label not in other] for one, other in ((labels, expected), (expected, labels)))
    parts = [f"{what} {shorten_list(some)}" for what, some in (("has also", more), ("lacks", fewer)) if some]
    return f"it {' and '.join(parts)}" if parts else "it has the labels of the card in another order"


def _best(nlp: Language, cards: Sequence[Card], component: str) -> Match:
    """The card with the fewest components whose weights are others; of several the one for the pipeline's name, or the first.

    A component that only gives evidence (the tagger, to entities) may be missing or disabled: the card has a map without it.
    """

    def match(card: Card) -> Match:
        names = {name: component if name == card.component else name for name in card.data["fingerprints"]}
        present = {name: actual for name, actual in names.items() if actual in (component, *nlp.pipe_names)}
        weights = {name: fingerprint(nlp, nlp.get_pipe(actual)) for name, actual in present.items()}
        changed = [actual for name, actual in present.items() if weights[name] != card.data["fingerprints"][name]]
        return Match(card, component, tuple(changed))

    def is_named(card: Card) -> bool:
        name = str(nlp.meta["name"])
        return any(full.startswith(str(card.data["pipeline"]).split()[0]) for full in (name, f"{nlp.lang}_{name}"))

    return min(map(match, cards), key=lambda match: (len(match.changed), not is_named(match.card)))


def _no_card(nlp: Language, component: str, cards: Sequence[Card], card: Card | None, why: str) -> Exception:
    why = f" ({why})" if why else ""
    if card is not None:
        wanted = f"component '{card.component}' of language '{card.data['language']}' with {len(card.labels)} labels"
        return calib_error("C835", card=card.name, wanted=wanted, component=component, language=nlp.lang, why=why)
    known = ", ".join(f"{other.data['pipeline']} ({other.component})" for other in cards) or "nothing"
    return calib_error("C834", component=component, language=nlp.lang, known=known, why=why)


def run_upstream(nlp: Language, pipe: Calibrator, sentences: Sequence[str]) -> list[Doc]:
    """Some sentences with all that the components up to the one that a pipe reads put on them. RAISES C086: one of these is not trained."""
    order = nlp.pipe_names
    end = order.index(pipe.source.component) + 1
    with component_faults(), trained_pipes(nlp, order[:end]):
        return list(nlp.pipe(sentences, disable=order[end:]))


def probe(pipe: Calibrator, docs: Sequence[Doc]) -> Floats:
    """The raw log-odds of what a component predicts in some sentences: of each token's top label, or of each entity.

    pipe (Calibrator): Not fitted yet, or passed over: its source is read. docs (Sequence[Doc]): Of `run_upstream`.
    """
    source, component = pipe.source, pipe.lookup.component_to_fit()
    scores = source.read(component, docs)
    if scores.spans is not None:
        entities = scores.spans.take(scores.spans.on_doc)
        return log_odds(source.raw_span_scores(entities), CLIP)
    marginals = scores.marginals_above(0.01)
    return log_odds(marginals.scores[find_top(marginals.rows, marginals.scores)], CLIP)


def read_evidence(nlp: Language, docs: Sequence[Doc]) -> dict[str, dict[str, list[int]]]:
    """What a card keeps of the evidence in its sentences: component -> column -> a number, 9 at most, for each token."""
    columns = dict(zip(COLUMNS, EntityEvidence().read(nlp, docs).T.clip(0, 9).round().astype(int).tolist(), strict=True))
    return {component: {name: columns[name] for name in names} for component, names in EVIDENCE_OF.items()}


def unlike_evidence(card: Card, nlp: Language, docs: Sequence[Doc]) -> list[str]:
    """The components that give evidence, but of which some does not correlate with the card's in its sentences."""
    expected = {name: columns for name, columns in (card.data["evidence"] or {}).items() if name in nlp.pipe_names}
    evidence = read_evidence(nlp, docs) if expected else {}

    def is_like(a: list[int], b: list[int]) -> bool:
        return len(a) == len(b) and np.ptp(b) > 0 and np.corrcoef(a, b)[0, 1] >= _CORRELATION

    return [
        name for name, columns in expected.items() if not all(is_like(columns[key], evidence[name][key]) for key in columns)
    ]


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
