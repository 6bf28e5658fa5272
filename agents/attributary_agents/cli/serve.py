"""`attributary serve`: the page that people look at."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from ..config.settings import Config
from ..errors import ConfigError
from ..logs import configure_logging
from .commands import config_option

_NEEDED = ("fastapi", "uvicorn", "httpx", "stamina")


@click.command()
@config_option
@click.option("--host", help="Listen on this address. [default: serve.host, 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Listen on this port; 0 takes a free one. [default: serve.port, 6080]"
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep what was read in this file, which can be deleted at any time. [default: serve.store, one per group "
    "below ~/.cache/attributary]",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def serve(config: Config, open_browser: bool, **given: Any) -> None:
    """Serve the page that shows what all models rely on, and what has changed, until Ctrl-C or SIGTERM.

    Reads importances, changes, dead letters and statuses of the whole group from their topics into a file, however
    many workers there are, and costs them nothing. The page is there at once, and fills while the past is read. While
    no broker answers, it shows what was read until then.

    The same as JSON is below /api/v1, described by /api/openapi.json; /metrics, /livez and /readyz are of the server
    itself.

    \b
        attributary serve --config attributary.yaml
        attributary serve --config attributary.yaml --port 0 --open
        ATTRIBUTARY_SERVE__TOKEN_ENV=TOKEN attributary serve -c attributary.yaml --host 0.0.0.0
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the page needs {missing[0]}, which is not installed: pip install 'attributary[serve]'")
    from ..serve.server import Shown, run_server

    found = {name: value for name, value in given.items() if value is not None}
    config = config.model_copy(update={"serve": config.serve.model_copy(update=found)})
    configure_logging(config.log.level)

    def address(at: str) -> None:
        token = config.serve.token_env
        asks = f", with the token in {token}" if token else ""
        click.echo(f"the page is at {at}{asks}")
        if open_browser:
            webbrowser.open(at)

    with _share() as share:
        run_server(config, Shown(address, share))


@contextmanager
def _share() -> Iterator[Callable[[float], None]]:
    """Give a function that shows on a terminal how much of the past is read; elsewhere the log says when it is all."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("reading what the topics have", total=1.0)

    def show(share: float) -> None:
        if share < 1.0:
            bar.start()
        bar.update(task, completed=share)
        if share >= 1.0:
            bar.stop()

    try:
        yield show
    finally:
        bar.stop()
