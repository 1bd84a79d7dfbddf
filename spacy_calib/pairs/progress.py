"""Reports of the progress of a long computation, as the share of the whole that is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

Step = TypeVar("Step")


@dataclass(frozen=True)
class Progress:
    """A stretch of a computation, which reports how much of the whole is done.

    report (Callable | None): Receives the share of the whole that is done, from 0 to 1, and the name of the stage; None
        reports nothing. start, stop (float): The shares at both ends of the stretch. stage (str): Its name.
    """

    report: Callable[[float, str], None] | None = None
    start: float = 0.0
    stop: float = 1.0
    stage: str = ""

    def update(self, share: float) -> None:
        """Report that this share of the stretch is done."""
        if self.report is not None:
            self.report(self.start + share * (self.stop - self.start), self.stage)

    def track(self, steps: Iterable[Step], n: int | None = None) -> Iterator[Step]:
        """Yield the steps, each an equal share of the stretch; report the start of each, and the end.

        n (int | None): Number of steps; None takes len(steps), or 1 if they have no length.
        """
        total = n or (len(steps) if isinstance(steps, Collection) else 1)
        for number, step in enumerate(steps):
            self.update(min(1.0, number / total))
            yield step
        self.update(1.0)

    def parts(self, *sizes: float, stages: Iterable[str] = ()) -> list[Progress]:
        """Divide the stretch into parts of these relative sizes. stages: Their names; by default that of the stretch."""
        shares = [sum(sizes[:i]) / (sum(sizes) or 1.0) for i in range(len(sizes))]  # share of the stretch before each part
        bounds = [*(self.start + share * (self.stop - self.start) for share in shares), self.stop]
        names = [*stages] or [self.stage] * len(sizes)
        parts = zip(names, bounds, bounds[1:], strict=False)
        return [replace(self, start=start, stop=stop, stage=name) for name, start, stop in parts]


UNREPORTED = Progress()  # the default: reports nothing
