"""Settings and spaCy factories of the pipes here. Every `Language()` imports this module: it must be fast and never fail."""

# No `from __future__ import annotations` here: confection reads the types of fields and the annotations of a factory, and
# before spaCy 3.8.12 it cannot resolve strings.
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.pipeline.dep_parser import DEFAULT_PARSER_MODEL
from spacy.pipeline.ner import DEFAULT_NER_MODEL

from ..doc.attributes import DEFAULT_ATTR, ENTITY_ATTR, check_attr

if TYPE_CHECKING:
    from ..calibration.recalibrators.recalibrator import Recalibrator
    from ..calibration.scaling import Scaling
    from ..calibration.selector import Selector
    from ..context.tokens import TokenContext
    from ..sources.source import Source
else:  # importing these classes would make every `Language()` slow
    Selector = Recalibrator = Scaling = TokenContext = Source = Any


def block(registry: str, function_name: str, **settings: Any) -> Any:
    """Declare a dataclass field whose value in a config is a block; the default is {registry: function_name, **settings}."""
    return field(metadata={"registry": registry, "default": {registry: function_name, **settings}})


def block_or_none(registry: str, function_name: str | None = None) -> Any:
    """Declare a dataclass field, a config block or None; default: {registry: function_name} in configs, None elsewhere."""
    return field(default=None, metadata={"registry": registry, "default": function_name and {registry: function_name}})


@dataclass(eq=False, repr=False, kw_only=True)
class PipeSettings:
    """Settings of a calib pipe. A prototype is an unfitted step, which a fit clones.

    attr (str): Prefix of the attributes that the pipe writes. threshold (float): Probabilities below it are ignored, in [0, 1).
    normalize (bool): Whether a token's calibrated scores above the threshold are rescaled so that they sum to 1.
    token_scores (bool): Whether a pipe of entities also writes Token._.<attr>_score, _raw and _scores; other pipes always do.
    score_name (str | None): A name by which other tools read scores: Token._.<score_name> and Span._.<score_name> read
        <attr>_score, and `doc.spans[score_name]` has the scored spans, their scores in `attrs["scores"]`; None: neither.
    event (str): When a span (entity) counts as right: exact (tokens and label), article (the same except for a leading a, an or
        the), type (label of every token), overlap (of at least one).
    source (Source): Reads the probabilities of a component. grouping (Callable): (labels, tag counts) -> Groups.
    scaling (Scaling | None): Prototype of the step that reweights a token's tags before the threshold; None leaves it out.
    recalibrator (Recalibrator): Prototype, cloned for every group.
    tag_offsets (bool): Whether each tag gets a correction of its own after the recalibrator of its group.
    selection (dict | None): Arguments of `make_selector`, which chooses scaling, context, grouping and recalibrator by
        cross-validation in the fit; None uses the settings as they are.
    context (TokenContext | None): Prototype of the step that adjusts scores by the rest of the Doc; None leaves it out.
    scorer (Callable | None): Called by `nlp.evaluate`. RAISES C001: a setting out of range. C112: a prefix that spaCy needs.
    """

    attr: str = DEFAULT_ATTR
    threshold: float = 0.01
    normalize: bool = False
    token_scores: bool = False
    score_name: str | None = None
    event: str = "exact"
    source: Source = block("@calib_sources", "spacy-calib.Softmax.v1", component="tagger")
    grouping: Callable[..., Any] = block("@calib_groupings", "spacy-calib.TFG.v1", n_groups=5)
    scaling: Scaling | None = block_or_none("@calib_scalings")
    recalibrator: Recalibrator = block("@calib_recalibrators", "spacy-calib.Isotonic.v1")
    tag_offsets: bool = False
    selection: dict[str, Any] | None = None
    context: TokenContext | None = block_or_none("@calib_contexts")
    scorer: Callable[..., dict[str, Any]] | None = block_or_none("@scorers", "spacy-calib.Scorer.v1")

    def __post_init__(self) -> None:
        from ..annotations.span_events import check_event
        from ..pairs.scores import check_threshold

        check_attr(self.attr)
        self.threshold = check_threshold(self.threshold)
        check_event(self.event)
        self.selector: Selector | None = None
        if self.selection is not None:
            from ..calibration.selector import make_selector

            self.selector = make_selector(**self.selection)


# Setting that is a block of a config or null -> key of the block that names its registered function.
BLOCKS: dict[str, str] = {item.name: item.metadata["registry"] for item in fields(PipeSettings) if "registry" in item.metadata}


