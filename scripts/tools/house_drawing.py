"""The drawing of the rooms: which room of the core uses which, and the plug-ins below them, as SVG."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from tools.house import BASE, NUMERICAL, PLUGINS, House, reached, shortened


class Box(NamedTuple):
    room: str
    x: float
    y: float


WIDTH, BOX, HEIGHT, GAP = 960.0, 236.0, 68.0, 40.0
COLOURS = {
    "base": ("#eceff1", "#546e7a"), "numerical": ("#e0f2f1", "#00796b"), "spacy": ("#fff3e0", "#e65100"), "plugins": ("#ede7f6", "#4527a0"),
}  # fmt: skip


def reduced(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the arrows that a longer way says already."""

    reach = reached(arrows)
    return {
        (room, other)
        for room, other in arrows
        if not any(other in reach[between] for start, between in arrows if start == room and between != other)
    }


def floors(rooms: list[str], arrows: set[tuple[str, str]]) -> list[list[str]]:
    """Rooms by the longest way of imports down to a room that imports none, each then moved as near to those that use it as it can."""
    depth: dict[str, int] = {}
    for room in rooms:
        depth[room] = max((depth[other] + 1 for start, other in arrows if start == room and other in depth), default=0)
    for room in reversed(rooms):
        depth[room] = min((depth[user] - 1 for user, used in arrows if used == room), default=depth[room])
    return [[room for room in rooms if depth[room] == level] for level in range(max(depth.values()) + 1)]


def drawing(house: House) -> str:
    """An SVG: the rooms of the core, the first of the flow on top, each with arrows to those that use it (ways that others show are left out)."""
    rooms = [room for room in house.rooms if room not in (*BASE, "__init__")]
    drawn = {(room, other) for room, other in house.core_arrows() if room in rooms and other in rooms}
    boxes: dict[str, Box] = {}
    top = HEIGHT + GAP
    levels = floors(rooms, drawn)
    width = max(WIDTH, max(map(len, levels)) * (BOX + GAP / 2))  # boxes of one floor stand beside each other
    for number, floor in enumerate(levels):
        step = width / len(floor)
        for place, room in enumerate(floor):
            boxes[room] = Box(room, step * (place + 0.5), top + number * (HEIGHT + GAP))
    below = max(box.y for box in boxes.values()) + HEIGHT + GAP
    height = below + HEIGHT + 34
    names = ", ".join(plugin.removeprefix(f"{PLUGINS}/") for plugin in house.plugins)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" role="img" '
        'aria-label="The rooms of the core of spacy_calib, which room uses which, and the plug-ins">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#78909c"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        _box("base", ", ".join(BASE), "used by every room: messages, forms of saved state, types", width / 2, 8, width - 40),
        *(_arrow(boxes[other], boxes[room], list(boxes.values())) for room, other in sorted(reduced(drawn))),
        *(
            _box(
                "numerical" if box.room in NUMERICAL else "spacy",
                box.room,
                shortened(house.about(box.room)),
                box.x,
                box.y,
                BOX,
            )
            for box in boxes.values()
        ),
        _box("plugins", "plug-ins", f"{names}. {house.about(PLUGINS)}", width / 2, below, width - 40),
        f'<text x="20" y="{height - 10:g}" font-size="12" fill="#455a64">Green: numerical, never imports spaCy. Orange: on spaCy\'s side. '
        "An arrow leads from a room to one that uses it.</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box(kind: str, name: str, about: str, x: float, y: float, width: float) -> str:
    fill, ink = COLOURS[kind]
    lines = _folded(about, int(width / 5.9))
    text = "".join(
        f'<text x="{x:g}" y="{y + 36 + 13 * number:g}" font-size="10.5" text-anchor="middle" fill="#37474f">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect x="{x - width / 2:g}" y="{y:g}" width="{width:g}" height="{HEIGHT:g}" rx="7" fill="{fill}" stroke="{ink}"/>'
        f'<text x="{x:g}" y="{y + 20:g}" font-size="14" font-weight="bold" text-anchor="middle" fill="{ink}">{escape(name)}</text>{text}'
    )


def _folded(text: str, width: int) -> list[str]:
    """At most three lines of about this many characters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines[:3]


def _arrow(start: Box, end: Box, boxes: list[Box]) -> str:
    """From the lower edge of one box to the upper edge of another, between the boxes of the floors that it passes."""
    x, y = start.x, start.y + HEIGHT
    path = f"M{x:g} {y:g}"
    for height in sorted({box.y for box in boxes if start.y < box.y < end.y}):
        middles = sorted(box.x for box in boxes if box.y == height)
        gaps = [
            middles[0] - BOX / 2 - 16,
            *((a + b) / 2 for a, b in zip(middles, middles[1:], strict=False)),
            middles[-1] + BOX / 2 + 16,
        ]
        wanted = start.x + (end.x - start.x) * (height - start.y) / (end.y - start.y)
        gap = min(gaps, key=lambda place: abs(place - wanted))
        path += f"{_bend(x, y, gap, height)}V{height + HEIGHT:g}"
        x, y = gap, height + HEIGHT
    path += _bend(x, y, end.x, end.y)
    return f'<path d="{path}" fill="none" stroke="#78909c" stroke-width="1.4" marker-end="url(#tip)"/>'


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    return f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"
