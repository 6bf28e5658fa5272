"""What every test of delivery has: silence about the faults that it makes on purpose."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
