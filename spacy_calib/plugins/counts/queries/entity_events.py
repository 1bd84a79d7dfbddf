"""Queries by event: how many entities, or documents with one, are the agent of a verb (Nguyen & O'Connor 2015, section 6.1).

Which mentions are one entity is uncertain: the count is taken from sampled clusterings of the mentions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from spacy.tokens import Doc, Token

from ....doc.view import doc_view
from ....types import Ints
from .base import DOCUMENT, ENTITY, Query, QueryResult, ViewOf

# Dependency labels of an agent and of modifiers, in spaCy's English scheme and in Universal Dependencies.
_AGENTS = ("nsubj", "agent", "obl:agent")
_MODIFIERS = ("nmod", "amod", "compound", "poss")
COREF = "coref"


@dataclass(frozen=True)
class EventQuery(Query):
    """Counts the entities that are the agent of a verb.

    verbs (frozenset[str]): Lemmas, lower case. names (frozenset[str]): Words, lower case, one of which has to describe the
    entity; empty for any entity. excluded_words (frozenset[str]): Words that must not describe it. n_draws, seed (int): Number
    and seed of sampled clusterings.
    """

    units: ClassVar[tuple[str, ...]] = (DOCUMENT, ENTITY)

    text: str
    unit: str
    verbs: frozenset[str]
    names: frozenset[str]
    excluded_words: frozenset[str] = frozenset()
    n_draws: int = 200
    seed: int = 0

    @property
    def reads_only_scores(self) -> bool:
        return False

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> QueryResult:
        """Return how many entities satisfy the query in each sample of the coreference clusters."""
        view = doc._.get(COREF)
        empty = np.zeros(0)
        if view is None or not len(view):
            return QueryResult(empty, empty, 0, np.zeros(self.n_draws, dtype=np.intp))
        heads = view.mention_arrays.heads.tolist()
        agents = [_is_agent(doc[head], self.verbs) for head in heads]
        is_named = [not self.names or _is_described(doc[head], self.names) for head in heads]
        is_excluded = [_is_described(doc[head], self.excluded_words) for head in heads]
        roles = np.array(agents, dtype=bool), np.array(is_named, dtype=bool), np.array(is_excluded, dtype=bool)
        if not (roles[0].any() and roles[1].any()):
            return QueryResult(empty, empty, 0, np.zeros(self.n_draws, dtype=np.intp))
        sampled_counts = self._count_satisfied(view.sample(self.n_draws, self.seed), *roles)
        n_found = int(self._count_satisfied(view.first[None, :], *roles)[0])
        if self.unit == DOCUMENT:
            sampled_counts, n_found = np.minimum(sampled_counts, 1), min(n_found, 1)
        share = np.array([float(np.minimum(sampled_counts, 1).mean())])
        return QueryResult(share, share, n_found, sampled_counts)

    def count_gold(self, doc: Doc) -> int:
        """Return 0, as gold Docs have no clusterings."""
        return 0

    def _count_satisfied(self, clusters: Ints, agents: Any, is_named: Any, is_excluded: Any) -> Ints:
        """Return how many entities satisfy the query in each clustering, shape (n,); the other roles are of each mention.

        clusters (Ints): First mention of each mention's cluster, shape (n, n_mentions).
        """
        has_role = np.zeros((3, *clusters.shape), dtype=bool)  # whether a mention of the cluster has the role
        rows = np.arange(len(clusters))[:, None]
        for role, mentions in enumerate((agents, is_named, is_excluded)):
            has_role[role][rows, clusters[:, mentions]] = True
        return (has_role[0] & has_role[1] & ~has_role[2]).sum(axis=1)


def _is_agent(token: Token, verbs: frozenset[str]) -> bool:
    """Return whether a token is the subject of one of the verbs, or the agent in the passive ("attacked by them")."""
    governor = token.head
    if token.dep_ == "pobj" and governor.dep_ == "agent":
        governor = governor.head
    elif token.dep_ not in _AGENTS:
        return False
    return governor.lemma_.lower() in verbs


def _is_described(token: Token, words: frozenset[str]) -> bool:
    """Return whether a token or one of its modifiers is one of the words ("American forces", "president of Iraq")."""
    return bool(words) and any(word.lower_ in words for word in (token, *_modifiers(token)))


def _modifiers(token: Token) -> Iterable[Token]:
    for child in token.children:
        if child.dep_ in _MODIFIERS:
            yield child
        elif child.dep_ == "prep" and child.lower_ == "of":
            yield from (noun for noun in child.children if noun.dep_ == "pobj")
