"""The page's files: as they are served, and as a single HTML file."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

STATIC = Path(__file__).parent / "static"
VENDOR = "vendor/"
"""Where files of others are: they stay as they came, with their licences."""

_INDEX = "index.html"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
_OTHER_ENDS = frozenset(
    "\r\u2028\u2029"
)  # end a line for a script, too: a comment may be over where it does not look so
_BACKTICK = re.compile(r"(?<!\\)`")
_INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
_BASE = "{{base}}/"
_STYLESHEET = re.compile(r'<link rel="stylesheet" href="\{\{base\}\}/([^"]+)">\n?')
_SCRIPT = re.compile(r'<script src="\{\{base\}\}/([^"]+)" defer></script>\n?')
_IMPORTS = re.compile(r'<script type="importmap">.*?</script>\n?', re.DOTALL)
_MAIN = re.compile(r'<script type="module" src="\{\{base\}\}/js/([^"]+)"></script>\n?')
_CHARSET = '<meta charset="utf-8">\n'
# What else a data: URL of a script may hold as it is; < > " and \ could end the script or the string that it stands in.
_PLAIN = " !$&'()*+,-./:;=?@[]^_`{|}~"

# An element made by a trusted script is trusted ('strict-dynamic'), and so is what it imports; nothing else is.
_START = """
const main = document.createElement("script");
main.type = "module";
main.src = import.meta.resolve(%s);
document.head.append(main);
"""


def as_served(name: str, text: str) -> str:
    """Return a file of the page as it is served.

    Scripts and style sheets of ours go without indentation, empty lines, and comments on lines of their own. Every line
    break between two pieces of code stays, and so does a template of several lines, which is text.

    Parameters
    ----------
    name
        Of the file, below the folder of the page.
    """
    is_script = name.endswith(".js")
    if name.startswith(VENDOR) or not name.endswith((".js", ".css")) or not _OTHER_ENDS.isdisjoint(text):
        return text
    kept: list[str] = []
    is_comment = is_template = False
    for line in text.split("\n"):
        code = line.strip()
        if is_template:
            kept.append(line)
        elif is_comment or (code.startswith("/*") and not code.startswith("/*!")):
            is_comment = "*/" not in code
            if not is_comment and not code.endswith("*/"):
                return text  # code behind a comment
            continue
        elif (is_script and code.startswith("//")) or not code:
            continue
        elif "*/" not in code.rpartition("/*")[2] and "/*" in code:
            return text  # a comment that begins behind code, and ends on another line
        else:
            kept.append(line.lstrip())
        if is_script and len(_BACKTICK.findall(line)) % 2:
            is_template = not is_template
    return text if is_comment or is_template else "\n".join([*kept, ""])


@dataclass(frozen=True)
class File:
    """A file of the page, and the same packed where that makes it smaller."""

    media_type: str
    body: bytes
    packed: bytes | None


class Page:
    """The page of a single build.

    Parameters
    ----------
    version
        Of Attributary.
    folder
        Where its files are.

    Attributes
    ----------
    build
        The version and what all files hold: what of another build is open in a browser loads itself anew.
    index
        The page, whose addresses name the build.
    policy
        Content-Security-Policy: nothing from other hosts, and only the inline scripts that the page has.
    """

    def __init__(self, version: str, folder: Path = STATIC) -> None:
        names = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
        shown = [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]
        contents = {name: _read(folder, name).encode() for name in shown}
        index = contents.pop(_INDEX, b"").decode()
        whole = sha256(b"".join(name.encode() + b"\0" + body for name, body in contents.items()) + index.encode())
        self.build = f"{version}-{whole.hexdigest()[:10]}"
        self.base = f"/static/{self.build}"
        self.index = index.replace("{{base}}", self.base).encode()
        scripts = "".join(f" {_hash(found[1])}" for found in _INLINE.finditer(self.index.decode()))
        self.policy = (
            f"default-src 'self'; script-src 'self'{scripts}; style-src 'self'; img-src 'self' data: blob:; "
            "connect-src 'self'; object-src 'none'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'"
        )
        self._files = {name: _file(name, body) for name, body in contents.items()}

    def file(self, path: str) -> File | None:
        """Return the file at a path below the base; None where there is none."""
        return self._files.get(path)


def _file(name: str, body: bytes) -> File:
    packed = gzip.compress(body, 9, mtime=0)
    media_type = _TYPES.get(Path(name).suffix, "text/plain; charset=utf-8")
    return File(media_type, body, packed if len(packed) < len(body) else None)


def single_file(data: Mapping[str, Any], static: Path = STATIC) -> str:
    """Return the page as a single HTML file that fetches nothing.

    Parameters
    ----------
    data
        What the REST interface would answer, as `views.whole` has it: plain data that JSON can hold.
    static
        Folder of the page: `index.html`, and what it names.
    """
    page = (static / _INDEX).read_text(encoding="utf-8")
    styles = "".join(_read(static, name) for name in _STYLESHEET.findall(page))
    main = "".join(_START % json.dumps(f"page/{name}") for name in _MAIN.findall(page))
    scripts = [_licensed(static, name) for name in _SCRIPT.findall(page)]
    imports = json.dumps({"imports": _modules(static)})
    for pattern in (_STYLESHEET, _SCRIPT, _IMPORTS, _MAIN):
        page = pattern.sub("", page)
    head = "".join(
        [
            f"<style>{_inside(styles, 'style')}</style>\n",
            f'<script type="importmap">{_inside(imports, "script")}</script>\n',
            *(f"<script>{_inside(script, 'script')}</script>\n" for script in scripts),
        ]
    )
    end = f'<script type="application/json" id="data">{_data(data)}</script>\n<script type="module">{main}</script>\n'
    policy = _policy(styles, [imports, *scripts, main])
    if _BASE in page or not main or any(mark not in page for mark in (_CHARSET, "</head>", "</body>")):
        raise ValueError(f"{static / _INDEX} names a file in a way that is not known here")
    page = page.replace("{{base}}", "")
    # From the end to the beginning: what is put in may hold the marks, too.
    page = page.replace("</body>", f"{end}</body>", 1).replace("</head>", f"{head}</head>", 1)
    return page.replace(_CHARSET, f'{_CHARSET}<meta http-equiv="Content-Security-Policy" content="{policy}">\n', 1)


def _read(folder: Path, name: str) -> str:
    return as_served(name, (folder / name).read_bytes().decode())


def _licensed(static: Path, name: str) -> str:
    """Return a script below its licence text, if it has a licence file."""
    licence = (static / name).with_name(Path(name).name.split(".")[0] + ".LICENSE")
    script = _read(static, name)
    return f"/*\n{licence.read_text(encoding='utf-8').strip()}\n*/\n{script}" if licence.is_file() else script


def _modules(static: Path) -> dict[str, str]:
    """Return each module as a data URL, by its import name."""
    names = [path.relative_to(static / "js").as_posix() for path in sorted((static / "js").rglob("*.js"))]
    kind = "data:text/javascript;charset=utf-8,"
    return {f"page/{name}": kind + quote(_read(static, f"js/{name}"), safe=_PLAIN) for name in names}


def _data(data: Mapping[str, Any]) -> str:
    """Return data as ASCII JSON that is safe inside a script element.

    It ends no script, and no character in it turns the direction of the text around it.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("\x7f", "\\u007f")


def _inside(text: str, tag: str) -> str:
    """Return text for an element, checked not to end it.

    A comment is refused as well, since it would hide the code behind it.
    """
    if f"</{tag}" in text.lower() or "<!--" in text:
        raise ValueError(f"a {tag} of the page holds what would end it")
    return text


def _policy(styles: str, scripts: Iterable[str]) -> str:
    """Return a single file's policy: its own scripts and styles, no fetches."""
    return (
        "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(styles)}; script-src {' '.join(map(_hash, scripts))} 'strict-dynamic'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
