"""`attributary dlq`: lists and shows dead letters, and sends them again."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from attributary_explainers.wording import printable
from attributary_topics import REASONS, DeadLetter, event_time

from ..config.settings import Config
from ..errors import AttributaryError, PreflightError, UnsentError
from .commands import Commands, Names, config_option, json_option, say
from .progress import progress, told_when_slow

if TYPE_CHECKING:
    from ..kafka.dead_letters import Plan, ReadLetter, Wanted


_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Time(click.ParamType):
    """A date and time, or how long ago: `2026-11-25T20:00Z`, `2h`. Gives milliseconds since the epoch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the milliseconds, or end the command where it is no time."""
        if isinstance(value, int):
            return value
        if ago := re.fullmatch(r"(\d{1,9})([smhd])", value):
            return round((time.time() - int(ago[1]) * _UNITS_S[ago[2]]) * 1000)
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"expected a time such as 2026-11-25T20:00Z, or how long ago, 2h; got {value!r}", param, ctx)
        # Without a zone it is UTC, as everything that is printed.
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


F = TypeVar("F", bound=Callable[..., Any])

SHOWN_BYTES = 20_000
"""Bytes of a value that are shown."""


@click.group(cls=Commands)
def dlq() -> None:
    """List and show dead letters, the records that could not be used; send them again."""


def _choice(function: F) -> F:
    """Add the options that say which dead letters are wanted."""
    options = (
        click.option(
            "--reason",
            "reasons",
            type=Names(REASONS),
            multiple=True,
            help="Take those of this reason only; may be given several times. [default: all]",
        ),
        click.option(
            "--model",
            "models",
            multiple=True,
            help="Take those with this key only; may be given several times. [default: all]",
        ),
        click.option(
            "--since",
            type=Time(),
            help="Take those that became dead letters at this time or later: 2026-11-25T20:00Z, or 2h (ago). "
            "[default: all]",
        ),
        click.option(
            "--until", type=Time(), help="Take those that became dead letters before this time. [default: all]"
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@dlq.command("list")
@config_option
@_choice
@click.option(
    "--last", type=click.IntRange(min=1), default=100, show_default=True, help="Print at most this many, the latest."
)
@json_option
def dlq_list(
    config: Config,
    reasons: tuple[str, ...],
    models: tuple[str, ...],
    since: int | None,
    until: int | None,
    last: int,
    as_json: bool,
) -> None:
    """Print dead letters: time, id, model, stage, reason, message; and at the end how many there are by reason.

    The id is the topic, partition and offset of the record. Behind those that a worker has handled again since stands
    `replayed`, from its next checkpoint on.

    \b
        attributary dlq list --since 2h
        attributary dlq list --reason unknown_model --json
    """
    from ..kafka.dead_letters import Wanted

    rows: list[tuple[int, str, dict[str, Any]]] = []

    def take(read: ReadLetter) -> None:
        rows.append((read.time_ms, read.letter.id, _row(read)))

    def passed_over(n: int) -> None:
        if n:
            say(f"{config.kafka.topics.dead_letters} has {n} records that are no dead letters", err=True)

    _check(config)
    with told_when_slow(config):
        _read(config, Wanted(reasons, models, (), since, until), take, passed_over)
        is_done = _done(config) if rows else None
    rows.sort(key=lambda row: row[:2])
    for _, letter_id, row in rows:
        row["replayed"] = None if is_done is None else is_done(letter_id)
    for _, _, row in rows[-last:]:
        if as_json:
            click.echo(json.dumps(row))
        else:
            fields = (row[name] for name in ("time", "id", "model_id", "stage", "reason", "message"))
            say(*fields, *(["replayed"] if row["replayed"] else []))
    if not as_json:
        _say_counts([row for _, _, row in rows], min(last, len(rows)))


def _say_counts(rows: list[dict[str, Any]], shown: int) -> None:
    by_reason = Counter(row["reason"] for row in rows)
    n_done = sum(bool(row["replayed"]) for row in rows)
    said = [f"{_count(len(rows))}"]
    said += [f"{n} {reason} ({REASONS.get(reason, 'of another release')})" for reason, n in by_reason.most_common()]
    if n_done:
        said.append(f"{n_done} of them handled again since")
    if shown < len(rows):
        said.append(f"the last {shown} are above (--last)")
    say("; ".join(said))


def _row(read: ReadLetter) -> dict[str, Any]:
    letter = read.letter
    return {
        "time": event_time(read.time_ms),
        "id": letter.id,
        "model_id": read.model_id,
        "stage": letter.stage,
        "reason": letter.reason,
        "error": letter.error,
        "message": letter.message,
        "attempts": letter.attempts,
        "bytes": len(letter.value or b""),
        "lacks": letter.lacks or None,
    }


@dlq.command("show")
@click.argument("letter_id", metavar="ID")
@config_option
@json_option
def dlq_show(config: Config, letter_id: str, as_json: bool) -> None:
    """Print one dead letter: why it is one, its headers, and its value.

    A value in JSON is laid out; of other text and bytes what could write to a terminal is escaped. `dlq list` prints
    the ids.

    \b
        attributary dlq show attributary.observations.v1:0:4711
    """
    from ..kafka.dead_letters import Wanted

    found: list[ReadLetter] = []
    _check(config)
    with told_when_slow(config):
        _read(config, Wanted(ids=(letter_id,)), found.append)
    if not found:
        raise _unknown(config, [letter_id])
    letter = found[0].letter
    if as_json:
        headers = [[name, None if content is None else _text(content)] for name, content in letter.headers]
        value = None if letter.value is None else _text(letter.value)
        click.echo(json.dumps({**_row(found[0]), "key": _text(letter.key or b""), "headers": headers, "value": value}))
        return
    for name, text in _row(found[0]).items():
        if text is not None:
            say(f"{name.replace('_', ' ')}: {text}")
    for name, content in letter.headers:
        say(f"header {name}: {'(none)' if content is None else _text(content)}")
    say(f"key: {'(none)' if letter.key is None else _text(letter.key)}")
    click.echo(f"value:\n{printable(_laid_out(letter), keep=chr(10))}")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _laid_out(letter: DeadLetter) -> str:
    if letter.value is None:
        return "(none)"
    try:
        text = json.dumps(json.loads(letter.value), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = _text(letter.value[:SHOWN_BYTES])
        n_left = len(letter.value) - SHOWN_BYTES
    else:
        n_left = len(text) - SHOWN_BYTES
    return text[:SHOWN_BYTES] + (f"\n… {n_left} more" if n_left > 0 else "")


@dlq.command("replay")
@config_option
@_choice
@click.option("--id", "ids", multiple=True, help="Send the one of this id; may be given several times. [default: all]")
@click.option(
    "--to",
    type=Names(("ours", "origin")),
    default="ours",
    show_default=True,
    help="Send those of our topics back to them, where a worker handles each once; or those of other topics, which "
    "could not be mapped, back to those, where nothing guards against sending them twice.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be sent, and send nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def dlq_replay(
    config: Config,
    reasons: tuple[str, ...],
    models: tuple[str, ...],
    since: int | None,
    until: int | None,
    ids: tuple[str, ...],
    to: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Send dead letters again, to the topics and partitions from which they came, once what was wrong is mended.

    Each is the original record, with a header that names the dead letter. By it a worker drops what it has handled
    again before, so a replay that was ended can be begun again; it knows the last 40 000 of each partition. What fails
    again is a new dead letter. What was cut when it became one cannot be sent, and is named.

    \b
        attributary dlq replay --reason unknown_model --dry-run
        attributary dlq replay --model credit --since 2026-11-25T20:00Z --yes
        attributary dlq replay --id attributary.observations.v1:0:4711
    """
    from ..kafka.clients import client_log_muted
    from ..kafka.dead_letters import Wanted, plan_replay

    to_origin = to == "origin"
    _check(config)
    with told_when_slow(config), client_log_muted():
        is_done = (None if to_origin else _done(config)) or (lambda _: False)
        wanted = Wanted(reasons, models, ids, since, until)
        plan = asyncio.run(plan_replay(config, wanted, is_done, to_origin=to_origin))
    for letter_id, why in plan.refused.items():
        say(f"refused: {letter_id}: {why}", err=True)
    if plan.n_done:
        say(f"{_count(plan.n_done)} left out: handled again already")
    n = len(plan.places)
    if ids and not (n or plan.n_done or plan.refused):
        raise _unknown(config, ids)
    where = ", ".join(f"{number} to {topic}" for topic, number in sorted(plan.to.items()))
    said = f"{_count(n)} to send again{f': {where}' if where else ''}"
    if to_origin and n:
        said += ". Nothing there guards against sending them twice: whoever reads that topic sees each as a new record"
    say(said)
    if n and not dry_run:
        if not yes:
            if not sys.stdin.isatty():
                raise AttributaryError("nobody can be asked here whether they are to be sent: say it with --yes")
            click.confirm("Send them?", abort=True)
        _send(config, plan, to_origin)
    if plan.refused and not n:
        sys.exit(1)


