"""Gold entities by tokens of the predicted Docs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from spacy.training import Example

from ..annotations import Annotation, get_annotation
from ..calibration.missed import EntityTokens, GoldEntities
from ..errors import calib_error
from ..pairs.scored_corpus import ScoredCorpus
from ..types import OUTSIDE

if TYPE_CHECKING:
    from .calibrating import CalibratingPipe


def entity_tokens(pipe: CalibratingPipe, examples: Sequence[Example], corpus: ScoredCorpus) -> EntityTokens:
    """Return the tokens of gold examples with their entities, for recall cut-offs. RAISES C308: the pipe gives no P(O)."""
    labels = pipe.lookup.labels()
    if OUTSIDE not in labels or not pipe.source.distributions:
        raise calib_error("C308", name=pipe.name, component=pipe.source.component or "the source")
    annotation = get_annotation(pipe.fit_info.layer)
    return EntityTokens.from_corpus(
        corpus, labels, annotation.has_prefixes, pipe.threshold, gold_entities(examples, annotation)
    )


def gold_entities(examples: Iterable[Example], annotation: Annotation) -> GoldEntities:
    """Return the gold entities (or spans) by predicted token, numbered across Docs; those without a token are left out."""
    starts, ends, labels, first = [], [], [], 0
    for example in examples:
        alignment = example.alignment.y2x
        for span in annotation.gold.spans_on(example.reference):
            tokens = alignment[span.start : span.end]
            if len(tokens):
                starts.append(first + int(tokens.min()))
                ends.append(first + int(tokens.max()) + 1)
                labels.append(span.label_)
        first += len(example.predicted)
    return GoldEntities(np.array(starts, dtype=np.intp), np.array(ends, dtype=np.intp), labels)
