"""A command: a frozen dataclass of options, and a function that takes it.

Each option is one field. Its annotation says how it is written on the command line; from the fields come both the parameters that typer reads
and the keyword arguments of the function in Python.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Generic, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo

from ...errors import calib_error
from .checks import check_choice, check_number, check_path, listed
from .screen import user_errors

P = ParamSpec("P")
R = TypeVar("R")
# Under this key of a command line's `meta` stand options that typer does not read: field -> value.
MORE_OPTIONS = "spacy_calib.more_options"


class Declared(NamedTuple):
    """A field of the options as it is written on the command line.

    name (str): Name of the field. kind (Any): Type of its value, without None. optional (bool): Whether it may be None.
    info (OptionInfo | ArgumentInfo): The declaration for typer. default (Any): The default in Python; `MISSING` where there is none.
    """

    name: str
    kind: Any
    optional: bool
    info: OptionInfo | ArgumentInfo
    default: Any

    @property
    def flag(self) -> str:
        """The option's name on the command line."""
        return str(next(word for word in (self.info.default, *(self.info.param_decls or ())) if str(word).startswith("--")))

    @property
    def word(self) -> str:
        """What the user knows it by: its name on the command line, or the word that stands for it in the usage."""
        return str(self.info.metavar) if isinstance(self.info, ArgumentInfo) else self.flag

    @property
    def names_a_path(self) -> bool:
        """Whether it is a file or a folder, or several; a pipeline may be one."""
        return self.kind in (Path, list[Path]) or self.word == "MODEL"

    @property
    def parameter(self) -> inspect.Parameter:
        """What typer reads. A flag that is not given is off there, also one that is on in Python."""
        default = False if self.kind is bool and not self.optional else self.default
        kind = Union[self.kind, None] if self.optional else self.kind  # noqa: UP007  (typer before 0.10 does not know `X | None`)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            # The word makes it another one than Annotated[X | None, ...] of the field, which typing would give back for it.
            annotation=Annotated[kind, self.info, "for typer"],
        )


@functools.cache
def declared(options: Any) -> tuple[Declared, ...]:
    """The options of a class in the order of the command line: its arguments, the options that it alone has, those that it shares with others.
    One that it words anew stands where the shared one does; one that it declares without words it does not have.
    """
    of_name = {field.name: field for field in fields(options)}
    annotations: dict[str, Any] = {}
    for one in reversed(options.__mro__):
        every = inspect.get_annotations(one, eval_str=True)
        own = {name: kind for name, kind in every.items() if name in of_name and get_origin(kind) is Annotated}
        for name in every.keys() - own.keys():
            annotations.pop(name, None)
        annotations = {**{name: kind for name, kind in own.items() if name not in annotations}, **annotations, **own}
    found = []
    for name, annotation in annotations.items():
        kind, info = get_args(annotation)
        held = [one for one in get_args(kind) if one is not type(None)] if get_origin(kind) in (Union, UnionType) else [kind]
        factory = of_name[name].default_factory
        default = of_name[name].default if factory is MISSING else factory()
        found.append(Declared(name, held[0], held[0] is not kind, _named(name, info), default))
    places = list(of_name)  # of arguments in Python, and so on the command line
    return tuple(sorted(found, key=lambda one: places.index(one.name) if isinstance(one.info, ArgumentInfo) else len(places)))


@dataclass(frozen=True)
class Options:
    """The options of a command. When they are built, whole numbers, paths and words of a choice are checked, and a path may be given as text.

    RAISES C056: a value out of range, or a path that the system refuses.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for option in declared(kind):
            value = getattr(self, option.name)
            if option.kind is Path and isinstance(value, str):
                object.__setattr__(self, option.name, Path(value))
            if option.names_a_path:
                for path in value if isinstance(value, list) else [value]:
                    check_path(option.word, path)
            if option.kind is int and value is not None:
                check_number(option.name, option.flag, value)
            words = getattr(option.info, "words", ())
            if words and value is not None:
                check_choice(option.flag, words, value)
        self.check_options()

    def given(self) -> dict[str, Any]:
        """The options that were given: those that are neither None nor a flag that is off."""
        kind: Any = type(self)
        values = {option.name: getattr(self, option.name) for option in declared(kind)}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def check_options(self) -> None:
        """RAISES C056: what else may be wrong with the options of this command."""


def argument(word: str, help: str) -> Any:
    """An argument of a command line. word (str): What stands for it in the usage."""
    return typer.Argument(metavar=word, help=help)


def option(help: str, *flags: str, words: Sequence[str] = (), **settings: Any) -> Any:
    """An option, which is called as its field is, unless the flags name it otherwise.

    flags (str): Its letter, or all that it is called. words (Sequence[str]): Those that it is one of: shown in the help, completed by
    the shell, and checked when options are built. settings: Further ones of typer's.
    """
    if words:
        settings |= {
            "metavar": f"[{'|'.join(words)}]",
            "autocompletion": lambda incomplete: [one for one in words if one.startswith(incomplete)],
        }
    made = typer.Option(*flags, help=help, **settings)
    made.words = words
    return made


def _named(name: str, info: Any) -> Any:
    """The declaration with the option's name among its flags."""
    flags = [flag for flag in (info.default, *(info.param_decls or ())) if isinstance(flag, str)]
    if isinstance(info, ArgumentInfo) or any(flag.startswith("--") for flag in flags):
        return info
    named = copy.copy(info)
    named.default, named.param_decls = f"--{name.replace('_', '-')}", tuple(flags)
    return named


