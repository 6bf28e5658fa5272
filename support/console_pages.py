"""Documentation pages as sessions: run their commands and code in order, and compare what is printed with the page.

On a page, a block

- ```` ```console ```` holds commands, each after `$ ` (and `> ` where it goes on), with what they print below;
- ```` ```yaml NAME ```` or ```` ```python NAME ```` is written to the file NAME;
- ```` ```python ```` is a notebook's cell; what it prints is in the block ```` ```text ```` that follows it.

All share a folder; the commands share a shell, and the cells a namespace.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.doc_pages import same_text

_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "end-of-command-7f3a"


@dataclass(frozen=True)
class Step:
    """A block of a page that is run or written, and where its output stands in the source."""

    kind: str
    """`console`, `file` or `cell`."""
    line: int
    name: str
    """Of the file; of a console, the word behind `console`."""
    body: str
    start: int
    end: int


@dataclass(frozen=True)
class Done:
    """A step that was run, and the text that the page should have between `start` and `end`."""

    step: Step
    text: str


class Shell:
    """A bash process that runs one command after the other; a context manager, which ends what is left of it.

    Parameters
    ----------
    folder, environment
        Where it starts, and its variables.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> str:
        """Run a command; return what it printed to stdout and stderr."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        # Without an input of its own a command would read the commands that follow.
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\necho {_END}\n")
        self._bash.stdin.flush()
        printed: list[str] = []
        for line in self._bash.stdout:
            if line.rstrip("\n").endswith(_END):
                return "".join([*printed, line.rstrip("\n").removesuffix(_END)])
            printed.append(line)
        raise RuntimeError(f"the shell ended in {command!r}: {''.join(printed)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: Any, traceback: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self.run("kill $(jobs -p) 2>/dev/null; wait")
        self._bash.kill()
        self._bash.wait()


class ConsolePage:
    """A page, read.

    Parameters
    ----------
    path
        The page.
    places
        What the page calls something, such as `localhost:9092`, to what it is where the page is run.
    volatile
        Patterns of what differs from run to run, such as times: it is not compared. One that ends in `\\n` is of lines
        that may be there or not.
    """

    def __init__(self, path: Path, places: Mapping[str, str], volatile: Sequence[str] = ()) -> None:
        self.path, self.source = path, path.read_text(encoding="utf-8")
        self._places = dict(places)
        self._volatile = [re.compile(pattern) for pattern in volatile]
        self.steps = list(_steps(self.source))

    def run(self, folder: Path, environment: Mapping[str, str], skip: Sequence[str] = ()) -> Iterator[Done]:
        """Run the steps in `folder`, but for consoles whose name is in `skip`; yield each when it is done."""
        namespace: dict[str, Any] = {"__name__": "__main__"}
        with Shell(folder, environment) as shell:
            for step in self.steps:
                body = self._there(step.body)
                if step.kind == "file":
                    (folder / step.name).write_text(body, encoding="utf-8")
                elif step.kind == "cell":
                    code = compile("\n" * (step.line - 1) + body, str(self.path), "exec")
                    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
                        exec(code, namespace)
                    yield Done(step, self._here(printed.getvalue()))
                elif step.name not in skip:
                    yield Done(step, "".join(self._session(shell, body)))

    def _session(self, shell: Shell, body: str) -> Iterator[str]:
        for command in _commands(body):
            printed = shell.run("\n".join(command))
            typed = self._here("\n> ".join(command))
            yield f"$ {typed}\n{self._here(printed)}"
            if printed and not printed.endswith("\n"):
                yield "\n"

    def _there(self, text: str) -> str:
        for name, place in self._places.items():
            text = text.replace(name, place)
        return text

    def _here(self, text: str) -> str:
        for name, place in self._places.items():
            text = text.replace(place, name)
        return text

    def differs(self, done: Done) -> str | None:
        """Return what is wrong where a step printed something else than the page shows; None where nothing is."""
        shown, found = self.source[done.step.start : done.step.end], done.text
        same = same_text(self._stable(found), self._stable(shown))
        return None if same else f"{self.path.name}:{done.step.line} prints\n{found}\nand the page says\n{shown}"

    def _stable(self, text: str) -> str:
        for pattern in self._volatile:
            text = pattern.sub("" if pattern.pattern.endswith(r"\n") else "~", text)
        return text

    def updated(self, done: Sequence[Done]) -> str:
        """Return the page's source with what was printed."""
        source = self.source
        for one in reversed(done):
            source = source[: one.step.start] + one.text + source[one.step.end :]
        return source


def _steps(source: str) -> Iterator[Step]:
    found = list(_BLOCK.finditer(source))
    for i, block in enumerate(found):
        language, name, body = block[1], block[2] or "", block[3]
        line = source.count("\n", 0, block.start(3)) + 1
        if language == "console":
            yield Step("console", line, name, body, block.start(3), block.end(3))
        elif name:
            yield Step("file", line, name, body, block.start(3), block.end(3))
        elif language == "python":
            following = found[i + 1] if i + 1 < len(found) else None
            if following is None or following[1] != "text" or source[block.end() : following.start()].strip():
                raise ValueError(f"line {line}: a cell without a block of text behind it")
            yield Step("cell", line, "", body, following.start(3), following.end(3))


def _commands(body: str) -> Iterator[list[str]]:
    command: list[str] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            if command:
                yield command
            command = [line[2:]]
        elif line.startswith("> ") and command:
            command.append(line[2:])
        elif command:
            yield command
            command = []
    if command:
        yield command
