"""Tests over text, of which there would be thousands: one each, which names all that fail."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(things: Iterable[Any] | Callable[[], Iterable[Any]]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a test of one thing. things: What it is called with, or a function that finds it out as the test runs."""

    def wrap(test: Callable[..., None]) -> Callable[[], None]:
        def run() -> None:
            every, failed = list(things() if callable(things) else things), []
            for thing in every:
                try:
                    test(thing)
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(f"{thing}: {type(error).__name__}: {error}")
            assert every, "there is nothing to test"
            assert not failed, "\n".join(failed)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        return run

    return wrap
