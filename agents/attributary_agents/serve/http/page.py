"""The page's files: read, packed and named by content at the start."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..as_served import as_served

FOLDER = Path(__file__).parents[1] / "static"
INDEX = "index.html"
_INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_TEXT = "text/plain; charset=utf-8"
_PACKED = ("text/", "application/json", "image/svg+xml")


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
        What a browser lets it load and run.
    """

    def __init__(self, version: str, folder: Path = FOLDER) -> None:
        contents = {
            path.relative_to(folder).as_posix(): _read(path, path.relative_to(folder).as_posix())
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not any(part.startswith(".") for part in path.parts)
        }
        index = contents.pop(INDEX, b"").decode()
        whole = sha256(b"".join(name.encode() + b"\0" + body for name, body in contents.items()) + index.encode())
        self.build = f"{version}-{whole.hexdigest()[:10]}"
        self.base = f"/static/{self.build}"
        self.index = index.replace("{{base}}", self.base).encode()
        self.policy = _policy(self.index.decode())
        self._files = {name: _file(name, body) for name, body in contents.items()}

    def file(self, path: str) -> File | None:
        """Return the file at a path below the base; None where there is none."""
        return self._files.get(path)


def _read(path: Path, name: str) -> bytes:
    body = path.read_bytes()
    return as_served(name, body.decode()).encode() if _TYPES.get(path.suffix, "").startswith("text/") else body


def _file(name: str, body: bytes) -> File:
    media_type = _TYPES.get(Path(name).suffix, _TEXT)
    packed = gzip.compress(body, 9, mtime=0) if media_type.startswith(_PACKED) else body
    return File(media_type, body, packed if len(packed) < len(body) else None)


def _policy(html: str) -> str:
    """Return the Content-Security-Policy of a page.

    It allows nothing from other hosts, and only the inline scripts that the page has.
    """
    scripts = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in _inline(html))
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {scripts}".rstrip(),
            "style-src 'self'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "object-src 'none'",
            "frame-ancestors 'self'",
            "base-uri 'none'",
            "form-action 'self'",
        )
    )


def _inline(html: str) -> list[str]:
    return [found[1] for found in _INLINE.finditer(html)]
