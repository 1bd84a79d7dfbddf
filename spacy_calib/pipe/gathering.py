"""What a fit learns from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from typing import Any

from spacy.language import Language
from spacy.training import Example

from ..calibration.choice import lowest_taken
from ..calibration.grouping.named import group_beside
from ..calibration.token_fit import TokenData
from ..context.fit import FitWords
from ..context.surroundings import FromDocs
from ..context.tokens import FurtherScores, TokenContext
from ..context.words import Words
from ..doc.annotations import Annotation
from ..doc.reading import TextWatch
from ..doc.words import words_of
from ..errors import calib_error
from ..expect.record import SeenTexts, TextUnits
from ..pairs.documents import TOKEN
from ..pairs.keyed import draw_salt
from ..pairs.progress import UNREPORTED, Progress
from ..types import Grouping, Groups
from .calibrating import CalibratingPipe
from .fit_data import FitData, collect_fit_data
from .settings import PipeSettings

HERE = "the fit data"


@dataclass(frozen=True)
class FitArguments:
    """The arguments of `Calibrator.fit`, but for the examples.

    tag_counts (Mapping | None): Gold tag frequencies of the training data, for grouping; None counts them in the examples.
    span_counts (Mapping | None): The same for the labels of spans (entities). min_pairs (int): Fewer pairs in all are refused.
    counted_on (str): Where tag_counts come from, for `info`. n_bins (int): Adaptive bins of the errors in the fit table.
    max_unknown (float): A greater share of gold labels that the component does not know is refused.
    progress (Progress): Reports how much of the fit is done, once the examples are read.
    """

    tag_counts: Mapping[str, int] | None = None
    _: KW_ONLY
    span_counts: Mapping[str, int] | None = None
    min_pairs: int = 1
    counted_on: str = HERE
    n_bins: int = 10
    max_unknown: float = 1.0
    progress: Progress = UNREPORTED


@dataclass(frozen=True, eq=False)
class Gathered:
    """What a fit learns from.

    settings (PipeSettings), arguments (FitArguments): Of the pipe, and of this fit.
    component (Any): What the source reads; None for a source that reads the Doc alone.
    annotation (Annotation), labels (tuple[str, ...]): What the source gives probabilities of.
    data (FitData): What the examples gave. tokens (TokenData): The tokens of data.
    texts (TextUnits), seen (SeenTexts): Digests of the examples, and those that are kept.
    counts (Mapping): Gold frequency of each label, for grouping.
    """

    settings: PipeSettings
    arguments: FitArguments
    component: Any
    annotation: Annotation
    labels: tuple[str, ...]
    data: FitData
    texts: TextUnits
    seen: SeenTexts
    tokens: TokenData
    counts: Mapping[str, int]

    @property
    def context(self) -> TokenContext | None:
        """The prototype of the context; None without one, and for labels of documents, at which it does not look."""
        return self.settings.context if self.annotation.unit == TOKEN else None

    def groups(self, grouping: Grouping) -> Groups:
        source = self.settings.source
        return group_beside(grouping, self.labels, self.counts, source.alone, source.frequency_label)


def gather(pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments) -> Gathered:
    """Read the examples.

    RAISES C021 to C024, C028, C033 to C035, C072, C264: the component. C030 to C032, C071, C164: the gold. C003, C005: too
        few pairs.
    """
    first, examples = with_first(examples)
    component = pipe.lookup.to_fit(None if first is None else first.predicted.vocab)
    annotation = pipe.source.annotation(component)
    watch = TextWatch(annotation)
    check_context(pipe, annotation)
    looks = (pipe.context or pipe.tokens.context) if annotation.unit == TOKEN else pipe.source.beside
    lowest = _lowest(pipe, annotation)
    data = collect_fit_data(
        pipe.source,
        component,
        watch.over(examples),
        lowest,
        pipe.event,
        read_words(pipe, annotation) if looks else None,
    )
    texts, salt = watch.units(), draw_salt()
    labels, name = pipe.source.labels(component), pipe.source.component or "the source"
    # Identities are of no scheme, of which the gold could have another.
    most = 1.0 if annotation.spans_are_units else arguments.max_unknown
    data.check(annotation.gold.name, name, pipe.threshold, arguments.min_pairs, most, pipe.source.span_labels(component))
    words = None if data.words is None else FitWords(data.words, salt)
    return Gathered(
        settings=pipe,
        arguments=arguments,
        component=component,
        annotation=annotation,
        labels=labels,
        data=data,
        texts=texts,
        seen=SeenTexts.from_units(texts, salt),
        tokens=TokenData(
            data.pairs, data.gold, data.documents, len(labels), pipe.threshold, data.unjudged, words, annotation.unit
        ),
        counts=_counts(annotation, labels, data, arguments),
    )


def _counts(annotation: Annotation, labels: Sequence[str], data: FitData, arguments: FitArguments) -> dict[str, int]:
    """Those given, but for labels of another scheme, where that is no fault."""
    given = arguments.tag_counts
    foreign = annotation.any_label and set(labels).isdisjoint(given or ())
    return dict(data.counts if given is None or foreign else given)


def read_words(pipe: CalibratingPipe, annotation: Annotation) -> Any:
    """What a context is to know of tokens, whether the pipe has one or not; of documents, where the source has further scores of them."""
    if annotation.unit != TOKEN:
        return (lambda docs: Words.of_documents(len(docs))) if pipe.source.beside else None
    context = pipe.context or pipe.tokens.context
    functions = () if context is None else functions_in(pipe.lookup.nlp, context)
    return partial(words_of, functions=functions, first=annotation.first)


def functions_in(nlp: Language, context: Any) -> Sequence[FromDocs]:
    """The features of a context that ask Docs. A context that looks at other components (`functions_in`) gets the pipeline."""
    bind = getattr(context, "functions_in", None)
    return context.functions if bind is None else bind(nlp)


def with_first(examples: Iterable[Example]) -> tuple[Example | None, Iterable[Example]]:
    """(the first example, all of them)."""
    rest: Iterator[Example] = iter(examples)
    first = next(rest, None)
    return first, rest if first is None else chain([first], rest)


def check_context(settings: PipeSettings, annotation: Annotation) -> None:
    """RAISES C264: a context is asked for that could not look at what is calibrated. C741, C838: it is what is learned, and no setting."""
    if isinstance(settings.context, FurtherScores):
        raise calib_error("C741")
    if settings.context is not None and not isinstance(settings.context, TokenContext):
        raise calib_error("C838", given=getattr(settings.context, "registered", type(settings.context).__name__))
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
