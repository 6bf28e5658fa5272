"""The section `serve`: sizes, addresses that are secrets, and what is said where they are wrong."""

from __future__ import annotations

import os
from typing import Any

import pytest

from attributary_agents.config.environment import forget_secrets
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError

MODEL = {"model": {"class": "river.linear_model.LogisticRegression"}}


def with_webhook(**ops: Any) -> Config:
    return parse_config({"models": {"bank": MODEL}, "serve": {"webhooks": {"ops": ops}}})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/hidden",
        "hooks.example/hidden",
        "https:///hidden",
        "https://host:99999/hidden",
        "https://host/hid den",
        "",
    ],
)
def test_what_is_no_address_is_said_without_it(url: str) -> None:
    with pytest.raises(ConfigError) as found:
        with_webhook(url=url)
    assert "serve.webhooks.ops.url: " in str(found.value)
    assert "hid" not in str(found.value)


def test_a_misspelt_word_is_asked_about() -> None:
    with pytest.raises(ConfigError, match=r"serve\.webhooks\.ops\.severity"):
        with_webhook(url="https://x/", severity="critcal")


def test_an_address_is_in_nothing_that_is_printed() -> None:
    config = with_webhook(url="https://hooks.example/hidden")
    assert "hidden" not in repr(config)
    assert "hidden" not in config.model_dump_json()
    assert config.serve.webhooks["ops"].url.get_secret_value() == "https://hooks.example/hidden"


def test_an_address_of_the_environment_is_taken_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ATTRIBUTARY_SERVE__WEBHOOKS__OPS__URL"
    monkeypatch.setenv(name, "https://hooks.example/hidden")
    monkeypatch.setenv("ATTRIBUTARY_SERVE__PORT", "6081")
    config = with_webhook(format="text")
    assert config.serve.webhooks["ops"].url.get_secret_value() == "https://hooks.example/hidden"
    forget_secrets()
    assert name not in os.environ
    assert os.environ["ATTRIBUTARY_SERVE__PORT"] == "6081"


@pytest.mark.parametrize(
    ("written", "n"),
    [("500MB", 5 * 10**8), ("2 gb", 2 * 10**9), (10**7, 10**7), ("1.5GB", 15 * 10**8), ("2 GiB", 2**31)],
)
def test_sizes_are_written_with_units(written: Any, n: int) -> None:
    config = parse_config({"models": {"bank": MODEL}, "serve": {"max_bytes": written}})
    assert config.serve.max_bytes == n


@pytest.mark.parametrize("written", ["1MB", "much", -1])
def test_what_is_no_size_is_refused(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"serve\.max_bytes"):
        parse_config({"models": {"bank": MODEL}, "serve": {"max_bytes": written}})
