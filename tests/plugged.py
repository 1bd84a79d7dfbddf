"""Whether all plug-ins of the package are installed: the core is also tested without them."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from spacy_calib.cli import ORDER, command_names
from spacy_calib.plugins import OUTPUTS

MISSING = [name for name in ORDER if name not in command_names()]
# What `evaluate` cannot write, and the options that come with it.
MISSING_OUTPUTS = {name for names in OUTPUTS.values() for name in names} - entry_points(group="spacy_calib_outputs").names
OPTIONS_OF_OUTPUTS = {"--kind", "-k", "--tag", "-T", "--unit", "-u", "--find-slices"}


def skip_what_needs_a_plugin(command: str, *arguments: object) -> None:
    """Skip the test if the plug-in is missing that a command, or an output of `evaluate`, comes from."""
    if command in MISSING:
        pytest.skip(f"the plug-in with the command {command} is not installed")
    words = set(map(str, arguments))
    asked = {Path(word).suffix.lower() for word in words} & MISSING_OUTPUTS or (MISSING_OUTPUTS and words & OPTIONS_OF_OUTPUTS)
    if command == "evaluate" and asked:
        pytest.skip(f"the plug-in with the outputs {', '.join(sorted(asked))} is not installed")


# For tests of the whole package.
needs_all_plugins = pytest.mark.skipif(bool(MISSING), reason=f"without the plug-ins with the commands {', '.join(MISSING)}")
