"""Words and numbers as messages show them, in a format everywhere."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any


def did_you_mean(name: object, choices: Iterable[Any]) -> str:
    """Return a question that names the choice most like `name`.

    It is put behind a message; empty where none is like it.

    Examples
    --------
    >>> "unknown key 'alhpa'" + did_you_mean("alhpa", ["alpha", "seed"])
    "unknown key 'alhpa': did you mean 'alpha'?"
    >>> did_you_mean("price", ["alpha", "seed"])
    ''
    """
    found = _closest(name, choices)
    return f": did you mean {found[0]!r}?" if found else ""


def closest(name: object, choices: Iterable[Any]) -> str:
    """Return the choice most like `name`, ignoring case; empty if none is."""
    return "".join(map(str, _closest(name, choices)))


def _closest(name: object, choices: Iterable[Any]) -> list[Any]:
    by_lower = {str(choice).lower(): choice for choice in choices}
    letters = sorted(str(name).lower())
    swapped = [choice for lower, choice in by_lower.items() if sorted(lower) == letters]
    if len(swapped) == 1:  # two letters that changed places are likelier than one too many: modle is model, not mode
        return swapped
    return [by_lower[found] for found in difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.66)]


# Unicode's categories Cc, Cf, Cs, Zl and Zp: control, format (direction among them), surrogates, ends of lines.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def printable(text: object, keep: str = "") -> str:
    """Return a text with all control and format characters escaped.

    Ends of lines and characters of direction are among them. A name that comes from outside can then neither write to a
    terminal what it says nor forge a line of a log, and what is read is in the order in which it was written. Events
    and JSON keep the name as it is. Characters in `keep` are left as they are.

    Examples
    --------
    >>> print(printable("age\\n2026-01-01 INFO forged \\x1b[31m\\u202eegnaro"))
    age\\n2026-01-01 INFO forged \\x1b[31m\\u202eegnaro
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), str(text))


def _escaped(character: str) -> str:
    return character.encode("unicode-escape").decode("ascii")


_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_NO_WORD = 1e15  # from here on, and below _SMALL, powers of ten
_SMALL = 1e-4
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def show_names(names: Collection[object], most: int = 8) -> str:
    """Return the first `most` names with commas, and how many more there are.

    Examples
    --------
    >>> show_names(["a", "b"]), show_names(range(12))
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7 and 4 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(str, islice(names, most)))}{more}"


def show_count(count: int) -> str:
    """Return a whole number with all its digits, in groups of three.

    Examples
    --------
    >>> show_count(1020000)
    '1 020 000'
    """
    return f"{count:,}".replace(",", " ")


def show_number(value: float | None, *, signed: bool = False) -> str:
    """Return a number as sentences show it, with three digits.

    Below a million all of the whole ones are shown, beyond that words. Zeros at the end are shown where the number was
    rounded. None and NaN are "unknown". `signed`: a plus stands before a number above 0.

    Examples
    --------
    >>> [show_number(value) for value in (0.12345, 2.0, 5065.3, 1_020_000, -5.64e9, 0.0012, 3.1e-7)]
    ['0.123', '2', '5 065', '1.02 million', '-5.64 billion', '0.0012', '3.10 × 10⁻⁷']
    """
    if value is None or math.isnan(value):
        return "unknown"
    sign = "-" if value < 0 else "+" if signed and value > 0 else ""
    if math.isinf(value):
        return f"{sign}infinite"
    size = float(f"{abs(value):.3g}")
    if size == 0.0 or _SMALL <= size < 1000:
        return sign + _digits(size, abs(value))
    if 1000 <= size < 1e6:
        return sign + show_count(round(abs(value)))
    for scale, word in _LARGE:
        if scale <= size < _NO_WORD:
            return f"{sign}{_digits(size / scale, abs(value) / scale)} {word}"
    mantissa, _, exponent = f"{size:.2e}".partition("e")
    return f"{sign}{_digits(float(mantissa), 0.0)} {_power(int(exponent))}"


def _digits(rounded: float, value: float) -> str:
    return f"{rounded:.3g}" if rounded == value else f"{rounded:#.3g}".rstrip(".")


def show_estimate(value: float, half_width: float | None) -> str:
    """Return a number with the half-width of its interval.

    Both are rounded to the digits of the half-width that count. That is its first digit, or the first two where it
    begins with a 1. Where the half-width is None, 0 or no finite number, the number is returned as `show_number` shows
    it.

    Examples
    --------
    >>> [show_estimate(0.12345, 0.0341), show_estimate(5065.3, 1234.0), show_estimate(5.64e9, 1e9)]
    ['0.12 ± 0.03', '5 100 ± 1 200', '5.6 ± 1.0 billion']
    >>> show_estimate(3.1e-7, 4e-8)
    '(3.1 ± 0.4) × 10⁻⁷'
    """
    if half_width is None or not (math.isfinite(half_width) and half_width > 0.0 and math.isfinite(value)):
        return show_number(value)
    largest = max(abs(value), half_width)
    # The number would have more than six digits, or no power of ten is as small.
    if half_width < _SMALL * largest or half_width < _SMALL <= largest or largest < 1e-300:
        return f"{show_number(value)} ± {show_number(half_width)}"
    if largest < _SMALL or largest >= _NO_WORD:
        exponent = math.floor(math.log10(largest))
        scale = 10.0**exponent
        return f"({_rounded(value / scale, half_width / scale)}) {_power(exponent)}"
    for scale, word in _LARGE:
        if largest >= scale:
            return f"{_rounded(value / scale, half_width / scale)} {word}"
    return _rounded(value, half_width)


def _rounded(value: float, half_width: float) -> str:
    """Return a number and its half-width, rounded as `show_estimate` says."""
    two, one = f"{half_width:.1e}", f"{half_width:.0e}"
    shown = two if two[0] == "1" else one
    half_width = float(shown)
    places = len(shown.partition("e")[0].replace(".", "")) - 1 - int(shown.partition("e")[2])
    decimals = max(places, 0)
    # Plus 0.0: a number that is rounded to nothing has no sign.
    return " ± ".join(f"{round(one, places) + 0.0:,.{decimals}f}".replace(",", " ") for one in (value, half_width))


def _power(exponent: int) -> str:
    return f"× 10{str(exponent).translate(_SUPERSCRIPTS)}"
