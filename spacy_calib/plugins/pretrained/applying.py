"""`spacy_calib.pretrained`: give a pipeline the calibrations that cards describe."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language

from ...pipe.component import Calibrator
from ...pipe.loading import INLINE_FACTORIES, load_pipeline, load_with_factories
from ...pipe.saved import dump
from ...sources.fingerprint import fingerprint
from .card import Card, find_card
from .evidence import EntityMap
from .gate import GatedContext
from .matching import Match, check_scores, find_matches, probe
from .messages import WARNINGS, calib_error


def pretrained(
    model: str | Path | Language, *, components: Sequence[str] | str | None = None, card: str | Path | None = None
) -> Language:
    """Give a stock pipeline calibrated scores, without gold: `pretrained("en_core_web_sm")("...").ents[0]._.calib_ent_score`.

    model: Package name or folder, which is loaded with a recognizer that keeps its probabilities (no second pass); or a loaded
        pipeline, which is changed in place: its recognizer runs a second time for the scores, and texts take about twice as long.
    components (Sequence[str] | str | None): Which are calibrated: "ner", "tagger"; None takes all that there are cards for, but no
        disabled one.
    card (str | Path | None): Card in place of the one that fits: its name, which `python -m spacy calib pretrained --list` shows, or its
        JSON file.
    RETURNS (Language): The pipeline. A component that this calibrated before stays as it is. If one is refused, none is added.
    RAISES C069: a component is disabled. C833 to C836: no card is for it. C837: a component is calibrated by a fit. C831, C832: a broken card. C050: see `load_pipeline`.
    WARNS CW75: the card was fitted on the scores of other weights.
    """
    chosen = None if card is None else find_card(card)
    nlp = model if isinstance(model, Language) else _load(str(model))
    matches = find_matches(nlp, components, chosen)
    new = [match for match in matches if not _is_there(nlp, match.card, chosen)]
    added: list[str] = []
    try:
        for match in new:
            _add(nlp, match)
            added.append(match.card.attr)
    except BaseException:
        for name in added:
            nlp.remove_pipe(name)
        raise
    for match in new:
        if match.transferred:
            warnings.warn(WARNINGS["CW75"].format(card=match.card.name, component=match.card.component), stacklevel=2)
    return nlp


def _load(model: str) -> Language:
    nlp = load_pipeline(model)
    factories = {name: nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    inline = {name: INLINE_FACTORIES[factory] for name, factory in factories.items() if factory in ("ner", "beam_ner")}
    return load_with_factories(model, inline) if inline else nlp


def _is_there(nlp: Language, card: Card, chosen: Card | None) -> bool:
    """Whether a card's component is calibrated by a card already.

    RAISES C837: it is calibrated by a fit, or by another card than the chosen one, or the name is taken.
    """
    readers = _readers(nlp, card)
    for name, pipe in readers.items():
        if pipe.fitted and (about := pipe.fit_info.pretrained) is not None:
            if chosen is not None and about["card"] != chosen.name:
                raise calib_error("C837", name=name, origin=f"the card '{about['card']}'")
            return True
    taken = [name for name, pipe in readers.items() if pipe.fitted]
    taken += [name for name in nlp.component_names if name == card.attr and name not in readers]
    if taken:
        raise calib_error("C837", name=taken[0], origin=f"no card for component '{card.component}'")
    return False


def _readers(nlp: Language, card: Card) -> dict[str, Calibrator]:
    """The calib pipes that read a card's component, by name."""
    pipes = {name: pipe for name, pipe in nlp.components if isinstance(pipe, Calibrator)}
    return {name: pipe for name, pipe in pipes.items() if pipe.source.component == card.component}


def _add(nlp: Language, match: Match) -> None:
    """Put the pipe of a card after its component; one that is not fitted makes way. Where it is refused the pipeline stays as it was."""
    card = match.card
    for name in _readers(nlp, card):
        nlp.remove_pipe(name)
    pipe: Any = nlp.add_pipe("calib", card.attr, config=dict(card.data["settings"]), after=card.component)
    try:
        check_scores(match, probe(nlp, pipe, card.data["probe"]["sentences"]))
        component = pipe.lookup.to_fit()
        pipe.from_bytes(dump(learned_state(card, match.transferred, fingerprint(nlp, component))))
    except BaseException:
        nlp.remove_pipe(card.attr)
        raise


def learned_state(card: Card, transferred: bool, weights: str) -> dict[str, Any]:
    """The state of a pipe, as a fit would save it. weights (str): Fingerprint of the component."""
    state, data = card.state(), card.data
    low, high = card.spread
    about = {
        "card": card.name, "pipeline": data["pipeline"], "licence": data["licence"], "transferred": transferred,
        "sources": len(data["left_out"]), "smallest_error": low, "largest_error": high,
    }  # fmt: skip
    state |= {"weights": weights, "cutoffs": data["cutoffs"], "fit_info": {**state["fit_info"], "pretrained": about}}
    raw = [state["labels"].index(label) for label in data["failing"]]
    if raw:
        inner = {"inner": state["context"], "raw": raw}
        state["context"] = {GatedContext.kind: GatedContext.registered, "settings": inner, "learned": {}}
    if data["maps"] is not None:
        step = EntityMap()
        step.labels_, step.maps_ = tuple(state["fit_info"]["spans"]["labels"]), data["maps"]
        state["span_context"] = step.state()
    return state
