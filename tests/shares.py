"""Of the combinations of a test's parameters, `make test` runs a share that has every value of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest


def leave_to_the_long_run(items: Iterable[pytest.Item]) -> None:
    """Mark as `long` what is not in the share that a test names: `@pytest.mark.share(2, "name", "loss")`.

    The values of each parameter have numbers, in the order in which they are written; in the share are the
    combinations whose numbers have a sum that `of` divides, and the first one of a value that is in none of these. So
    every value is met, and beside different values of the others.
    """
    tests: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("share") and not item.get_closest_marker("long"):
            tests[item.parent, getattr(item, "originalname", item.name)].append(item)
    for test in tests.values():
        of, *names = test[0].get_closest_marker("share").args
        combinations = [[id(item.callspec.params[name]) for name in names] for item in test]
        for item, is_met in zip(test, in_share(of, combinations), strict=True):
            if not is_met:
                item.add_marker(pytest.mark.long)


def in_share(of: int, combinations: list[list[Any]]) -> list[bool]:
    """Return of each combination whether it is in the share."""
    numbers = [
        {value: i for i, value in enumerate(dict.fromkeys(values))} for values in zip(*combinations, strict=True)
    ]
    sums = [sum(of_one[value] for of_one, value in zip(numbers, own, strict=True)) for own in combinations]
    chosen = [total % of == 0 for total in sums]
    met = {one for own, is_met in zip(combinations, chosen, strict=True) if is_met for one in enumerate(own)}
    for k, own in enumerate(combinations):
        if not met.issuperset(enumerate(own)):
            chosen[k] = True
            met.update(enumerate(own))
    return chosen
