"""`spacy_calib.pretrained`: add the pretrained calibrations of cards to a pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from spacy.language import Language

from ...pipe.component import Calibrator
from ...pipe.pipeline import INLINE_FACTORIES, check_enabled, load_pipeline, load_with_factories
from ...pipe.saved import dump
from ...pipe.state import card_cutoffs
from ...sources.find import fingerprint
from ...spacy_private import pipes_restored_on_failure
from .card import Card, find_card
from .evidence import EntityEvidence, EntityMap
from .gate import GatedContext
from .matching import Match, check_scores, find_matches, probe, run_upstream, unlike_evidence
from .messages import WARNINGS, calib_error
from .universal import UNIVERSAL, UniversalCard, make_universal_card

BY_POS = "calib_pos"  # name of the pipe that scores parts of speech alone


def pretrained(
    model: str | Path | Language,
    *,
    components: Sequence[str] | str | None = None,
    card: str | Path | None = None,
    precision: float | None = None,
    by: Literal["pos"] | None = None,
) -> Language:
    """Add pretrained calibrated scores to a stock pipeline, without gold.

    model (str | Path | Language): Package name or folder, which is loaded with a recognizer that keeps its probabilities; or a
        loaded pipeline, which is changed in place: its recognizer runs twice, so texts take about twice as long.
    components (Sequence[str] | str | None): Components to calibrate, such as "ner"; None takes all enabled ones with a card.
    card (str | Path | None): Name (`python -m spacy calib pretrained --list`) or JSON file of the card to use; "universal", for
        entities of any language, needs no card; None finds the card.
    precision (float | None): Precision of accepted entities: the cut-off is the lowest with this mean precision on the data
        sets that the card was tested on, and at most .1 less on the worst. None takes the card's cut-off (.80 on each).
    by (str | None): "pos" scores parts of speech alone, in a pipe "calib_pos", if there is a card for it.
    RETURNS (Language): The pipeline; what a card calibrates already stays as it is. If one card is refused, none is added.
    RAISES C001: a `precision` that is not between 0 and 1, or another `by`. C050: the pipeline cannot be loaded. C069: a
        component is disabled. C084: the tok2vec that it listens to is. C831, C832: a broken card. C833 to C836: no card is for
        the component. C837: a fit calibrates it. C839: no cut-off reaches the precision. C840: no card has cut-offs. C034: a
        component before it sets entities. C842, C843: "universal" does not suit the component, or its scores.
    WARNS CW75: other weights than at the card's fit. CW76: evidence of a component is unused. CW77: a component that has
        labels of a card gets no scores.

        >>> nlp = pretrained("en_core_web_sm")
        >>> nlp("Ada Lovelace met Charles Babbage in London.").ents[0]._.calib_ent_score
        0.8...
    """
    if precision is not None and not 0 < precision < 1:
        raise calib_error("C001", name="precision", wanted="a number between 0 and 1", given=repr(precision))
    if by not in (None, "pos"):
        raise calib_error("C001", name="by", wanted="'pos' or None", given=repr(by))
    nlp = model if isinstance(model, Language) else _load(str(model))
    requested_card: Card | None = None
    if card is not None:
        requested_card = make_universal_card(nlp, components) if card == UNIVERSAL else find_card(card)
    matches, reasons = find_matches(nlp, components, requested_card, by or "")
    cutoffs = {match.card.attr: match.card.choose_cutoff(precision) for match in matches}
    if precision is not None and not any(cutoffs.values()):
        raise calib_error("C840", cards=", ".join(match.card.name for match in matches))
    requested_cutoffs = {} if precision is None else cutoffs
    new_matches = [
        match for match in matches if not _check_calibrated(nlp, match, requested_card, requested_cutoffs.get(match.card.attr))
    ]
    notes = [WARNINGS["CW77"].format(component=name, why=why) for name, why in reasons.items()]
    with pipes_restored_on_failure(nlp):
        for match in new_matches:
            notes += _add_pipe(nlp, match, cutoffs[match.card.attr])
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return nlp


def _load(model: str) -> Language:
    """Load a pipeline, with our recognizers in place of spaCy's: ours keep their probabilities, so each runs once per Doc."""
    nlp = load_pipeline(model)  # shows which components are recognizers
    factories = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    inline = {name: INLINE_FACTORIES[factory] for name, factory in factories.items() if factory in ("ner", "beam_ner")}
    return load_with_factories(model, inline) if inline else nlp


