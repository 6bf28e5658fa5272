"""Changes that follow one another are told once."""

from attributary_explainers.change.verdicts import Course


def told(changes, window=100):
    course = Course(window)
    return [course.add(*change) for change in changes]


def test_single_changes_are_told_without_a_pattern():
    assert told([(1000, 0.5, 1.0, "trend"), (2001, 0.5, 1.0, "trend")]) == [(True, None), (True, None)]


def test_the_second_of_a_course_is_told_with_its_pattern_and_the_others_are_not():
    found = told([(1000 + 900 * i, 0.5, 1.0, "recurring") for i in range(6)])
    assert found == [(True, None), (True, "recurring"), *[(False, None)] * 4]


def test_a_change_twice_as_large_as_all_before_is_told():
    small = [(1000 + 100 * i, 0.5, 1.0, "trend") for i in range(4)]
    assert told([*small, (1400, 1.01, 1.0, "trend")])[-1] == (True, "trend")
    assert told([*small, (1400, 0.5, 2.01, "trend")])[-1] == (True, "trend")
    assert told([*small, (1400, 1.0, 2.0, "trend")])[-1] == (False, None)
    assert told([*small, (1400, 1.01, 1.0, "trend"), (1500, 2.0, 1.0, "trend")])[-1] == (False, None)


def test_after_ten_windows_without_change_it_is_over():
    course = Course(100)
    for now in (1000, 1100, 1200):
        course.add(now, 0.5, 1.0, "trend")
    assert (course.is_told(2200), course.is_told(2201)) == (True, False)
    assert course.add(2201, 0.1, 0.1, "trend") == (True, None)
    assert course.pattern is None
