"""Single HTML file of the page: style, scripts and data inside.

It fetches nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .as_served import as_served

STATIC = Path(__file__).parent / "static"
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


def single_file(data: Mapping[str, Any], static: Path = STATIC) -> str:
    """Return the page of `static` as a single HTML file that shows `data`.

    Parameters
    ----------
    data
        What the REST interface would answer, as `views.whole` has it: plain data that JSON can hold.
    static
        Folder of the page: `index.html`, and what it names.
    """
    page = (static / "index.html").read_text(encoding="utf-8")
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
        raise ValueError(f"{static / 'index.html'} names a file in a way that is not known here")
    page = page.replace("{{base}}", "")
    # From the end to the beginning: what is put in may hold the marks, too.
    page = page.replace("</body>", f"{end}</body>", 1).replace("</head>", f"{head}</head>", 1)
    return page.replace(_CHARSET, f'{_CHARSET}<meta http-equiv="Content-Security-Policy" content="{policy}">\n', 1)


def _read(static: Path, name: str) -> str:
    return as_served(name, (static / name).read_text(encoding="utf-8"))


def _licensed(static: Path, name: str) -> str:
    """Return a script below its licence text, if it has a licence file."""
    licence = (static / name).with_name(Path(name).name.split(".")[0] + ".LICENSE")
    script = _read(static, name)
    return f"/*\n{licence.read_text(encoding='utf-8').strip()}\n*/\n{script}" if licence.is_file() else script


def _modules(static: Path) -> dict[str, str]:
    """Return the address of each module by its import name.

    The address is a data URL that holds all of the module.
    """
    folder = static / "js"
    return {
        f"page/{path.relative_to(folder).as_posix()}": "data:text/javascript;charset=utf-8,"
        + quote(_read(static, path.relative_to(static).as_posix()), safe=_PLAIN)
        for path in sorted(folder.rglob("*.js"))
    }


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


def _policy(styles: str, scripts: list[str]) -> str:
    """Return the page's policy: no fetches, only its own scripts and styles."""
    trusted = " ".join(map(_hash, scripts))
    return (
        "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(styles)}; script-src {trusted} 'strict-dynamic'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
