"""The first hour of docs/first-hour.md, on Apache Kafka and Prometheus: what is printed is what the page shows."""

import pytest
from benchmarks.first_hour import run_page
from rich.console import Console

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.prometheus, pytest.mark.timeout(900)]


def test_the_first_hour_is_as_the_page_shows_it() -> None:
    different = run_page(Console(stderr=True), installed=True, check=True)
    assert not different, "\n\n".join([*different, "if that is right: python -m benchmarks.first_hour"])
