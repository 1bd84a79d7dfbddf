"""A run of a calibrated pipeline over data: the options that seven commands share, and how each of them begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ...pipe.loading import pipe_of
from .command import Options
from .examples import Pass, data_files, read_examples, run_pipes
from .gold import check_gold_of_corpus, check_gold_of_examples, check_has_gold, check_whole_documents
from .loading import open_model
from .options import CalibratedModel, Code, DocKey, ForceFile, Gold, GoldPreproc, GpuId, NProcess, Silent
from .outputs import Output, check_files, check_pipeline_folder, wanted_output
from .records import Fields
from .scoring import score, score_blocks
from .seen import seen_by, watch_for
from .texts import holds_gold, stream_examples, text_files

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator


class Scored(NamedTuple):
    """corpus (ScoredCorpus): What the calib pipe says of the data. seen (dict | None): How much of it the fit has seen, see `expect.record.SeenShare`."""

    corpus: ScoredCorpus
    seen: dict[str, Any] | None


@dataclass(frozen=True)
class Run(Options):
    """A fitted pipeline and the data that it is run over.

    needs_gold (bool): Whether DATA has to be gold; plain texts will do else.
    """

    needs_gold: ClassVar[bool] = False

    model: CalibratedModel
    data: Gold
    _: KW_ONLY
    # Each command says in its own words what these mean there, if it has them.
    attr: str | None = None
    columns: str | None = None
    output: Path | None = None
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: NProcess = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: ForceFile = False
    silent: Silent = True

    @property
    def fields(self) -> Fields:
        """What text and id are called in DATA."""
        return Fields.read(self.columns)

    def outputs(self) -> list[Output]:
        """The files that the command writes."""
        return wanted_output(self.output)

    def read_files(self) -> list[Path]:
        """The files and folders that the command reads besides DATA."""
        return []

    def files(self) -> list[Path]:
        """The files at DATA. RAISES C051 to C053, C056, C073: see `data_files` and `text_files`."""
        return data_files(self.data) if self.needs_gold else text_files(self.data, self.fields)

    def folder(self) -> Output | None:
        """The folder of a pipeline that the command writes too."""
        return None

    def begin(self) -> Language:
        """Look at all files before the work begins, then load the pipeline.

        RAISES C051 to C053, C073: the data. C054 to C056, C100 to C102: an output, see `check_files` and `check_pipeline_folder`. C062, C060, C050: code, GPU, model.
        """
        files = self.files()
        inputs, folder = [self.data, *self.read_files(), self.code], self.folder()
        check_files(self.outputs(), self.force, inputs=inputs, model=self.model, folder=folder and folder.path)
        if folder is not None:
            check_pipeline_folder(folder.path, self.force, inputs=[*inputs, *files], model=self.model, option=folder.option)
        return open_model(self.model, code=self.code, gpu_id=self.gpu_id)

    def open(self) -> tuple[Language, Calibrator]:
        """The pipeline and the calib pipe that was asked for.

        RAISES C027, C068: there is none. C021, C069: see `check_readable`; and see `begin`.
        """
        nlp = self.begin()
        return nlp, pipe_of(nlp, self.attr)

    def annotate(
        self, nlp: Language, pipes: Sequence[Calibrator], what: str = "Scoring", also: Sequence[str] = ()
    ) -> list[Example]:
        """The gold examples with what these pipes say of them; all are held in memory.

        what (str): Beside the progress bar. also (Sequence[str]): Names of other pipes that are to run. RAISES C030, C151: there is no gold, or none whose labels the component knows.
        """
        for pipe in pipes:
            check_whole_documents(pipe.fit_info.row_unit, self.gold_preproc)
        examples = read_examples(nlp, self.data, self.gold_preproc, self.doc_key)
        if len(pipes) == 1:
            check_has_gold(examples, pipes[0])
        order = nlp.pipe_names
        wanted = [name for name in (*(pipe.name for pipe in pipes), *also) if name in order]
        last = max(map(order.index, wanted), default=-1)
        done = list(run_pipes(nlp, examples, order[: last + 1], silent=self.silent, what=what, n_process=self.n_process))
        for pipe in pipes:
            check_gold_of_examples(pipe, done, self.silent)
        return done

    def stream(self, nlp: Language, path: Path | None = None, date: str | None = None) -> Iterator[Example]:
        """The examples of the data, or of another path, one by one. date: See `stream_examples`."""
        return stream_examples(
            nlp, path or self.data, gold_preproc=self.gold_preproc, doc_key=self.doc_key, date=date, fields=self.fields
        )

    def passing(self, what: str, path: Path | None = None) -> Pass:
        """How the pipeline runs over the data, or over another path. what (str): Beside the progress bar."""
        return Pass(self.n_process, self.silent, what, gold=holds_gold(path or self.data))

    def score(
        self,
        nlp: Language,
        pipe: Calibrator,
        *,
        sentences: bool = True,
        judge: bool = True,
        what: str = "Scoring",
        also: Callable[[Iterable[Example]], Iterable[Example]] = iter,
    ) -> Scored:
        """The scored corpus of the data; the Docs are let go one by one.

        sentences (bool): Whether sentences have to be found too. judge (bool): Whether the gold, if there is any, will be used.
        also (Callable): Looks at the examples as they pass.
        RAISES C075: no token got a score. C151: the component knows none of the gold labels.
        """
        check_whole_documents(pipe.fit_info.row_unit, self.gold_preproc)
        watch = watch_for(pipe)
        examples = also(self.stream(nlp))
        if judge:
            examples = watch.over(examples)
        corpus = score(nlp, pipe, examples, self.passing(what), sentences=sentences)
        if judge:
            check_gold_of_corpus(pipe, corpus, self.silent)
        return Scored(corpus, seen_by(pipe, watch) if judge else None)

    def score_blocks(
        self,
        nlp: Language,
        pipe: Calibrator,
        *,
        sentences: bool = True,
        what: str = "Scoring",
        also: Callable[[Iterable[Example]], Iterable[Example]] = iter,
    ) -> Iterator[ScoredCorpus]:
        """The scored corpora of the data, some texts after the others; of gold, which is not looked at, one.

        sentences (bool): Whether sentences have to be found too. also (Callable): Looks at the examples as they pass: at those of a corpus before it is
        given. RAISES C075: no token got a score.
        """
        check_whole_documents(pipe.fit_info.row_unit, self.gold_preproc)
        yield from score_blocks(nlp, pipe, also(self.stream(nlp)), self.passing(what), sentences=sentences)
