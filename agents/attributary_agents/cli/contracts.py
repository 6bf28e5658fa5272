"""`attributary contracts`: what is on the topics, for those who read or write them."""

from __future__ import annotations

from pathlib import Path

import click

from ..config.settings import Config
from ..errors import AttributaryError
from .commands import Commands, config_option, say


@click.group(cls=Commands)
def contracts() -> None:
    """Write down what is on the topics, as JSON Schema and AsyncAPI, and what the page's server answers, as OpenAPI."""


@contracts.command("export")
@config_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("contracts"),
    show_default=True,
    help="Write the files to this folder.",
)
def contracts_export(config: Config, out: Path) -> None:
    """Write a JSON Schema (2020-12) of each kind of record, and the AsyncAPI 3 document of the configured topics.

    The schemas are the same for every configuration; the document has its brokers, the names of its topics, their
    partitions and settings. openapi.json describes what `attributary serve` answers, for every configuration the same.

    \b
        attributary contracts export --out contracts
    """
    from ..contracts.asyncapi import OPENAPI, can_describe_rest, contract_files

    if not can_describe_rest():
        say(f"left out: {OPENAPI}, which needs the extra: pip install 'attributary[serve]'", err=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in contract_files(config).items():
            (out / name).write_text(text, encoding="utf-8")
            say(f"written: {out / name}")
    except OSError as error:
        raise AttributaryError(f"--out {out}: cannot write ({error.strerror})") from None
