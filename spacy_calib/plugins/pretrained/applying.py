"""`spacy_calib.pretrained`: give a pipeline the calibrations that cards describe."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.language import Language

from ...errors.advice import SECOND_PASS
from ...pipe.component import Calibrator
from ...pipe.fit_info import card_cutoffs
from ...pipe.loading import INLINE_FACTORIES, check_enabled, load_pipeline, load_with_factories
from ...pipe.saved import dump
from ...sources.fingerprint import fingerprint
from .card import Card, find_card
from .evidence import EntityEvidence, EntityMap
from .gate import GatedContext
from .matching import Match, check_scores, find_matches, probe, run_upstream, unlike_evidence
from .messages import WARNINGS, calib_error
from .universal import UNIVERSAL, UniversalCard, make_universal_card

# The pipe of parts of speech, beside the one of all that a component predicts.
BY_POS = "calib_pos"


def pretrained(
    model: str | Path | Language,
    *,
    components: Sequence[str] | str | None = None,
    card: str | Path | None = None,
    precision: float | None = None,
    by: str | None = None,
) -> Language:
    """Give a stock pipeline calibrated scores, without gold: `pretrained("en_core_web_sm")("...").ents[0]._.calib_ent_score`.

    model: Package name or folder, which is loaded with a recognizer that keeps its probabilities (no second pass); or a loaded
        pipeline, which is changed in place: its recognizer runs a second time for the scores, and texts take about twice as long.
    components (Sequence[str] | str | None): Which are calibrated: "ner", "tagger"; None takes all that there are cards for, but no
        disabled one.
    card (str | Path | None): Card in place of the one that fits: its name, which `python -m spacy calib pretrained --list` shows, or its
        JSON file; or "universal", for entities of any language without gold, see the how-to.
    precision (float | None): Entities are accepted from the lowest score with this mean precision on the sources left out, and .1 less on
        the worst; None takes the card's cut-off (.80 on each source).
    by (str | None): "pos" scores the part of speech alone, in a pipe "calib_pos", where there is a card for it.
    RETURNS (Language): The pipeline. A component that this calibrated before stays as it is. If one is refused, none is added.
    RAISES C069, C084: a component, or what it listens to, is disabled. C841: a component before it sets entities. C833 to C836: no card is for it. C837: a component is calibrated by a fit. C831, C832: a broken card.
        C842, C843: "universal" is not for this component, or not for its scores.
        C001, C839, C840: a precision that is none, that no cut-off reaches, or without entities; another `by`. C050: see `load_pipeline`.
    WARNS CW75: the card was fitted on the scores of other weights. CW76: evidence of a component is not used. CW77: a component that has labels
        of a card gets no scores.
    """
    if precision is not None and not 0 < precision < 1:
        raise calib_error("C001", name="precision", wanted="a number between 0 and 1", given=repr(precision))
    if by not in (None, "pos"):
        raise calib_error("C001", name="by", wanted="'pos' or None", given=repr(by))
    nlp = model if isinstance(model, Language) else _load(str(model))
    chosen = None if card is None else make_universal_card(nlp, components) if card == UNIVERSAL else find_card(card)
    matches, reasons = find_matches(nlp, components, chosen, by or "")
    cutoffs = {match.card.attr: match.card.choose_cutoff(precision) for match in matches}
    if precision is not None and not any(cutoffs.values()):
        raise calib_error("C840", cards=", ".join(match.card.name for match in matches))
    new = [
        match
        for match in matches
        if not _is_there(nlp, match, chosen, is_new_cutoff=precision is not None and cutoffs[match.card.attr] is not None)
    ]
    notes = [WARNINGS["CW77"].format(component=name, why=why) for name, why in reasons.items()]
    added: list[str] = []
    try:
        for match in new:
            notes += _add(nlp, match, cutoffs[match.card.attr])
            added.append(match.card.attr)
    except BaseException:
        for name in added:
            nlp.remove_pipe(name)
        raise
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return nlp


def _load(model: str) -> Language:
    nlp = load_pipeline(model)
    factories = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    inline = {name: INLINE_FACTORIES[factory] for name, factory in factories.items() if factory in ("ner", "beam_ner")}
    return load_with_factories(model, inline) if inline else nlp


def _is_there(nlp: Language, match: Match, chosen: Card | None, is_new_cutoff: bool) -> bool:
    """Whether a match's component is calibrated by a card already.

    RAISES C837: it is calibrated by a fit, by another card than the chosen one or with another cut-off, or the name is taken.
    """
    readers = _readers(nlp, match)
    for name, pipe in readers.items():
        if pipe.fitted and (about := pipe.fit_info.pretrained) is not None:
            if is_new_cutoff or (chosen is not None and about["card"] != chosen.name):
                raise calib_error("C837", name=name, origin=f"the card '{about['card']}'")
            return True
    taken = [name for name, pipe in readers.items() if pipe.fitted]
    taken += [name for name in nlp.component_names if name == match.card.attr and name not in readers]
    if taken:
        raise calib_error("C837", name=taken[0], origin=f"no card for component '{match.component}'")
    return False


def _readers(nlp: Language, match: Match) -> dict[str, Calibrator]:
    """The calib pipes that read a match's component, by name; those of parts of speech are apart from others."""
    pipes = {
        name: pipe for name, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.source.component == match.component
    }
    return {name: pipe for name, pipe in pipes.items() if (pipe.attr == BY_POS) == (match.card.attr == BY_POS)}


