"""What messages show of words and numbers."""

from __future__ import annotations

import math
import sys
import unicodedata

import pytest

from attributary_explainers.wording import did_you_mean, printable, show_count, show_estimate, show_number


@pytest.mark.parametrize(
    ("name", "choices", "said"),
    [
        ("aplha", ["alpha", "seed"], ": did you mean 'alpha'?"),
        ("Alpha", ["alpha", "seed"], ": did you mean 'alpha'?"),
        ("modle", ["mode", "model"], ": did you mean 'model'?"),
        ("x", ["alpha", "seed"], ""),
        ("alpha", [], ""),
    ],
)
def test_the_most_similar_choice_is_named_and_nothing_where_none_is(name, choices, said):
    assert did_you_mean(name, choices) == said


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (-0.0, "0"), (2.0, "2"), (0.35, "0.35"), (0.12345, "0.123"), (-0.12345, "-0.123"), (12.34, "12.3"),
        (999.4, "999"), (999.6, "1 000"), (1234.5, "1 234"), (5065.3, "5 065"), (999_499.0, "999 499"),
        (0.3701, "0.370"), (2.001, "2.00"), (999_999.0, "1.00 million"), (1_020_000.0, "1.02 million"),
        (5.64e9, "5.64 billion"), (-7e12, "-7 trillion"),
        (9.999e14, "1.00 × 10¹⁵"), (1e300, "1.00 × 10³⁰⁰"), (0.0012, "0.0012"), (1e-4, "0.0001"),
        (9.9996e-5, "0.000100"),
        (3.14e-7, "3.14 × 10⁻⁷"), (-5e-324, "-4.94 × 10⁻³²⁴"), (math.inf, "infinite"), (-math.inf, "-infinite"),
        (math.nan, "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits_and_words_where_they_are_large(value, shown):
    assert show_number(value) == shown


def test_a_signed_number_has_a_plus_above_0():
    assert [show_number(value, signed=True) for value in (0.5, 0.0, -2e6)] == ["+0.5", "0", "-2 million"]


def test_counts_keep_their_digits():
    assert [show_count(n) for n in (0, 999, 5065, 2**53 + 1)] == ["0", "999", "5 065", "9 007 199 254 740 993"]


@pytest.mark.parametrize(
    ("value", "half_width", "shown"),
    [
        (0.12345, 0.0341, "0.12 ± 0.03"), (0.35, 0.1, "0.35 ± 0.10"), (0.35, 0.0996, "0.35 ± 0.10"),
        (12.3456, 3.2, "12 ± 3"), (12.3456, 0.0961, "12.3 ± 0.1"),
        (5065.3, 1234.0, "5 100 ± 1 200"), (-5065.3, 12.0, "-5 065 ± 12"),
        (5.64e9, 1e9, "5.6 ± 1.0 billion"), (1.02e6, 2e4, "1.02 ± 0.02 million"), (0.5, 2e7, "0 ± 20 million"),
        (3.1e-7, 4e-8, "(3.1 ± 0.4) × 10⁻⁷"), (3e300, 1e299, "(3.00 ± 0.10) × 10³⁰⁰"),
        (0.5, 3e-9, "0.5 ± 3.00 × 10⁻⁹"), (5e9, 3.0, "5 billion ± 3"), (0.5, 0.0, "0.5"), (0.5, None, "0.5"),
        (-0.02, 0.5, "0.0 ± 0.5"), (-4e10, 2e11, "0 ± 200 billion"), (-3e-13, 1e-11, "(0.0 ± 1.0) × 10⁻¹¹"),
        (5e-324, 5e-324, "4.94 × 10⁻³²⁴ ± 4.94 × 10⁻³²⁴"), (0.5, math.inf, "0.5"), (math.nan, 0.1, "unknown"),
    ],
)  # fmt: skip
def test_an_estimate_is_rounded_to_the_digits_of_its_half_width(value, half_width, shown):
    assert show_estimate(value, half_width) == shown


def test_every_control_and_format_character_is_escaped_and_no_letter() -> None:
    escaped = ("Cc", "Cf", "Cs", "Zl", "Zp")
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in escaped:
            assert printable(character).isascii()
            assert printable(f"a{character}b").startswith("a\\")
            assert printable(character, keep=character) == character
        elif unicodedata.category(character) != "Cn":  # of a later Unicode, perhaps
            assert printable(character) == character
    assert printable("Größe (€) 中文 😀") == "Größe (€) 中文 😀"
    assert printable(("a\n",)) == r"('a\n',)"
