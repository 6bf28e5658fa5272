"""`attributary webhooks`: lists the addresses that are told, and tries one."""

from __future__ import annotations

import asyncio
import secrets
import time

import click

from attributary_explainers.wording import did_you_mean, show_names
from attributary_topics import event_time

from ..config.settings import Config
from ..errors import AttributaryError
from .commands import Commands, config_option, say


@click.group(cls=Commands)
def webhooks() -> None:
    """List or try the webhooks of `attributary serve`."""


@webhooks.command("list")
@config_option
def webhooks_list(config: Config) -> None:
    """Print each webhook, without the secrets in its address.

    \b
        attributary webhooks list
    """
    from ..serve.webhooks.target import shown_address

    if not config.serve.webhooks:
        say("none is configured: serve.webhooks", err=True)
    for name, webhook in config.serve.webhooks.items():
        say(name, webhook.severity, webhook.format, shown_address(webhook))


@webhooks.command("test")
@click.argument("name")
@config_option
def webhooks_test(config: Config, name: str) -> None:
    """Send a made event to the webhook NAME once, signed as all are, and print what it answers.

    The event is of the type attributary.test.v1. It is on no topic, and no server need run.

    \b
        attributary webhooks test ops
    """
    from ..serve.webhooks.target import DeliveryError, Revision, Target, shown_address

    if (webhook := config.serve.webhooks.get(name)) is None:
        known = config.serve.webhooks
        there = f"; there are {show_names(known)}" if known else ": serve.webhooks has none"
        raise AttributaryError(f"no webhook {name!r} is configured{did_you_mean(name, known) or there}")
    headline = f"This is a test of Attributary's webhook {name}"
    event = Revision(
        f"test:{secrets.token_hex(8)}",
        "/attributary/webhooks",
        "attributary.test.v1",
        "test",
        event_time(int(time.time() * 1000)),
        {"event": "test", "model_id": "test", "headline": headline, "sentence": f"{headline}: no model has changed."},
    )

    async def send() -> int:
        target = Target(name, webhook)
        try:
            return await target.attempt(event)
        finally:
            await target.close()

    try:
        status = asyncio.run(send())
    except DeliveryError as error:
        raise AttributaryError(f"webhook {name}: {shown_address(webhook)}: {error}") from None
    say(f"webhook {name}: {shown_address(webhook)} has taken {event.id} ({status})")
