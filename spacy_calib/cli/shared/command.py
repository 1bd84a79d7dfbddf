"""`@command`: a plain function with annotated parameters becomes a command of typer; Python calls the function directly."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Generic, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo

from ...errors import calib_error
from ...pairs.bins import MOST_COUNTED
from .screen import user_errors

# Minimum and maximum of options that are whole numbers, by parameter; the others are counts of at least 1.
RANGES = {
    "seed": (0, 2**32 - 1),  # numpy's seeds have 32 bits
    "n_process": (1, 1024),
    "gpu_id": (-1, 1023),
    "port": (1, 65535),
    "min_words": (0, MOST_COUNTED),
}

COUNT = (1, MOST_COUNTED)
# Placeholder in the help of an option: the short names of all recalibrators.
METHODS = "{methods}"
P = ParamSpec("P")
R = TypeVar("R")
# Key in the `meta` of a click context: options that typer does not read, as parameter -> function that reads its value.
MORE_OPTIONS = "spacy_calib.more_options"


class CommandParameter(NamedTuple):
    """An argument or option of a command.

    name (str): Of the Python parameter. word (str): What the user types or sees in the usage: "--n-process", "DATA".
    kind (Any): Type of its value, without None. optional (bool): Whether it may be None. info (OptionInfo | ArgumentInfo): For
    typer. default (Any): In Python; `MISSING` for none.
    """

    name: str
    word: str
    kind: Any
    optional: bool
    info: OptionInfo | ArgumentInfo
    default: Any

    @property
    def names_a_path(self) -> bool:
        """Whether its value names files or folders; a pipeline may be a folder."""
        return self.kind in (Path, list[Path]) or self.word == "MODEL"

    @property
    def typer_parameter(self) -> inspect.Parameter:
        """The parameter for typer. A flag that is on by default in Python is off by default there."""
        default = False if self.kind is bool and not self.optional else self.default
        kind = Union[self.kind, None] if self.optional else self.kind  # noqa: UP007  (typer before 0.10 does not know `X | None`)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            # The extra word makes this annotation differ from the parameter's own, which the cache of typing would return for it.
            annotation=Annotated[kind, self.info, "for typer"],
        )

    def check(self, value: Any) -> Any:
        """Return a value with its type; texts become paths. RAISES C056: out of range, or the system refuses the path."""
        if self.kind is Path and isinstance(value, str):
            value = Path(value)
        if self.names_a_path:
            for path in value if isinstance(value, (list, tuple)) else [value]:
                check_path(self.word, path)
        if self.kind is int and value is not None:
            minimum, maximum = RANGES.get(self.name, COUNT)
            expected = f"at least {minimum}" if value < minimum else f"at most {maximum:,}"
            check_option(self.word, minimum <= value <= maximum, expected, value)
        words = getattr(self.info, "words", ())
        if words and value is not None:
            check_option(self.word, value in words, f"one of {', '.join(words)}", repr(value))
        return value


def read_parameter(name: str, annotation: Any, default: Any) -> CommandParameter:
    """Read a parameter of a command. annotation (Any): `Annotated[type, argument(...)]` or `Annotated[type, option(...)]`."""
    kind, info = get_args(annotation)
    kinds = [part for part in get_args(kind) if part is not type(None)] if get_origin(kind) in (Union, UnionType) else [kind]
    info = _with_flag(name, info)
    flags = (info.default, *(info.param_decls or ()))
    word = info.metavar if isinstance(info, ArgumentInfo) else next(flag for flag in flags if str(flag).startswith("--"))
    return CommandParameter(name, str(word), kind=kinds[0], optional=kinds[0] is not kind, info=info, default=default)


@functools.cache
def read_parameters(run: Callable[..., Any]) -> tuple[CommandParameter, ...]:
    """Read the arguments and options of a plain function from its annotations; its other parameters are for Python only."""
    parameters = []
    for name, parameter in inspect.signature(run).parameters.items():
        annotation = parameter.annotation
        annotation = eval(annotation, run.__globals__) if isinstance(annotation, str) else annotation
        if get_origin(annotation) is Annotated:
            default = MISSING if parameter.default is inspect.Parameter.empty else parameter.default
            parameters.append(read_parameter(name, annotation, default))
    return tuple(parameters)


def argument(word: str, help: str) -> Any:
    """Declare an argument with its help. word (str): Its name in the usage."""
    return typer.Argument(metavar=word, help=help)


def option(help: str, *flags: str, words: Sequence[str] = (), **settings: Any) -> Any:
    """Declare an option with its help. Its flag is the name of its parameter, unless `flags` has a long one.

    flags (str): Its letter, or all its flags. words (Sequence[str]): The allowed values: shown in the help, completed by the
    shell, and checked when the command is called. settings: Further arguments of typer.Option.
    """
    if words:
        settings |= {
            "metavar": f"[{'|'.join(words)}]",
            "autocompletion": lambda incomplete: [word for word in words if word.startswith(incomplete)],
        }
    declaration = typer.Option(*flags, help=help, **settings)
    declaration.words = words
    return declaration


def _with_flag(name: str, info: Any) -> Any:
    """Return the declaration of an option with --NAME among its flags, unless it has a long flag; an argument as it is."""
    flags = [flag for flag in (info.default, *(info.param_decls or ())) if isinstance(flag, str)]
    if isinstance(info, ArgumentInfo) or any(flag.startswith("--") for flag in flags):
        return info
    declaration = copy.copy(info)
    declaration.default, declaration.param_decls = f"--{name.replace('_', '-')}", tuple(flags)
    return declaration


class CalibCommand(TyperCommand):
    """A command whose help lists registered names.

    headings (Mapping): Heading in the help -> options; others come first. more_options (Sequence[str]): Beginnings of options
    that no parameter of the function declares.
    """

    headings: Mapping[str, Sequence[str]] = {}
    more_options: Sequence[str] = ()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            if getattr(parameter, "help", None):
                parameter.help = with_names(parameter.help)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of options under the headings of the command."""
        if not self.headings:
            super().format_options(ctx, formatter)
            return
        heading_of = {name: heading for heading, names in self.headings.items() for name in names}
        sections: dict[str, list[Any]] = {heading: [] for heading in ("Arguments", "Options", *self.headings)}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            heading = "Arguments" if is_argument else heading_of.get(str(parameter.name), "Options")
            sections[heading].append(parameter.get_help_record(ctx))
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])


