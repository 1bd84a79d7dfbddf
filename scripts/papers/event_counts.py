"""Who attacks? The case study of Nguyen & O'Connor (2015, section 6.1) on the State of the Union addresses: how many speeches have an entity that attacks, with
the interval that the uncertainty of coreference alone leaves. As Markdown.

    python scripts/papers event_counts en_core_web_sm corpus/train.spacy --penalty 1

TRAIN is that of configs/gum_coref/scripts/convert.py. A speech counts if a cluster of mentions has one whose head is the subject or agent of a verb of attack, and
one whose head or modifier is a name in the list. Clusterings are sampled from the distributions of antecedents: 95 % of the counts lie in the interval.
Beside them the counts of the most probable clustering, and of single mentions. There is no gold: whether the interval covers is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import data_lines, head, make_parser, row, save_tables
from spacy.tokens import Doc, Token
from tqdm import tqdm

from papers.coref.antecedents import first_mentions
from papers.coref.mentions import mentions_of
from papers.coref.resolver import MENTIONS, Resolver
from papers.coref_table import train
from spacy_calib.types import Ints

VERBS = frozenset(("attack", "invade", "bomb", "strike", "threaten", "fight", "destroy"))
NAMES = {
    "America": frozenset(("america", "american", "americans", "we", "us", "united")),
    "the Soviet Union": frozenset(("soviet", "soviets", "russia", "russian", "russians", "communist", "communists")),
    "a terrorist": frozenset(("terrorist", "terrorists", "qaeda", "taliban")),
    "Iraq": frozenset(("iraq", "iraqi", "iraqis", "saddam")),
}
# Dependency labels of an agent and of modifiers, in spaCy's English scheme and in Universal Dependencies.
_AGENTS = ("nsubj", "agent", "obl:agent")
_MODIFIERS = ("nmod", "amod", "compound", "poss")


@dataclass(frozen=True, eq=False)
class Speech:
    """Who attacks in a speech, by name. sampled (dict): In each of n clusterings, (n,). best (dict): In the most probable one. alone (dict): In a
    mention by itself."""

    year: int
    sampled: dict[str, Ints]
    best: dict[str, bool]
    alone: dict[str, bool]


def is_agent(token: Token, verbs: frozenset[str] = VERBS) -> bool:
    """Return whether a token is the subject of one of the verbs, or the agent in the passive ("attacked by them")."""
    governor = token.head
    if token.dep_ == "pobj" and governor.dep_ == "agent":
        governor = governor.head
    elif token.dep_ not in _AGENTS:
        return False
    return governor.lemma_.lower() in verbs


def is_described(token: Token, words: frozenset[str]) -> bool:
    """Return whether a token or one of its modifiers is one of the words ("American forces", "president of Iraq")."""
    return any(word.lower_ in words for word in (token, *_modifiers(token)))


def _modifiers(token: Token) -> Iterator[Token]:
    for child in token.children:
        if child.dep_ in _MODIFIERS:
            yield child
        elif child.dep_ == "prep" and child.lower_ == "of":
            yield from (noun for noun in child.children if noun.dep_ == "pobj")


def has_both(clusters: Ints, agents: Any, is_named: Any) -> Any:
    """Return whether a cluster has an agent and a name, in each of n clusterings, shape (n,).

    clusters (Ints): First mention of each mention's cluster, shape (n, n_mentions). agents, is_named: Whether each mention is one, (n_mentions,).
    """
    has_agent, has_name = np.zeros(clusters.shape, dtype=bool), np.zeros(clusters.shape, dtype=bool)
    rows = np.arange(len(clusters))[:, None]
    has_agent[rows, clusters[:, agents]] = True
    has_name[rows, clusters[:, is_named]] = True
    return (has_agent & has_name).any(axis=1)


def read_speech(doc: Doc, year: int, resolver: Resolver, n_samples: int, seed: int) -> Speech:
    """Sample the clusterings of an annotated Doc."""
    mentions = mentions_of(doc, MENTIONS)
    heads = [doc[i] for i in mentions.heads.tolist()]
    agents = np.array([is_agent(token) for token in heads], dtype=bool)
    by_name = {name: np.array([is_described(token, words) for token in heads], dtype=bool) for name, words in NAMES.items()}
    antecedents = resolver.antecedents(doc, mentions)
    sampled, best = antecedents.sample(n_samples, seed), first_mentions(antecedents.best())[None]
    return Speech(
        year,
        {name: has_both(sampled, agents, is_named) for name, is_named in by_name.items()},
        {name: bool(has_both(best, agents, is_named)[0]) for name, is_named in by_name.items()},
        {name: bool((agents & is_named).any()) for name, is_named in by_name.items()},
    )


def show(titles: str, parts: Iterable[tuple[str, Sequence[Speech]]]) -> None:
    """Print the counts of parts of the speeches."""
    head(f"| {titles} | name | the name is the subject | most probable clustering | expected | 95 % of clusterings |", 2)
    for title, part in parts:
        for name in NAMES:
            counts = np.sum([speech.sampled[name] for speech in part], axis=0)
            low, high = np.quantile(counts, [0.025, 0.975], method="inverted_cdf")
            n_alone, best = (sum(getattr(speech, kind)[name] for speech in part) for kind in ("alone", "best"))
            if counts.any() or best:
                row(title, name, n_alone, best, f"{counts.mean():.1f}", f"{low} to {high}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model")
    parser.add_argument("train", type=Path)
    parser.add_argument("--penalty", type=float, help="of the squared weights; left out, cross-validation chooses it")
    parser.add_argument("--samples", type=int, default=200, help="clusterings of each speech")
    parser.add_argument("--most", type=int, help="read no more speeches, at equal distances")
    options = parser.parse_args(arguments)
    nlp = spacy.load(options.model)
    resolver = train(nlp, options.train, options.penalty)
    records = [json.loads(line) for line in data_lines("state_union", "speeches.jsonl")]
    records = records[:: -(-len(records) // options.most) if options.most else 1]
    docs = nlp.pipe((record["text"] for record in records), batch_size=4)
    pairs = tqdm(zip(docs, records, strict=True), total=len(records), desc="Sampling", disable=None)
    speeches = [
        read_speech(doc, int(record["year"]), resolver, options.samples, seed) for seed, (doc, record) in enumerate(pairs)
    ]
    print(f"\n{len(speeches)} speeches in which a name attacks ({', '.join(sorted(VERBS))}).\n")
    show("years", [(f"{speeches[0].year} to {speeches[-1].year}", speeches)])
    print()
    decades = sorted({speech.year // 10 * 10 for speech in speeches})
    show("decade", [(f"{record}s", [speech for speech in speeches if speech.year // 10 * 10 == record]) for record in decades])
    save_tables(options.output)
    return 0
