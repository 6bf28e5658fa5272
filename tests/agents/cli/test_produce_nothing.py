"""`attributary produce` says when there is nothing to send: a mistyped --skip does not pass for done."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError
from attributary_agents.kafka import observations, topics


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--skip", "10", "--limit", "5"], "--skip 10 leaves no row of the first 5"),
        (["--skip", "4"], "nothing was sent: .*data.csv has no row behind the first 4"),
    ],
)
def test_with_no_row_behind_skip_it_is_an_error(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, data = tmp_path / "attributary.yaml", tmp_path / "data.csv"
    config.write_text(yaml.safe_dump({"models": {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}}))
    data.write_text("a,y\n1,0\n2,1\n3,0\n")

    async def send(_sending: object, values: object) -> int:
        return len(list(values))  # type: ignore[call-overload]

    monkeypatch.setattr(observations.Sending, "send", send)
    monkeypatch.setattr(topics, "check_topics", lambda *_: None)
    result = CliRunner().invoke(cli, ["produce", str(data), "-c", str(config), *arguments])
    assert isinstance(result.exception, AttributaryError)
    with pytest.raises(AttributaryError, match=says):
        raise result.exception
