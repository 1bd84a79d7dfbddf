"""What the commands share: loading, reading data, and turning a user's error into one sentence."""

from __future__ import annotations

import contextlib
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus.visible import visible
from ..errors import CalibError, calib_error
from ._options import FORMATS
from ._outputs import Output

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pipe.component import Calibrator


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Print a CalibError as one sentence, on the standard error, and exit with 1."""
    from ._screen import msg

    try:
        yield
    except CalibError as error:
        with contextlib.redirect_stdout(sys.stderr):
            msg.fail(error.message)
        raise SystemExit(1) from None


def warn(sentence: str) -> None:
    """On the standard error, where it does not get among the results."""
    from ._screen import msg

    with contextlib.redirect_stdout(sys.stderr):
        msg.warn(sentence)


def check_option(option: str, ok: bool, wanted: str, given: Any) -> None:
    """RAISES C056: the option's value is out of range."""
    if not ok:
        raise calib_error("C056", option=option, wanted=wanted, given=given)


def check_confidence(confidence: float) -> None:
    """RAISES C056: no interval has it; 1 less a tiny number is 1 to a computer, and nothing has an interval of no width."""
    least, most = 0.001, 0.99999
    check_option("--confidence", least <= confidence <= most, f"between {least} and {most}", confidence)


def wanted_output(output: Path | None) -> list[Output]:
    """The file of --output, for `outputs.check_files`."""
    return [] if output is None else [Output("--output", output)]


def import_user_code(code: Path | None) -> None:
    """RAISES C062: the file cannot be imported."""
    if code is not None:
        from spacy.util import import_file

        try:
            import_file("python_code", code)
        except Exception as error:
            raise calib_error("C062", path=code, why=reason(error)) from None


def use_gpu(gpu_id: int) -> None:
    """RAISES C060: there is no such GPU."""
    if gpu_id >= 0:
        from thinc.api import require_gpu

        try:
            require_gpu(gpu_id)
        except Exception as error:
            raise calib_error("C060", gpu=gpu_id, why=reason(error)) from None


def reason(error: BaseException) -> str:
    """What an exception says, in one line: the faults of a config error, else the first line of its message, else its type."""
    from thinc.api import ConfigValidationError

    if isinstance(error, ConfigValidationError):
        faults = [f"{' -> '.join(map(str, fault.get('loc', ())))}: {fault.get('msg', '')}" for fault in error.errors or ()]
        text = "; ".join(fault.strip(": ") for fault in faults) or " ".join(f"{error.title or ''} {error.desc or ''}".split())
        return text or type(error).__name__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def load_pipeline(model: str, overrides: dict[str, Any] | None = None, exclude: Iterable[str] = ()) -> Language:
    """overrides (dict | None): Parts of the config that are replaced. exclude: Pipes that are not loaded.

    RAISES C050: it cannot be loaded. C010 to C020: a calib pipe in it cannot be read.
    """
    from spacy.util import load_model

    try:
        return load_model(model, config=overrides or {}, exclude=list(exclude))
    except CalibError:
        raise
    except OSError as error:
        why = "no package, shortcut or folder of this name" if "E050" in str(error) else reason(error)
        raise calib_error("C050", model=model, why=why + "; install it, or give the path of a pipeline.") from None
    except Exception as error:
        raise calib_error("C050", model=model, why=reason(error)) from None


# spaCy's recognizers, and ours with the same settings and weights.
INLINE_FACTORIES = {"ner": "calib_ner", "beam_ner": "calib_beam_ner"}


def load_with_factories(model: str, factories: dict[str, str], exclude: Iterable[str] = ()) -> Language:
    """Load a pipeline with other factories for some of its components.

    factories (dict): Component -> factory. RAISES C050, C010 to C020: see `load_pipeline`.
    """
    return load_pipeline(model, {"components": {name: {"factory": factory} for name, factory in factories.items()}}, exclude)


def data_files(path: Path) -> list[Path]:
    """The gold files at a path, see `reading.gold_files`.

    RAISES C051: the path does not exist. C052: a folder without such files. C053: an empty file, or one of another kind.
    """
    from ..doc.reading import GOLD_SUFFIXES, gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if path.is_dir():
        files = gold_files(path)
        if not files:
            raise calib_error("C052", path=path)
        return files
    if path.suffix not in GOLD_SUFFIXES:
        raise calib_error("C053", path=path, why=f"its name does not end in {' or '.join(GOLD_SUFFIXES)}")
    return [path]


def read_examples(nlp: Language, path: Path, gold_preproc: bool, doc_key: str | None = None) -> list[Example]:
    """The examples of a gold file or a folder of them, as `spacy evaluate` reads them; see `reading.GoldReader`.

    RAISES C051 to C053: see `data_files`; or a file is no DocBin, or holds no documents. C160, C161: see `read_gold`.
    """
    examples: list[Example] = []
    for file in data_files(path):
        examples += read_gold(nlp, file, gold_preproc, doc_key)
    if not examples:
        raise calib_error("C052", path=path)
    return examples


def read_gold(nlp: Language, file: Path, gold_preproc: bool, doc_key: str | None) -> Iterator[Example]:
    """The examples of one gold file, one by one, with the arrays that the calib pipes of the pipeline read from `Doc.user_data`.

    RAISES C053: the file cannot be read. C160: a Doc names no document under the key. C161: no CoNLL-U.
    """
    from ..doc.reading import GoldReader

    if not file.stat().st_size:
        raise calib_error("C053", path=file, why="it is empty")
    try:
        yield from GoldReader(gold_preproc, doc_key, arrays_read(nlp)).examples(nlp, file)
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C053", path=file, why=reason(error)) from None


