"""The options of `spacy calib fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...doc.annotations import ARC_EVENTS
from ...doc.events import EVENTS, UNIT_EVENTS
from ...errors import calib_error
from ...sequence.factory import WAYS
from ..shared.arguments import MayLeaveOut, WithOverrides
from ..shared.checks import check_option
from ..shared.command import Options, argument, option
from ..shared.examples import read_examples
from ..shared.options import (
    AllowUnknown,
    Code,
    Component,
    DocKey,
    Force,
    Format,
    GoldPreproc,
    GpuId,
    KeyFile,
    LabelMap,
    Method,
    Score,
    Silent,
    Source,
    sources_of,
)
from .settings import NORMALIZE

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example


@dataclass(frozen=True)
class FitOptions(Options):
    """What is calibrated, on what, and how. gold: NAME=PATH of each source; DATA may be None."""

    model: Annotated[str | None, argument("MODEL", "Pipeline to calibrate: package name or path; left out for scores")]
    data: Annotated[
        Path | None,
        argument(
            "DATA",
            "Held-out gold: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), or a folder of them; left "
            "out where --gold names all gold. Or, without MODEL, scores of any tagger: .csv, .tsv, .jsonl, .parquet or "
            ".npz with tag, score and gold on each row",
        ),
    ]
    output: Annotated[Path, argument("OUTPUT", "Folder for the calibrated pipeline; of scores a file")]
    _: KW_ONLY
    gold: Annotated[
        list[str],
        option(
            "Held-out gold of one of several sources, by name (repeat it for each), in the place of DATA, or beside it; DATA then goes by the name of its file",
            metavar="NAME=PATH",
        ),
    ] = field(default_factory=list)
    component: Component = None
    source: Source = None
    score: Score = None
    train_data: Annotated[Path | None, option("Training gold, to count how frequent tags are; else counted in DATA", "-t")] = (
        None
    )
    groups: Annotated[
        int | None, option("Number of groups of tags that are about equally frequent and share a map", show_default="5")
    ] = None
    method: Method = None
    scaling: Annotated[
        str | None,
        option("Correct all scores of a token together first: {calib_scalings}, or a registered name", "-S", metavar="NAME"),
    ] = None
    tag_offsets: Annotated[bool, option("Correct each tag by itself too; one with few data stays near its group")] = False
    config: Annotated[
        Path | None,
        option("Config whose [components.calib] block has the settings, in place of those that the pipeline may have"),
    ] = None
    threshold: Annotated[float | None, option("Leave out labels whose raw score is lower", show_default="0.01")] = None
    normalize: Annotated[
        str | None,
        option(
            "Rescale a token's scores: kept (they sum to 1), other (room for the tags below the threshold)",
            words=tuple(NORMALIZE),
            show_default="none",
        ),
    ] = None
    context: Annotated[
        bool | None,
        option(
            "Look at the word, its ending and its neighbours too, always or never",
            "--context/--no-context",
            show_default="with auto, where it is no worse",
        ),
    ] = None
    sets: Annotated[
        float | None,
        option(
            "Give every token a set of tags (Token._.calib_set) that holds the right one, but for at most this share of tokens"
        ),
    ] = None
    event: Annotated[
        str | None,
        option(
            "What counts as right: an entity by exact tokens, its type, or any overlap; an arc of a parser by its head, or (arc) head and label. "
            "sentence and tree also tell how likely all labels of a sentence, or all its arcs, are right (Span._.calib_right)",
            words=(*EVENTS, *ARC_EVENTS, *UNIT_EVENTS),
            show_default="exact; of parsers head",
        ),
    ] = None
    way: Annotated[
        str | None,
        option(
            "Score a sequence model by how easily its answer changes, in place of its probabilities",
            words=tuple(WAYS),
            show_default="of calib_online kd_pc",
        ),
    ] = None
    label_map: LabelMap = None
    allow_unknown: AllowUnknown = False
    allow_seen: Annotated[bool, option("Go on even if much of the fit data stands in --train-data too")] = False
    second_pass: Annotated[
        bool,
        option("Leave a recognizer or parser as it is and run it again for the scores, which takes longer"),
    ] = False
    attr: Annotated[str | None, option("Name of the pipe and prefix of its attributes", show_default="calib")] = None
    key: KeyFile = None
    format: Format = "table"
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: Annotated[int, option("Worker processes; recognizers take one in any case")] = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: Force = False
    silent: Silent = True
    overrides: Mapping[str, Any] | None = None

    def check_options(self) -> None:
        """RAISES C056: MODEL beside scores, or neither. C433: neither DATA nor --gold. C545 to C547: see `sources_of`."""
        if self.data is None and not self.gold:
            raise calib_error("C433", option="--gold", given="DATA")
        scores = self.of_scores
        check_option("MODEL", not scores or self.model is None, "left out where DATA is a file of scores", self.model)
        check_option("MODEL", scores or self.model is not None, "given, as DATA is no file of scores", "none")
        sources_of(self.gold, self.data)

    @property
    def of_scores(self) -> bool:
        """Whether DATA is a file of scores, by its suffix; beside a pipeline JSON Lines are answers of people."""
        from ...arrays.files import is_score_file
        from ...corpus.queue.answers import ANSWER_SUFFIXES

        answers = self.model is not None and self.data is not None and self.data.suffix in ANSWER_SUFFIXES
        return self.data is not None and is_score_file(self.data) and not answers

    @property
    def gold_paths(self) -> list[Path]:
        """All gold that is read, of DATA and of named sources."""
        return [*sources_of(self.gold, self.data).values()] or ([] if self.data is None else [self.data])

    def examples(self, nlp: Language) -> list[Example]:
        """Of DATA, and of the named sources, whose predicted Docs say which they are of."""
        from ...doc.gold import named_examples

        paths = sources_of(self.gold, self.data)
        if not paths:
            assert self.data is not None
            return read_examples(nlp, self.data, self.gold_preproc, self.doc_key)
        read = {name: read_examples(nlp, path, self.gold_preproc, self.doc_key) for name, path in paths.items()}
        return list(named_examples(read))

    def given(self) -> dict[str, Any]:
        """With --no-context, which is more than a flag that is off."""
        return super().given() | ({} if self.context is None else {"context": self.context})


class FitCommand(WithOverrides, MayLeaveOut):
    """With dotted settings, and named sources in the place of DATA."""

    headings = {
        "How the maps are learned": ("groups", "scaling", "tag_offsets", "context", "threshold", "normalize", "config"),
        "What else is learned": ("sets", "event"),
        "Where the scores come from": ("source", "score", "way", "second_pass", "label_map"),
        "Several sources": ("gold", "key", "doc_key"),
        "How it runs": ("gold_preproc", "allow_unknown", "allow_seen", "format", "n_process", "gpu_id", "code", "silent"),
    }

    def may_be_missing(self, args: list[str]) -> tuple[str, ...]:
        """DATA beside --gold, and MODEL where there are scores."""
        from ...arrays.files import is_score_file

        if any(one.partition("=")[0] == "--gold" for one in args):
            return ("data",)
        return ("model",) if any(is_score_file(Path(one)) for one in args) else ()
