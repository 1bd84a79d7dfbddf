"""The factories of pipes, recognizers and parsers. Every `Language()` imports this module: it must be light and never fail."""

# No `from __future__ import annotations` here: confection reads the annotations of a factory, and before spaCy 3.8.12 it cannot
# resolve strings.
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.pipeline.dep_parser import DEFAULT_PARSER_MODEL
from spacy.pipeline.ner import DEFAULT_NER_MODEL

from .. import registry as _registry  # noqa: F401  (creates the registries that the config names)
from ..doc.attributes import ENTITY_ATTR
from ..errors import calib_error
from .settings import PipeSettings, block_or_none, component_factory, default_config

DEFAULT_CONFIG = default_config(PipeSettings)
_TOKEN = [f"token._.calib_{name}" for name in ("score", "raw", "scores")]
_SPAN = [f"span._.calib_{name}" for name in ("score", "raw", "accept")]

make_calib = component_factory(
    "calib",
    ".pipe.component:Calibrator",
    PipeSettings,
    assigns=["doc._.calib", *_TOKEN, *_SPAN],
    requires=["token.tag"],  # of the default settings; `calibrating.note_meta` corrects it for each pipe
)


def refuse_pipe_name(nlp: Language, name: str) -> Any:
    """Refuse `add_pipe("calib_ent")`, since this is the name of a pipe, not of a factory. RAISES C085: always."""
    raise calib_error("C085", name=ENTITY_ATTR)


Language.factory(ENTITY_ATTR, func=refuse_pipe_name)


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