def _add(nlp: Language, match: Match, cutoff: Mapping[str, float] | None) -> list[str]:
    """Put the pipe of a card after its component; one that is not fitted makes way. Where it is refused the pipeline stays as it was.

    RETURNS (list[str]): Warnings.
    """
    card, name = match.card, match.component
    for reader in _readers(nlp, match):
        nlp.remove_pipe(reader)
    settings = {**card.data["settings"], "source": {**card.data["settings"]["source"], "component": name}}
    pipe: Any = nlp.add_pipe("calib", card.attr, config=settings, after=name)
    try:
        _check_place(nlp, pipe)
        docs = run_upstream(nlp, pipe, card.data["probe"]["sentences"])
        if isinstance(card, UniversalCard):
            card.check_examples(pipe, docs)
        else:
            check_scores(match, probe(pipe, docs))
        unlike = unlike_evidence(card, nlp, docs)
        match = replace(match, changed=tuple(component for component in match.changed if component not in unlike))
        pipe.from_bytes(dump(learned_state(match, fingerprint(nlp, pipe.lookup.component_to_fit()), cutoff, unlike)))
    except BaseException:
        nlp.remove_pipe(card.attr)
        raise
    others = {"CW76": " and ".join(map(repr, unlike)), "CW75": " and ".join(map(repr, match.changed))}
    return [WARNINGS[code].format(card=card.name, component=name, others=text) for code, text in others.items() if text]


def _check_place(nlp: Language, pipe: Calibrator) -> None:
    """RAISES C841: a component before sets what a second pass could not tell from its own. C084: what it listens to is disabled."""
    component = pipe.source.component
    why = pipe.source.obstacle(nlp, pipe.name, nlp.get_pipe(component))
    if SECOND_PASS in why:
        raise calib_error("C841", component=component, why=why)
    check_enabled(nlp, component)


def learned_state(
    match: Match, weights: str, cutoff: Mapping[str, float] | None = None, unlike: Sequence[str] = ()
) -> dict[str, Any]:
    """The state of a pipe, as a fit would save it.

    weights (str): Fingerprint of the component. cutoff: See `Card.choose_cutoff`. unlike (Sequence[str]): Components whose evidence is not used.
    """
    card, state, data = match.card, match.card.state(), match.card.data
    low, high = card.expected_bias
    left_out = f" Evidence of {' and '.join(unlike)} is not used, as it is unlike that of the card." if unlike else ""
    about = {
        "card": card.name, "pipeline": data["pipeline"], "licence": data["licence"], "transferred": bool(match.changed), "sources": len(data["biases"]),
        "lowest_bias": low, "highest_bias": high, "trust": f"{card.expected_bias_words}{left_out}", "cutoff": cutoff,
    }  # fmt: skip
    info = {**state["fit_info"], "component": match.component, "pretrained": about}
    cutoffs = card_cutoffs(cutoff)
    state |= {"weights": weights, "cutoffs": cutoffs and cutoffs.state(), "fit_info": info}
    raw = [state["labels"].index(label) for label in data["failing"]]
    if raw:
        inner = {"inner": state["context"], "raw": raw}
        state["context"] = {GatedContext.kind: GatedContext.registered, "settings": inner, "learned": {}}
    if data["maps"] is not None:
        step = EntityMap()
        step.labels_ = tuple(state["fit_info"]["spans"]["labels"])
        step.maps_ = {needs: table for needs, table in data["maps"].items() if not set(needs.split(", ")) & set(unlike)}
        state |= {"context": EntityEvidence(lists=data["lists"]).state(), "span_context": step.state()}
    return state
