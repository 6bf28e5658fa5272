"""What an address is sent, what is tried again, what is not, and what is said of it."""

from __future__ import annotations

import asyncio
import base64
import hmac
import html
import json
import logging
import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from attributary_agents.config.serving import WebhookConfig
from attributary_agents.errors import ConfigError
from attributary_agents.serve.webhooks import target as target_module
from attributary_agents.serve.webhooks.target import (
    DeliveryError,
    Target,
    body,
    retry_after,
    shown_address,
    signature,
    text,
)
from tests.agents.serve.webhooks.made import event

QUEUE = 100
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
URL = "https://user:hidden@hooks.example/services/T0/secret"


class Receiver:
    """Answers with one thing after another, the last of them for ever, and keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, tuple):
            return httpx.Response(answer[0], headers=answer[1])
        return httpx.Response(answer)


def config(**options: Any) -> WebhookConfig:
    return WebhookConfig.model_validate({"url": URL, **options})


def made(receiver: Callable[..., Any], **options: Any) -> Target:
    return Target("ops", config(**options), transport=httpx.MockTransport(receiver), first_s=0.001)


def lost(receiver: Receiver, **options: Any) -> str:
    with pytest.raises(DeliveryError) as found:
        asyncio.run(made(receiver, **options).send(event()))
    return str(found.value)


def test_an_event_that_is_taken_is_sent_once() -> None:
    receiver = Receiver(204)
    asyncio.run(made(receiver).send(event()))
    (request,) = receiver.requests
    assert request.method == "POST"
    assert request.headers["content-type"] == "application/cloudevents+json"
    assert request.headers["webhook-id"] == "bank:obs:0:1"
    assert "webhook-signature" not in request.headers


@pytest.mark.parametrize(
    "again", [500, 503, 429, httpx.ConnectError("x"), httpx.ReadTimeout("x"), (429, {"Retry-After": "0"})]
)
def test_what_may_go_by_is_tried_again(again: Any) -> None:
    receiver = Receiver(again, again, again, again, 200)
    asyncio.run(made(receiver).send(event()))
    assert len(receiver.requests) == 5
    assert len({request.content for request in receiver.requests}) == 1, "the same event"


def test_what_cannot_be_written_is_lost_and_holds_up_nothing() -> None:
    one = event()
    one.data["size"] = float("inf")
    with pytest.raises(DeliveryError, match=r"cannot be written as JSON: data\.size must be finite"):
        asyncio.run(made(Receiver(200)).send(one))


def test_five_attempts_are_all() -> None:
    receiver = Receiver(503)
    assert lost(receiver) == "it answers 503, 5 times"
    assert len(receiver.requests) == 5


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    receiver = Receiver(status)
    assert lost(receiver) == f"it answers {status}"
    assert len(receiver.requests) == 1


def test_a_redirect_is_not_followed() -> None:
    receiver = Receiver((307, {"Location": "http://169.254.169.254/"}))
    assert lost(receiver) == "it answers 307, and redirects are not followed"
    assert len(receiver.requests) == 1


def test_all_attempts_end_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "WITHIN_S", 0.2)
    assert lost(Receiver((503, {"Retry-After": "3600"}))) == "it answers 503, 1 time, and then nothing within 0 s"


def test_an_address_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "ANSWER_WITHIN_S", 0.01)

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    with pytest.raises(DeliveryError, match=r"no answer within 0 s, 5 times"):
        asyncio.run(made(never).send(event()))


def test_what_the_system_says_is_said() -> None:
    refused = httpx.ConnectError(f"all attempts to {URL} failed")
    refused.__cause__ = OSError(111, "any")
    assert lost(Receiver(refused)) == "connection refused, 5 times"
    untrusted = httpx.ConnectError(URL)
    untrusted.__cause__ = ssl.SSLCertVerificationError(1, "any")
    untrusted.__cause__.verify_message = "self-signed certificate"
    assert lost(Receiver(untrusted)) == "its certificate is not trusted (self-signed certificate), 5 times"
    assert lost(Receiver(httpx.UnsupportedProtocol(URL))) == "UnsupportedProtocol, 5 times"


def test_each_attempt_is_signed_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    receiver = Receiver(500, 200)
    asyncio.run(made(receiver, secret_env="OPS_SECRET").send(event()))
    for request in receiver.requests:
        stamp = request.headers["webhook-timestamp"]
        assert abs(int(stamp) - time.time()) < 600
        signed = f"{request.headers['webhook-id']}.{stamp}.".encode() + request.content
        expected = base64.b64encode(hmac.digest(bytes(range(32)), signed, "sha256")).decode()
        assert request.headers["webhook-signature"] == f"v1,{expected}"


def test_the_signature_of_a_known_body() -> None:
    # printf '%s' 'bank:obs:0:1.1700000000.{"text":"hello"}' | openssl dgst -sha256 -hmac 'the secret' -binary | base64
    expected = "RN36C8JSEgnO5ukPIg8MZN6mEkkSsI2OquFHnHlZg/U="
    assert signature(b"the secret", "bank:obs:0:1", 1_700_000_000, b'{"text":"hello"}') == f"v1,{expected}"


def test_an_id_has_none_of_the_full_stops_that_a_signature_is_divided_by() -> None:
    receiver = Receiver(200)
    asyncio.run(made(receiver).send(event(1, "a.b/c")))
    assert receiver.requests[0].headers["webhook-id"] == "a%2Eb%2Fc:obs:0:1"


@pytest.mark.parametrize("value", ["the secret", "whsec_AAAA", "whsec_"])
def test_a_secret_of_another_form_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OPS_SECRET", value)
    with pytest.raises(ConfigError, match=r"OPS_SECRET holds no secret of Standard Webhooks: expected whsec_ and at"):
        made(Receiver(200), secret_env="OPS_SECRET")


@pytest.mark.parametrize("value", [None, ""])
def test_a_secret_that_is_missing_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("OPS_SECRET", raising=False)
    if value is not None:
        monkeypatch.setenv("OPS_SECRET", value)
    with pytest.raises(
        ConfigError, match=r"^serve\.webhooks\.ops\.secret_env: the environment has no OPS_SECRET: set it to"
    ):
        made(Receiver(200), secret_env="OPS_SECRET")


def test_a_proxy_that_cannot_be_used_is_said_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://user:hidden@proxy")
    with pytest.raises(ConfigError) as found:
        Target("ops", config())
    assert "ALL_PROXY" in str(found.value)
    assert "hidden" not in str(found.value)


def test_nothing_that_is_logged_names_the_path_or_the_user(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def send(answer: Any) -> Target:
        target = made(Receiver(answer))
        target.offer(event(), 0)
        running = asyncio.create_task(target.run())
        while not target.is_idle:
            await asyncio.sleep(0.001)
        running.cancel()
        return target

    for answer in (200, 404, httpx.ConnectError(URL)):
        target = asyncio.run(send(answer))
    assert target.count.last_failure == "bank:obs:0:1: no connection, 5 times"
    assert "webhook ops: lost bank:obs:0:1: it answers 404" in caplog.text
    assert "hidden" not in caplog.text
    assert "secret" not in caplog.text
    assert shown_address(target.config) == "https://hooks.example/…"


def test_events_are_sent_in_their_order_and_those_that_are_too_many_are_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "QUEUE", QUEUE)
    settled: list[int] = []
    receiver = Receiver(200)
    transport = httpx.MockTransport(receiver)

    async def run() -> Target:
        target = Target("ops", config(), lambda partition, _: settled.append(partition), transport=transport)
        for n in range(QUEUE + 3):
            target.offer(event(n), n)
        running = asyncio.create_task(target.run())
        while not target.is_idle:
            await asyncio.sleep(0.01)
        running.cancel()
        return target

    target = asyncio.run(run())
    assert (target.count.sent, target.count.failed) == (QUEUE, 3)
    assert target.count.last_failure == f"bank:obs:0:{QUEUE + 2}: {QUEUE} events waited already"
    assert [request.headers["webhook-id"] for request in receiver.requests] == [f"bank:obs:0:{n}" for n in range(QUEUE)]
    assert settled == [QUEUE, QUEUE + 1, QUEUE + 2, *range(QUEUE)]
    assert caplog.text.count("events waited already") == 1, "said once"


def test_what_waits_at_the_end_is_said_to_be_lost() -> None:
    async def run() -> Target:
        target = made(Receiver(200))
        for n in range(3):
            target.offer(event(n), 0)
        await target.close()
        return target

    target = asyncio.run(run())
    assert (target.count.sent, target.count.failed) == (0, 3)
    assert target.count.last_failure == "bank:obs:0:0 and 2 more: the server ends"


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("86400", 30.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        (None, None),
    ],
)
def test_a_pause_that_is_asked_for_is_bounded(after: str | None, seconds: float | None) -> None:
    assert retry_after(after) == seconds


def test_a_cloud_event_in_structured_mode_has_the_whole_revision() -> None:
    one = event()
    assert json.loads(body(config(), one)) == {
        "specversion": "1.0",
        "id": "bank:obs:0:1",
        "source": "/attributary/obs",
        "type": "attributary.incident.v1",
        "subject": "bank",
        "time": "2026-11-01T10:00:00.000Z",
        "datacontenttype": "application/json",
        "data": one.data,
    }


def test_a_text_has_the_headline_first_and_a_link_to_the_incident_last() -> None:
    said = "🟠 bank is worse\nCan wait until morning: train it again. It began at observation 1."
    assert json.loads(body(config(format="text"), event())) == {"text": said}
    assert text("https://page.example/", event()) == f"{said}\nhttps://page.example/incidents/bank:obs:0:1"


@pytest.mark.parametrize(
    ("life", "severity", "mark"),
    [
        ("suspected", "critical", "🔴"),
        ("confirmed", "critical", "🔴"),
        ("confirmed", "info", "🔵"),
        ("over", "critical", "⚪"),
        ("withdrawn", "critical", "⚪"),
    ],
)
def test_how_bad_it_is_is_seen_at_once(life: str, severity: str, mark: str) -> None:
    assert text(None, event(life=life, severity=severity)).startswith(f"{mark} bank is worse\n")


def test_a_sentence_that_goes_on_from_its_headline_is_whole() -> None:
    said = "bank was replaced, which ends what began at observation 1."
    told = text(None, event(headline="bank was replaced", sentence=said))
    assert told == f"🟠 bank was replaced\n{said[0].upper()}{said[1:]}"


@pytest.mark.parametrize(
    "name",
    [
        "<!channel>",
        "<https://evil.example|bank>",
        "<@U123>",
        "@here",
        "[bank](https://evil.example)",
        "www.evil.example",
        "&lt;!here&gt;",
    ],
)
def test_a_name_from_outside_is_no_markup(name: str) -> None:
    told = text(None, event(headline=f"{name} is worse", sentence=f"{name} is worse."))
    several = text(None, event(model_id=name, features={name: {}}), event(model_id="b", features={name: {}}))
    for mark in ("<", ">", "](", "://", "@h", "@U", "www."):
        assert mark not in told
        assert mark not in several
    # Read as HTML, and without what has no width, it is the name.
    assert html.unescape(told).replace("\u2060", "").splitlines()[0] == f"🟠 {name} is worse"
    assert html.unescape(several).replace("\u2060", "").splitlines()[2] == f"{name}, b"


def test_a_name_cannot_write_lines_or_turn_the_text_around() -> None:
    told = text(None, event(headline="a\nb\u202ec", sentence="a\nb\u202ec. d\ne"))
    assert len(told.splitlines()) == 2
    assert "\u202e" not in told
    assert len(text(None, event(model_id="a\nb"), event(model_id="c")).splitlines()) == 3


def test_a_long_sentence_is_cut() -> None:
    assert len(text(None, event(sentence="x" * 10_000))) < 2100


def test_several_models_are_one_message_with_ten_names() -> None:
    stores = [event(model_id=f"store-{n}", what="changed", features={"price": {}, "age": {}}) for n in range(12)]
    assert text(None, *stores[:8]).splitlines()[0] == "🟠 8 models changed together at 11:40 UTC: price"
    _, action, names, link = text("https://page.example", *stores).splitlines()
    assert names == ", ".join(f"store-{n}" for n in range(10)) + " and 2 more"
    assert action == "Can wait until morning: train it again."
    assert link == "https://page.example/"
    worse = [event(model_id=name, severity=severity, life="over") for name, severity in (("a", "info"), ("b", "new"))]
    for one in worse:
        one.data["since"] = {"observation": 1, "low": None, "high": 1, "time": None}
    assert text(None, *worse).splitlines()[0] == "⚪ over: 2 models became worse together"
