"""Tables of texts, for the screen and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def as_markdown(table: Table) -> str:
    """For a page."""
    lines = [table.header, ("---",) * len(table.header), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def filled(page: str, shown: Iterable[Table]) -> str:
    """The page with these tables: each follows a line `<!-- table: name -->`, up to an empty line."""
    for table in shown:
        mark = f"<!-- table: {table.name} -->\n"
        before, found, after = page.partition(mark)
        if not found:
            raise ValueError(f"the page has no line {mark.strip()}")
        page = before + mark + as_markdown(table) + "\n\n" + after.partition("\n\n")[2]
    return page


def as_rich(table: Table) -> RichTable:
    """For the screen."""
    drawn = RichTable(title=table.title, title_justify="left", title_style="bold")
    for column in table.header:
        drawn.add_column(column, overflow="fold")
    for row in table.rows:
        drawn.add_row(*row)
    return drawn
