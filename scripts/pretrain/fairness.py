"""Whether the scores of persons depend on where their names come from: right persons get names of ten locales."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from frame import say
from name_lists import fold_any, make_lists
from pretrain.entities import FULL, Judged, fit_map, gather, judge, parts_of
from pretrain.sources import ENTITIES, TEXT_FORMS, Source
from quality.readers import Sentence

from spacy_calib.pipe.loading import load_with_factories
from spacy_calib.plugins.pretrained.evidence import LISTS
from spacy_calib.plugins.pretrained.names import NameLists

# Locales of faker: in the lists, and left out of them for the test.
LISTED = {
    "en_NG": "English of Nigeria",
    "en_IN": "English of India",
    "zh_CN": "Chinese",
    "pl_PL": "Polish",
    "es_MX": "Spanish of Mexico",
}
UNLISTED = {"yo_NG": "Yoruba", "id_ID": "Indonesian", "vi_VN": "Vietnamese", "tr_TR": "Turkish", "fi_FI": "Finnish"}
LOCALES = {**LISTED, **UNLISTED}
SOURCES = ("UNER-EWT", "UNER-PUD")


def with_names(source: Source, judged: Judged, locale: str) -> tuple[Source, set[int]]:
    """The documents with right persons, whose names are of another locale; (source, the first token of each new name)."""
    from faker import Faker

    maker, choice = Faker(locale), random.Random(0)
    maker.seed_instance(0)
    person = judged.labels.index("PERSON")
    mask = (judged.evidence.spans.labels == person) & judged.right("exact")
    spans = dict(zip(judged.evidence.spans.starts[mask].tolist(), judged.evidence.spans.ends[mask].tolist(), strict=True))
    documents, starts, offset, n_tokens = [], set(), 0, 0
    new_names: dict[str, list[str]] = {}

    def new_name(old: Sequence[str]) -> list[str]:
        """A name of as many parts, one or two; the same for the same name."""
        if " ".join(old) not in new_names:
            parts = [maker.first_name(), maker.last_name()]
            if locale.startswith("zh"):
                parts = [fold_any(part).title() for part in parts]
            new_names[" ".join(old)] = " ".join(parts if len(old) > 1 else [choice.choice(parts)]).replace("-", " ").split()
        return new_names[" ".join(old)]

    for document in source.read():
        old_words, old_tags, old_spaces = _flat(document)
        words: list[str] = []
        tags: list[str] = []
        spaces: list[bool] = []
        place, new_starts = 0, []
        while place < len(old_words):
            end = spans.get(offset + place, place)
            if end > place:
                end -= offset
                name = new_name(old_words[place:end])
                new_starts.append(len(words))
                words += name
                tags += ["B-PER", *["I-PER"] * (len(name) - 1)]
                spaces += [*[True] * (len(name) - 1), old_spaces[end - 1]]
            else:
                end = place + 1
                words.append(old_words[place])
                tags.append(old_tags[place])
                spaces.append(old_spaces[place])
            place = end
        offset += len(old_words)
        if new_starts:
            documents.append([Sentence(document[0].document, words, {"ents": tags}, spaces)])
            starts |= {n_tokens + start for start in new_starts}
            n_tokens += len(words)
    return replace(source, read=lambda: documents), starts


def _flat(document: Sequence[Sentence]) -> tuple[list[str], list[str], list[bool]]:
    """Words, tags and spaces of all sentences."""
    words = [word for sentence in document for word in sentence.words]
    tags = [tag for sentence in document for tag in sentence.gold["ents"]]
    return words, tags, [space for sentence in document for space in sentence.spaces or [True] * len(sentence.words)]


def read_locales(model: str, cache: Path) -> dict[str, list[tuple[Judged, Any]]]:
    """Locale -> what the pipeline finds in each source with its names, and which entities these are; read once."""
    found, nlp = gather(model, ENTITIES, cache), None
    rows: dict[str, list[tuple[Judged, Any]]] = {}
    for locale in LOCALES:
        file = cache / "pretrained" / f"{Path(model).parent.name or Path(model).name}-{Path(model).name}-names-{locale}.pkl"
        if not file.exists():
            say(f"Names of {locale} in {model}")
            nlp = nlp or load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
            pairs = [with_names(source, found[source.name], locale) for source in ENTITIES if source.name in SOURCES]
            file.write_bytes(pickle.dumps([(judge(nlp, source), sorted(starts)) for source, starts in pairs]))
        rows[locale] = pickle.loads(file.read_bytes())
    return rows


def scores_by_locale(
    judged_by_locale: Mapping[str, Sequence[tuple[Judged, Any]]], table: Mapping[str, float], lists: NameLists
) -> dict[str, tuple[float, float, int]]:
    """Locale -> (mean score of the names that are found as persons, share of names found, names)."""
    rows = {}
    for locale, parts in judged_by_locale.items():
        scores, n = [], 0
        for judged, starts in parts:
            spans, person = judged.evidence.spans, judged.labels.index("PERSON")
            mask = np.isin(spans.starts, list(starts)) & (spans.labels == person) & judged.right("exact")
            scores.append(judged.with_lists(lists).score(table)[mask])
            n += len(starts)
        values = np.concatenate(scores)
        rows[locale] = float(values.mean()), len(values) / n, n
    return rows


def fairness(
    model: str, maps: Mapping[str, Mapping[str, float]], cache: Path, before: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """A row for each locale: the mean score of right persons with its names, by the map without lists and by the card.

    "left_out": The same by a map and lists without the five locales of UNLISTED. before (Mapping | None): Another map.
    """
    judged_by_locale = read_locales(model, cache)
    full, fewer = NameLists(make_lists()), NameLists(make_lists(without=UNLISTED))
    texts = {form: gather(model, ENTITIES, cache, form, fewer) for form in TEXT_FORMS}
    tables = {
        "without_lists": (maps[FULL.removesuffix(LISTS)], full), "score": (maps[FULL], full),
        "left_out": (fit_map(FULL, parts_of(texts), "article"), fewer), **({} if before is None else {"before": (before, full)}),
    }  # fmt: skip
    scores = {key: scores_by_locale(judged_by_locale, *table) for key, table in tables.items()}
    return [
        {
            "locale": locale, "name": name, "listed": locale in LISTED, "names": scores["score"][locale][2], "share_found": scores["score"][locale][1],
            **{key: values[locale][0] for key, values in scores.items()},
        }
        for locale, name in LOCALES.items()
    ]  # fmt: skip
