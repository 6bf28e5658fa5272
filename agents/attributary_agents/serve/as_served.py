"""Removal of comments, indentation and empty lines from the page's files.

Comments go only where they stand on lines of their own.

What is left means the same, line by line: a line break stays wherever there is one between two pieces of code.
"""

from __future__ import annotations

import re

VENDOR = "vendor/"
"""Where files of others are: they stay as they came, with their licences."""

_OTHER_ENDS = frozenset("\r\u2028\u2029")
"""What ends a line for a script, too: a comment may be over where it does not look so."""

_BACKTICK = re.compile(r"(?<!\\)`")


def as_served(name: str, text: str) -> str:
    """Return a file of the page as it is served.

    Scripts and style sheets of ours are shortened; every other file is served whole.

    Parameters
    ----------
    name
        Of the file, below the folder of the page.
    text
        What it holds.
    """
    if name.startswith(VENDOR) or not name.endswith((".js", ".css")):
        return text
    return _without_comments(text, is_script=name.endswith(".js"))


def _without_comments(text: str, *, is_script: bool) -> str:
    """Return the lines of code, without comments, indentation and empty lines.

    A template of a script that goes over several lines is text, and stays as it is.
    """
    kept: list[str] = []
    is_comment = is_template = False
    if not _OTHER_ENDS.isdisjoint(text):
        return text
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
