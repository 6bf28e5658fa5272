"""What is sent: an event as CloudEvents describes it, a text that chat services cannot misread, a signature."""

from __future__ import annotations

import html
import json

import pytest

from attributary_agents.serve.webhooks.bodies import body, signature, text
from tests.agents.serve.webhooks.made import event


def test_a_cloud_event_in_structured_mode() -> None:
    one = event()
    assert json.loads(body(one, "cloudevents", "https://page.example")) == {
        "specversion": "1.0",
        "id": "bank:obs:0:1",
        "source": "/attributary/obs",
        "type": "attributary.change.v1",
        "subject": "bank",
        "time": "2026-11-01T10:00:00.000Z",
        "datacontenttype": "application/json",
        "data": {"event": "explanation", "model_id": "bank", "sentence": "bank has changed"},
    }


def test_a_text_with_a_link_to_the_change() -> None:
    assert json.loads(body(event(), "text", None)) == {"text": "bank has changed"}
    told = text(event(), "https://page.example/")
    assert told == "bank has changed https://page.example/changes/bank:obs:0:1"


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
    told = text(event(sentence=f"{name} gained"), None)
    for mark in ("<", ">", "](", "://", "@h", "@U", "www."):
        assert mark not in told
    # Read as HTML, and without what has no width, it is the name.
    assert html.unescape(told).replace("\u2060", "") == f"{name} gained"


def test_a_name_cannot_write_lines_or_turn_the_text_around() -> None:
    assert "\n" not in text(event(sentence="a\nb\u202ec"), None)
    assert "\u202e" not in text(event(sentence="a\nb\u202ec"), None)


def test_a_long_sentence_is_cut() -> None:
    assert len(text(event(sentence="x" * 10_000), None)) < 2100


def test_the_signature_of_a_known_body() -> None:
    # printf '%s' '1700000000.{"text":"hello"}' | openssl dgst -sha256 -hmac 'the secret'
    expected = "1188aa1e3c970c6309dce236acc4aa606bd4a134f3e1b29c38b22f5d75bbb6af"
    assert signature(b"the secret", 1_700_000_000, b'{"text":"hello"}') == f"sha256={expected}"
