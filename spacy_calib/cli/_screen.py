"""What is printed: wasabi's printer, which shows what texts and labels hold of control characters instead of sending it to the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wasabi import Printer

from ..corpus.visible import visible


class Screen(Printer):
    """As `wasabi.msg`, with everything that it is given made visible; line breaks stay, but not in a table's cells."""

    def text(self, title: Any = "", text: Any = "", *args: Any, **kwargs: Any) -> Any:
        return super().text(visible(title, keep="\n"), visible(text, keep="\n"), *args, **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        return super().divider(visible(text), *args, **kwargs)

    def table(self, data: Any, **kwargs: Any) -> Any:
        if isinstance(data, Mapping):
            data = {visible(name): visible(value) for name, value in data.items()}
        else:
            data = [[visible(cell) for cell in row] for row in data]
        return super().table(data, **kwargs)


msg = Screen()
