"""Fixtures of the command line for the tests of commands of plug-ins."""

from tests.cli.conftest import *  # noqa: F403
from tests.cli.test_documents import articles  # noqa: F401
