"""The choice of lists and ridge for a card of entities, by sources that are left out of fit and choice."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from name_lists import companies, ordinary_words, persons
from pretrain.entities import FULL, RIDGE, Judged, add_lists, fit_map, gather, key_of, parts_of
from pretrain.sources import AS_IT_IS, ENTITIES, TEXT_FORMS

from spacy_calib.metrics import log_loss
from spacy_calib.plugins.pretrained.evidence import LISTS
from spacy_calib.plugins.pretrained.names import NameLists, current_lists, load_lists

RIDGES = (1.0, 3.0, 10.0)


def variants() -> dict[str, dict[str, Any]]:
    """Name -> lists."""
    lists = load_lists(tuple(current_lists().items()))
    assert lists is not None
    full = dict(lists.entries)
    return {
        "all": full, "6,000 ordinary words": {**full, "ordinary_words": ordinary_words()[:6000]}, "no ordinary words": {**full, "ordinary_words": ()},
        "no surnames": {**full, "surnames": ()}, "no surnames of the census": {**full, **persons(n_surnames=0)}, "all surnames of the census": {**full, **persons(n_surnames=10**6)},
        "companies alone": {**full, "organizations": companies()}, "no organizations": {**full, "organizations": ()},
    }  # fmt: skip


def choice_table(model: str, cache: Path) -> str:
    """For each choice the log loss of each source left out, and the mean on the others that chooses for it, each of them left out as well."""
    names = [source.name for source in ENTITIES]
    lines = [f"| lists | ridge | {' | '.join(names)} | mean |", f"| --- | ---: |{' --- |' * len(names)} ---: |"]
    pairs = [left_out for n in (1, 2) for left_out in combinations(names, n)]
    bases: dict[str, dict[str, float]] = {}
    for variant, entries in variants().items():
        lists = NameLists(entries)
        texts = {form: gather(model, ENTITIES, cache, form, lists) for form in TEXT_FORMS}
        bases = bases or {key_of(*pair): fit_map(FULL.removesuffix(LISTS), parts_of(texts, pair), "article") for pair in pairs}
        for ridge in RIDGES if variant == "all" else (RIDGE,):
            tables = {
                key_of(*pair): add_lists(bases[key_of(*pair)], parts_of(texts, pair), "article", ridge=ridge) for pair in pairs
            }
            losses = {name: _loss(texts[AS_IT_IS][name], tables[name]) for name in names}
            inner = {
                name: np.mean([_loss(texts[AS_IT_IS][other], tables[key_of(name, other)]) for other in names if other != name])
                for name in names
            }
            cells = " | ".join(f"{losses[name]:.4f} ({inner[name]:.4f})" for name in names)
            lines.append(f"| {variant} | {ridge:g} | {cells} | {np.mean(list(losses.values())):.4f} |")
    return "\n".join(lines)


def _loss(judged: Judged, table: Mapping[str, float]) -> float:
    return float(log_loss(judged.score(table), judged.right("article")) or 0.0)
