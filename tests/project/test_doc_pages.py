"""The pages about the explainers: their code runs, prints what they say and draws the pictures that they show.

`UPDATE_DOCS=1 pytest tests/project/test_doc_pages.py` writes outputs and pictures anew;
look at them before they are committed.
"""

import inspect
import os
import re
from pathlib import Path

import pytest
from benchmarks.data import FOLDER as DATA
from benchmarks.data import data_path
from support.doc_pages import Page, normalised, picture_differences, same_text

import attributary_explainers

pytestmark = pytest.mark.long

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "explainers"
IMAGES = FOLDER / "images"
CONFIGURES = {"in-a-worker.md"}  # a worker, and has no code in Python
PAGES = sorted(path.name for path in FOLDER.glob("*.md") if path.name not in CONFIGURES)
LARGEST_BYTES = 60_000
UPDATE = bool(os.environ.get("UPDATE_DOCS"))
HOW = "if the new one is right: UPDATE_DOCS=1 pytest tests/project/test_doc_pages.py"


def test_the_pages_are_there() -> None:
    assert {"README.md", "pfi.md", "sage.md", "mdi.md", "pdp.md", "change.md", "baselines.md", "uncertainty.md"} <= set(
        PAGES
    )
    assert not [name for name in CONFIGURES if Page(FOLDER / name).blocks], "such a page is run"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_says(name: str, data_dir: Path, tmp_path: Path) -> None:
    page = Page(FOLDER / name)
    assert page.blocks, "a page without code"
    assert page.pictures, "a page without a picture"
    for file in page.data:
        (tmp_path / file).symlink_to(data_path(file.removesuffix(".csv.gz"), data_dir))
    outputs = page.run(tmp_path)
    drawn = {path.name: normalised(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.svg")}
    assert sorted(drawn) == sorted(page.pictures), "the code saves the pictures that the page shows"
    if page.data and data_dir != DATA:
        return  # the page shows what the data themselves give; on stand-ins its code runs and draws
    if UPDATE:
        assert not os.environ.get("CI"), "UPDATE_DOCS under CI would compare nothing"
        IMAGES.mkdir(exist_ok=True)
        for picture, svg in drawn.items():
            (IMAGES / picture).write_text(svg, encoding="utf-8")
        page.path.write_text(page.updated(outputs), encoding="utf-8")
        page = Page(page.path)
    for block, output in zip(page.blocks, outputs, strict=True):
        shown = block.output or ""
        if not same_text(output, shown):
            pytest.fail(f"{name}:{block.line} prints\n{output}\nand the page says\n{shown}\n{HOW}", pytrace=False)
    for picture, svg in drawn.items():
        assert len(svg.encode()) < LARGEST_BYTES, f"{picture} is too large: record fewer points"
        assert (IMAGES / picture).is_file(), f"images/{picture} is not there; {HOW}"
        different = list(picture_differences(svg, (IMAGES / picture).read_text(encoding="utf-8")))
        if different:
            shown = "\n".join(different[:10])
            pytest.fail(f"{name}: images/{picture} differs in {len(different)} places\n{shown}\n{HOW}", pytrace=False)


def test_the_index_leads_to_every_page() -> None:
    index = Page(FOLDER / "README.md")
    assert set(PAGES) - {"README.md"} <= set(index.links)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for link in Page(FOLDER / name).links:
        assert (FOLDER / link).exists(), link


def test_every_picture_is_shown() -> None:
    shown = {picture for name in PAGES for picture in Page(FOLDER / name).pictures}
    assert {path.name for path in IMAGES.iterdir()} == shown


def explainers() -> set[str]:
    """What explains a model: classes with `explain_one` or made of a model, functions of a model and data."""
    found = set()
    for name in attributary_explainers.__all__:
        value = getattr(attributary_explainers, name)
        if inspect.isclass(value):
            made_of_a_model = "model" in inspect.signature(value.__init__).parameters
            if (hasattr(value, "explain_one") or made_of_a_model) and not inspect.isabstract(value):
                found.add(name)
        elif not callable(value):
            continue
        elif list(inspect.signature(value).parameters)[:2] in (["model", "data"], ["model", "stream"]):
            found.add(name)
    return found


def test_every_explainer_has_a_page() -> None:
    names = explainers()
    assert {"IncrementalPFI", "IncrementalMDI", "ChangeExplainer", "IntervalPFI", "batch_pfi", "interval_pfi"} <= names
    text = {name: (FOLDER / name).read_text() for name in PAGES if name != "README.md"}
    missing = [name for name in names if not any(re.search(rf"\b{name}\b", page) for page in text.values())]
    assert missing == []


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ("age 0.25", "age 0.25", True),
        ("age 0.26", "age 0.25", True),
        ("age 0.27", "age 0.25", False),
        ("age -0.01", "age 0.00", True),
        ("1.2e-05", "1.1e-05", True),
        ("1.2e-05", "1.0e-05", False),
        ("at 1 559", "at 1 560", False),
        ("5", "6.0", False),
        ("car 0.25", "age 0.25", False),
        ("0.25 0.25", "0.25", False),
        ("#b87900", "#b87901", False),
    ],
)
def test_numbers_may_differ_in_the_last_digit_and_nothing_else(found: str, expected: str, same: bool) -> None:
    assert same_text(found, expected) is same


