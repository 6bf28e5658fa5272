"""Every command answers --help, and says what each of its options is for."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from attributary_agents.cli.main import cli


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


ALL = list(commands(cli))


COMMANDS = """
run, replay, produce, check, changes, demo, demo-stream, warm-up, config, config show, config example, config schema,
models, models deploy, models list, models export, models import, models reset, rules, rules export, rules thresholds,
topics, topics list, topics create, dashboards, dashboards export
"""


def test_these_are_the_commands() -> None:
    assert {" ".join(path) for path, _ in ALL} == {"", *(name.strip() for name in COMMANDS.split(","))}


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "attributary" for path, _ in ALL])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(path: tuple[str, ...], command: click.Command, flag: str) -> None:
    result = CliRunner().invoke(cli, [*path, flag])

    assert result.exit_code == 0
    assert (command.help or "").strip().splitlines()[0] in " ".join(result.output.split())
    undescribed = [p.name for p in command.params if isinstance(p, click.Option) and not (p.help or "").strip()]
    assert undescribed == []


def test_no_command_lists_them() -> None:
    result = CliRunner().invoke(cli, [])
    assert "Usage:" in result.output
    assert "replay" in result.output


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert version("attributary") in CliRunner().invoke(cli, ["--version"]).output


def test_an_unknown_command_is_a_user_s_fault() -> None:
    assert CliRunner().invoke(cli, ["explain"]).exit_code == 2