def _check_calibrated(nlp: Language, match: Match, card: Card | None, cutoff: Mapping[str, float] | None) -> bool:
    """Return whether a card calibrates a component already; refuse a request that would change a fitted pipe.

    match (Match): The component, and the card for it. card, cutoff: Card and cut-off that the user requests, or None.
    RAISES C837: a card calibrates it, but another card or any cut-off is requested; a fit on gold calibrates it; or a pipe for
    something else has the name of the card's pipe.
    """
    readers = _find_readers(nlp, match)
    fitted_names = [name for name, pipe in readers.items() if pipe.fitted]
    for name in fitted_names:
        card_info = readers[name].fit_info.pretrained  # None for a fit on gold
        if card_info is not None:
            is_other_card = card is not None and card_info["card"] != card.name
            if cutoff is not None or is_other_card:
                raise calib_error("C837", name=name, origin=f"the card '{card_info['card']}'")
            return True
    is_name_taken = match.card.attr in nlp.component_names and match.card.attr not in readers
    conflicts = [*fitted_names, *([match.card.attr] if is_name_taken else [])]
    if conflicts:
        raise calib_error("C837", name=conflicts[0], origin=f"no card for component '{match.component}'")
    return False


def _find_readers(nlp: Language, match: Match) -> dict[str, Calibrator]:
    """Return name -> calib pipe that reads a match's component and scores the same as its card, parts of speech or all."""
    pipes = {name: pipe for name, pipe in nlp.components if isinstance(pipe, Calibrator)}
    pipes = {name: pipe for name, pipe in pipes.items() if pipe.source.component == match.component}
    is_by_pos = match.card.attr == BY_POS  # the pipe for parts of speech alone is beside that for all labels
    return {name: pipe for name, pipe in pipes.items() if (pipe.attr == BY_POS) == is_by_pos}


def _add_pipe(nlp: Language, match: Match, cutoff: Mapping[str, float] | None) -> list[str]:
    """Add the calib pipe of a match's card after its component, in place of an unfitted one; return warnings for the caller.
    cutoff (Mapping | None): Cut-off and its precision, from `Card.choose_cutoff`. RAISES: As `pretrained`."""
    card, name = match.card, match.component
    for unfitted_name in _find_readers(nlp, match):  # `_check_calibrated` has refused fitted ones
        nlp.remove_pipe(unfitted_name)
    settings = {**card.data["settings"], "source": {**card.data["settings"]["source"], "component": name}}
    pipe: Any = nlp.add_pipe("calib", card.attr, config=settings, after=name)
    component = pipe.lookup.component_to_fit()
    check_enabled(nlp, name)
    docs = run_upstream(nlp, pipe, card.data["probe"]["sentences"])
    if isinstance(card, UniversalCard):
        card.check_examples(pipe, docs)
    else:
        check_scores(match, probe(pipe, docs), nlp)
    unlike = unlike_evidence(card, nlp, docs)  # components whose evidence is not used, so that their weights do not matter
    match = replace(match, changed_components=tuple(other for other in match.changed_components if other not in unlike))
    pipe.from_bytes(dump(learned_state(match, fingerprint(nlp, component), cutoff, unlike)))
    others_of = {"CW76": " and ".join(map(repr, unlike)), "CW75": " and ".join(map(repr, match.changed_components))}
    return [WARNINGS[code].format(card=card.name, component=name, others=names) for code, names in others_of.items() if names]


def learned_state(
    match: Match, weights: str, cutoff: Mapping[str, float] | None = None, unlike: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the saved state of a calib pipe that takes over the calibration of a card.

    match (Match): The card and its component. weights (str): Fingerprint of the component. cutoff (Mapping | None): Cut-off
    and precision, from `Card.choose_cutoff`. unlike (Sequence[str]): Other components, whose output is not used as evidence.
    """
    card, data = match.card, match.card.data
    low, high = card.expected_bias
    left_out = f" Evidence of {' and '.join(unlike)} is not used, as it is unlike that of the card." if unlike else ""
    about = {
        "card": card.name, "pipeline": data["pipeline"], "licence": data["licence"],
        "transferred": bool(match.changed_components), "sources": len(data["biases"]),
        "lowest_bias": low, "highest_bias": high, "trust": f"{card.expected_bias_words}{left_out}", "cutoff": cutoff,
    }  # fmt: skip
    state, cutoffs = card.state(), card_cutoffs(cutoff)
    info = {**state["fit_info"], "component": match.component, "pretrained": about}
    state |= {"weights": weights, "cutoffs": cutoffs and cutoffs.state(), "fit_info": info}
    if data["failing"]:  # labels to keep raw: a step after the card's context restores their raw scores, and learns nothing
        settings = {"inner": state["context"], "raw": [state["labels"].index(label) for label in data["failing"]]}
        state["context"] = {GatedContext.kind: GatedContext.registered, "settings": settings, "learned": {}}
    if data["maps"] is not None:  # maps (components -> coefficients) score entities, and tokens keep their scores
        step = EntityMap()
        step.labels_ = tuple(info["spans"]["labels"])
        step.maps_ = {inputs: table for inputs, table in data["maps"].items() if not set(inputs.split(", ")) & set(unlike)}
        state |= {"context": EntityEvidence(data["lists"]).state(), "span_context": step.state()}  # lists: file -> checksum
    return state
