"""`spacy calib apply`: the calibrated scores of many texts, as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ..pairs.documents import counted
from .applying.formats import FILE_FORMATS, SUFFIXES, RowWriter, format_of
from .applying.shards import Shards, check_apart
from .shared.checks import check_option, check_raw_cells
from .shared.command import argument, command, option
from .shared.options import FORMATS, Columns, OnlyAttr, RawCells, Texts
from .shared.outputs import Output, check_files, check_shard_folder
from .shared.run import Run
from .shared.screen import msg, shorten, warn
from .shared.writing import deliver

if TYPE_CHECKING:
    from spacy.language import Language

    from .applying.inputs import ManyTexts, Row

# As in `doc.score_rows`, which is not imported before it is needed.
UNITS = ("token", "entity", "sentence", "document")


@dataclass(frozen=True)
class ApplyOptions(Run):
    """What is scored, and how it is written."""

    gold_preproc: ClassVar[bool] = False  # type: ignore[misc]  # gold is read as any text
    doc_key: ClassVar[None] = None  # type: ignore[misc]

    data: Texts
    output: Annotated[
        Path,
        argument(
            "OUTPUT",
            f"Folder for shards, or a file that ends in {', '.join(SUFFIXES.values())}. A run that was killed goes on where it was",
        ),
    ] = field()
    _: KW_ONLY
    unit: Annotated[
        str | None,
        option("What has a row", "-u", words=UNITS, show_default="token; entity for recognizers, document for text categories"),
    ] = None
    format: Annotated[
        str | None,
        option(
            "How rows are written; table and json: how it is told what was done",
            words=(*FORMATS, *FILE_FORMATS),
            show_default="table, and shards of parquet",
        ),
    ] = None
    shard_size: Annotated[int, option("Rows of DATA in a shard")] = 10_000
    columns: Columns = None
    raw_cells: RawCells = False
    attr: OnlyAttr = None
    batch_size: Annotated[int | None, option("Texts in a batch of the pipeline", show_default="the pipeline's own")] = None
    force: Annotated[bool, option("Start anew: replace a file at OUTPUT, or the shards of an older run", "-F")] = False

    def check_options(self) -> None:
        """RAISES C056: OUTPUT has no format, or another one than was given; --unit beside whole Docs, or --raw-cells beside something else than CSV."""
        own = format_of(self.output)
        known = own is not None or (not self.output.suffix and self.output.name != "-") or self.output.is_dir()
        wanted = f"a folder, or a file that ends in {', '.join(SUFFIXES.values())}"
        check_option("OUTPUT", known, wanted, self.output)
        check_option("--format", not self.one_file or self.form == own, f"{own}, or left out, for {self.output}", self.format)
        check_option("--unit", self.unit is None or self.form != "spacy", "left out for .spacy, which holds Docs", self.unit)
        check_raw_cells(self.raw_cells, self.form == "csv")

    @property
    def one_file(self) -> bool:
        """Whether OUTPUT is a file, and no folder."""
        return format_of(self.output) is not None and not self.output.is_dir()

    @property
    def form(self) -> str:
        """How rows are written."""
        if self.format in FILE_FORMATS:
            return self.format
        return (format_of(self.output) if self.one_file else None) or FILE_FORMATS[0]


@command(ApplyOptions, example="./calibrated articles.parquet ./scores --unit entity")
def apply(options: ApplyOptions) -> dict[str, Any]:
    """
    Score texts of any number and write a row for each token, entity, sentence or
    document: shards of Parquet, JSON Lines or CSV, or Docs with their scores
    (.spacy). Run again after it was killed, it goes on where it was; memory does
    not grow with the texts. Rows without text (empty, blank or null) are left out and
    counted.

    RETURNS (dict): "output", "format", "unit" (None for Docs), "texts" (rows of DATA), "left_out" (those without text), "shards" (0 for one file), "finished_before" (shards that
        were there), "rows": written by this run.
    RAISES C443 to C445: OUTPUT holds something else than finished shards of the same run. C470: another run writes there. C446, C447: nothing scores what --unit asks for.
        CalibError: every other fault of the input.
    """
    from ..doc.score_rows import load_pyarrow
    from ..pipe.component import pipes_named
    from ..pipe.loading import check_readable, open_model
    from .applying.inputs import choose_unit, look_at, pipes_needed
    from .shared.examples import text_files

    files = text_files(options.data, options.fields)
    inputs = [options.data, *files, options.code]
    if options.one_file:
        check_files([Output("OUTPUT", options.output)], options.force, inputs=inputs, model=options.model)
    else:
        check_shard_folder(options.output, inputs=inputs, model=options.model)
    check_apart(options.output)
    if options.form == "parquet":
        load_pyarrow()
    nlp = open_model(options.model, code=options.code, gpu_id=options.gpu_id)
    pipes = pipes_named(nlp, options.attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    whole = options.form == "spacy"
    unit = choose_unit(nlp, pipes, options.unit)
    texts = look_at(nlp, options.data, options.fields)
    writer = RowWriter(options.form, [pipe.attr for pipe in pipes], unit, raw_cells=options.raw_cells)
    settings = settings_of(options, unit, writer.attrs, texts)
    shards = Shards(options.output, options.form, texts.n_rows, options.shard_size, settings, options.one_file)
    with told_if_ended(options, shards), shards.begun(options.force):
        done = shards.finished()
        with nlp.select_pipes(enable=pipes_needed(nlp, pipes, unit, whole)):
            write(options, nlp, texts, writer, shards, done)
    result = {
        "output": str(options.output),
        "format": options.form,
        "unit": None if whole else unit,
        "texts": texts.n_rows,
        "left_out": texts.left_out,
        "shards": 0 if options.one_file else len(shards),
        "finished_before": len(done),
        "rows": writer.written,
    }
    deliver(result, lambda: show(result, texts), output=None, format=str(options.format), silent=options.silent)
    return result


def settings_of(options: ApplyOptions, unit: str, attrs: Iterable[str], texts: ManyTexts) -> dict[str, Any]:
    """All that the rows depend on, for the manifest."""
    import spacy

    from ..about import __version__
    from .applying.inputs import digest_of, digest_of_model

    return {
        "format": options.form,
        "unit": None if options.form == "spacy" else unit,
        "attr": list(attrs),
        "raw_cells": options.raw_cells,
        "shard_size": options.shard_size,
        "columns": options.columns,
        "model": digest_of_model(options.model),
        "code": None if options.code is None else digest_of([options.code]),
        "texts": list(texts.digests),
        "spacy": spacy.__version__,
        "spacy_calib": __version__,
    }


def write(
    options: ApplyOptions, nlp: Language, texts: ManyTexts, writer: RowWriter, shards: Shards, done: Sequence[int]
) -> None:
    """Score the texts, and write the shards that are not there yet, with a progress bar (on a terminal only).

    RAISES C055: a file cannot be written. C449: the texts changed.
    """
    from tqdm import tqdm

    from .applying.inputs import scored

    if len(done) == len(shards):
        return
    finished, before = set(done), sum(map(shards.rows_in, done))
    disable = options.silent or None
    with tqdm(total=texts.n_rows, initial=before, desc="Scoring", unit="doc", disable=disable) as bar:

        def told(rows: Iterable[Row]) -> Iterator[Row]:
            for row in rows:
                bar.update()
                yield row

        for number, rows in groupby(texts.stream(nlp), lambda row: row.number // options.shard_size):
            if number not in finished:
                shards.write(number, writer.pieces(scored(nlp, told(rows), options.batch_size, options.n_process)))


@contextmanager
def told_if_ended(options: ApplyOptions, shards: Shards) -> Iterator[None]:
    """Say what is finished where the block is ended by Ctrl-C or SIGTERM."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if not options.silent:
            anew = " without --force" if options.force and not options.one_file else ""
            done = f"{len(shards.finished()):,} of {counted('shard', len(shards))}"
            warn(
                f"Ended before all texts were scored: {done} of {options.output} are finished; the same command{anew} goes on from there."
            )
        raise


def show(result: dict[str, Any], texts: ManyTexts) -> None:
    """Print what was done."""
    if result["left_out"]:
        n, first = result["left_out"], shorten(texts.first_left_out, 80)
        what = f"has no text (empty, blank or null) and is left out: {first}"
        several = f"have no text (empty, blank or null) and are left out; the first is {first}"
        msg.warn(f"{n:,} of {result['texts']:,} rows {what if n == 1 else several}.")
    n_shards, before = result["shards"], result["finished_before"]
    if n_shards and before == n_shards:
        msg.good(f"Nothing to do: {result['output']} is finished ({counted('shard', n_shards)}); --force starts anew.")
        return
    n = result["rows"]
    what = counted("Doc", n) if result["unit"] is None else f"{counted('row', n)} ({result['unit']})"
    where = f" in {counted('shard', n_shards - before)}" if n_shards else ""
    older = counted("shard", before)
    kept = f"; {older} of an earlier run stayed" if n_shards else f", beside those of {older} of an earlier run"
    msg.good(f"Wrote {what}{where}: {result['output']}{kept if before else ''}")
