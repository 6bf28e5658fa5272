"""What the log leaves out."""

from __future__ import annotations

import logging
import sys
import unicodedata
import warnings

import pytest

from attributary_agents.logs import (
    REPEATED_AFTER_S,
    LoggedWarnings,
    PlainLines,
    Repetitions,
    configure_logging,
    without_user,
)
from attributary_explainers import ConstantLossWarning, IncrementalPFI, ModelFailureWarning, UnknownLabelWarning


def record(message: str, *args: object, name: str = "aiokafka", exc_info: object = None) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, message, args, exc_info)  # type: ignore[arg-type]


def test_a_repeated_line_of_a_library_comes_again_after_a_while_with_its_count() -> None:
    now = 100.0
    held = Repetitions(lambda: now)
    assert held.filter(record("cannot connect to %s", "one"))
    assert [held.filter(record("cannot connect to %s", node)) for node in ("one", "two", "one")] == [False] * 3
    now += REPEATED_AFTER_S
    again = record("cannot connect to %s", "two")
    assert held.filter(again)
    assert again.getMessage() == "cannot connect to two (and 3 more like this)"
    now += REPEATED_AFTER_S
    alone = record("cannot connect to %s", "two")
    assert held.filter(alone)
    assert alone.getMessage() == "cannot connect to two"


def test_other_texts_our_own_lines_and_tracebacks_are_never_held_back() -> None:
    held = Repetitions(lambda: 0.0)
    for message in ("no leader", "no coordinator", "no metadata"):
        assert held.filter(record(message))
    for _ in range(3):
        assert held.filter(record("dead letter", name="attributary_agents.worker.records"))
    try:
        raise ValueError("with a traceback")
    except ValueError:
        for _ in range(3):
            assert held.filter(record("no leader", exc_info=sys.exc_info()))


def shown(caplog: pytest.LogCaptureFixture, *given: Warning) -> list[str]:
    show = LoggedWarnings()
    for one in given:
        show(one, type(one), "model.py", 3)
    return [record.getMessage() for record in caplog.records]


def test_a_warning_of_another_s_is_logged_by_kind_and_place_once(caplog: pytest.LogCaptureFixture) -> None:
    said = shown(caplog, RuntimeWarning("overflow of 1234"), RuntimeWarning("overflow of 5678"), UserWarning("1234"))
    assert said == [
        "RuntimeWarning: at model.py:3; its text may hold values and is not logged",
        "UserWarning: at model.py:3; its text may hold values and is not logged",
    ]


def test_a_warning_of_ours_says_what_it_says_without_values(caplog: pytest.LogCaptureFixture) -> None:
    plain = ConstantLossWarning("the loss was 0.5 for every prediction")
    private = UnknownLabelWarning("labels are like 'secret'")
    private.without_values = "labels are like str values"
    assert shown(caplog, plain, private) == [
        "ConstantLossWarning: the loss was 0.5 for every prediction",
        "UnknownLabelWarning: labels are like str values",
    ]


def test_a_model_that_raises_while_it_is_explained_shows_its_value_to_the_user_alone() -> None:
    def model(x: dict[str, object]) -> float:
        if x["a"] == "secret":
            raise ValueError(f"cannot read {x['a']}")
        return 0.0

    explainer = IncrementalPFI(model, loss="squared", seed=1)
    explainer.explain_one({"a": 1.0}, 1.0)
    with pytest.warns(ModelFailureWarning, match="cannot read secret") as caught:
        explainer.explain_one({"a": "secret"}, 1.0)
    (warning,) = caught
    assert warning.message.without_values.startswith("function raised ValueError while it was explained")  # type: ignore[union-attr]


FORGED = "age\n2026-01-01 00:00:00,000 ERROR attributary: forged\r\x1b[31m\u202e\u2028\x85\x9b"


def lines_of(*, error: Exception | None = None, message: str = "model %s moved", name: str = FORGED) -> list[str]:
    formatter = PlainLines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    return formatter.format(record(message, name, exc_info=exc_info)).split("\n")


def test_each_line_names_the_process_of_several_also_those_of_a_traceback() -> None:
    formatter = PlainLines("%(name)s: %(message)s", process="worker 1")
    try:
        raise ValueError("one\ntwo")
    except ValueError as error:
        text = formatter.format(record("%s", "m", exc_info=(type(error), error, error.__traceback__)))
    lines = text.split("\n")
    assert len(lines) > 3
    assert all(line.startswith("[worker 1] ") for line in lines)
    assert all(line.startswith("[worker 1]   ") for line in lines[1:]), "and is indented behind that"


def is_plain(text: str) -> bool:
    return all(unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in text)


def test_a_name_forges_no_line_and_moves_no_terminal() -> None:
    (line,) = lines_of()
    assert line.endswith(
        r": model age\n2026-01-01 00:00:00,000 ERROR attributary: forged\r\x1b[31m\u202e\u2028\x85\x9b moved"
    )
    assert is_plain(line)


def test_neither_does_the_text_of_an_exception() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        first, *rest = lines_of(error=error)
    assert first.endswith("moved")
    assert [line for line in rest if not line.startswith("  ")] == []
    assert rest[0] == "  Traceback (most recent call last):"
    assert any(line.strip() == "ValueError: age" for line in rest)
    assert all(map(is_plain, rest))


def test_a_stack_keeps_its_lines() -> None:
    lines = lines_of(message="stuck:\n%s", name='  File "a.py", line 1\n    call()')
    assert lines[-2:] == ['  File "a.py", line 1', "    call()"]


def test_the_user_of_a_url_is_not_logged() -> None:
    (line,) = lines_of(message="cannot write to s3://key:secret@bucket/states, %s", name="ops:pass@kafka:9092")
    assert line.endswith("cannot write to s3://***@bucket/states, ***@kafka:9092")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://token@host/path?x=a@b", "https://***@host/path?x=a@b"),
        ("'redis://:pa@ss@host:1'", "'redis://***@host:1'"),
        ("s3://bucket/a@b, ops@example.org", "s3://bucket/a@b, ops@example.org"),
        ("SASL_SSL://a:b@k1:9092,c:d@k2:9092", "SASL_SSL://***@k2:9092"),
        ('["a:b@k1:9092", "k2:9092"]', '["***@k1:9092", "k2:9092"]'),
        ("attributary.observations.v1[0]@17", "attributary.observations.v1[0]@17"),
    ],
)
def test_users_are_masked_and_nothing_else_is(text: str, shown: str) -> None:
    assert without_user(text) == shown


def test_the_worker_logs_so(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, level, showwarning = root.handlers[:], root.level, warnings.showwarning
    try:
        configure_logging("INFO")
        logging.getLogger("attributary_agents.x").info("model %s", FORGED)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        warnings.showwarning = showwarning
    assert capsys.readouterr().err.count("\n") == 1
