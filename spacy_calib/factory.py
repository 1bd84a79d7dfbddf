"""The factories, the only thing that every `Language()` imports of us: light, and it never fails."""

# No `from __future__ import annotations` here: the confection of spaCy before 3.8.12 reads the annotations of a factory as they are
# and cannot resolve strings.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.pipeline.dep_parser import DEFAULT_PARSER_MODEL
from spacy.pipeline.ner import DEFAULT_NER_MODEL

from . import registry as _registry  # noqa: F401  (creates the registries that the config names)
from .pipe.settings import default_config, takes_settings

if TYPE_CHECKING:
    from .pipe.component import Calibrator
    from .pipe.event import EventPipe
    from .sources.ner.recognizer import CalibEntityRecognizer
    from .sources.parser.component import CalibDependencyParser

DEFAULT_CONFIG = default_config()


@Language.factory(
    "calib",
    default_config=DEFAULT_CONFIG,
    assigns=[
        "doc._.calib",
        "token._.calib_score",
        "token._.calib_raw",
        "token._.calib_scores",
        "token._.calib_interval",
        "token._.calib_set",
        "span._.calib_score",
        "span._.calib_raw",
        "span._.calib_accept",
    ],
    requires=["token.tag"],  # of the default settings; `summary.note_meta` corrects it for each pipe
)
@takes_settings
def make_calib(nlp: Language, name: str, **settings: Any) -> "Calibrator":
    """Build the pipe. settings: See PipeSettings."""
    from .pipe.component import Calibrator

    return Calibrator(nlp, name, **settings)


# The same settings as spaCy's factories have: a saved config differs by the factory's name alone.
_NER_CONFIG: dict[str, Any] = {
    "moves": None,
    "update_with_oracle_cut_size": 100,
    "model": DEFAULT_NER_MODEL,
    "incorrect_spans_key": None,
    "scorer": {"@scorers": "spacy.ner_scorer.v1"},
}
_BEAM_CONFIG: dict[str, Any] = {"beam_density": 0.01, "beam_update_prob": 0.5, "beam_width": 32}
_NER_META: dict[str, Any] = {
    "assigns": ["doc.ents", "token.ent_iob", "token.ent_type"],
    "default_score_weights": {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
}


@Language.factory("calib_ner", default_config=_NER_CONFIG, **_NER_META)
def make_calib_ner(
    nlp: Language,
    name: str,
    model: Any,
    moves: Any | None,
    update_with_oracle_cut_size: int,
    incorrect_spans_key: str | None,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "CalibEntityRecognizer":
    """Build a recognizer that keeps its probabilities. Settings and weights are those of spaCy's `ner`."""
    from .sources.ner.recognizer import CalibEntityRecognizer

    return CalibEntityRecognizer(
        nlp.vocab,
        model,
        name=name,
        moves=moves,
        update_with_oracle_cut_size=update_with_oracle_cut_size,
        incorrect_spans_key=incorrect_spans_key,
        scorer=scorer,
    )


@Language.factory("calib_beam_ner", default_config={**_NER_CONFIG, **_BEAM_CONFIG}, **_NER_META)
def make_calib_beam_ner(
    nlp: Language,
    name: str,
    model: Any,
    moves: Any | None,
    update_with_oracle_cut_size: int,
    beam_width: int,
    beam_density: float,
    beam_update_prob: float,
    incorrect_spans_key: str | None,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "CalibEntityRecognizer":
    """The same for spaCy's `beam_ner`."""
    from .sources.ner.recognizer import CalibEntityRecognizer

    return CalibEntityRecognizer(
        nlp.vocab,
        model,
        name=name,
        moves=moves,
        update_with_oracle_cut_size=update_with_oracle_cut_size,
        beam_width=beam_width,
        beam_density=beam_density,
        beam_update_prob=beam_update_prob,
        incorrect_spans_key=incorrect_spans_key,
        scorer=scorer,
    )


_PARSER_CONFIG: dict[str, Any] = {
    "moves": None,
    "update_with_oracle_cut_size": 100,
    "learn_tokens": False,
    "min_action_freq": 30,
    "model": DEFAULT_PARSER_MODEL,
    "scorer": {"@scorers": "spacy.parser_scorer.v1"},
}
_PARSER_META: dict[str, Any] = {
    "assigns": ["token.dep", "token.head", "token.is_sent_start", "doc.sents"],
    "default_score_weights": {
        "dep_uas": 0.5, "dep_las": 0.5, "dep_las_per_type": None, "sents_p": None, "sents_r": None, "sents_f": 0.0,
    },
}  # fmt: skip


@Language.factory("calib_parser", default_config=_PARSER_CONFIG, **_PARSER_META)
def make_calib_parser(
    nlp: Language,
    name: str,
    model: Any,
    moves: Any | None,
    update_with_oracle_cut_size: int,
    learn_tokens: bool,
    min_action_freq: int,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "CalibDependencyParser":
    """Build a parser that keeps its probabilities. Settings and weights are those of spaCy's `parser`."""
    from .sources.parser.component import CalibDependencyParser

    return CalibDependencyParser(
        nlp.vocab,
        model,
        name=name,
        moves=moves,
        update_with_oracle_cut_size=update_with_oracle_cut_size,
        learn_tokens=learn_tokens,
        min_action_freq=min_action_freq,
        scorer=scorer,
    )


@Language.factory(
    "calib_event",
    default_config={"attr": "calib", "event": {"@calib_events": "spacy-calib.Sentence.v1"}, "forecaster": None},
    assigns=["span._.calib_right"],
)
def make_calib_event(nlp: Language, name: str, attr: str, event: Any, forecaster: Any | None) -> "EventPipe":
    """Build the pipe that says how probable yes is, see EventPipe."""
    from .pipe.event import EventPipe

    return EventPipe(nlp, name, attr, event, forecaster)