@dataclass(eq=False)
class Command(Generic[P, R]):
    """A plain function as a command. Python calls the function; its values are checked first, as on the command line.

    run (Callable): The function. Parameters without `argument` or `option` are for Python, and for `kind` (`MORE_OPTIONS`).
    example (str): The end of a command line that works. kind (type): The class that parses its command line. exit_code
    (Callable | None): (values of the command line by name, result) -> exit code; None always ends with 0.
    """

    run: Callable[..., R]
    example: str
    kind: type[CalibCommand]
    exit_code: Callable[[Any, Any], int] | None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(**self.check_arguments(*args, **kwargs))

    def check_arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments of a call by name. RAISES C056: a value is out of range. TypeError: an unknown argument."""
        arguments = inspect.signature(self.run).bind(*args, **kwargs).arguments
        parameters = {parameter.name: parameter for parameter in self.parameters}
        return {name: parameters[name].check(value) if name in parameters else value for name, value in arguments.items()}

    @property
    def parameters(self) -> tuple[CommandParameter, ...]:
        """The arguments and options of its command line, in their order."""
        return read_parameters(self.run)

    @property
    def options(self) -> set[str]:
        """The long names of its options."""
        words = (parameter.word for parameter in self.parameters)
        return {*self.kind.more_options, *(word for word in words if word.startswith("--"))}

    @property
    def help(self) -> str:
        """The docstring of the function up to its sections RETURNS and RAISES."""
        return (inspect.getdoc(self.run) or "").split("\n\nRETURNS")[0].split("\n\nRAISES")[0]

    def typer_function(self) -> Callable[..., None]:
        """Build the function that typer calls, with a parameter for each argument and option."""

        def run(ctx: typer.Context, **values: Any) -> None:
            with user_errors(self.options):
                extra_options = {name: read() for name, read in ctx.meta.get(MORE_OPTIONS, {}).items()}
                result = self.run(**self.check_arguments(**values, **extra_options))
                code = 0 if self.exit_code is None else self.exit_code(values, result)
            if code:
                raise typer.Exit(code)

        parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
        parameters += [parameter.typer_parameter for parameter in self.parameters]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = self.help
        return run


def command(
    *,
    example: str,
    kind: type[CalibCommand] = CalibCommand,
    exit_code: Callable[[Any, Any], int] | None = None,
) -> Callable[[Callable[P, R]], Command[P, R]]:
    """Decorate a plain function to make it a command. The arguments are the fields of `Command`."""

    def make(run: Callable[P, R]) -> Command[P, R]:
        result: Command[P, R] = Command(run, example, kind, exit_code)
        result.__doc__ = run.__doc__
        return result

    return make


def check_option(option: str, is_valid: bool, expected: str, value: Any) -> None:
    """Check the value of an option. RAISES C056: it is not valid."""
    if not is_valid:
        raise calib_error("C056", option=option, wanted=expected, given=value)


def check_raw_cells(raw_cells: bool, as_csv: bool) -> None:
    """Check --raw-cells. RAISES C056: it is given, but no CSV is written."""
    check_option("--raw-cells", as_csv or not raw_cells, "left out where no CSV is written", "it")


def check_path(option: str, path: Path | str | None) -> None:
    """Check that the system accepts a path. RAISES C056: a name in it is too long, or a folder may not be entered."""
    try:
        Path(path or "").stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:
        check_option(option, False, f"a path that the system accepts ({error.strerror})", Path(path or ""))


@contextlib.contextmanager
def folder_errors() -> Iterator[None]:
    """Turn an OSError of the block (or decorated function), which lists folders, into C491.

    The system refuses to list a folder, or it was removed meanwhile.
    """
    try:
        yield
    except OSError as error:
        raise calib_error("C491", path=error.filename, why=error.strerror or error) from None


def check_confidence(confidence: float) -> None:
    """Check --confidence. RAISES C056: out of range, which excludes values that floats cannot distinguish from 0 and 1."""
    minimum, maximum = 0.001, 0.99999
    check_option("--confidence", minimum <= confidence <= maximum, f"between {minimum} and {maximum}", confidence)


def check_registered(setting: str, registry: str, name: object) -> None:
    """Check that a registry has a function of this name. RAISES C195: it has none."""
    from ...calibration.registered import REGISTRIES

    if name not in REGISTRIES[registry]:
        names = ", ".join(sorted(REGISTRIES[registry].get_all()))
        raise calib_error("C195", setting=setting, registry=registry, given=name, names=names)


def with_names(help: str) -> str:
    """Fill the placeholder METHODS in the help of an option; only `--help` needs these names."""
    from ...calibration.registered import recalibrators

    return help.replace(METHODS, ", ".join(recalibrators())) if METHODS in help else help


def method_name(method: str) -> str:
    """Return the registered name of a recalibrator, also from its short name. RAISES C056: unknown. C185: ambiguous."""
    from ...calibration.registered import REGISTRIES, recalibrators

    by_short_name, registry = recalibrators(), REGISTRIES["calib_recalibrators"]
    if method in by_short_name and method not in registry:
        return str(by_short_name[method].registered)
    names = ", ".join(("auto", *by_short_name))
    check_option("--method", method in registry, f"one of {names} or a registered recalibrator", repr(method))
    return method
