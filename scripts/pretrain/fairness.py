"""Whether scores of persons depend on where their names come from: right persons get names of ten locales."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from frame import say
from name_lists import fold_any, make_lists
from pretrain.entities import FULL, Judged, fit_map, gather, judge, parts_of
from pretrain.sources import ENTITIES, TEXT_FORMS, Source
from quality.readers import Sentence

from spacy_calib.pipe.pipeline import load_with_factories
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
    """The sentences with right persons, whose names are of another locale; (source, the first token of each new name)."""
    spans, is_person = judged.evidence.spans, np.array(judged.types) == "PERSON"
    right = is_person & judged.right("exact")
    ends = dict(zip(spans.starts[right].tolist(), spans.ends[right].tolist(), strict=True))
    new_name, offset, n_tokens = name_maker(locale), 0, 0
    sentences: list[list[Sentence]] = []
    starts: set[int] = set()
    for sentence in (sentence for document in source.read() for sentence in document):
        places = range(offset, offset + len(sentence.words))
        words: list[str] = []
        tags: list[str] = []
        spaces: list[bool] = []
        rows = zip(sentence.words, sentence.gold["ents"], sentence.spaces or [True] * len(sentence.words), strict=True)
        skipped, is_changed = offset, False
        for place, (word, tag, space) in zip(places, rows, strict=True):
            if place in ends:
                old = sentence.words[place - offset : ends[place] - offset]
                name, skipped, is_changed = new_name(old), ends[place], True
                starts.add(n_tokens + len(words))
                words += name
                tags += ["B-PER", *["I-PER"] * (len(name) - 1)]
                spaces += [True] * len(name)
            elif place >= skipped:
                words.append(word)
                tags.append(tag)
                spaces.append(space)
            if place == skipped - 1 and spaces:
                spaces[-1] = space
        offset += len(sentence.words)
        if is_changed:
            sentences.append([Sentence(f"{offset}", words, {"ents": tags}, spaces)])
            n_tokens += len(words)
    return replace(source, read=lambda: sentences), starts


def name_maker(locale: str) -> Callable[[Sequence[str]], list[str]]:
    """A function that gives a name of one word another one, and any other a first name and a surname; the same for the same name."""
    from faker import Faker

    maker, choice = Faker(locale), random.Random(0)
    maker.seed_instance(0)

    @cache
    def make(old: str) -> tuple[str, ...]:
        first = choice.choice([maker.first_name_female, maker.first_name_male])  # first_name of some locales is John or Jane
        parts = [first(), maker.last_name()]
        if locale.startswith("zh"):
            parts = [fold_any(part).title() for part in parts]
        return tuple(" ".join(parts if " " in old else [choice.choice(parts)]).replace("-", " ").split())

    return lambda words: list(make(" ".join(words)))


def read_locales(model: str, folder: Path) -> dict[str, list[tuple[Judged, Any]]]:
    """Locale -> what the pipeline finds in each source with its names, and which entities these are; read once."""
    found, nlp = gather(model, [source for source in ENTITIES if source.name in SOURCES], folder), None
    rows: dict[str, list[tuple[Judged, Any]]] = {}
    for locale in LOCALES:
        file = folder / "pretrained" / f"{Path(model).parent.name or Path(model).name}-{Path(model).name}-names-{locale}.pkl"
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


def fairness(model: str, maps: Mapping[str, Mapping[str, float]], folder: Path) -> list[dict[str, Any]]:
    """A row for each locale: the mean score of right persons with its names, by the map without lists and by the card.

    "left_out": The same by a map and lists without the five locales of UNLISTED.
    """
    judged_by_locale = read_locales(model, folder)
    full, fewer = NameLists(make_lists()), NameLists(make_lists(without=UNLISTED))
    texts = {form: gather(model, ENTITIES, folder, form, fewer) for form in TEXT_FORMS}
    tables = {
        "without_lists": (maps[FULL.removesuffix(LISTS)], full), "score": (maps[FULL], full),
        "left_out": (fit_map(FULL, parts_of(texts), "article"), fewer),
    }  # fmt: skip
    scores = {key: scores_by_locale(judged_by_locale, *table) for key, table in tables.items()}
    return [
        {
            "locale": locale, "name": name, "listed": locale in LISTED, "names": scores["score"][locale][2], "share_found": scores["score"][locale][1],
            **{key: values[locale][0] for key, values in scores.items()},
        }
        for locale, name in LOCALES.items()
    ]  # fmt: skip
