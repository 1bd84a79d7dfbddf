"""Examples -> the scored corpus of a calib pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...pairs.documents import TOKEN
from .examples import run_pipes
from .gold import nothing_scored

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ...corpus.scored import ScoredCorpus
    from ...doc.annotations import Annotation
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


def score(
    nlp: Language,
    pipe: Calibrator,
    examples: Iterable[Example],
    *,
    sentences: bool = False,
    n_process: int = 1,
    silent: bool = True,
    what: str = "Scoring",
) -> ScoredCorpus:
    """Run the pipeline over the examples and keep what the calib pipe says; the Docs are let go one by one.

    sentences (bool): Whether the pipes that find sentences have to run too.
    RAISES C075: no token got a score.
    """
    from ...doc.annotations import get_annotation
    from ...doc.collect import scored_corpus

    annotation = get_annotation(pipe.fit_info.layer)
    names = pipes_to_run(nlp, pipe, sentences and annotation.unit == TOKEN)
    done = run_pipes(nlp, examples, names, silent=silent, what=what, n_process=n_process)
    first: list[Doc] = []
    corpus = scored_corpus(keep_one(done, first, annotation), pipe.attr, annotation, pipe.lookup.labels())
    if not corpus.counted.any():
        raise nothing_scored(nlp, pipe, corpus.n_docs, first)
    return corpus


def keep_one(examples: Iterable[Example], kept: list[Doc], annotation: Annotation) -> Iterator[Example]:
    """Pass the examples on, and put the first predicted Doc that the pipe ought to have scored into `kept`."""
    for example in examples:
        if not kept and annotation.n_units(example.predicted) > annotation.first:
            kept.append(example.predicted)
        yield example
