"""The page about a monitor: its code runs and prints what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from river import naive_bayes
from support.doc_pages import Page, same_text

ROOT = Path(__file__).resolve().parents[2]
PAGE = Page(ROOT / "docs" / "monitor.md")


@pytest.mark.long
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    for block, output in zip(PAGE.blocks, PAGE.run(tmp_path), strict=True):
        assert same_text(output, block.output or ""), f"monitor.md:{block.line} prints\n{output}"


def test_the_lines_of_the_readme_do_what_they_say() -> None:
    model = naive_bayes.GaussianNB()
    model.learn_one({"age": 41.0}, "yes")
    sent: list[Any] = []
    known = {"model": model, "x": {"age": 35.0}, "y": "yes", "REGISTRY": CollectorRegistry()}
    known["publish"] = lambda topic, key, value, headers: sent.append((topic, key, value, headers))
    readme = Page(ROOT / "README.md")
    code = next(block.code for block in readme.blocks if "import Monitor" in block.code)
    exec(code, known)
    monitor = known["monitor"]
    assert known["y_pred"] == "yes"
    monitor.predict("bank", {"age": 35.0}, id="17")
    monitor.label("bank", "17", "yes")
    for _ in range(498):
        monitor.observe("bank", {"age": 35.0}, "yes")
    monitor.close()
    assert known["REGISTRY"].get_sample_value("attributary_model_observations_total", {"model_id": "bank"}) == 500
    assert [record[0] for record in sent] == ["attributary.importances.v1"] * len(sent)
    assert sent
    assert monitor.restore(known["snapshot"]) is monitor


def test_its_links_lead_somewhere() -> None:
    for link in PAGE.links:
        assert (ROOT / "docs" / link).exists(), link


def test_what_it_says_of_kafka_is_in_the_example() -> None:
    example = (ROOT / "examples" / "service" / "app.py").read_text()
    for line in ("producer.send_and_wait(topic, value, key=key, headers=headers)", "run_coroutine_threadsafe(sending"):
        assert line in PAGE.source
        assert line in example
