"""Builds the object that a single file of the page holds, from the answers of the stand-in."""

from __future__ import annotations

from typing import Any

from .answers import Answers
from .compared import compare


def whole(answers: Answers, models: tuple[str, ...] = ("bank", "bikes")) -> dict[str, Any]:
    """Return what `#data` of a single file holds, of a few models."""
    day = 24 * 3_600_000
    fleet = answers.fleet(day).model_dump(mode="json")
    fleet["models"] = [one for one in fleet["models"] if one["model_id"] in models]
    fleet["incidents"] = [one for one in fleet["incidents"] if one["incidents"][0]["model_id"] in models]
    fleet |= {"n_models": len(models), "n_found": len(models)}
    before = f"bank@{answers.now_ms - day}"
    return {
        "health": answers.health().model_copy(update={"broker": "none"}).model_dump(mode="json"),
        "fleet": fleet,
        "models": {
            name: {
                "view": answers.model(name, day).model_dump(mode="json"),
                "series": {
                    explainer: answers.series(name, explainer, top=50).model_dump(mode="json")
                    for explainer in answers.spec(name).explainers
                },
                "incidents": answers.incidents(name).model_dump(mode="json"),
                "dead_letters": answers.dead_letters(name).model_dump(mode="json"),
                "dependences": answers.dependences(name).model_dump(mode="json"),
            }
            for name in models
        },
        "incidents": {
            one.id: answers.incident(one.id).model_dump(mode="json")
            for one in answers.told
            if one.row.model_id in models
        },
        "comparisons": [
            {"a": before, "b": "bank@now", "answer": compare(answers, before, "bank@now").model_dump(mode="json")}
        ],
    }
