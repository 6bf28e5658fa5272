"""The pages about late labels and modes: configurations load, and each record becomes what the page's table says."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from attributary_agents.config.attachment import MAX_WAITING
from attributary_agents.config.reading import parse_config
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers.monitor.step import MATURE
from attributary_topics import RECORD_HEADER
from tests.agents.stand_ins import TOPIC, header

FOLDER = Path(__file__).resolve().parents[4] / "docs" / "attach"
PAGES = ("labels.md", "modes.md")
FILES = {
    name: yaml.safe_load(text)
    for page in PAGES
    for name, text in re.findall(
        r"^```yaml\n# (\S+)\n(.*?)^```$", (FOLDER / page).read_text(), re.MULTILINE | re.DOTALL
    )
}
ROWS = re.findall(r"^\| (observation|label) \| `(.*)` \| (.*) \|$", (FOLDER / "labels.md").read_text(), re.MULTILINE)


def test_the_pages_have_their_configurations_and_their_table() -> None:
    assert set(FILES) == {"late.yaml", "unlabelled.yaml", "mirror.yaml"}
    assert len(ROWS) == 12


@pytest.mark.parametrize("name", FILES)
def test_each_configuration_loads_and_is_of_the_mode_that_the_page_tells_of(name: str) -> None:
    config = parse_config(FILES[name])
    (model,) = config.models.values()
    assert model.mode == {"late.yaml": "labelled", "unlabelled.yaml": "unlabelled", "mirror.yaml": "mirror"}[name]
    assert (model.join is not None) == (name == "late.yaml")


def accounts(partition: Partition) -> Counter[str]:
    late = partition.models["bikes"].late
    assert late is not None
    joiner = late.labels
    assert joiner is not None
    n = joiner.counts
    assert n.observed == n.joined + joiner.n_waiting + joiner.n_expired
    assert n.labels == n.joined + joiner.n_early + n.orphaned + n.duplicate + n.late
    return Counter(
        {
            "waiting": joiner.n_waiting,
            "joined": n.joined,
            "early": joiner.n_early,
            "duplicate": n.duplicate - n.changed,
            "changed": n.changed,
            "expired": joiner.n_expired,
            "orphaned": n.orphaned,
            "late": n.late,
            "dead letter": n.repeated,
        }
    )


def test_each_record_of_the_table_becomes_what_stands_there() -> None:
    partition = Partition(TOPIC, 0, parse_config(FILES["late.yaml"]), {}.get)
    before = Counter[str]()
    for offset, (kind, value, becomes) in enumerate(ROWS):
        json.loads(value)
        sent = partition.handle(Record(TOPIC, 0, offset, 0, b"bikes", value.encode(), [(RECORD_HEADER, kind.encode())]))
        after = accounts(partition)
        found = {name for name in after if after[name] > before[name]}
        assert found == {name for name in after if re.search(rf"\b{name}\b", becomes)}, (value, becomes)
        reasons = [reason for one in sent if (reason := header(one, "attributary-dlq-reason"))]
        assert reasons == (["duplicate_id"] if becomes == "dead letter" else [])
        before = after
    assert before["waiting"] == before["early"] == 0


def test_the_numbers_that_the_pages_name_are_those_of_the_code() -> None:
    from attributary_agents.models.model_state import TRUSTED

    labels, modes = ((FOLDER / page).read_text() for page in PAGES)
    template: dict[str, Any] = {
        **FILES["late.yaml"],
        "sources": {"rentals": {"topic": "rentals", "id": "id", "model": "store-{station}"}},
        "labels": {"counts": {"topic": "counts", "id": "id", "y": "y", "ttl": "3h", "model": "store-{station}"}},
    }

    def most(**model: Any) -> int:
        entry = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}, **model}
        join = parse_config({**template, "models": {"store-*": entry}}).models["store-*"].join
        assert join is not None
        return join.max_waiting

    assert (most(max_models=10), most(max_models=500), most()) == (10_000, 2000, 1000)
    assert f"it is {MAX_WAITING // 1000} 000; of a template, 1 000 000" in re.sub(r"\s+", " ", labels)
    assert "at least 1000 and at most 10 000 for each" in labels
    assert f"first {MATURE} observations are learnt" in re.sub(r"\s+", " ", modes)
    assert f"after {TRUSTED} observations" in re.sub(r"\s+", " ", modes)
