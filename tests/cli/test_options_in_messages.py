"""No message names an option that the command lacks which prints it."""

import re

import pytest

from spacy_calib.cli import OURS, click_command
from spacy_calib.cli.shared.screen import with_own_options
from tests.sentences import MESSAGES, PACKAGE, WARNINGS

COMMANDS = {name: click_command(name) for name in OURS}
OPTIONS = {
    name: {*command.more_options, *(flag for parameter in command.params for flag in parameter.opts if flag.startswith("--"))}
    for name, command in COMMANDS.items()
}
# The room of a module -> the commands that run it; any other module belongs to all commands.
ROOMS = {"cli/fitting/adapt_output": ["adapt"], "cli/fitting": ["fit"], "cli/evaluating": ["evaluate"]}
ROOMS |= {
    module.lstrip(".").replace(".", "/") if module.startswith("..") else f"cli/{module[1:]}": [name]
    for name, (module, _) in OURS.items()
}
SOURCES = {
    file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf8")
    for file in PACKAGE.rglob("*.py")
    if file.name != "messages.py"
}
OPTION = r"--[a-z][a-z-]*"
ALL = {**MESSAGES, **WARNINGS}
NAMING = [code for code, sentence in ALL.items() if re.search(OPTION, sentence)]


def commands_of(code):
    """The commands that may print a message, by the modules that name its code."""
    names = set()
    for file, source in SOURCES.items():
        if f'"{code}"' in source:
            names |= set(next((of_room for room, of_room in ROOMS.items() if file.startswith(room)), COMMANDS))
    # An output can only be in the way of a command that writes one.
    return names if code != "C054" else {name for name in names if "--output" in OPTIONS[name]}


@pytest.mark.parametrize("code", NAMING)
def test_a_message_names_only_options_of_the_command_that_prints_it(code):
    for name in commands_of(code):
        shown = re.sub("`[^`]*`", "", with_own_options(ALL[code], OPTIONS[name]))
        assert set(re.findall(OPTION, shown)) <= OPTIONS[name], (name, shown)


@pytest.mark.parametrize("code", NAMING)
def test_an_example_of_a_command_in_a_message_has_only_options_of_that_command(code):
    for text in re.findall("`([^`]*)`", ALL[code]):
        names = [name for name in COMMANDS if re.search(rf"\b{name}\b", text.partition("--")[0])]
        for name in names[:1]:
            assert set(re.findall(OPTION, text)) <= OPTIONS[name], text


def test_a_note_on_an_option_is_printed_by_commands_that_have_it():
    sentence = "Give fewer bins (--bins)."
    assert with_own_options(sentence, {"--bins"}) == sentence
    assert with_own_options(sentence, {"--method"}) == "Give fewer bins."