# Options that are no more than a setting of the config -> that setting.
_NOW_DOTTED = {
    "bins": "scorer.n_bins N", "beam-width": "source.beam_width N", "beam-density": "source.beam_density SHARE",
    "granularity": "source.granularity biluo", "coverage": "sets.coverage tag", "allow-empty-sets": "sets.nonempty false",
}  # fmt: skip
_OF_CONFIG = {"component": "source.component NAME", "attr": "attr PREFIX"}
# Commands, and options of commands, that there were -> what is written now.
GONE = {
    "fit-scores": "fit SCORES OUTPUT",
    "apply-scores": "apply CALIBRATOR SCORES OUTPUT",
    "report": "evaluate MODEL DATA --output page.html",
    "plot": "evaluate MODEL DATA --output picture.png",
    "watch --date": "watch --by KEY",
    **{f"{command} --by": f"{command} --order ORDER" for command in ("rank", "select")},
    "select --signal": "rank --order raw",
    **{f"select --per-{unit}": "select --max-words N" for unit in ("word", "sentence")},
    **{f"{command} --seed": f"{command} MODEL DATA" for command in ("evaluate", "rank")},
    **{f"fit --{option}": f"fit --components.calib.{setting}" for option, setting in _NOW_DOTTED.items()},
    "collect --granularity": "collect --components.calib.source.granularity biluo",
    "collect --threshold": "collect --components.calib.threshold SCORE",
    **{f"init-config --{option}": f"init-config --components.calib.{setting}" for option, setting in _OF_CONFIG.items()},
    **{f"evaluate {option} watch": "watch MODEL WINDOWS --output picture.png" for option in ("--kind", "-k")},
    **{f"select {option} doc": "select --unit document" for option in ("--unit", "-u")},
    "fit -b": "fit --components.calib.scorer.n_bins N",
    "adapt -C": "adapt --attr PREFIX",
    "init-config -C": "init-config --components.calib.source.component NAME",
    "stock --keep-calib": "fit --second-pass",
    "evaluate --title": "evaluate MODEL DATA --output page.html",
    "rank --doc-key": "rank MODEL DATA",
    "adapt --component": "adapt --attr PREFIX",
    "watch --confidence": "watch MODEL DATA",
    "select --rare-share": "select --order rare-tag --tag NAME",
    "collect --bounded": "collect MODEL DATA STATS",
    **{f"{command} --seed": f"{command} MODEL DATA" for command in ("expect", "count")},
    **{f"watch --{name}": "watch MODEL DATA" for name in ("gold-preproc", "doc-key")},
    **{
        f"{command} --{name}-column": f"{command} --columns {name}=NAME"
        for command in ("apply", "count", "expect", "rank", "select", "watch")
        for name in ("text", "id")
    },
}


def check_gone(command: str = "", *args: str) -> None:
    """RAISES C105: the command, or an option among its arguments, is gone."""
    options = [f"{command} {arg.partition('=')[0]}" for arg in args]
    values = [f"{command} {option} {value}" for option, value in pairwise(args)]
    for old in (command, *options, *values):
        if old in GONE:
            raise calib_error("C105", old=old, new=GONE[old])


class CalibCommand(TyperCommand):
    """Its help lists what is registered; options that are gone say what stands for them.

    headings (Mapping): Heading of the help -> names of the options below it; those that no heading has come first.
    """

    headings: Mapping[str, Sequence[str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        check_gone(str(self.name), *args)
        return list(super().parse_args(ctx, args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            if getattr(parameter, "help", None):
                parameter.help = listed(parameter.help)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        if not self.headings:
            super().format_options(ctx, formatter)
            return
        places = {name: heading for heading, names in self.headings.items() for name in names}
        sections: dict[str, list[Any]] = {heading: [] for heading in ("Arguments", "Options", *self.headings)}
        for one in self.get_params(ctx):
            heading = "Arguments" if one.param_type_name == "argument" else places.get(str(one.name), "Options")
            sections[heading].append(one.get_help_record(ctx))
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])


@dataclass(eq=False)
class Command(Generic[P, R]):
    """Called in Python with the fields of the options.

    options (Callable): The class of the options. run (Callable): Takes them. does (str): What the list of commands says of it.
    example (str): The end of a command line that works. kind (type): How its command line is read. exit_code (Callable): From the options
        and the result.
    """

    options: Callable[P, Any]
    run: Callable[[Any], R]
    does: str
    example: str
    kind: type[CalibCommand]
    exit_code: Callable[[Any, R], int]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(self.options(*args, **kwargs))

    @property
    def help(self) -> str:
        """What the docstring of the function says before it comes to what is returned and raised."""
        return (inspect.getdoc(self.run) or "").split("\n\nRETURNS")[0].split("\n\nRAISES")[0]

    def typer_function(self) -> Callable[..., None]:
        """What typer calls: with a parameter for each option."""

        def run(ctx: typer.Context, **given: Any) -> None:
            with user_errors():
                more = {name: read() for name, read in ctx.meta.get(MORE_OPTIONS, {}).items()}
                make: Any = self.options
                options = make(**{**given, **more})
                code = self.exit_code(options, self.run(options))
            if code:
                raise typer.Exit(code)

        parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
        parameters += [option.parameter for option in declared(self.options)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = self.help
        return run


def command(
    options: Callable[P, Any],
    *,
    does: str,
    example: str,
    kind: type[CalibCommand] = CalibCommand,
    exit_code: Callable[[Any, Any], int] = lambda options, result: 0,
) -> Callable[[Callable[[Any], R]], Command[P, R]]:
    """Make a command of a function that takes such options; see `Command`."""

    def make(run: Callable[[Any], R]) -> Command[P, R]:
        made = Command(options, run, does, example, kind, exit_code)
        made.__doc__ = run.__doc__
        return made

    return make