def _send(config: Config, plan: Plan, to_origin: bool) -> None:
    from ..kafka.clients import client_log_muted
    from ..kafka.dead_letters import Replay

    with progress("replay", len(plan.places)) as shown, client_log_muted():
        replaying = Replay(config, plan, shown)
        try:
            asyncio.run(replaying.send())
        except (PreflightError, UnsentError, KeyboardInterrupt) as error:
            again = (
                "Run it again only for those that are not there, by --id: nothing drops what is sent twice"
                if to_origin
                else "Run it again: a worker drops those that it has handled"
            )
            n = replaying.acknowledged
            raise UnsentError(f"{str(error) or 'stopped'}. {_count(n)} acknowledged. {again}", n, 0) from None
    for letter_id, why in replaying.refused.items():
        say(f"refused: {letter_id}: {why}", err=True)
    say(f"{_count(replaying.acknowledged)} sent again")
    if replaying.refused:
        sys.exit(1)


def _check(config: Config) -> None:
    from ..kafka.topics import check_topics

    with told_when_slow(config):
        check_topics(config, config.kafka.topics.dead_letters)


def _read(
    config: Config,
    wanted: Wanted,
    take: Callable[[ReadLetter], None],
    passed_over: Callable[[int], None] = lambda _: None,
) -> None:
    from ..kafka.clients import client_log_muted
    from ..kafka.dead_letters import read_letters

    async def read() -> None:
        async for letter in read_letters(config, wanted, passed_over):
            take(letter)

    with client_log_muted():
        asyncio.run(read())


def _done(config: Config) -> Callable[[str], bool] | None:
    """Return what says of an id whether a worker has handled it again; None where that cannot be known."""
    from ..kafka.topics import check_topics
    from ..state.admin import replayed_letters

    try:
        check_topics(config, config.kafka.changelog)
        known = replayed_letters(config)
    except PreflightError as error:
        say(f"which have been handled again is not known: {error}", err=True)
        return None
    return lambda letter_id: any(one.knows(letter_id.encode("utf-8", "replace")) for one in known)


def _unknown(config: Config, ids: Any) -> AttributaryError:
    topic = config.kafka.topics.dead_letters
    return AttributaryError(f"{topic} has no dead letter {', '.join(ids)}: `attributary dlq list` prints the ids")


def _count(n: int) -> str:
    return f"{n} dead letter{'' if n == 1 else 's'}"
