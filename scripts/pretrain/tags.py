"""Pretrained calibrations of tags: fits with one source left out, and what they reach on sources that they did not see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from frame import say
from pretrain.sources import Source, accept_compatible, to_examples
from spacy.training import Example

from spacy_calib.calibration.adaptation.adaptation import GoldEntries
from spacy_calib.calibration.steps import Predictions, apply_steps
from spacy_calib.gold.reading import from_files
from spacy_calib.pipe.component import Calibrator
from spacy_calib.pipe.fitting import FitArguments, map_labels, read_fit_inputs
from spacy_calib.types import Floats, Groups

# Halfway from the context to a line, and no map after it: what a selection chose on the pooled sources.
SETTINGS = {
    "attr": "calib",
    "recalibrator": {"@calib_recalibrators": "spacy-calib.Identity.v1"},
    "context": {"@calib_contexts": "spacy-calib.Context.v1", "when": "always", "shrink": 0.5},
}

# Of parts of speech: sources agree on these, and on each one left out the whole context had the lower log loss.
WHOLE_CONTEXT = {"@calib_contexts": "spacy-calib.Context.v1", "when": "always"}


def settings_of(component: str, by: str = "") -> dict[str, Any]:
    """by (str): "pos" for parts of speech alone."""
    if by:
        source = {"@calib_sources": "spacy-calib.Pos.v1", "component": component}
        return {**SETTINGS, "attr": "calib_pos", "context": WHOLE_CONTEXT, "source": source}
    return {**SETTINGS, "source": {"@calib_sources": "spacy-calib.Softmax.v1", "component": component}}


@dataclass(frozen=True, eq=False)
class JudgedTags:
    """The pairs of one source. entries (GoldEntries): With calibrated scores. raw (Floats): Theirs. labels: Of the tags."""

    entries: GoldEntries
    raw: Floats
    labels: tuple[str, ...]
    groups: Groups

    @property
    def top(self) -> Any:
        return np.flatnonzero(self.entries.is_top)

    @property
    def names(self) -> list[str]:
        """The top label of each token."""
        return [self.labels[tag] for tag in self.entries.tags[self.top].tolist()]


class TagStudy:
    """A component of one pipeline, and the examples of each source.

    sampled (Mapping): Name of a source that is fitted on -> examples, as many tokens of each. annotated (Mapping): Name of a
    source with other guidelines -> all its examples with the gold as it is.
    """

    def __init__(self, nlp: Any, component: str, sources: Sequence[Source], by: str = ""):
        self.nlp, self.component, self.sources, self.by = nlp, component, sources, by
        fitted = [source for source in sources if source.fitted]
        sizes = [sum(len(s.words) for document in source.read() for s in document) for source in fitted]
        self.n_tokens = min(sizes)
        other_names = [source.name for source in sources if source.other_guidelines]
        self.sampled = {source.name: self._examples(source, source.sample(self.n_tokens)) for source in fitted}
        self.whole = {source.name: self._examples(source, source.read()) for source in sources}
        self.annotated = {name: self.whole[name] for name in other_names}
        for examples in (self.sampled, self.whole):
            examples |= {name: accept_compatible(examples[name]) for name in other_names if name in examples}

    def _examples(self, source: Source, documents: Any) -> list[Example]:
        say(f"{self.component} in {source.name}")
        return list(to_examples(self.nlp, documents, source.size))

    def fit(
        self, left_out: str | None = None, table: Mapping[str, str] | None = None, only_source: str | None = None
    ) -> Calibrator:
        """Fit on all sources but one, or on one alone. table (Mapping | None): Labels without gold -> ""."""
        say(f"Fit of {self.component} without {left_out}")
        pipe = self.blank()
        map_labels(pipe, dict(table) if table else None)
        names = [name for name in self.sampled if name != left_out and only_source in (None, name)]
        return pipe.fit(from_files(self.sampled[name] for name in names))

    def blank(self) -> Calibrator:
        """A pipe that is not fitted, in the place of the last one; it does not run in the pipeline."""
        if "calib" in self.nlp.component_names:
            self.nlp.remove_pipe("calib")
        pipe: Any = self.nlp.add_pipe("calib", config=settings_of(self.component, self.by), after=self.component)
        self.nlp.disable_pipe("calib")
        return pipe

    def judge(self, pipe: Calibrator, name: str, exact: bool = False) -> JudgedTags:
        """What a fitted pipe makes of one source. exact (bool): Whether every feature of its gold has to be that of the prediction."""
        inputs = read_fit_inputs(pipe, (self.annotated if exact else self.whole)[name], FitArguments())
        pairs, steps = inputs.data.pairs, pipe.tokens.steps
        predictions = apply_steps(steps, Predictions.of_pairs(pairs, pipe.threshold, inputs.data.words))
        rows = np.flatnonzero(pairs.scores >= pipe.threshold)
        entries = GoldEntries(
            predictions.scores, pairs.hits[rows], predictions.is_top, pairs.tags[rows], inputs.data.documents[rows]
        )
        assert pipe.groups is not None
        return JudgedTags(entries, pairs.scores[rows], inputs.source.labels, pipe.groups)

    def gold_counts(self) -> Counter[str]:
        """Gold frequency of each label in what is fitted on."""
        source, pipe = self.blank().source, self.nlp.get_pipe(self.component)
        return sum(
            (source.count_gold(pipe, (eg.reference for eg in examples)) for examples in self.sampled.values()), Counter()
        )
