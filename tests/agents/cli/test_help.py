"""Every command answers --help, and says what each of its options is for."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from attributary_agents.cli.commands import SECTIONS
from attributary_agents.cli.main import cli


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


ALL = list(commands(cli))


COMMANDS = """
run, serve, replay, produce, check, importance, incidents, dlq, dlq list, dlq show, dlq replay, demo, demo-stream,
config, config show, config example, config schema, models, models deploy, models list, models export, models import,
models reset, plan, rules, rules export, sources,
sources suggest, sources status, sources reset, map, topics, topics list, topics create, dashboards,
dashboards export, contracts, contracts export, webhooks, webhooks list, webhooks test
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


FIRST = ["demo", "config", "check", "replay", "run"]


def test_the_help_begins_with_what_a_newcomer_needs() -> None:
    lines = CliRunner().invoke(cli, ["--help"]).output.splitlines()
    begin = lines.index("Begin here:")
    assert [line.split()[0] for line in lines[begin + 1 :] if line.startswith("  ") and line[2] != " "][:5] == FIRST
    assert "..." not in "\n".join(lines[begin:])
    listed = {name for names in SECTIONS.values() for name in names}
    assert listed == set(cli.commands)


@pytest.mark.parametrize(
    ("path", "command"),
    [(path, command) for path, command in ALL if not isinstance(command, click.Group)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_s_help_has_an_example_and_whole_sentences(path: tuple[str, ...], command: click.Command) -> None:
    output = CliRunner().invoke(cli, [*path, "--help"]).output
    assert f"\n      attributary {' '.join(path)}" in output
    assert all(line.rstrip().endswith((".", "]")) for p in command.params for line in [getattr(p, "help", None) or "."])
    assert [p.name for p in command.params if isinstance(p, click.Option) and not _says_its_default(p)] == []


# What is left out where another option, or FILE, says the same.
INSTEAD = ("class_path", "factory", "artefact", "mlflow")


def _says_its_default(option: click.Option) -> bool:
    is_said = bool(option.show_default) or "[default: " in (option.help or "")
    return is_said or option.is_flag or option.required or option.name in INSTEAD


def test_the_help_of_a_deployment_names_every_way_to_give_a_model() -> None:
    output = " ".join(CliRunner().invoke(cli, ["models", "deploy", "--help"]).output.split())
    ways = ("class: ", "a list of steps", "{factory: ", "{served: ", "`artefact: ", "`mlflow: ")
    assert [way for way in ways if way not in output] == []


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        (["chek"], "No such command 'chek': did you mean 'check'?"),
        (["models", "deplyo"], "No such command 'deplyo': did you mean 'deploy'?"),
        (["topics", "frobnicate"], "No such command 'frobnicate'; there are list, create"),
        (["config", "exmaple"], "did you mean 'example'?"),
        (["rules", "exprt"], "did you mean 'export'?"),
        (["dashboards", "exprt"], "did you mean 'export'?"),
        (["replay", "x.csv", "--modle", "m"], "--model"),
        (["rules", "export", "--format", "kubernets"], "did you mean 'kubernetes'?"),
    ],
)
def test_a_misspelt_command_is_asked_about(arguments: list[str], question: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert question in result.output


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert version("attributary") in CliRunner().invoke(cli, ["--version"]).output


def test_an_unknown_command_is_a_user_s_fault() -> None:
    assert CliRunner().invoke(cli, ["explain"]).exit_code == 2
