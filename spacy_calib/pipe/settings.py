"""The settings of a calib pipe, each declared once, and factories built from settings."""

# No `from __future__ import annotations` here: confection reads the types of the fields, and before 3.8.12 cannot resolve strings.
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from ..doc.attributes import DEFAULT_ATTR, check_attr

if TYPE_CHECKING:
    from ..calibration.recalibrators.base import Recalibrator
    from ..calibration.scaling import Scaling
    from ..calibration.selector import Selector
    from ..calibration.tag_offsets import TagOffsets
    from ..context.tokens import TokenContext
    from ..sources.base import Source
else:  # importing these classes would make every `Language()` slow
    Selector = Recalibrator = Scaling = TagOffsets = TokenContext = Source = Any


def block(registry: str, function_name: str, **settings: Any) -> Any:
    """Declare a setting that is a block of a config. function_name (str): Registered function that makes it by default."""
    return field(metadata={"registry": registry, "default": {registry: function_name, **settings}})


def block_or_none(registry: str, function_name: str | None = None) -> Any:
    """Declare a setting that is a block of a config or None; outside of configs the default is None."""
    return field(default=None, metadata={"registry": registry, "default": function_name and {registry: function_name}})


@dataclass(eq=False, repr=False, kw_only=True)
class PipeSettings:
    """Settings of a calib pipe.

    attr (str): Prefix of the attributes that it writes.
    threshold (float): Marginals below it are ignored, in [0, 1).
    normalize (bool | str): True rescales a token's calibrated scores above the threshold so that they sum to 1; "other" leaves
        room for the calibrated probability that the right tag is none of them.
    token_scores (bool): Whether a pipe of entities also writes Token._.<attr>_score, _raw and _scores; other pipes always do.
    event (str): When a span (entity) counts as right: exact (tokens and label), article (the same except for a leading a, an or
        the), type (label of every token), overlap (of at least one).
    source (Source): Source of the marginals.
    grouping (Callable): (labels, tag counts) -> Groups.
    scaling (Scaling | None): Prototype of the step that reweights the tags of a token before the threshold; None leaves it out.
    recalibrator (Recalibrator): Prototype, cloned for every group.
    pooling (TagOffsets | None): Prototype of corrections per tag after the recalibrators of the groups; None leaves them out.
    selection (Selector | None): Chooses scaling, context, grouping and recalibrator by cross-validation in the fit.
    context (TokenContext | None): Prototype of the step that adjusts scores by the rest of the Doc; None leaves it out.
    sets (ConformalSets | None): Prototype of sets of tags that include the right one with a chosen probability, or None.
    scorer (Callable | None): Called by `nlp.evaluate`.
    RAISES C001: a setting out of range. C112: a prefix that spaCy needs itself.
    """

    attr: str = DEFAULT_ATTR
    threshold: float = 0.01
    normalize: bool | str = False
    token_scores: bool = False
    event: str = "exact"
    source: Source = block("@calib_sources", "spacy-calib.Softmax.v1", component="tagger")
    grouping: Callable[..., Any] = block("@calib_groupings", "spacy-calib.TFG.v1", n_groups=5)
    scaling: Scaling | None = block_or_none("@calib_scalings")
    recalibrator: Recalibrator = block("@calib_recalibrators", "spacy-calib.Isotonic.v1")
    pooling: TagOffsets | None = block_or_none("@calib_poolings")
    selection: Selector | None = block_or_none("@calib_selections")
    context: TokenContext | None = block_or_none("@calib_contexts")
    scorer: Callable[..., dict[str, Any]] | None = block_or_none("@scorers", "spacy-calib.Scorer.v1")

    def __post_init__(self) -> None:
        from ..annotations.span_events import check_event
        from ..pairs.build import check_threshold

        check_attr(self.attr)
        self.threshold = check_threshold(self.threshold)
        check_event(self.event)


# Setting that is a block of a config or null -> key of the block that names its registered function.
BLOCKS: dict[str, str] = {item.name: item.metadata["registry"] for item in fields(PipeSettings) if "registry" in item.metadata}


def default_config(settings: type) -> dict[str, Any]:
    """Return the fields of a dataclass with their defaults in a config, except fields without a default."""
    defaults = {setting.name: setting.metadata.get("default", setting.default) for setting in fields(settings)}
    return {name: value for name, value in defaults.items() if value is not MISSING}


def component_factory(name: str, where: str, settings: type, **meta: Any) -> Callable[..., Any]:
    """Register a factory with spaCy. Its signature consists of the settings, and configs are checked against it.

    where (str): "module:class" of this package, called with (nlp, name, **settings). It is imported when the first component is
        built: every `Language()` imports the factories, and must not import what they build.
    settings (type): A dataclass. meta: Arguments of `Language.factory`.
    """
    module, _, made_by = where.partition(":")

    def make(nlp: Language, name: str, **settings: Any) -> Any:
        return getattr(import_module(module, __package__.partition(".")[0]), made_by)(nlp, name, **settings)

    types = {setting.name: setting.type for setting in fields(settings)}
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in types.items()]
    first_parameters = list(Signature.from_callable(make).parameters.values())[:2]
    make.__signature__ = Signature([*first_parameters, *parameters])  # type: ignore[attr-defined]
    make.__annotations__ = {"nlp": Language, "name": str, **types}
    return Language.factory(name, default_config=default_config(settings), **meta)(make)
