"""What the commands have in common with each other and with spaCy's own: letters, names, choices, examples."""

import itertools
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import spacy.cli  # noqa: F401  (adds spaCy's commands to its app)
from spacy.cli._util import app
from typer.main import get_command

from spacy_calib.about import __url__
from spacy_calib.cli import calib_cli, help_lines
from tests.cli.conftest import calib, declared_kinds, refuses

OURS = get_command(calib_cli).commands
# spaCy's commands that run a pipeline over data, as ours do.
LIKE_OURS = (("evaluate",), ("apply",), ("train",), ("find-threshold",), ("benchmark", "speed"), ("benchmark", "accuracy"))
# The number of bins had this letter first, and has nothing to do with batches.
KEPT = {"-b"}


def letters(command: Any) -> Iterator[tuple[str, frozenset[str]]]:
    """(letter, its long spellings) for every option that has a letter."""
    for option in command.params:
        spellings = [*option.opts, *option.secondary_opts]
        long = frozenset(spelling for spelling in spellings if spelling.startswith("--"))
        yield from ((spelling, long) for spelling in spellings if re.fullmatch(r"-[^-]+", spelling))


def spacy_letters() -> dict[str, set[frozenset[str]]]:
    found = defaultdict(set)
    for path in LIKE_OURS:
        command = get_command(app)
        for name in path:
            command = command.commands[name]
        for letter, long in letters(command):
            found[letter].add(long)
    return found


def test_one_letter_means_one_thing_in_all_commands():
    meanings = defaultdict(set)
    for command in OURS.values():
        for letter, long in letters(command):
            meanings[letter].add(long & {"--top"} or long)
    assert {letter: long for letter, long in meanings.items() if len(long) > 1} == {}


def test_an_option_of_several_commands_has_the_same_letter_in_all_of_them():
    of_option = defaultdict(set)
    for command in OURS.values():
        for option in command.params:
            short = [spelling for spelling in option.opts if not spelling.startswith("--")]
            for long in set(option.opts) - set(short):
                of_option[long].add(tuple(short))
    assert {long: short for long, short in of_option.items() if len(short) > 1} == {}


def test_letters_mean_what_they_mean_in_the_commands_of_spacy():
    theirs = spacy_letters()
    assert {"-G", "-c", "-g", "-o"} <= set(theirs)
    other = []
    for name, command in OURS.items():
        for letter, long in letters(command):
            if letter in theirs and letter not in KEPT and len(theirs[letter]) == 1:
                other += [(name, letter, long)] * (not long & next(iter(theirs[letter])))
    assert other == []


@pytest.mark.parametrize("command", OURS)
def test_what_is_read_is_called_data_everywhere(command):
    names = [
        param.make_metavar() if not param.metavar else param.metavar
        for param in OURS[command].params
        if param.param_type_name == "argument"
    ]
    assert names in (["MODEL"], ["MODEL", "DATA"], ["MODEL", "OUTPUT"], ["MODEL", "DATA", "OUTPUT"])


@pytest.mark.parametrize("command", OURS)
def test_the_help_has_an_example_that_can_be_read_and_the_address_of_the_documentation(command):
    shown = calib(command, "--help").printed
    line = next(line for line in shown.splitlines() if "python -m spacy calib" in line and "Usage" not in line)
    words = shlex.split(line)
    assert words[:5] == ["python", "-m", "spacy", "calib", command]
    first = next(param.name for param in OURS[command].params if param.param_type_name == "argument")
    assert str(OURS[command].make_context(command, words[5:]).params[first]) == words[5]
    assert shown.rstrip().endswith(__url__)
    assert "RETURNS" not in shown  # that is for Python


def test_the_list_of_commands_tells_each_in_one_whole_line():
    lines = [line.split(maxsplit=1) for line in calib("--help").printed.splitlines()]
    shown = {line[0]: line[1].strip() for line in lines if len(line) == 2 and line[0] in OURS}
    assert shown == help_lines()
    assert len(set(shown.values())) == len(OURS)


def test_choices_are_shown_as_choices_and_completed():
    shown = {
        (name, option.opts[0]): option
        for name, command in OURS.items()
        for option in command.params
        if "|" in (option.metavar or "")
    }
    assert {option for _, option in shown} == {"--format", "--unit", "--order", "--kind", "--per", "--event"}
    assert "[calibrated|raw|margin|random]" in calib("rank", "--help").text
    command = OURS["rank"]
    words = shown["rank", "--order"].shell_complete(command.make_context("rank", ["model", "data"]), "ra")
    assert [getattr(word, "value", word) for word in words] == ["raw", "random"]


def places(name: str) -> list[Any]:
    """What a command reads and writes: the arguments and options that are files or folders, and the pipeline, which may be one."""
    kinds = declared_kinds(name)
    return [param for param in OURS[name].params if param.name == "model" or "Path" in kinds.get(param.name, "")]


@pytest.mark.parametrize("command", OURS)
def test_a_name_that_the_system_refuses_is_one_sentence_wherever_it_is_given(command, calibrated, test_file, tmp_path):
    """A name has 255 bytes at most on every usual file system."""
    usual = {"model": calibrated, "data": test_file}
    arguments = [param for param in OURS[command].params if param.param_type_name == "argument"]
    assert places(command)
    for place, suffix in itertools.product(places(command), ("", ".csv", ".jsonl")):
        long = tmp_path / ("n" * 300 + suffix)
        words = [long if param is place else usual.get(param.name, tmp_path / f"out{suffix}") for param in arguments]
        outcome = calib(command, *words, *([] if place in arguments else [place.opts[0], long]))
        refuses(outcome, "File name too long")
        assert outcome.text.count(str(long)) == 1
    assert list(tmp_path.iterdir()) == []
