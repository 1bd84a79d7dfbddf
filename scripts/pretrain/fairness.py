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
from name_lists import fold_any, persons
from pretrain.entities import FULL, LISTS, PERSON_GAIN, Judged, current_lists, fit_map, gather, judge, parts_of
from pretrain.sources import ENTITIES, TEXT_FORMS, Source
from quality.readers import Sentence

from spacy_calib.pipe.pipeline import load_with_factories
from spacy_calib.plugins.pretrained.names import NameLists, load_lists

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
# As persons are named: as in the text, by one word or more, and all by a first name and two surnames with a hyphen.
ONE, MORE, HYPHEN = SHAPES = "one word", "more words", "hyphen"


def with_names(source: Source, source_entities: Judged, locale: str, hyphen: bool = False) -> tuple[Source, set[int]]:
    """The sentences with right persons, whose names are of another locale; (source, the first token of each new name)."""
    spans, is_person = source_entities.evidence.spans, np.array(source_entities.types) == "PERSON"
    right = is_person & source_entities.right("exact")
    ends = dict(zip(spans.starts[right].tolist(), spans.ends[right].tolist(), strict=True))
    new_name, offset, n_tokens = name_maker(locale, hyphen), 0, 0
    sentences: list[list[Sentence]] = []
    starts: set[int] = set()
    for sentence in (sentence for document in source.read() for sentence in document):
        places = range(offset, offset + len(sentence.words))
        words: list[str] = []
        tags: list[str] = []
        spaces: list[bool] = []
        rows = zip(sentence.words, sentence.gold["ents"], sentence.spaces or [True] * len(sentence.words), strict=True)
        n_skipped, is_changed = offset, False
        for place, (word, tag, space) in zip(places, rows, strict=True):
            if place in ends:
                old = sentence.words[place - offset : ends[place] - offset]
                name, n_skipped, is_changed = new_name(old), ends[place], True
                starts.add(n_tokens + len(words))
                words += name
                tags += ["B-PER", *["I-PER"] * (len(name) - 1)]
                spaces += ["-" not in pair for pair in zip(name, [*name[1:], ""], strict=True)]
            elif place >= n_skipped:
                words.append(word)
                tags.append(tag)
                spaces.append(space)
            if place == n_skipped - 1 and spaces:
                spaces[-1] = space
        offset += len(sentence.words)
        if is_changed:
            sentences.append([Sentence(f"{offset}", words, {"ents": tags}, spaces)])
            n_tokens += len(words)
    return replace(source, read=lambda: sentences), starts


def name_maker(locale: str, hyphen: bool = False) -> Callable[[Sequence[str]], list[str]]:
    """A function that gives a name of one word another one, and any other a first name and a surname; the same for the same name.

    hyphen (bool): Whether all get a first name and two surnames with a hyphen.
    """
    from faker import Faker

    maker, choice = Faker(locale), random.Random(0)
    maker.seed_instance(0)

    @cache
    def make(old: str) -> tuple[str, ...]:
        first = choice.choice([maker.first_name_female, maker.first_name_male])  # first_name of some locales is John or Jane
        parts = [first(), maker.last_name(), maker.last_name()] if hyphen else [first(), maker.last_name()]
        if locale.startswith("zh"):
            parts = [fold_any(part).title() for part in parts]
        words = [part.replace("-", " ").split() for part in parts]
        if hyphen:
            return *words[0], *words[1], "-", *words[2]
        return tuple(sum(words, []) if " " in old else choice.choice(words))

    return lambda words: list(make(" ".join(words)))


def read_locales(model: str, folder: Path, hyphen: bool = False) -> dict[str, list[tuple[Judged, Any]]]:
    """Locale -> what the pipeline finds in each source with its names, and which entities these are; read once. hyphen: See `name_maker`."""
    judged_sources, nlp = gather(model, [source for source in ENTITIES if source.name in SOURCES], folder), None
    rows: dict[str, list[tuple[Judged, Any]]] = {}
    for locale in LOCALES:
        kind = f"{HYPHEN}s" if hyphen else "names"
        file = folder / "pretrained" / f"{Path(model).parent.name or Path(model).name}-{Path(model).name}-{kind}-{locale}.pkl"
        if not file.exists():
            say(f"Names of {locale} in {model}")
            nlp = nlp or load_with_factories(model, {"ner": "calib_ner"}, exclude=["lemmatizer", "attribute_ruler"])
            pairs = [
                with_names(source, judged_sources[source.name], locale, hyphen) for source in ENTITIES if source.name in SOURCES
            ]
            file.write_bytes(pickle.dumps([(judge(nlp, source), sorted(starts)) for source, starts in pairs]))
        rows[locale] = pickle.loads(file.read_bytes())
    return rows


