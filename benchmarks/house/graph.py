"""`graph`: draws the rooms of each package of the product, and prints rooms, floors, arrows, circles and widths."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .checkout import HERE, PACKAGES, package_folder
from .imports import KINDS, MODULE, TYPING, Graph, import_graph, together
from .picture import draw
from .rooms import circles, floors, room_graph, room_of, widths


@dataclass(frozen=True)
class House:
    """What the import statements of one package say."""

    name: str
    kinds: dict[str, Graph]
    widths: Counter[str]

    @classmethod
    def of(cls, package: Path) -> House:
        """Read the source of a package."""
        return cls(package.name, import_graph(package), widths(package))

    @property
    def files(self) -> Graph:
        """Which module imports which, by whatever kind of import."""
        return together(self.kinds, *KINDS)

    @property
    def rooms(self) -> Graph:
        """Which room imports which, by whatever kind of import."""
        return room_graph(self.files)

    def picture(self) -> str:
        """Return the SVG of the rooms."""
        rooms = self.rooms
        return draw(rooms, f"{self.name}: {_figures(rooms)}", dict(Counter(room_of(name) for name in self.files)))

    def report(self) -> list[str]:
        """Return the figures in words."""
        counts = {kind: sum(map(len, graph.values())) for kind, graph in self.kinds.items()}
        folder, n = self.widths.most_common(1)[0]
        lines = [
            f"{self.name}: {sum(self.widths.values())} modules in {len(self.widths)} folders; widest {folder}: {n}",
            f"  rooms   {_figures(self.rooms)}",
            "  imports " + ", ".join(f"{n} {kind}" for kind, n in counts.items()),
        ]
        for what, kinds in (("as Python runs it", (MODULE,)), ("with annotations", (MODULE, TYPING)), ("all", KINDS)):
            files = together(self.kinds, *kinds)
            found = circles(files), circles(room_graph(files))
            lines.append(f"  circles {what}: {len(found[0])} of files, {len(found[1])} of rooms")
            lines += [f"    {' <-> '.join(circle)}" for circle in (*found[0], *found[1])]
        return lines


def _figures(rooms: Graph) -> str:
    arrows = sum(map(len, rooms.values()))
    return f"{len(rooms)} rooms on {max(floors(rooms).values()) + 1} floors, {arrows} arrows"


def houses(checkout: Path) -> list[House]:
    """Return the house of each package of the product."""
    return [House.of(package_folder(checkout, package)) for package in PACKAGES]


def picture_path(checkout: Path, package: str) -> Path:
    """Return where the picture of a package is committed."""
    return checkout / "docs" / "images" / f"rooms-{PACKAGES[package]}.svg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `graph`."""
    parser.add_argument("checkout", nargs="?", type=Path, default=HERE, help="folder of a checkout (default: this one)")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a committed picture is not current"
    )
    parser.add_argument("--out", type=Path, help="folder for the pictures (default: docs/images of the checkout)")


def run(args: argparse.Namespace) -> int:
    """Print the figures, and write or compare the pictures."""
    stale = []
    for house in houses(args.checkout):
        print("\n".join(house.report()))
        path = picture_path(args.checkout, house.name)
        path = args.out / path.name if args.out else path
        if not args.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(house.picture(), encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != house.picture():
            stale.append(path)
    for path in stale:
        print(f"{path} is not current: run `make graph` and commit it")
    return 1 if stale else 0