def arrays_read(nlp: Language) -> tuple[str, ...]:
    """The keys of the user data whose arrays the calib pipes of a pipeline read."""
    from ..pipe.component import Calibrator

    sources = [pipe.source for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    return tuple(dict.fromkeys(source.user_data_key for source in sources if source.user_data_key))


def check_gold(examples: Iterable[Example], pipe: Calibrator) -> None:
    """RAISES C030: none of them has gold of the layer that the pipe calibrates; asked before the work begins."""
    layer = pipe.source.layer(pipe.source_pipe())
    if not any(layer.gold_hashes(example.reference).any() for example in examples):
        raise calib_error("C030", layer=layer.gold.name, component=pipe.source.component or "the source")


def run_pipes(
    nlp: Language, examples: Iterable[Example], names: Iterable[str], *, silent: bool, what: str, n_process: int = 1
) -> Iterator[Example]:
    """Run the named pipes over the predicted Docs, batch by batch, with a progress bar (on a terminal only); yields each example when its Doc is ready.

    examples (Iterable[Example]): Read as they are needed. n_process (int): Worker processes.
    """
    from tqdm import tqdm

    total = len(examples) if isinstance(examples, Sized) else None
    to_run, kept = itertools.tee(examples)
    with nlp.select_pipes(enable=list(names)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[W121\]")
        docs = nlp.pipe((example.predicted for example in to_run), n_process=n_process)
        for example, doc in tqdm(zip(kept, docs, strict=True), total=total, desc=what, unit="doc", disable=silent or None):
            example.predicted = doc
            yield example


def fitted_pipes(nlp: Language) -> list[Calibrator]:
    """RAISES C027: there is none."""
    from ..pipe.component import Calibrator

    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if not pipes:
        raise calib_error("C027", available=", ".join(nlp.component_names) or "no components")
    return pipes


def pipes_named(nlp: Language, attr: str | None) -> list[Calibrator]:
    """The fitted pipes with this prefix; all of them where none is named.

    RAISES C027: there is no fitted pipe. C068: none with this prefix.
    """
    fitted = fitted_pipes(nlp)
    pipes = [pipe for pipe in fitted if attr is None or pipe.attr == attr]
    if not pipes:
        raise calib_error("C068", attr=attr, available=", ".join(pipe.attr for pipe in fitted))
    return pipes


def check_bins(n_pairs: int, bins: int | None, threshold: float) -> None:
    """RAISES C005: more bins are asked for than there are pairs."""
    if bins is not None and n_pairs < bins:
        raise calib_error("C005", n_pairs=n_pairs, threshold=threshold, n_bins=bins)


def check_readable(nlp: Language, pipe: Calibrator) -> None:
    """RAISES C021: the pipeline has not the component that the pipe reads. C069: it, or the pipe, is disabled. C120: it is not the one that
    the pipe was fitted on."""
    component = pipe.source.component
    pipe.check_source()
    source = pipe.source_pipe()
    if component and source is None:
        raise calib_error("C021", component=component, available=", ".join(nlp.component_names))
    for name, held in nlp.components:
        if (held is pipe or held is source) and name not in nlp.pipe_names:
            raise calib_error("C069", name=name)


def write_json(path: Path, data: Any) -> None:
    """Every digit of every number is kept: srsly would round a cut-off at the tenth, past the score that it was taken from.

    RAISES C055: the file cannot be written. An older file stays until the new one is whole.
    """
    write_pieces(path, json_pieces(data))


def json_pieces(data: Any) -> Iterator[str]:
    """The lines of a JSON file, piece by piece; items that are made on demand are written one by one."""
    import json

    from ..corpus.made import for_json

    yield from json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False, default=for_json).iterencode(data)
    yield "\n"


def write_text(path: Path, text: str) -> None:
    r"""Of the names of files, bytes that are not UTF-8 become \udcNN.

    RAISES C055: the file cannot be written. An older file stays until the new one is whole.
    """
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """As `write_text`, as the pieces of the text are made."""
    from ._atomic import write_chunks

    write_chunks(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces))


def check_format(given: str, formats: Sequence[str] = FORMATS) -> None:
    """RAISES C056: not one of them."""
    check_option("--format", given in formats, f"one of {', '.join(formats)}", repr(given))


def deliver(result: Any, show: Callable[[], None], *, output: Path | None, format: str, silent: bool) -> None:
    """Write a result as JSON to `output`, and print it, as JSON or by `show`, unless silent.

    RAISES C055: the file cannot be written.
    """
    if output is not None:
        write_json(output, result)
    if silent:
        return
    if format == "json":
        print_json(result)
    else:
        show()


def print_json(result: Any) -> None:
    """On the standard output, which holds nothing else then."""
    print_exact(json_pieces(result), json=True)


def print_exact(pieces: Iterable[str], json: bool) -> None:
    """Print the text of a file as it is, which typer does not; but on a terminal with control characters made visible.

    pieces (Iterable[str]): Of the text, printed as they are made. json (bool): Whether escapes are to be those of JSON.
    """
    unusual = sys.stdout.isatty() or (json and not (sys.stdout.encoding or "").lower().startswith("utf"))
    for piece in pieces:
        sys.stdout.write(visible(piece.replace("\r\n", "\n"), keep="\n", json=json) if unusual else piece)


def print_table(rows: Any, header: Sequence[str] | None = None, aligns: Sequence[str] | None = None) -> None:
    """Columns are as wide as what they hold: wasabi's end at 30 characters, and what is longer shifts those after it."""
    from ._screen import msg

    msg.table(rows, header=header, divider=header is not None, aligns=aligns, max_col=sys.maxsize)


def shorten(text: str, width: int) -> str:
    """On one line, at most that many characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def number(value: float | None, digits: int = 4) -> str:
    """A figure for a table; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"
