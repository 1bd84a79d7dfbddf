"""What a fit learns from: examples that are read, or statistics of them that were collected before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

from spacy.training import Example

from ..calibration.grouped import Countable
from ..calibration.grouping.named import group_beside
from ..calibration.plan import lowest_taken
from ..calibration.token_fit import TokenData
from ..context.fit import FitWords
from ..context.tokens import FurtherScores
from ..doc.annotations import Annotation
from ..doc.gold import GoldSources
from ..doc.reading import TextWatch
from ..errors import calib_error
from ..expect.record import SeenTexts, TextUnits
from ..pairs.documents import TOKEN
from ..pairs.keyed import Key, draw_salt
from ..pairs.progress import UNREPORTED, Progress
from ..statistics.collected import FitStatistics
from ..types import Grouping, Groups
from .calibrating import CalibratingPipe
from .collecting import identity_of, read_words, restore_source, with_first
from .fit_data import FitData, collect_fit_data
from .settings import PipeSettings

if TYPE_CHECKING:
    from ..context.tokens import TokenContext

HERE = "the fit data"


@dataclass(frozen=True)
class FitArguments:
    """The arguments of `Calibrator.fit`, but for the examples.

    tag_counts (Mapping | None): Gold tag frequencies of the training data, for grouping; None counts them in the examples.
    span_counts (Mapping | None): The same for the labels of spans (entities). min_pairs (int): Fewer pairs in all are refused.
    counted_on (str): Where tag_counts come from, for `info`. n_bins (int): Adaptive bins of the errors in the fit table.
    max_unknown (float): A greater share of gold labels that the component does not know is refused.
    key (Key | None): Of statistics, without which forms and texts stay unknown; of examples, where two fits are to be equal to the byte: digests are salted
        with what is made of it. None draws a salt.
    progress (Progress): Reports how much of the fit is done, once the examples are read.
    """

    tag_counts: Mapping[str, int] | None = None
    _: KW_ONLY
    span_counts: Mapping[str, int] | None = None
    min_pairs: int = 1
    counted_on: str = HERE
    n_bins: int = 10
    max_unknown: float = 1.0
    key: Key | None = None
    progress: Progress = UNREPORTED


@dataclass(frozen=True, eq=False)
class Gathered:
    """What a fit learns from.

    settings (PipeSettings), arguments (FitArguments): Of the pipe, and of this fit.
    component (Any): What the source reads; None for a source that reads the Doc alone.
    annotation (Annotation), labels (tuple[str, ...]): What the source gives probabilities of.
    data (FitData): What the examples gave; of statistics, what their sample holds. tokens (TokenData): The tokens of data.
    texts (TextUnits | None), seen (SeenTexts | None): Digests of the examples, and those that are kept; of statistics the latter alone, with their key.
    counts (Mapping): Gold frequency of each label, for grouping. collected (FitStatistics | None): What it was gathered from, if not from examples.
    """

    settings: PipeSettings
    arguments: FitArguments
    component: Any
    annotation: Annotation
    labels: tuple[str, ...]
    data: FitData
    texts: TextUnits | None
    seen: SeenTexts | None
    tokens: TokenData
    counts: Mapping[str, int]
    collected: FitStatistics | None = None

    @property
    def context(self) -> TokenContext | None:
        """The prototype of the context; None without one, and for labels of documents, at which it does not look."""
        return self.settings.context if self.annotation.unit == TOKEN else None

    @property
    def counted(self) -> Countable | None:
        """The pairs of all tokens in cells, where the data holds a sample of them only; None where it holds all."""
        return None if self.collected is None or self.collected.sampled_all else self.collected.pairs

    def groups(self, grouping: Grouping) -> Groups:
        source = self.settings.source
        return group_beside(grouping, self.labels, self.counts, source.alone, source.frequency_label)


def gather(
    pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments, sources: Sequence[str] | None = None
) -> Gathered:
    """Read the examples. sources (Sequence[str] | None): Names of the sources of gold that predicted Docs may say; None takes every name.

    RAISES C021 to C024, C028, C033 to C035, C072, C264: the component. C030 to C032, C071, C164, C548, C549: the gold. C003, C005: too few pairs.
    """
    first, examples = with_first(examples)
    component = pipe.lookup.to_fit(None if first is None else first.predicted.vocab)
    annotation = pipe.source.annotation(component)
    watch = TextWatch(annotation)
    check_context(pipe, annotation)
    looks = (pipe.context or pipe.tokens.context) if annotation.unit == TOKEN else pipe.source.beside
    lowest = _lowest(pipe, annotation)
    numbers = GoldSources(pipe.name, sources)
    data = collect_fit_data(
        pipe.source,
        component,
        watch.over(examples),
        lowest,
        pipe.event,
        read_words(pipe, annotation) if looks else None,
        numbers,
    )
    texts, salt = watch.units(), draw_salt() if arguments.key is None else arguments.key.salt
    return _gathered(pipe, arguments, component, data, texts=texts, seen=SeenTexts.of(texts.digests, salt))


def gather_statistics(pipe: CalibratingPipe, statistics: FitStatistics, arguments: FitArguments) -> Gathered:
    """The same from statistics of any number of shards.

    Without their key a context does not look at forms and endings, and the fit does not know its texts again.
    RAISES C425: they are of another model, or other settings. C428: shards are missing. C432: a feature of the context was not collected.
    C481: the key is another one than theirs. And see `gather`.
    """
    statistics.check_complete()
    identity, key = statistics.identity, arguments.key
    statistics.check_key(key)
    restore_source(pipe.source, identity)
    component = pipe.lookup.to_fit()
    annotation = pipe.source.annotation(component)
    check_context(pipe, annotation)
    own = identity_of(pipe, component, identity.sample, reading=identity.reading)
    own = replace(own, features=identity.features, key=identity.key)
    identity.check_same(own, statistics.name, "the pipeline")
    readings = statistics.sample.readings.above(_lowest(pipe, annotation))
    context = pipe.context if annotation.unit == TOKEN else None
    if context is None and (annotation.unit == TOKEN or not pipe.source.beside):
        readings = replace(readings, words=None)
    for feature in () if context is None else context.functions:
        if feature.registered not in identity.features:
            raise calib_error("C432", name=feature.registered)
    if key is not None and readings.words is not None:
        readings = replace(readings, words=readings.words.shown(key))
    data = FitData.of(pipe.source, component, readings, statistics.totals)
    seen = None if key is None else SeenTexts(statistics.texts, key.salt)
    return _gathered(pipe, arguments, component, data, seen=seen, collected=statistics)


def _gathered(
    pipe: CalibratingPipe, arguments: FitArguments, component: Any, data: FitData, *,
    texts: TextUnits | None = None, seen: SeenTexts | None, collected: FitStatistics | None = None,
) -> Gathered:  # fmt: skip
    """Checked, with what follows from the data."""
    annotation, labels = pipe.source.annotation(component), pipe.source.labels(component)
    name = pipe.source.component or "the source"
    # Identities are of no scheme, of which the gold could have another.
    most = 1.0 if annotation.spans_are_units else arguments.max_unknown
    data.check(annotation.gold.name, name, pipe.threshold, arguments.min_pairs, most, pipe.source.span_labels(component))
    words = None
    if data.words is not None:  # without a key they are hidden, and so have no salt
        words = FitWords(data.words, "" if seen is None else seen.salt, shown=seen is not None)
    return Gathered(
        settings=pipe,
        arguments=arguments,
        component=component,
        annotation=annotation,
        labels=labels,
        data=data,
        texts=texts,
        seen=seen,
        tokens=TokenData(
            data.pairs, data.gold, data.documents, len(labels), pipe.threshold, data.unjudged, words, annotation.unit
        ),
        counts=_counts(annotation, labels, data, arguments),
        collected=collected,
    )


def _counts(annotation: Annotation, labels: Sequence[str], data: FitData, arguments: FitArguments) -> dict[str, int]:
    """Those given, but for labels of another scheme, where that is no fault."""
    given = arguments.tag_counts
    foreign = annotation.any_label and set(labels).isdisjoint(given or ())
    return dict(data.counts if given is None or foreign else given)


def check_context(settings: PipeSettings, annotation: Annotation) -> None:
    """RAISES C264: a context is asked for that could not look at what is calibrated. C741: it is what a fit learns of further scores."""
    if isinstance(settings.context, FurtherScores):
        raise calib_error("C741")
    if annotation.unit != TOKEN and settings.context is not None and settings.context.when == "always":
        raise calib_error("C264", setting="context", component=settings.source.component or "the source")


def _lowest(settings: PipeSettings, annotation: Annotation) -> float:
    """Scores below it take no part in a fit.

    RAISES C072: a setting that is about the one right tag of a token. C287: one that needs the scores of all its tags.
    """
    if not of_one_tag(settings, annotation):
        for name in ("scaling", "sets", "normalize"):
            if getattr(settings, name) and annotation.overlapping:
                raise calib_error("C072", setting=name, layer=annotation.gold.name, unit=annotation.unit)
            if getattr(settings, name):
                raise calib_error("C287", setting=name, where=settings.source.component or "the source")
        return settings.threshold
    return lowest_taken(settings)


def of_one_tag(settings: PipeSettings, annotation: Annotation) -> bool:
    """Whether a token has one right tag, and scores of all that it may be."""
    return settings.source.distributions and not annotation.overlapping


def may_differ(settings: PipeSettings, annotation: Annotation) -> bool:
    """Whether conventions are looked for: each token has one right tag."""
    return of_one_tag(settings, annotation) and annotation.unit == TOKEN and not annotation.spans_are_units
