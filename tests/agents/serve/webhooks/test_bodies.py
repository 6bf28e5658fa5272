"""What is sent: an event as CloudEvents describes it, a text that chat services cannot misread, a signature."""

from __future__ import annotations

import html
import json

import pytest

from attributary_agents.serve.webhooks.bodies import body, signature, text, together
from tests.agents.serve.webhooks.made import event


def test_a_cloud_event_in_structured_mode_has_the_whole_revision() -> None:
    one = event()
    assert json.loads(body(one, "cloudevents", "https://page.example")) == {
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
    assert json.loads(body(event(), "text", None)) == {"text": said}
    assert text(event(), "https://page.example/") == f"{said}\nhttps://page.example/incidents/bank:obs:0:1"


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
    assert text(event(life=life, severity=severity), None).startswith(f"{mark} bank is worse\n")


def test_a_sentence_that_goes_on_from_its_headline_is_whole() -> None:
    said = "bank was replaced, which ends what began at observation 1."
    told = text(event(headline="bank was replaced", sentence=said), None)
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
    told = text(event(headline=f"{name} is worse", sentence=f"{name} is worse."), None)
    several = together([event(model_id=name, features={name: {}}), event(model_id="b", features={name: {}})], None)
    for mark in ("<", ">", "](", "://", "@h", "@U", "www."):
        assert mark not in told
        assert mark not in several
    # Read as HTML, and without what has no width, it is the name.
    assert html.unescape(told).replace("\u2060", "").splitlines()[0] == f"🟠 {name} is worse"
    assert html.unescape(several).replace("\u2060", "").splitlines()[2] == f"{name}, b"


def test_a_name_cannot_write_lines_or_turn_the_text_around() -> None:
    told = text(event(headline="a\nb\u202ec", sentence="a\nb\u202ec. d\ne"), None)
    assert len(told.splitlines()) == 2
    assert "\u202e" not in told
    assert len(together([event(model_id="a\nb"), event(model_id="c")], None).splitlines()) == 3


def test_a_long_sentence_is_cut() -> None:
    assert len(text(event(sentence="x" * 10_000), None)) < 2100


def test_several_models_are_one_message_with_ten_names() -> None:
    stores = [event(model_id=f"store-{n}", what="changed", features={"price": {}, "age": {}}) for n in range(12)]
    assert together(stores[:8], None).splitlines()[0] == "🟠 8 models changed together at 11:40 UTC: price"
    _, action, names, link = together(stores, "https://page.example").splitlines()
    assert names == ", ".join(f"store-{n}" for n in range(10)) + " and 2 more"
    assert action == "Can wait until morning: train it again."
    assert link == "https://page.example/"
    worse = [event(model_id=name, severity=severity, life="over") for name, severity in (("a", "info"), ("b", "new"))]
    for one in worse:
        one.data["since"] = {"observation": 1, "low": None, "high": 1, "time": None}
    assert together(worse, None).splitlines()[0] == "⚪ over: 2 models became worse together"


def test_the_signature_of_a_known_body() -> None:
    # printf '%s' '1700000000.{"text":"hello"}' | openssl dgst -sha256 -hmac 'the secret'
    expected = "1188aa1e3c970c6309dce236acc4aa606bd4a134f3e1b29c38b22f5d75bbb6af"
    assert signature(b"the secret", 1_700_000_000, b'{"text":"hello"}') == f"sha256={expected}"