def default_config(settings: type) -> dict[str, Any]:
    """Return field -> its default in a config, for the fields of a settings dataclass that have one."""
    defaults = {setting.name: setting.metadata.get("default", setting.default) for setting in fields(settings)}
    return {name: value for name, value in defaults.items() if value is not MISSING}


def component_factory(name: str, where: str, settings: type, **meta: Any) -> Callable[..., Any]:
    """Register a component factory with spaCy, and return it. spaCy checks configs against its signature, made of the settings.

    where (str): "module:class" (or function) of this package, called with (nlp, name, **settings). It is imported only when a
        component is built, as every `Language()` imports the factories and must stay fast.
    settings (type): A dataclass whose fields are the settings. meta: Further arguments of `Language.factory`.
    """
    module, _, class_name = where.partition(":")

    def make(nlp: Language, name: str, **settings: Any) -> Any:
        return getattr(import_module(module, __package__.partition(".")[0]), class_name)(nlp, name, **settings)

    types = {setting.name: setting.type for setting in fields(settings)}
    parameters = [Parameter(setting, Parameter.KEYWORD_ONLY, annotation=kind) for setting, kind in types.items()]
    first_parameters = list(Signature.from_callable(make).parameters.values())[:2]  # nlp, name
    # spaCy reads the settings and their types from the signature, which **settings hides.
    make.__signature__ = Signature([*first_parameters, *parameters])  # type: ignore[attr-defined]
    make.__annotations__ = {"nlp": Language, "name": str, **types}
    return Language.factory(name, default_config=default_config(settings), **meta)(make)


DEFAULT_CONFIG = default_config(PipeSettings)
_TOKEN = [f"token._.{DEFAULT_ATTR}_{name}" for name in ("score", "raw", "scores")]
_SPAN, _ENTITY = ([f"span._.{attr}_{name}" for name in ("score", "raw", "accept")] for attr in (DEFAULT_ATTR, ENTITY_ATTR))
_CALIB = ".pipe.component:Calibrator"
make_calib = component_factory(DEFAULT_ATTR, _CALIB, PipeSettings, assigns=["doc._.calib", *_TOKEN, *_SPAN])


@dataclass(eq=False, repr=False, kw_only=True)
class EntityPipeSettings(PipeSettings):
    """Settings of a calib pipe of the entities of `ner`."""

    attr: str = ENTITY_ATTR
    source: Source = block("@calib_sources", "spacy-calib.Ner.v1", component="ner")


make_calib_ent = component_factory(ENTITY_ATTR, _CALIB, EntityPipeSettings, assigns=_ENTITY, requires=["doc.ents"])


# The settings of spaCy's own factories: a saved config differs only by the name of the factory.
@dataclass(kw_only=True)
class NerSettings:
    """Settings of spaCy's `ner`."""

    model: Any = field(metadata={"default": DEFAULT_NER_MODEL})
    moves: Any | None = None
    update_with_oracle_cut_size: int = 100
    incorrect_spans_key: str | None = None
    scorer: Callable[..., dict[str, Any]] | None = block_or_none("@scorers", "spacy.ner_scorer.v1")


@dataclass(kw_only=True)
class BeamNerSettings(NerSettings):
    """Settings of spaCy's `beam_ner`."""

    beam_width: int = 32
    beam_density: float = 0.01
    beam_update_prob: float = 0.5


@dataclass(kw_only=True)
class ParserSettings:
    """Settings of spaCy's `parser`."""

    model: Any = field(metadata={"default": DEFAULT_PARSER_MODEL})
    moves: Any | None = None
    update_with_oracle_cut_size: int = 100
    learn_tokens: bool = False
    min_action_freq: int = 30
    scorer: Callable[..., dict[str, Any]] | None = block_or_none("@scorers", "spacy.parser_scorer.v1")


_NER_META: dict[str, Any] = {
    "assigns": ["doc.ents", "token.ent_iob", "token.ent_type"],
    "default_score_weights": {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
}
_PARSER_META: dict[str, Any] = {
    "assigns": ["token.dep", "token.head", "token.is_sent_start", "doc.sents"],
    "default_score_weights": {
        "dep_uas": 0.5, "dep_las": 0.5, "dep_las_per_type": None, "sents_p": None, "sents_r": None, "sents_f": 0.0,
    },
}  # fmt: skip
_NER, _PARSER = ".sources.ner.source:make_recognizer", ".sources.parser.source:make_parser"
make_calib_ner = component_factory("calib_ner", _NER, NerSettings, **_NER_META)
make_calib_beam_ner = component_factory("calib_beam_ner", _NER, BeamNerSettings, **_NER_META)
make_calib_parser = component_factory("calib_parser", _PARSER, ParserSettings, **_PARSER_META)
