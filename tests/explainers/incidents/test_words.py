"""Every headline and sentence of an incident, in a table that people have read.

`UPDATE_WORDS=1 pytest tests/explainers/incidents/test_words.py` writes the table anew; read it before it is committed.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, get_args

from attributary_explainers import Effect, Incident, Involved, Since
from attributary_explainers.incidents.incident import Mean, What

TABLE = Path(__file__).with_name("words.txt")


def effect(name: str, *means: float) -> Effect:
    return Effect(name, *(Mean(mean, 0.1 * mean) for mean in means))


KINDS: dict[str, tuple[Effect, ...]] = {
    "classes": (effect("loss", 0.21, 0.61, 0.25), effect("error rate", 0.166, 0.497, 0.18)),
    "numbers": (effect("loss", 9.0, 810.0, 12.0), effect("mean absolute error", 2.4, 22.1, 3.0)),
    "no labels": (),
    "useless": (
        effect("loss", 9.0, 810.0, 8100.0),
        effect("mean absolute error", 2.4, 22.1, 66.0),
        Effect("constant", None, None, Mean(2.2, 0.1)),
    ),
}
LEVELS = {"classes": effect("share of yes", 0.041, 0.098, 0.098), "numbers": effect("mean target", 24.1, 31.0, 31.2)}
LIVES: tuple[tuple[Any, Any], ...] = (
    ("suspected", "suspected"), ("confirmed", "confirmed"), ("confirmed", "raised"), ("confirmed", "lasts"),
    ("over", "returned"), ("over", "settled"), ("over", "replaced"), ("withdrawn", "noise"),
)  # fmt: skip
ADVICE: dict[str, Any] = {
    "inputs": "look_at_inputs", "worse": "retrain", "changed": "nothing", "level": "shift_intercept",
    "harder": "nothing", "relies_differently": "nothing", "version": "roll_back",
    "recovered": "look_at_inputs",
}  # fmt: skip
SEVERITY: dict[str, Any] = {
    "inputs": "critical", "worse": "critical", "changed": "info", "level": "warning", "harder": "info",
    "relies_differently": "info", "version": "critical", "recovered": "critical",
}  # fmt: skip
SAID = "is 204 to 1 080, and was 17 to 90 before (12 times what it was)"
BROKEN = Involved("age", moved=True, said=SAID)
RELIED = (
    Involved("elevel", 0.03, 0.14, 0.11, 0.02, significant=True),
    Involved("salary", 0.21, 0.05, -0.16, 0.03, significant=True),
)
BANNED = re.compile(
    "wronger|observations are only|examined until|gained on it|as right as it says|is told|first word|of which|is none"
)


BACK = {"error rate": 0.17, "mean absolute error": 2.5, "loss": 0.22}


def made(what: Any, life: Any, reason: Any, effects: tuple[Effect, ...], **of: Any) -> Incident:
    advice = "nothing" if reason in ("returned", "replaced", "noise") else ADVICE[what]
    advice = "nothing" if life == "suspected" and what != "inputs" else advice
    advice = "nothing" if what == "version" and not effects else advice  # it is by the loss
    severity = "warning" if life == "suspected" and what != "inputs" else SEVERITY[what]
    severity = {("changed", "lasts"): "warning", ("changed", "settled"): "warning"}.get((what, reason), severity)
    severity = "info" if what == "version" and (not effects or life == "suspected") else severity
    severity = "warning" if what == "inputs" and not effects else severity
    if reason == "returned":
        effects = tuple(replace(one, now=Mean(BACK[one.name], 0.1)) for one in effects if one.name in BACK)
    if (
        what == "level"
        and effects
        and (level := LEVELS.get("classes" if effects[-1].name == "error rate" else "numbers"))
    ):
        effects = (*effects, replace(level, after=None))
    features = (
        (BROKEN,) if what == "inputs" else () if what == "recovered" or (what == "version" and not effects) else RELIED
    )
    fields: dict[str, Any] = {
        "number": 3, "revision": 2, "what": what, "life": life, "severity": severity, "reason": reason,
        "observation": 6050, "since": Since(5002, 4993, 5007), "effects": effects, "features": features,
        "advice": advice, "intercept": -0.43,
        "again": 0, "evidence": (),
    }  # fmt: skip
    return Incident(**{**fields, **of})


def table() -> dict[str, tuple[str, str]]:
    """Return the headline and the sentence of each case, by its name."""
    found = {}
    for what, (life, reason), (kind, effects) in product(get_args(What), LIVES, KINDS.items()):
        if kind == "useless" or (kind == "no labels" and what not in ("inputs", "relies_differently", "version")):
            continue
        one = made(what, life, reason, effects)
        found[f"{what}, {life}, {reason}, {kind}"] = one.headline("bank"), one.sentence("bank")
    recovering = made("changed", "confirmed", "confirmed", KINDS["classes"], severity="warning")
    found["changed, confirmed, recovering, classes"] = recovering.headline("bank"), recovering.sentence("bank")
    labels = made("worse", "confirmed", "confirmed", KINDS["classes"], advice="look_at_labels")
    found["worse, confirmed, labels, classes"] = labels.headline("bank"), labels.sentence("bank")
    inputs = made("worse", "confirmed", "confirmed", KINDS["classes"], advice="look_at_inputs")
    found["worse, confirmed, inputs, classes"] = inputs.headline("bank"), inputs.sentence("bank")
    for kind in ("classes", "numbers"):
        early = made("worse", "suspected", "suspected", KINDS[kind], severity="critical", features=())
        found[f"worse, suspected, critical, {kind}"] = early.headline("bank"), early.sentence("bank")
        for reason in ("confirmed", "lasts"):
            hardly = made("inputs", "confirmed", reason, KINDS[kind], severity="warning")
            found[f"inputs, confirmed, {reason}, warning, {kind}"] = hardly.headline("bank"), hardly.sentence("bank")
    quiet = (effect("loss", 0.21, 0.61, 0.25), effect("error rate", 0.166, 0.16, 0.16))
    unsure = made("worse", "confirmed", "confirmed", quiet)
    found["worse, confirmed, probabilities, classes"] = unsure.headline("bank"), unsure.sentence("bank")
    turned = (effect("loss", 0.21, 1.2, 1.2), effect("error rate", 0.166, 0.82, 0.83))
    mirrored = made("worse", "confirmed", "confirmed", turned, advice="look_at_labels")
    found["worse, confirmed, turned round, classes"] = mirrored.headline("bank"), mirrored.sentence("bank")
    both = made("version", "confirmed", "confirmed", KINDS["classes"], advice="look_at_inputs", features=(BROKEN,))
    found["version, confirmed, inputs, classes"] = both.headline("bank"), both.sentence("bank")
    others = Involved("age", moved=True, said="moved: its median was 41, is 58")
    for what, advice in (("worse", "look_at_inputs"), ("changed", "nothing"), ("harder", "nothing")):
        moved = made(what, "confirmed", "confirmed", KINDS["classes"], advice=advice, features=(others, *RELIED))
        found[f"{what}, confirmed, moved, classes"] = moved.headline("bank"), moved.sentence("bank")
    vague = made("worse", "suspected", "suspected", KINDS["classes"], since=Since(6025, None, 6025), features=())
    found["worse, suspected, since unknown, classes"] = vague.headline("bank"), vague.sentence("bank")
    for life, reason in LIVES[1:6]:
        useless = made("worse", life, reason, KINDS["useless"])
        found[f"worse, {life}, {reason}, useless"] = useless.headline("bank"), useless.sentence("bank")
    return found


def as_text(found: dict[str, tuple[str, str]]) -> str:
    return "\n".join(f"{name}\n    {headline}\n    {sentence}" for name, (headline, sentence) in found.items()) + "\n"


def test_every_word_is_as_it_was_read() -> None:
    text = as_text(table())
    if os.environ.get("UPDATE_WORDS"):
        TABLE.write_text(text, encoding="utf-8")
    assert len(table()) >= 60
    assert text == TABLE.read_text(encoding="utf-8")


def test_headlines_and_sentences_are_short_and_plain() -> None:
    found = table().values()
    for headline, sentence in found:
        assert len(headline) <= 80
        assert len(sentence) <= 240, sentence
        assert sentence.endswith(".")
        assert ".." not in sentence
        assert not BANNED.search(f"{headline} {sentence}")
        assert sentence.startswith(headline)
    assert median(len(headline.split()) for headline, _ in found) <= 14
    assert median(len(sentence.split()) for _, sentence in found) <= 40
