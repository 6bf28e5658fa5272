"""Pages that are sessions: commands, files and cells are run in order, and what is printed is compared."""

import os
from pathlib import Path

import pytest
from support.console_pages import ConsolePage

PAGE = """\
# A page

```yaml a.yaml
port: 6066
```

```console
$ cat a.yaml
port: 6066
$ X=1; for i in 1 2
> do echo $X $i; done
1 1
1 2
$ false; echo "it took 3.2 s"; echo err >&2
it took 9.9 s
slow
err
```

```console install
$ echo never
never
```

```python
from pathlib import Path
port = Path("a.yaml").read_text()
print(port.strip(), 0.12345)
```

```text
port: 6066 0.12346
```

```python
print(len(port))
```

```text
11
```

```console
$ echo $X > b; cat b -
1
```
"""


@pytest.fixture
def page(tmp_path: Path) -> ConsolePage:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return ConsolePage(path, {"6066": "16066"}, [r"\d+\.\d+ s\b", r"slow\n"])


def test_what_is_printed_is_compared_but_for_places_times_and_last_digits(page: ConsolePage, tmp_path: Path) -> None:
    done = list(page.run(tmp_path, os.environ, skip=["install"]))
    assert [one.step.kind for one in done] == ["console", "cell", "cell", "console"]
    # The file that is read has a place of this machine, which is one longer than the page's name of it.
    assert (tmp_path / "a.yaml").read_text() == "port: 16066\n"
    wrong = [page.differs(one) for one in done]
    assert wrong[0] is None
    assert wrong[1] is None
    assert wrong[2] is not None
    assert "page.md:36 prints\n12\n" in wrong[2]
    assert wrong[3] is None


def test_the_page_is_written_anew_with_what_was_printed(page: ConsolePage, tmp_path: Path) -> None:
    done = list(page.run(tmp_path, os.environ))
    assert page.updated(done) == PAGE.replace("\n11\n", "\n12\n").replace("9.9 s\nslow", "3.2 s").replace(
        "12346", "12345"
    )


def test_a_command_that_ends_the_shell_is_told(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```console\n$ echo last; exit 3\n```\n")
    with pytest.raises(RuntimeError, match="the shell ended in 'echo last; exit 3': last"):
        list(ConsolePage(path, {}).run(tmp_path, os.environ))


def test_a_cell_needs_its_output(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```python\nprint(1)\n```\n\nSome words.\n\n```text\n1\n```\n")
    with pytest.raises(ValueError, match="line 2: a cell without a block of text"):
        ConsolePage(path, {})


def test_what_runs_in_the_background_ends_with_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```console\n$ sleep 300 & echo $! > pid\n```\n")
    list(ConsolePage(path, {}).run(tmp_path, os.environ))
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
