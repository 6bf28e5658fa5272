"""docs/models.md: its code runs and prints what it says; PyTorch is a stand-in where it is not installed.

`UPDATE_DOCS=1 pytest tests/project/test_models_page.py` writes outputs anew; look at them before they are committed.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from benchmarks.data import data_path
from support.doc_pages import Page, same_text
from support.foreign import imported

PATH = Path(__file__).resolve().parents[2] / "docs" / "models.md"


@pytest.mark.long
def test_the_page_does_what_it_says(data_dir: Path, tmp_path: Path) -> None:
    page = Page(PATH)
    (tmp_path / "bank_marketing.csv.gz").symlink_to(data_path("bank_marketing", data_dir))
    with warnings.catch_warnings(action="ignore"), imported("torch"):
        outputs = page.run(tmp_path)
    if os.environ.get("UPDATE_DOCS"):
        assert not os.environ.get("CI"), "UPDATE_DOCS under CI would compare nothing"
        PATH.write_text(page.updated(outputs), encoding="utf-8")
        page = Page(PATH)
    for block, output in zip(page.blocks, outputs, strict=True):
        assert same_text(output, block.output or ""), f"docs/models.md:{block.line} prints\n{output}"
