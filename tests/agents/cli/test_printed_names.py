"""Whatever a name holds, what is printed is one line and moves no terminal."""

from __future__ import annotations

import json
import stat
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner

from attributary_agents.cli.commands import say
from attributary_agents.cli.main import cli

EVIL = "age\n2026 forged\x1b[31m\u202e\u2066\u200b\u2028\x85\x9b\x7f"
CONFIG = """
models:
  m:
    model: {class: river.linear_model.LogisticRegression}
    explainers: {pfi: {n_samples: 2}}
    publish: {every: 50, min_observations: 20}
"""


def is_plain(text: str) -> bool:
    return all(unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or one in "\n\t" for one in text)


def test_a_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("m", EVIL, "s3://key:secret@bucket")
    say(EVIL, err=True)
    out, err = capsys.readouterr()
    assert (out.count("\n"), out.count("\t"), err.count("\n")) == (1, 2, 1)
    assert is_plain(out + err)
    assert "secret" not in out


@pytest.fixture
def replayed(tmp_path: Path) -> tuple[Path, str]:
    rows = [{EVIL: i % 7, "b": i % 3, "y": bool(i % 2)} for i in range(200)] + [{"y": True}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "c.yaml").write_text(CONFIG)
    args = ["replay", str(tmp_path / "rows.jsonl"), "--target", "y", "--config", str(tmp_path / "c.yaml")]
    found = CliRunner().invoke(cli, [*args, "--out", str(tmp_path / "out")], catch_exceptions=False)
    return tmp_path / "out", found.output


def test_a_replay_prints_plain_lines_into_files_of_its_owner(replayed: tuple[Path, str]) -> None:
    out, printed = replayed
    assert is_plain(printed)
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()}
    assert modes == dict.fromkeys(
        ("importances.jsonl", "incidents.jsonl", "dead-letters.jsonl", "metrics.prom", "report.html"),
        0o600,
    )
    assert is_plain((out / "report.html").read_text())


def test_the_configuration_shown_has_no_user_of_a_url(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        CONFIG + "state: {url: 's3://key:secret@bucket/states'}\nkafka: {brokers: ['ops:secret@kafka:9092']}\n"
    )
    for option in ([], ["--json"]):
        found = CliRunner().invoke(cli, ["config", "show", "--config", str(tmp_path / "c.yaml"), *option])
        assert found.exit_code == 0, found.output
        assert "secret" not in found.output
        assert "s3://***@bucket/states" in found.output
        assert "***@kafka:9092" in found.output
