"""Says which models the stand-in has, and what is special about each."""

from __future__ import annotations

from dataclasses import dataclass

from attributary_agents.serve.answers import Loss
from attributary_explainers.losses.statement import loss_statement


def _loss(name: str, unit: str, largest: float | None = None) -> Loss:
    return Loss(name=name, unit=unit, largest=largest, text=loss_statement(name, unit, largest))


CROSS_ENTROPY = _loss("cross_entropy", "nats", 34.538776)
BRIER = _loss("brier", "squared probability", 2.0)
SQUARED = _loss("squared", "unit of the target, squared")
ZERO_ONE = _loss("zero_one", "share of observations", 1.0)


@dataclass(frozen=True)
class Spec:
    """Describes a model of the stand-in; the sizes are where its walk begins."""

    model_id: str
    features: tuple[str, ...]
    loss: Loss
    sizes: tuple[float, ...]
    """Importance of the first features at the beginning; those after it fall off."""
    model_loss: float
    baseline_loss: float
    after: tuple[float, ...] = ()
    """The same after its change; empty where nothing changes."""
    changed_at: float = 1.0
    """Share of its events before the change."""
    state: str = "explained"
    mode: str = "labelled"
    version: str | None = "1"
    n_observations: int = 4_204_300
    per_second: float | None = 42.0
    n_events: int = 10_000
    every_ms: int = 10_000
    explainers: tuple[str, ...] = ("pfi", "sage")
    has_bands: bool = True
    fidelity: float | None = None
    n_waiting: int | None = None
    template: str | None = None
    dead: tuple[tuple[str, str, int], ...] = ()
    """Reason, stage and number of its dead letters."""


BANK = ("salary", "age", "elevel", "commission", "hvalue", "hyears", "loan", "car", "zipcode")
BIKES = ("hr", "temp", "workingday", "atemp", "hum", "windspeed", "mnth", "weekday", "season", "weathersit", "holiday")
FRAUD = ("amount", "merchant_country", "minutes_since_last", "card_age_days", "n_last_hour", "is_online", "mcc", "hour")
CLICKS = ("position", "query_length", "device", "hour", "is_logged_in", "referrer", "page_depth", "campaign")
LETTERS = ("xbox", "ybox", "width", "high", "onpix", "xbar", "ybar", "x2bar", "y2bar", "xybar", "x2ybr", "xy2br")
LONG = tuple(
    f"customer_transaction_history.{what}.exponentially_weighted_moving_average_over_the_last_{days}_days"
    for days in (7, 30, 90)
    for what in ("amount_in_account_currency", "number_of_distinct_merchants", "share_of_foreign_transactions")
)
LONG_ID = "recommendation-ranking-second-stage-candidate-generator.eu-west-1.production.blue"
HOSTILE_ID = "<img src=x onerror=alert(1)>"
HOSTILE = ("<script>alert(2)</script>", '"><svg onload=alert(3)>', "javascript:alert(4)", "{{7*7}}")

SPECS: tuple[Spec, ...] = (
    Spec("stock-out", ("weekday", "price", "stock"), SQUARED, (30.0, 12.0, 4.0), 60.0, 110.0, state="refused",
         version=None, n_events=900, dead=(("model_refused", "handle", 4_210),)),
    Spec("bank", BANK, CROSS_ENTROPY, (0.42, 0.11, 0.004, 0.09, 0.012, 0.008, 0.006, 0.003, 0.002), 0.31, 0.68,
         after=(0.20, 0.16, 0.15, 0.03, 0.012, 0.007, 0.006, 0.003, 0.002), changed_at=0.9928, state="incident",
         version="2", dead=(("missing_label", "decode", 12), ("wrong_type", "decode", 3))),
    Spec("wide", tuple(f"x{n:03d}" for n in range(1, 201)), BRIER, (0.08, 0.05, 0.04, 0.03, 0.02, 0.015), 0.21, 0.5,
         after=(0.03, 0.08, 0.04, 0.03, 0.02, 0.015), changed_at=0.7, state="incident", n_events=1_500,
         n_observations=136_300, per_second=9.0, explainers=("pfi",)),
    Spec("newcomer", ("distance", "rain", "hour", "driver_age"), SQUARED, (3.1, 1.2, 0.6, 0.1), 9.0, 14.0,
         state="learning", n_events=6, n_observations=170, per_second=1.4, has_bands=False, every_ms=20_000,
         explainers=("pfi",)),
    Spec("bikes", BIKES, SQUARED, (5200.0, 900.0, 700.0, 240.0, 150.0, 90.0, 70.0, 40.0, 30.0, 20.0, 5.0), 1444.0,
         9216.0, n_waiting=3_120, n_observations=31_204_000, per_second=310.0,
         dead=(("label_too_late", "join", 40),)),
    Spec("fraud-a", FRAUD, CROSS_ENTROPY, (0.06, 0.04, 0.03, 0.02, 0.01, 0.006, 0.004, 0.002), 0.08, 0.276,
         mode="mirror", fidelity=0.71, state="suspected", n_observations=8_804_000, per_second=88.0),
    Spec("clicks", CLICKS, CROSS_ENTROPY, (0.21, 0.1, 0.06, 0.05, 0.03, 0.02, 0.01, 0.004), 0.4, 0.66,
         after=(0.19, 0.1, 0.12, 0.05, 0.03, 0.02, 0.01, 0.004), changed_at=0.5, mode="unlabelled",
         n_observations=195_020_000, per_second=1_950.0),
    Spec("letters", LETTERS, CROSS_ENTROPY, (0.9, 0.8, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.28, 0.2, 0.1, 0.05), 0.92,
         3.258, n_observations=126_400, per_second=4.2, n_events=3_000, explainers=("pfi", "mdi")),
    Spec(LONG_ID, LONG, BRIER, (0.12, 0.09, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.001), 0.3, 0.5, n_events=2_000,
         state="incident", version="2026-10-04T07:15:00.000Z-9f8e7d6c5b4a-candidate", per_second=640.0,
         n_observations=12_801_000),
)  # fmt: skip

HOSTILE_SPEC = Spec(HOSTILE_ID, HOSTILE, BRIER, (0.12, 0.09, 0.05, 0.01), 0.3, 0.5, n_events=300,
                    version="<b>1</b>", state="incident", dead=(("<i>wrong</i>", "decode", 1),))  # fmt: skip

TEMPLATE = "store-*"
N_STORES = 9_812
N_TOGETHER = 8
"""Stores that have an incident, all at the same time."""


def store(number: int) -> Spec:
    """Return the model of a store, by its number from 0; the first few have moved most."""
    moved = (3.0, 9.5) if number < 5 else (4.2, 8.1)
    return Spec(f"store-{number * 7 + 11:05d}", ("price", "weekday", "promo", "rain"), SQUARED, (8.0, 5.0, 2.0, 0.3),
                22.0, 61.0, after=moved, changed_at=0.4, template=TEMPLATE, n_events=40,
                state="incident" if number < N_TOGETHER else "explained",
                n_observations=9_000 - number // 2, per_second=0.2, every_ms=600_000, explainers=("pfi",))  # fmt: skip
