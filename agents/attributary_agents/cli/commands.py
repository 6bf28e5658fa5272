"""What commands share: groups that ask where a name is misspelt, in the order of a newcomer, and common options."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from attributary_explainers.wording import did_you_mean, printable, show_names

from ..config.environment import forget_secrets
from ..config.reading import load_config
from ..config.settings import Config
from ..errors import AttributaryError
from ..logs import without_user

if TYPE_CHECKING:
    from ..config.models import ModelConfig
    from ..files.source import Source

F = TypeVar("F", bound=Callable[..., Any])

SECTIONS = {
    "Begin here": ("demo", "config", "check", "replay", "run", "serve"),
    "On Kafka": ("sources", "map", "topics", "produce", "importance", "incidents", "dlq", "models", "demo-stream"),
    "Around it": ("webhooks", "plan", "rules", "dashboards", "contracts"),
}
"""The commands of `attributary` as its help lists them."""


_WHOLE = 1000  # characters: no sentence of a command is cut


class Commands(click.Group):
    """A group that asks whether another of its commands is meant where it has none of the given name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name.

        Raises
        ------
        click.UsageError
            There is none.
        """
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            remedy = did_you_mean(args[0], self.commands) or f"; there are {', '.join(self.commands)}"
            ctx.fail(f"No such command {args[0]!r}{remedy}")
        return super().resolve_command(ctx, args)


class Names(click.Choice[str]):
    """A choice of names that asks whether another one is meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return what is said of a name that is none of the choices."""
        return super().get_invalid_choice_message(value, ctx).rstrip(".") + did_you_mean(value, self.choices)


class Numbers(click.FloatRange):
    """A number in a range: `FloatRange` lets nan through, which no comparison holds back, and inf."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or end the command where it is none."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number to count with", param, ctx)
        return float(number)


class Count(click.ParamType):
    """A number from 1 on, or `auto`."""

    name = "integer|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or `auto`."""
        text = str(value)
        if text == "auto" or (text.isdecimal() and int(text) > 0):
            return text if text == "auto" else int(text)
        return self.fail(f"expected a number from 1 on, or auto, got {text!r}", param, ctx)


class Sections(Commands):
    """A group whose help lists its commands by `SECTIONS`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section with its commands."""
        known = {name for names in SECTIONS.values() for name in names}
        sections = {**SECTIONS, "Further": tuple(name for name in self.commands if name not in known)}
        for title, names in sections.items():
            rows = [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in names if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def config_option(function: F) -> F:
    """Add `--config`, and pass the loaded and checked configuration."""
    option = click.option(
        "--config",
        "-c",
        "path",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="ATTRIBUTARY_CONFIG",
        default=None,
        help="Read the configuration from this YAML file; `attributary config example` prints one. [default: the file "
        "that ATTRIBUTARY_CONFIG names]",
    )

    @wraps(function)
    def loaded(path: Path | None, **kwargs: Any) -> Any:
        config = load_config(path)
        forget_secrets()
        _import_from(Path.cwd() if path is None else path.resolve().parent, Path.cwd())
        return function(config=config, **kwargs)

    return option(loaded)  # type: ignore[return-value]


def _import_from(*folders: Path) -> None:
    """Let models be imported from these folders, too: behind all that is installed, which they cannot replace."""
    sys.path += [folder for folder in dict.fromkeys(map(str, folders)) if folder not in sys.path]


def say(*fields: object, err: bool = False) -> None:
    """Print one line, its fields with tabs between them; whatever their names hold is escaped, passwords are masked.

    JSON is not printed by this: it has escapes of its own.
    """
    click.echo("\t".join(without_user(printable(field)) for field in fields), err=err)


def topic_remark(remark: str) -> str:
    """Return the line that says what of the topics is below what it should be: no fault, so it has another head."""
    return f"topics: {remark}"


def check_model_id(config: Config, model_id: str) -> None:
    """Raise AttributaryError where no model of this id is configured."""
    refuse_template(config, model_id)
    if config.find(model_id) is None:
        known = f"; configured are {show_names(config.models)}"
        raise AttributaryError(f"no model {model_id!r} is configured{did_you_mean(model_id, config.models) or known}")


def refuse_template(config: Config, model_id: str) -> None:
    """Raise AttributaryError where what should be a model id is a configured template."""
    if model_id in config.models and config.find(model_id) is None:
        raise AttributaryError(f"{model_id!r} is a template, and stands for all ids that it matches: name one of them")


def json_option(function: F) -> F:
    """Add `--json`."""
    return click.option("as_json", "--json", is_flag=True, help="Print JSON instead of text.")(function)


def target_option(function: F) -> F:
    """Add `--target`."""
    return click.option("--target", metavar="COLUMN", help="Column of FILE with the label. [default: the last one]")(
        function
    )


def drop_option(function: F) -> F:
    """Add `--drop`."""
    return click.option(
        "--drop",
        multiple=True,
        metavar="COLUMN[,COLUMN]",
        help="Leave these columns of the file out: identifiers, times, row numbers. Give it once or several times. "
        "[default: none]",
    )(function)


def open_observations(
    file: Path, target: str | None, drop: tuple[str, ...], model: ModelConfig | None = None
) -> Source:
    """Open a file of observations, and say on stderr which of its columns are hardly features.

    Of a model without labels no column is the label, unless one is named.
    """
    from ..files.source import doubtful_columns, open_source

    if target is None and model is not None and not model.has_labels:
        target = ""
    source = open_source(file, target, drop)
    for doubt in doubtful_columns(source):
        say(doubt, err=True)
    return source
