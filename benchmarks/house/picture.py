"""Draws a graph of rooms as SVG: what needs most stands on top, every arrow points down, the same text every time."""

from __future__ import annotations

from html import escape

from .imports import Graph
from .rooms import circles, floors, implied

BOX, GAP, LINE, FLOOR, MARGIN = 26, 16, 7.2, 74, 24
"""Height of a box, space between two, width of a letter, height of a floor, space around all (pixels)."""
STYLE = (
    "text{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1b2733;text-anchor:middle}"
    ".head{font-weight:bold;font-size:14px;text-anchor:start}.note{fill:#5b6770;text-anchor:start}"
    "rect.room{fill:#eef4fa;stroke:#34597c;rx:5px}path{fill:none;stroke:#34597c;stroke-width:1.2}"
    "path.implied{stroke:#c3ced9;stroke-width:1}path.circle{stroke:#c0392b;stroke-width:2}"
)


def draw(graph: Graph, title: str, sizes: dict[str, int]) -> str:
    """Return the picture of a graph.

    Parameters
    ----------
    sizes
        Number of modules of each room, which stands in its box where there is more than one.
    """
    labels = {room: room if sizes[room] == 1 else f"{room} · {sizes[room]}" for room in graph}
    wide = {room: len(label) * LINE + 18 for room, label in labels.items()}
    rows = arranged(graph)
    spans = [sum(wide[room] for room in row) + GAP * (len(row) - 1) for row in rows]
    width = max(*spans, len(title) * 9.0, 720.0) + 2 * MARGIN
    height = len(rows) * FLOOR + 2 * MARGIN + 20
    at: dict[str, tuple[float, float]] = {}
    for n, (row, span) in enumerate(zip(rows, spans, strict=True)):
        # Floors of few rooms are spread out, so that arrows do not lie on one another.
        spread = max(0.0, (width * 0.7 - span) / (len(row) + 1)) if len(row) > 1 else 0.0
        x = (width - span - spread * (len(row) - 1)) / 2
        for room in row:
            at[room] = (x + wide[room] / 2, MARGIN + 44 + n * FLOOR)
            x += wide[room] + GAP + spread
    note = "number: modules in the room · pale: also reached through another room"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0L8,4L0,8z" style="fill:#34597c;stroke:none"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text class="head" x="{MARGIN}" y="{MARGIN + 4}">{escape(title)}</text>',
        f'<text class="note" x="{MARGIN}" y="{height - 12:.0f}">{escape(note)}</text>',
        *_arrows(graph, at),
    ]
    for row in rows:
        for room in row:
            x, y = at[room]
            parts.append(
                f'<rect class="room" x="{x - wide[room] / 2:.1f}" y="{y:.1f}" width="{wide[room]:.1f}" '
                f'height="{BOX}"/><text x="{x:.1f}" y="{y + 17:.1f}">{escape(labels[room])}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _arrows(graph: Graph, at: dict[str, tuple[float, float]]) -> list[str]:
    """Return the arrows, the pale ones first, so that they lie below."""
    pale = implied(graph)
    in_circle = [set(circle) for circle in circles(graph)]
    drawn = []
    for room in sorted(graph):
        for needed in sorted(graph[room]):
            (x, y), (to_x, to_y) = at[room], at[needed]
            if any({room, needed} <= circle for circle in in_circle):
                rank, kind = 2, "circle"
                path = f"M{x:.1f},{y + BOX}C{x:.1f},{y + 60:.1f} {to_x:.1f},{to_y + 60:.1f} {to_x:.1f},{to_y + BOX}"
            else:
                rank, kind = (0, "implied") if (room, needed) in pale else (1, "direct")
                half = (to_y - y - BOX) / 2
                path = (
                    f"M{x:.1f},{y + BOX:.1f}C{x:.1f},{y + BOX + half:.1f} "
                    f"{to_x:.1f},{to_y - half:.1f} {to_x:.1f},{to_y - 2:.1f}"
                )
            drawn.append((rank, f'<path class="{kind}" d="{path}" marker-end="url(#tip)"/>'))
    return [path for _, path in sorted(drawn, key=lambda item: item[0])]


def arranged(graph: Graph) -> list[list[str]]:
    """Return the floors from the top, each in an order that keeps rooms near to what they need and serve."""
    floor = floors(graph)
    rows = [sorted(room for room in graph if floor[room] == level) for level in range(max(floor.values()), -1, -1)]
    users: Graph = {room: {other for other in graph if room in graph[other]} for room in graph}
    for _ in range(8):
        for row in [*rows, *reversed(rows)]:
            place = {room: (n + 0.5) / len(line) for line in rows for n, room in enumerate(line)}
            near = {room: [place[other] for other in sorted(graph[room] | users[room])] or [0.5] for room in row}
            row.sort(key=lambda room: (round(sum(near[room]) / len(near[room]), 9), room))
    return rows
