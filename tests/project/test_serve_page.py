"""docs/serve.md: its configuration, its receiver's check and its tables are as the server has them."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml

from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.config.serving import WebhookConfig
from attributary_agents.serve.webhooks.target import (
    ANSWER_WITHIN_S,
    ATTEMPTS,
    MOST_AFTER_S,
    QUEUE,
    WITHIN_S,
    Target,
    signature,
)
from attributary_agents.serve.webhooks.webhooks import RevisionFilter
from attributary_topics import SEVERITIES
from tests.agents.serve.http.sites import asked, page_of, site_with
from tests.agents.serve.webhooks.made import event
from tests.agents.stand_ins import FACTORY

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "serve.md").read_text()
Check = Callable[[str, dict[str, str], bytes], bool]


def block(kind: str, name: str) -> str:
    (found,) = re.findall(rf"^```{kind} {re.escape(name)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return found


def test_its_configuration_is_one() -> None:
    config = parse_config({**yaml.safe_load(EXAMPLE), **yaml.safe_load(block("yaml", "serve.yaml"))})
    assert [(name, hook.format) for name, hook in config.serve.webhooks.items()] == [
        ("ops", "cloudevents"),
        ("chat", "text"),
    ]
    assert config.serve.max_bytes == 2 * 10**9


@pytest.fixture
def is_ours() -> Check:
    namespace: dict[str, Check] = {}
    exec(block("python", "verify.py"), namespace)
    return namespace["is_ours"]


def test_the_receiver_s_check_takes_what_is_sent_and_nothing_else(
    is_ours: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[httpx.Request] = []

    async def receive(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    secret, another = (f"whsec_{base64.b64encode(bytes(32 * [n])).decode()}" for n in (1, 2))
    monkeypatch.setenv("OPS_SECRET", secret)
    config = WebhookConfig.model_validate({"url": "http://x/", "secret_env": "OPS_SECRET"})
    asyncio.run(Target("ops", config, transport=httpx.MockTransport(receive)).send(event()))
    (request,) = sent
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    headers = {name: request.headers[name] for name in names}
    assert is_ours(secret, headers, request.content)
    assert is_ours(secret, {**headers, names[2]: f"v1,bmV3 {headers[names[2]]}"}, request.content), "a key is changed"
    assert not is_ours(another, headers, request.content)
    assert not is_ours(secret, headers, request.content + b" ")
    assert not is_ours(secret, {}, request.content)
    assert not is_ours(secret, {names[2]: headers[names[2]]}, request.content)
    assert not is_ours(secret, {**headers, names[0]: "another"}, request.content)
    old = int(headers[names[1]]) - 10_000
    signed = signature(bytes(32 * [1]), headers[names[0]], old, request.content)
    assert not is_ours(secret, {**headers, names[1]: str(old), names[2]: signed}, request.content)
    assert not is_ours(secret, {**headers, names[1]: str(old)}, request.content)


def test_its_table_says_which_revisions_are_told() -> None:
    rows = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \| (always|`critical` only|never) \|", PAGE, re.MULTILINE)
    assert len(rows) == 6
    for life, reason, when in rows:
        told = []
        for severity in SEVERITIES:
            revisions = RevisionFilter()
            if reason:
                revisions.take(event(life="confirmed", reason="confirmed", severity="warning"))
            if revisions.take(event(life=life, reason=reason or life, severity=severity)) is not None:
                told.append(severity)
        assert told == {"always": list(SEVERITIES), "`critical` only": ["critical"], "never": []}[when], (life, reason)


def test_its_addresses_are_those_of_the_interface(tmp_path: Path) -> None:
    models = {name: {"factory": FACTORY} for name in ("credit", "loans")}
    site = site_with(config=parse_config({"models": models}))
    curls = re.findall(r"^curl http://127\.0\.0\.1:6080(/\S+)$", PAGE, re.MULTILINE)
    assert len(curls) >= 5
    document, *answers = asked(site, page_of(tmp_path), "/api/openapi.json", *curls)
    documented = {re.sub(r"\{\w+\}", "{id}", path) for path in document.json()["paths"]}
    listed = re.findall(r"^\| `(/api/\S+)` \|", PAGE, re.MULTILINE)
    assert set(listed) == documented
    for path, answer in zip(curls, answers, strict=True):
        # Nothing is known of these models here; a parameter that is none would be 422, an address that is none HTML.
        assert answer.status_code in (200, 404), (path, answer.text)
        assert answer.headers["content-type"].endswith("json"), path


def test_its_numbers_are_those_of_the_code() -> None:
    words = {5: "five"}
    for said in (
        f"up to {words[ATTEMPTS]} times in {WITHIN_S:.0f} seconds",
        f"no answer within {ANSWER_WITHIN_S:.0f} s",
        f"Retry-After counts up to {MOST_AFTER_S:.0f} s",
        f"{QUEUE} events wait for it",
    ):
        assert said in " ".join(PAGE.split()), said
