"""Examples -> the scored corpus of a calib pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...pairs.documents import TOKEN
from .examples import Pass, read_through
from .gold import FirstDoc

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator


def pipes_to_run(nlp: Language, pipe: Calibrator, sentences: bool = False) -> list[str]:
    """The names of the pipes up to the calib pipe. Where sentences are wanted, and the first pipe that sets them stands behind it, up to that one."""
    order = nlp.pipe_names
    last = order.index(pipe.name)
    if sentences:
        setters = [
            i for i, name in enumerate(order) if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)
        ]
        last = max(last, min(setters, default=last))
    return order[: last + 1]


# Rows of a block, at least: about 50 MB of tokens.
BLOCK = 1 << 18
ONE_PASS = Pass()


def score(
    nlp: Language,
    pipe: Calibrator,
    examples: Iterable[Example],
    how: Pass = ONE_PASS,
    *,
    sentences: bool = False,
) -> ScoredCorpus:
    """Run the pipeline over the examples and keep what the calib pipe says; the Docs are let go.

    sentences (bool): Whether the pipes that find sentences have to run too. RAISES C075: no token got a score.
    """
    (corpus,) = score_blocks(nlp, pipe, examples, how, sentences=sentences, one=True)
    return corpus


def score_blocks(
    nlp: Language,
    pipe: Calibrator,
    examples: Iterable[Example],
    how: Pass = ONE_PASS,
    *,
    sentences: bool = False,
    one: bool = False,
) -> Iterator[ScoredCorpus]:
    """As `score`, but as corpora of some texts after the others, so that no more than one of them is held. Of gold there is one.

    one (bool): Whether all are to be one block.
    RAISES C075: no token got a score.
    """
    from ...doc.annotations import get_annotation
    from ...doc.collect import Collector

    annotation = get_annotation(pipe.fit_info.layer)
    names = pipes_to_run(nlp, pipe, sentences and annotation.unit == TOKEN)
    first = FirstDoc(nlp, pipe)

    collector, scored, n_blocks = Collector(pipe.attr, annotation, pipe.lookup.labels()), False, 0
    for _ in read_through(nlp, examples, names, lambda some: collector.add(first.over(some)), how):
        if collector.n_rows >= BLOCK and not (how.gold or one):
            corpus = collector.take()
            scored, n_blocks = scored or bool(corpus.counted.any()), n_blocks + 1
            yield corpus
    if collector.n_docs or not n_blocks:
        corpus = collector.take()
        scored = scored or bool(corpus.counted.any())
        if scored:
            yield corpus
    if not scored:
        raise first.silent()
