"""A card is safe HTML that stands alone, for every object, whether or not it has seen anything."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from itertools import chain

import pytest
from river.datasets import synth

import attributary_explainers as ae
from attributary_explainers.notebook.cards import Bar, Card

from . import objects


def parsed(shown):
    """The card as XML: every element is closed, every character escaped."""
    return ET.fromstring(shown)


def is_self_contained(shown):
    return not any(word in shown for word in ("<script", "http", "src=", "href", "<style", "@import", "onload"))


@pytest.mark.parametrize("name", objects.ALL)
def test_every_object_has_a_card_before_it_has_seen_anything(name):
    made = objects.ALL[name]()
    shown = made._repr_html_()
    assert is_self_contained(shown)
    assert repr(made) in "".join(parsed(shown).itertext())


@pytest.mark.parametrize("name", [*objects.EXPLAINERS, *objects.WATCHERS])
def test_every_explainer_has_a_card_of_what_it_has_seen(name):
    made = objects.taught({**objects.EXPLAINERS, **objects.WATCHERS}[name])
    shown = made._repr_html_()
    assert is_self_contained(shown)
    text = "".join(parsed(shown).itertext())
    assert "n_observations" in text or "n_predicted" in text


def test_a_card_has_importance_half_widths_loss_and_what_was_skipped_by_reason():
    pfi = objects.taught(objects.EXPLAINERS["pfi"])
    pfi.explain_one({}, True)
    tree = parsed(pfi._repr_html_())
    text = "".join(tree.itertext())
    assert f"loss: {pfi.loss.statement}" in text
    assert f"n_observations: {pfi.n_observations}" in text
    assert f"n_skipped: {pfi.n_skipped} (" in text
    assert "no_features 1)" in text
    rows = [[cell.text for cell in row][:3] for row in tree.iter("tr")][1:]
    order = sorted(pfi.importance, key=lambda name: -pfi.importance[name])
    assert rows == [[name, f"{pfi.importance[name]:.4g}", f"{pfi.half_width[name]:.4g}"] for name in order]


def test_what_users_name_is_escaped():
    evil = "<script>alert(1)</script>&\"'"
    pfi = ae.IncrementalPFI(lambda x: float(x[evil]), loss="squared", groups={evil + "g": [evil]}, alpha=0.5, seed=1)
    for n in range(5):
        pfi.explain_one({evil: n, "b": 1}, n)
    shown = pfi._repr_html_()
    assert "<script" not in shown
    assert evil + "g" in "".join(parsed(shown).itertext())


def test_many_features_are_cut_and_said():
    pfi = ae.IncrementalPFI(lambda x: x["f0"], loss="squared", alpha=0.5, n_samples=1, seed=1)
    for n in range(4):
        pfi.explain_one({f"f{i}": n for i in range(300)}, n)
    tree = parsed(pfi._repr_html_())
    assert len(list(tree.iter("tr"))) == 21
    assert "and 280 more; to_frame() has all" in "".join(tree.itertext())


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, 1e300])
@pytest.mark.parametrize("width", [math.nan, math.inf, 0.0, 1e300])
def test_any_number_has_a_bar_or_none(value, width):
    parsed(Card("c", columns=("a", "b"), rows=[["x", Bar(value, width)], ["y", Bar(1.0)]]).html())


def test_a_batch_and_events_have_cards():
    model = objects.taught(objects.EXPLAINERS["pfi"]).model
    found = ae.batch_pfi(model, objects.stream(50), seed=1)
    assert "n_observations: 50" in "".join(parsed(found._repr_html_()).itertext())
    change, told = ae.ChangeExplainer(objects.model(), window=100, seed=1), []
    streams = [
        synth.STAGGER(classification_function=concept, seed=seed).take(700) for concept, seed in ((0, 1), (2, 2))
    ]
    for x, y in chain(*streams):
        y_pred = change.model.predict_proba_one(x)
        change.model.learn_one(x, y)
        told += change.update(x, y, y_pred)
    assert {type(event).__name__ for event in told} >= {"Alarm", "ChangeExplanation"}
    for event in told:
        text = "".join(parsed(event._repr_html_()).itertext())
        assert event.sentence() in text
        if getattr(event, "importances", None):
            assert "pfi" in text
            assert "before" in text
    assert "an alarm is open" in change._repr_html_()