SVG = """<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
 <metadata><date>today</date></metadata>
 <defs><path id="m0123456789" d="M 0 0 L 1.23456 2"/></defs>
 <g id="figure_1"><use xlink:href="#m0123456789" x="100.0000" style="fill: #0068a8"/><text>age</text></g></svg>"""


def test_a_normalised_picture_has_no_date_and_short_numbers_and_ids() -> None:
    assert normalised(SVG) == (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">\n'
        '<defs><path id="i0" d="M 0 0 L 1.23 2"/></defs>\n'
        '<g><use xlink:href="#i0" x="100" style="fill: #0068a8"/><text>age</text></g></svg>\n'
    )


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("100.0000", "100.4", None),
        ("0123456789", "9876543210", None),
        ("today", "tomorrow", None),
        ("100.0000", "100.6", "use x='100.6' was '100'"),
        ("1.23456", "2.0", "path d='M 0 0 L 2 2' was 'M 0 0 L 1.23 2'"),
        (">age<", ">ago<", "the text 'ago' was 'age'"),
        ("#0068a8", "#0068a9", "use style='fill: #0068a9' was 'fill: #0068a8'"),
        ("<text>age</text>", "", "element 5 is another one: there is more or less in the picture"),
        (' x="100.0000"', "", "element 4 is another one: there is more or less in the picture"),
    ],
)
def test_a_changed_picture_is_noticed(old: str, new: str, difference: str | None) -> None:
    assert old in SVG
    found = list(picture_differences(normalised(SVG.replace(old, new)), normalised(SVG)))
    assert found == ([] if difference is None else [difference])


def test_a_page_is_run_like_a_notebook_and_gets_its_outputs(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "# T\n\n```python\na = 2\n```\n\nText.\n\n```python\nprint(a / 3)\n```\n\n```text\nold\n```\n\n"
        "```yaml\na: 1\n```\n\n```python\nprint('new')\n```\n\n![alt](images/a-b.svg) [x](y.md#z) [w](https://w.org)\n"
    )
    page = Page(path)
    assert [(block.line, block.output) for block in page.blocks] == [(4, None), (10, "old\n"), (22, None)]
    assert (page.pictures, page.links) == (["a-b.svg"], ["y.md"])
    outputs = page.run(tmp_path)
    assert outputs == ["", "0.6666666666666666\n", "new\n"]
    path.write_text(page.updated(outputs))
    again = Page(path)
    assert [block.output for block in again.blocks] == [None, "0.6666666666666666\n", "new\n"]
    assert again.updated(outputs) == again.source
