"""`python -m benchmarks.serve`, small: it fills, serves, opens pages, and says what it says of a large store."""

from __future__ import annotations

import re

import pytest
from benchmarks import serve

from tests.browser.conftest import chromium

pytestmark = [pytest.mark.long, pytest.mark.browser]


def test_the_command_says_what_a_page_costs(capsys: pytest.CaptureFixture[str]) -> None:
    chromium()  # fails or skips where there is none
    assert serve.main(["--models", "3", "--features", "4", "--points", "200", "--tries", "1"]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "3 models x 4 features x 200 events"
    told = dict(re.split(r"  +", line, maxsplit=1) for line in lines if "  " in line)
    assert told["large libraries in it"].split(", ") == ["scipy", "river"]
    for view in ("fleet", "a model of 4 features"):
        weight = told[f"page weight, {view}"]
        parts = [float(part) for part in re.findall(r"(?:javascript|json|css|html) ([\d.]+)", weight)]
        assert len(parts) == 4
        assert float(weight.split()[0]) == pytest.approx(sum(parts), abs=0.25)
        for cache in ("cold", "warm"):
            ours, theirs, ratio = map(float, re.findall(r"[\d.]+(?= ms|$)", told[f"first chart, {view}, {cache}"]))
            assert ratio == pytest.approx(ours / theirs, rel=0.05)
    for what in ("fleet", "model", "series over all points"):
        raw, compressed = map(float, re.findall(r"([\d.]+) kB", told[f"bytes of an answer, {what}"]))
        assert 0 < compressed < raw