def fairness(model: str, maps: Mapping[str, Mapping[str, float]], cutoff: float, folder: Path) -> list[dict[str, Any]]:
    """A row for each locale and each of SHAPES: mean scores of right persons with such names, and what a list alone adds.

    "without_lists": By the map without lists; "score": by the card; "unlisted": by the card, had each name been in no list; "left_out": by a map and
    lists without the locales of UNLISTED. "most_gained": The largest difference of score and unlisted. "carried": Share that the list alone carries
    over the cut-off.
    """
    by_shape = {hyphen: read_locales(model, folder, hyphen) for hyphen in (False, True)}
    full = load_lists(tuple(current_lists().items()))
    assert full is not None
    fewer = NameLists({**full.entries, **persons(without=UNLISTED)})
    left_out = fit_map(FULL, parts_of({form: gather(model, ENTITIES, folder, form, fewer) for form in TEXT_FORMS}), "article")
    without_names = {name: 0.0 if name in PERSON_GAIN else value for name, value in maps[FULL].items()}
    tables = {
        "without_lists": (maps[FULL.removesuffix(LISTS)], full), "score": (maps[FULL], full), "unlisted": (without_names, full), "left_out": (left_out, fewer)
    }  # fmt: skip
    rows = []
    for locale, shape in ((locale, shape) for locale in LOCALES for shape in SHAPES):
        parts = [(source_entities.with_lists(full), starts) for source_entities, starts in by_shape[shape == HYPHEN][locale]]
        masks = [_find_named(source_entities, starts, shape) for source_entities, starts in parts]
        scores = {
            key: np.concatenate(
                [
                    source_entities.with_lists(lists).score(table)[mask]
                    for (source_entities, _), mask in zip(parts, masks, strict=True)
                ]
            )
            for key, (table, lists) in tables.items()
        }
        gains, is_carried = scores["score"] - scores["unlisted"], (scores["score"] >= cutoff) & (scores["unlisted"] < cutoff)
        rows.append(
            {
                "locale": locale, "name": LOCALES[locale], "listed": locale in LISTED, "shape": shape, "found": len(gains),
                **{key: float(values.mean()) for key, values in scores.items()}, "most_gained": float(gains.max()), "carried": float(is_carried.mean()),
            }
        )  # fmt: skip
    return rows


def acceptance_table(model: str, card: Mapping[str, Any], folder: Path) -> str:
    """Which of the persons with names of ten locales the recognizer finds, and which the default cut-off of a card accepts, as a table.

    "by a list": share of the accepted ones that would not be accepted, were their names in no list. "gained": mean score less that of the map
    without lists.
    """
    maps, cutoff, lists = card["maps"], card["cutoffs"]["cutoff"], load_lists(tuple(current_lists().items()))
    assert lists is not None
    without_names = {name: 0.0 if name in PERSON_GAIN else value for name, value in maps[FULL].items()}
    tables = maps[FULL], maps[FULL.removesuffix(LISTS)], without_names
    titles = [f"{shape}: {column}" for shape in (ONE, MORE) for column in ("accepted (without lists)", "by a list", "gained")]
    lines = [f"| names | in the lists | found | {' | '.join(titles)} |", f"| --- | --- |{' ---: |' * 7}"]
    for locale, parts in read_locales(model, folder).items():
        n_found = sum(int(_find_named(source_entities, starts, HYPHEN).sum()) for source_entities, starts in parts)
        cells = [f"{n_found / sum(len(starts) for _, starts in parts):.2f}"]
        for shape in (ONE, MORE):
            masked = [
                (source_entities.with_lists(lists), _find_named(source_entities, starts, shape))
                for source_entities, starts in parts
            ]
            scores, plain, unlisted_scores = (
                np.concatenate([source_entities.score(table)[mask] for source_entities, mask in masked]) for table in tables
            )
            is_accepted = scores >= cutoff
            cells += [
                f"{is_accepted.mean():.2f} ({(plain >= cutoff).mean():.2f})",
                f"{(unlisted_scores[is_accepted] < cutoff).mean():.2f}",
            ]
            cells += [f"{(scores - plain).mean():+.2f}"]
        row = f"| {LOCALES[locale]} | {'yes' if locale in LISTED else 'no'} | {' | '.join(cells)} |"
        lines.append(row.replace("0.", "."))
    return "\n".join(lines)


def _find_named(source_entities: Judged, starts: Sequence[int], shape: str) -> Any:
    """Whether each entity is one of the new names of this shape, found as a person."""
    spans, person = source_entities.evidence.spans, source_entities.labels.index("PERSON")
    mask = np.isin(spans.starts, list(starts)) & (spans.labels == person) & source_entities.right("exact")
    return mask if shape == HYPHEN else mask & ((spans.ends - spans.starts == 1) == (shape == ONE))
