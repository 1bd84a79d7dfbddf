"""Find the card for a component, and check that its scores are like those that the card was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...calibration.solvers import log_odds
from ...pairs.label_map import shorten_list
from ...pairs.pairing import find_top
from ...pipe.component import Calibrator
from ...pipe.pipeline import component_faults
from ...registry import REGISTRIES
from ...sources.find import fingerprint
from ...types import Floats
from .card import Card, all_cards
from .evidence import COLUMNS, EVIDENCE_OF, EntityEvidence
from .messages import calib_error

# In the card's sentences: maximum distance of the mean raw log-odds from the card's, in units of its spread (random weights are
# about 3 away, pipelines of other sizes .2), and minimum number of predictions, as a share of the card's.
_MAX_DISTANCE, _MIN_SHARE = 0.75, 0.5
# Minimum correlation of evidence with the card's: .98 or more in pipelines of another size, .4 or less with random weights.
_MIN_CORRELATION = 0.75


@dataclass(frozen=True)
class Match:
    """A card and the component it fits. changed_components: Components with other weights than when the card was fitted."""

    card: Card
    component: str
    changed_components: tuple[str, ...] = ()


def find_matches(
    nlp: Language, components: Sequence[str] | str | None, card: Card | None, by: str = ""
) -> tuple[list[Match], dict[str, str]]:
    """Find a card for each component of a pipeline, by language and labels; names of components do not matter.

    components (Sequence[str] | str | None): Names of components to calibrate; None takes all enabled ones that a card fits.
    card (Card | None): The only card to consider; None considers all. by (str): "pos" considers only cards that score parts of
    speech, "" only others. RETURNS (tuple): The matches; and name -> why this component gets no card, though a card is similar:
    its labels differ from the card's, or the card's pipe reads another component. RAISES C069: a requested component is
    disabled, or all with a card. C834: a requested component has no card, or no component has one. C835: `card` does not fit.
    """
    cards = [candidate for candidate in all_cards() if candidate.data["by"] == by] if card is None else [card]
    requested = [components] if isinstance(components, str) else components
    matches, disabled_names, reasons = [], [], {}
    for name in nlp.component_names if requested is None else dict.fromkeys(requested):
        pipe: Any = dict(nlp.components).get(name)
        similar = [candidate for candidate in cards if candidate.data["language"] == nlp.lang and _is_similar(candidate, pipe)]
        fitting = [candidate for candidate in similar if candidate.labels == tuple(pipe.labels)]  # all labels, in this order
        if fitting and name in nlp.disabled:
            disabled_names.append(name)
        elif fitting:
            matches.append(_find_best(nlp, fitting, name))
        elif similar:
            reasons[name] = _compare_labels(similar[0].labels, pipe.labels)
        if not fitting and requested is not None:  # each requested component must get a card
            where = "" if name in nlp.component_names else ", which is not in the pipeline"
            raise _no_card_error(nlp, f"component '{name}'{where}", cards, card, reasons.get(name, ""))
    if disabled_names and (requested is not None or not matches):  # it was requested, or none that fits is enabled
        raise calib_error("C069", name=disabled_names[0])
    if not matches:
        names = ", ".join(nlp.component_names)
        target = f"any component of the pipeline ({names})" if names else "a pipeline without components"
        why = "; ".join(f"component '{name}': {reason}" for name, reason in reasons.items())
        raise _no_card_error(nlp, target, cards, card, why)
    return _resolve_conflicts(matches, reasons), reasons


def _resolve_conflicts(matches: Sequence[Match], reasons: dict[str, str]) -> list[Match]:
    """Return the match with the fewest changed components for each name of a pipe (`Card.attr`), and add the components of the
    other matches to `reasons`: component -> why it gets no card."""
    best_matches: dict[str, Match] = {}
    for match in sorted(matches, key=lambda match: len(match.changed_components)):
        best = best_matches.setdefault(match.card.attr, match)
        if best is not match:
            reasons[match.component] = f"'{match.card.attr}' reads '{best.component}'"
    return list(best_matches.values())


def _is_similar(card: Card, pipe: Any) -> bool:
    """Return whether a component has at least half of the card's labels, and scores that the card's source can read."""
    if len(set(card.labels) & set(getattr(pipe, "labels", ()))) < len(card.labels) / 2:
        return False
    settings = dict(card.data["settings"]["source"])
    source_class = REGISTRIES["calib_sources"].get(settings.pop("@calib_sources"))
    return bool(source_class(**settings).supports(pipe))


def _compare_labels(card_labels: Sequence[str], labels: Sequence[str]) -> str:
    """Describe how the labels of a component differ from those of a card."""
    extra = [label for label in labels if label not in card_labels]
    missing = [label for label in card_labels if label not in labels]
    parts = [f"{verb} {shorten_list(names)}" for verb, names in (("has also", extra), ("lacks", missing)) if names]
    return f"it {' and '.join(parts)}" if parts else "it has the labels of the card in another order"


def _find_best(nlp: Language, cards: Sequence[Card], component: str) -> Match:
    """Match a component with one of some cards: the card since whose fit the fewest components of the pipeline changed.

    Ties go to the card for the pipeline's name, then to the first. A component that only gives evidence (the tagger, for
    entities) may be missing or disabled: the card has a map without it.
    """

    def match(card: Card) -> Match:
        changed_components = []
        for card_name, card_fingerprint in card.data["fingerprints"].items():  # of the weights of each component
            name = component if card_name == card.component else card_name  # the name in this pipeline
            is_present = name in (component, *nlp.pipe_names)  # neither missing nor disabled
            if is_present and fingerprint(nlp, nlp.get_pipe(name)) != card_fingerprint:
                changed_components.append(name)
        return Match(card, component, tuple(changed_components))

    def is_named(card: Card) -> bool:
        name = str(nlp.meta["name"])  # core_web_sm; the card has "en_core_web_sm 3.8.0"
        return any(full.startswith(str(card.data["pipeline"]).split()[0]) for full in (name, f"{nlp.lang}_{name}"))

    return min(map(match, cards), key=lambda match: (len(match.changed_components), not is_named(match.card)))


def _no_card_error(nlp: Language, component: str, cards: Sequence[Card], card: Card | None, why: str) -> Exception:
    """Return the error that the requested card does not fit a component (C835), or if `card` is None, that none does (C834).
    component (str): The component, in words. cards (Sequence[Card]): All cards considered. why (str): The reason, or ""."""
    why = f" ({why})" if why else ""
    if card is not None:
        target = f"component '{card.component}' of language '{card.data['language']}' with {len(card.labels)} labels"
        return calib_error("C835", card=card.name, wanted=target, component=component, language=nlp.lang, why=why)
    targets = ", ".join(f"{card.data['pipeline']} ({card.component})" for card in cards) or "nothing"
    return calib_error("C834", component=component, language=nlp.lang, known=targets, why=why)


def run_upstream(nlp: Language, pipe: Calibrator, sentences: Sequence[str]) -> list[Doc]:
    """Run some sentences through all components up to the one that a calib pipe reads. RAISES C086: one is not trained."""
    order = nlp.pipe_names
    end = order.index(pipe.source.component) + 1
    with component_faults(nlp, order[:end]):
        return list(nlp.pipe(sentences, disable=order[end:]))


def probe(pipe: Calibrator, docs: Sequence[Doc]) -> Floats:
    """Return raw log-odds, (n_predictions,): of each entity if the component scores these, else of each token's top label.

    pipe (Calibrator): Its source is read; it need not be fitted. docs (Sequence[Doc]): With the component's output.
    """
    source, component = pipe.source, pipe.lookup.component_to_fit()
    scores = source.read(component, docs)
    if scores.spans is not None:
        entities = scores.spans.take(scores.spans.on_doc)  # without other candidates
        return log_odds(source.raw_span_scores(entities))
    marginals = scores.marginals_above(0.01)  # hardly any top label has less
    return log_odds(marginals.scores[find_top(marginals.rows, marginals.scores)])


def read_evidence(nlp: Language, docs: Sequence[Doc]) -> dict[str, dict[str, list[int]]]:
    """Return component -> its columns of evidence, in the form that cards save: name -> digits (0 to 9), one per token."""
    columns = dict(zip(COLUMNS, EntityEvidence().read(nlp, docs).T.clip(0, 9).round().astype(int).tolist(), strict=True))
    return {component: {name: columns[name] for name in names} for component, names in EVIDENCE_OF.items()}


def unlike_evidence(card: Card, nlp: Language, docs: Sequence[Doc]) -> list[str]:
    """Return the components whose output on `docs`, the card's sentences, is unlike the output that the card was fitted on.

    Output is compared by `read_evidence`: each column of a component must correlate with the card's, over all tokens.
    """
    card_columns = {name: columns for name, columns in (card.data["evidence"] or {}).items() if name in nlp.pipe_names}
    evidence = read_evidence(nlp, docs) if card_columns else {}

    def is_like(card_values: list[int], values: list[int]) -> bool:
        if len(values) != len(card_values) or np.ptp(values) == 0:  # other tokens, or a constant, which has no correlation
            return False
        return bool(np.corrcoef(card_values, values)[0, 1] >= _MIN_CORRELATION)

    return [
        name for name, columns in card_columns.items() if not all(is_like(columns[key], evidence[name][key]) for key in columns)
    ]


def check_scores(match: Match, raw_log_odds: Floats, nlp: Language) -> None:
    """Check that scores on the sentences of a card are like those that it was fitted on. RAISES C836: they are not.

    match (Match): The card, and the component with these scores. raw_log_odds (Floats): Of the predictions in the sentences,
    from `probe`, (n_predictions,). nlp (Language): The pipeline; the error names its components that change tokens.
    """
    reference: Any = match.card.data["probe"]
    mean = float(raw_log_odds.mean()) if len(raw_log_odds) else float("nan")
    is_near = abs(mean - reference["mean"]) <= _MAX_DISTANCE * reference["spread"]  # not if the mean is NaN
    is_as_many = _MIN_SHARE * reference["n"] <= len(raw_log_odds) <= reference["n"] / _MIN_SHARE
    if not (is_near and is_as_many):
        earlier = nlp.pipe_names[: nlp.pipe_names.index(match.component)]
        splitters = " and ".join(repr(name) for name in earlier if nlp.get_pipe_meta(name).retokenizes)
        raise calib_error(
            "C836", why=f" ({splitters} changes the tokens before it)" if splitters else "", card=match.card.name,
            component=match.card.component, n=len(raw_log_odds), mean=f"{mean:.2f}", wanted_n=reference["n"],
            wanted=f"{reference['mean']:.2f}", spread=f"{reference['spread']:.2f}",
        )  # fmt: skip
