"""The options of `spacy calib fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...doc.annotations import ARC_EVENTS
from ...doc.events import EVENTS, UNIT_EVENTS
from ...sequence.factory import WAYS
from ..shared.arguments import WithOverrides
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
    LabelMap,
    Method,
    Score,
    Silent,
    Source,
)
from .settings import NORMALIZE

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example


@dataclass(frozen=True)
class FitOptions(Options):
    """What is calibrated, on what, and how."""

    model: Annotated[str, argument("MODEL", "Pipeline to calibrate: package name or path")]
    data: Annotated[
        Path,
        argument(
            "DATA",
            "Held-out gold: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), or a "
            "folder of them",
        ),
    ]
    output: Annotated[Path, argument("OUTPUT", "Folder for the calibrated pipeline")]
    _: KW_ONLY
    gold: Annotated[list[Path], option("More held-out gold, to be fitted on together with DATA (repeat it for each)")] = field(
        default_factory=list
    )
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
    format: Format = "table"
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: Annotated[int, option("Worker processes; recognizers take one in any case")] = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: Force = False
    silent: Silent = True
    overrides: Mapping[str, Any] | None = None

    @property
    def gold_paths(self) -> list[Path]:
        """All gold that is read, DATA first."""
        return [self.data, *self.gold]

    def examples(self, nlp: Language) -> list[Example]:
        """Of all gold."""
        from ...doc.reading import from_files

        return list(from_files(read_examples(nlp, path, self.gold_preproc, self.doc_key) for path in self.gold_paths))

    def given(self) -> dict[str, Any]:
        """With --no-context, which is more than a flag that is off."""
        return super().given() | ({} if self.context is None else {"context": self.context})


class FitCommand(WithOverrides):
    """With dotted settings of the pipe."""

    headings = {
        "How the maps are learned": ("groups", "scaling", "tag_offsets", "context", "threshold", "normalize", "config"),
        "What else is learned": ("sets", "event"),
        "Where the scores come from": ("source", "score", "way", "second_pass", "label_map"),
        "Which documents": ("gold", "doc_key"),
        "How it runs": ("gold_preproc", "allow_unknown", "allow_seen", "format", "n_process", "gpu_id", "code", "silent"),
    }
