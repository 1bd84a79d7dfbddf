"""Which pipes have to run for what is counted: a parser is most of the work of a pipeline, and a label of entities has no use for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.language import Language

    from ...doc.queries.base import Query
    from ...pipe.component import Calibrator

# Factories whose pipes set nothing but annotations of their own, and read the words and what they listen to. (A calib pipe reads its component too.)
_ALONE = frozenset(
    [
        "tok2vec",
        "tagger",
        "morphologizer",
        "senter",
        "parser",
        "ner",
        "spancat",
        "spancat_singlelabel",
        "textcat",
        "textcat_multilabel",
        "calib",
        "calib_ner",
    ]
)
# Those that read all that stands before them, and set nothing that a calib pipe scores; a ruler may change tags, but no entities.
_READERS = frozenset({"lemmatizer", "calib_coref"})
_RULER = "attribute_ruler"


def pipes_for(nlp: Language, pipes: Sequence[Calibrator], queries: Sequence[Query]) -> list[str]:
    """The names of the pipes that have to run, in their order: all where a query asks for more than scores and words, or a pipe is not known."""
    names = nlp.pipe_names
    if not pipes or not all(query.of_scores for query in queries):
        return names
    from ...doc.annotations import plain_name

    of_entities = all(plain_name(pipe.fit_info.layer) in ("ner", "biluo") for pipe in pipes)
    idle = _ALONE | _READERS | ({_RULER} if of_entities else set())
    wanted = {name for pipe in pipes for name in (pipe.name, pipe.source.component)}
    factories = {name: nlp.get_pipe_meta(name).factory for name in names}
    for place in reversed(range(len(names))):
        name = names[place]
        if name not in wanted and factories[name] in idle:
            continue
        before = names[:place]
        if factories[name] in _ALONE:
            before = [other for other in before if name in getattr(nlp.get_pipe(other), "listening_components", ())]
        wanted.update((name, *before))
    return [name for name in names if name in wanted]
