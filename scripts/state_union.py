"""Which nations the State of the Union addresses of 1945 to 2006 name, and how often, give or take: the picture and the numbers of docs/counts.md.

    spacy calib fit en_core_web_sm wikineural/dev.spacy nations --component ner --map "$MAP"
    SPACY_CALIB_DATA=../shared/data python scripts/state_union.py nations --plot nations.png --output nations.json

Calibrated types of entities, and words as they stand. 65 speeches, 350,000 words, no gold.
With --attacks also in how many speeches of a decade somebody attacks (Nguyen and O'Connor 2015, section 6.1); the pipeline then needs calib_coref and a
parser.
"""

from __future__ import annotations

import json
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from frame import data_lines, make_parser

from spacy_calib.plugins.counts.count_command import count

# What a nation is called, by the first word. Nothing is uncertain about these words; but see docs/counts.md on asking for their label too.
NATIONS = {
    "Soviet Union, Russia (words)": ["soviet", "soviets", "russia", "russian", "russians", "u.s.s.r.", "ussr"],
    "Germany (words)": ["germany", "german", "germans"],
    "China (words)": ["china", "chinese"],
    "Korea (words)": ["korea", "korean", "koreans"],
    "Vietnam (words)": ["vietnam", "vietnamese", "viet", "viet-nam"],
    "Iraq (words)": ["iraq", "iraqi", "iraqis"],
}
# Who attacks: words of a mention, after the lexicon of the paper.
ATTACKERS = {
    "the Soviet Union": ["soviet", "soviets", "russia", "russian", "russians", "communist", "communists"],
    "America": ["america", "american", "americans", "we", "us", "united"],
    "Iraq": ["iraq", "iraqi", "iraqis", "saddam"],
    "a terrorist": ["terrorist", "terrorists", "qaeda", "taliban"],
}
VERBS = ["attack", "invade", "bomb", "strike", "threaten", "fight", "destroy"]


def nations(place: str) -> dict[str, str]:
    """Name -> query. place (str): What the calibrated pipeline calls places."""
    return {"All places": place} | {name: json.dumps([{"LOWER": {"IN": words}}]) for name, words in NATIONS.items()}


def attacks() -> dict[str, str]:
    named = {name: json.dumps({"verb": VERBS, "names": words}) for name, words in ATTACKERS.items()}
    return {f"Speeches in which {name} attacks": query for name, query in named.items()}


def main() -> None:
    parser = make_parser(__doc__, output=True, plot=True)
    parser.add_argument("calibrated")
    parser.add_argument("--place", default="LOC", help="the label of places")
    parser.add_argument("--attacks", action="store_true", help="of attackers by decade, in place of nations by year")
    parser.add_argument("--speeches", type=int, help="the first so many")
    parser.add_argument("--n-process", type=int, default=1)
    given = parser.parse_args()
    queries = attacks() if given.attacks else nations(given.place)
    options: dict[str, Any] = {"every": "decade"} if given.attacks else {"per": 1000}
    options |= {"by": "year", "query": list(queries.values()), "name": list(queries), "n_process": given.n_process}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "speeches.jsonl"
        texts.write_text("\n".join(islice(data_lines("state_union", "speeches.jsonl"), given.speeches)), encoding="utf8")
        begun = time.perf_counter()
        result = count(given.calibrated, texts, plot=given.plot, output=given.output, **options)
    print(f"{result['documents']} speeches, {result['tokens']:,} tokens: {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
