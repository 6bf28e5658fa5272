"""Answers what the REST interface is asked, from the walks and stories of the stand-in's models."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from attributary_agents.serve import answers as wire
from attributary_agents.serve.views.incidents import lines_of
from attributary_explainers import LossGuard, LossReach
from attributary_explainers.monitor.events import model_guard
from attributary_explainers.wording import show_count

from .events import MINUTE, Told, tell_all, view_of
from .specs import HOSTILE_SPEC, N_STORES, SPECS, TEMPLATE, Spec, store
from .walks import Walk, listed, number, walk

BUILD = "0.0-stand-in"

GUARDS = {
    "bank": model_guard(LossGuard(256, None, LossReach(0.204, 0.295, 500, "share"))),
    "newcomer": model_guard(LossGuard(None, ("labelled observations", 170, 1344), None)),
}
"""Of the models whose guard is looked at."""


class UnknownError(Exception):
    """Nothing is known by that name; `suggestion` is the one most like it."""

    def __init__(self, what: str, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"No {what} {name!r}.")
        self.suggestion = suggestion


class Answers:
    """Holds the fleet of the stand-in, and answers from it with the types of the REST interface."""

    def __init__(self, now_ms: int, *, empty: bool = False, hostile: bool = False, with_stores: bool = True) -> None:
        self.now_ms, self.is_empty = now_ms, empty
        specs = () if empty else ((*SPECS, HOSTILE_SPEC) if hostile else SPECS)
        self.specs = {one.model_id: one for one in specs}
        self.told: list[Told] = tell_all(now_ms, specs, with_stores=with_stores)
        self.n_stores = N_STORES if with_stores and not empty else 0
        self.away_since_ms: int | None = None
        self.position = 0

    def health(self) -> wire.Health:
        """Say how the server is."""
        is_away = self.away_since_ms is not None
        return wire.Health(
            build=BUILD, position=self.position, broker="away" if is_away else "answers",
            broker_since_ms=self.away_since_ms, is_reading_past=False, read_share=None,
            last_event_ms=None if self.is_empty else self.now_ms - 3_000,
            importances_topic="attributary.importances.v1", webhooks=[],
        )  # fmt: skip

    def fleet(self, window_ms: int | None, q: str = "", offset: int = 0, limit: int = 50) -> wire.Fleet:
        """Show all models, those that need attention first."""
        named = [one for one in self.specs.values() if q.lower() in one.model_id.lower()]
        stores = range(self.n_stores) if not q else [
            i for i in range(self.n_stores) if q.lower() in f"store-{i * 7 + 11:05d}"]  # fmt: skip
        page: list[Spec] = [*named, *(store(i) for i in stores[: max(limit, 5) + offset])][offset : offset + limit]
        rows = [one.row for one in self.told]
        lines = lines_of(rows, {row.model_id: TEMPLATE for row in rows if row.model_id.startswith("store-")})
        wrong = {row.model_id for row in rows if row.standing == "bad"}
        n = len(self.specs) + self.n_stores
        n_refused = sum(one.state == "refused" for one in self.specs.values())
        n_waiting = sum(one.n_waiting is not None for one in self.specs.values())
        n_dead = sum(self._n_dead(one) for one in self.specs.values())
        parts = [
            f"{len(wrong)} of {show_count(n)} models have an incident, first: {lines[0].headline}" if wrong else
            f"Nothing is wrong: none of {show_count(n)} models has an incident", f"{n_refused} refused",
            f"{n_waiting} wait{'s' if n_waiting == 1 else ''} for labels", f"{show_count(n_dead)} dead letters",
        ]  # fmt: skip
        return wire.Fleet(
            now_ms=self.now_ms, window_ms=window_ms,
            sentence="No model has published yet." if n == 0 else " · ".join(parts),
            is_wrong=bool(wrong), n_models=n, n_incidents=len(wrong), n_waiting=n_waiting, n_refused=n_refused,
            n_dead_letters=n_dead, models=[self.row(one, window_ms) for one in page],
            configured=[wire.ConfiguredModel(model_id="bank", every=500)] if self.is_empty else [],
            incidents=lines[:12], offset=offset, n_found=len(named) + len(stores),
        )  # fmt: skip

    def row(self, spec: Spec, window_ms: int | None = None) -> wire.ModelRow:
        """Say how a model is doing."""
        is_refused, explainer = spec.state == "refused", spec.explainers[0]
        numbers = walk(spec, explainer, self.now_ms)
        last = -1
        top = [
            wire.TopFeature(
                feature=spec.features[i], importance=number(numbers.importance[last, i]),
                half_width=number(numbers.half_width[last, i]), share=number(numbers.share[last, i]), rank=rank + 1,
            )
            for rank, i in enumerate((-numbers.importance[last]).argsort()[:5])
        ]  # fmt: skip
        within = numbers.time_ms >= (self.now_ms - window_ms if window_ms else 0)
        picked = np.linspace(0, max(int(within.sum()) - 1, 0), min(24, int(within.sum()))).astype(int)
        mine = [one for one in self.told if one.row.model_id == spec.model_id]
        return wire.ModelRow(
            model_id=spec.model_id, template=spec.template, state=spec.state, mode=spec.mode, version=spec.version,
            n_observations=None if is_refused else spec.n_observations,
            observations_per_second=None if is_refused else spec.per_second, loss=spec.loss,
            model_loss=None if is_refused else number(numbers.model_loss[last]),
            baseline_loss=None if is_refused else number(numbers.baseline_loss[last]),
            present_loss=number(numbers.present_loss[last]), fidelity=number(numbers.fidelity[last]),
            is_unfaithful=spec.fidelity is not None and spec.fidelity < 0.8,
            shift=number(numbers.shift[last]) if spec.has_bands else None,
            shifts=listed(numbers.shift[within][picked]) if spec.has_bands else [],
            incident=next((one.row for one in mine if one.row.life != "withdrawn"), None),
            n_waiting=spec.n_waiting, waiting_limit=10_000 if spec.n_waiting is not None else None,
            n_expired=40 if spec.n_waiting is not None else None, n_refused=4_210 if is_refused else 0,
            n_dead_letters=self._n_dead(spec), last_event_ms=int(numbers.time_ms[last]), explainer=explainer,
            top=[] if is_refused else top, n_features=len(spec.features),
        )  # fmt: skip

    def spec(self, model_id: str) -> Spec:
        """Return a model by its id."""
        if model_id in self.specs:
            return self.specs[model_id]
        digits = model_id.removeprefix("store-")
        if self.n_stores and model_id.startswith("store-") and digits.isdigit():
            place, rest = divmod(int(digits) - 11, 7)
            if rest == 0 and 0 <= place < self.n_stores:
                return store(place)
        near = difflib.get_close_matches(model_id, self.specs, n=1, cutoff=0.5)
        raise UnknownError("model", model_id, near[0] if near else None)

    def model(self, model_id: str, window_ms: int | None = None) -> wire.ModelView:
        """Show a model."""
        spec = self.spec(model_id)
        explainers = []
        for name in spec.explainers:
            numbers = walk(spec, name, self.now_ms)
            explainers.append(wire.ExplainerRow(
                name=name, removal={"pfi": "interventional", "mdi": "none"}.get(name, "observational"), loss=spec.loss,
                alpha=0.001,
                n_features=len(spec.features), n_events=numbers.n, first_ms=int(numbers.time_ms[0]),
                last_ms=int(numbers.time_ms[-1]), first_observation=int(numbers.observation[0]),
                last_observation=int(numbers.observation[-1]), n_observations=2_000 if spec.has_bands else 17,
            ))  # fmt: skip
        return wire.ModelView(
            row=self.row(spec, window_ms), explainers=[] if spec.state == "refused" else explainers,
            versions=self._versions(spec), dead_letters=self._reasons(spec), quality=["accuracy", "auc"],
            threshold=0.2, label_delay_median_s=312.0 if spec.n_waiting is not None else None,
            dependences=list(spec.features[:2]) if model_id == "bank" else [],
            guard=GUARDS.get(model_id),
        )  # fmt: skip

    def series(
        self, model_id: str, explainer: str | None = None, start: float | None = None, end: float | None = None,
        by: Literal["time", "observation"] = "time", points: int = 600, top: int = 10,
        features: list[str] | None = None,
    ) -> wire.Series:  # fmt: skip
        """Show importances over a window."""
        spec = self.spec(model_id)
        name = explainer or spec.explainers[0]
        if name not in spec.explainers:
            raise UnknownError("explainer", name, spec.explainers[0])
        numbers = walk(spec, name, self.now_ms)
        axis = numbers.time_ms if by == "time" else numbers.observation
        within = np.flatnonzero((axis >= (start or 0)) & (axis <= (end or np.inf)))
        groups = [one for one in np.array_split(within, min(points, max(len(within), 1))) if len(one)]
        ends = np.array([one[-1] for one in groups], int)
        order = (-numbers.importance[within[-1] if len(within) else -1]).argsort()
        chosen = [i for i in range(len(spec.features)) if spec.features[i] in features] if features else order[:top]
        rest = [i for i in order if i not in set(chosen)]
        shown = [self._feature(numbers, spec, int(i), groups, ends) for i in chosen] if groups else []
        lows = [one for each in shown for one in each.low if one is not None]
        highs = [one for each in shown for one in each.high if one is not None]
        marks = [one for one in self._marks(spec) if self._is_on(one, by, start, end)]
        nearest = int(np.abs(axis - (start or 0)).argmin())
        share = float(numbers.share[-1, rest].sum()) if rest else None
        return wire.Series(
            model_id=spec.model_id, explainer=name, removal="interventional" if name == "pfi" else "observational",
            loss=spec.loss, by=by, n_events=len(within), time_ms=[int(numbers.time_ms[i]) for i in ends],
            observation=[int(numbers.observation[i]) for i in ends], features=shown,
            others=wire.Others(n=len(rest), share=number(share) if share is not None else None),
            figures=self._figures(numbers, groups), marks=marks,
            low=float(np.quantile(lows, 0.01)) if lows else None,
            high=float(np.quantile(highs, 0.99)) if highs else None,
            nearest_ms=None if groups else int(numbers.time_ms[nearest]),
            nearest_observation=None if groups else int(numbers.observation[nearest]),
        )  # fmt: skip

    def incidents(self, model_id: str, start: float | None = None, end: float | None = None) -> wire.IncidentList:
        """List the incidents of a model."""
        spec = self.spec(model_id)
        rows = [
            one.row
            for one in self.told
            if one.row.model_id == spec.model_id
            and (one.row.standing != "over" or (start or 0) <= one.time_ms)
            and one.begun_ms <= (end or np.inf)
        ]
        return wire.IncidentList(incidents=rows, n=len(rows))

    def incident(self, id_: str) -> wire.IncidentView:
        """Show an incident."""
        model_id = next((one.row.model_id for one in self.told if one.id == id_), None)
        found = view_of(self.told, id_, self.spec(model_id).n_observations) if model_id else None
        if found is None:
            near = difflib.get_close_matches(id_, [one.id for one in self.told], n=1, cutoff=0.3)
            raise UnknownError("incident", id_, near[0] if near else None)
        return found

    def dead_letters(self, model_id: str) -> wire.DeadLetters:
        """Count the dead letters of a model."""
        spec = self.spec(model_id)
        return wire.DeadLetters(model_id=spec.model_id, n=self._n_dead(spec), reasons=self._reasons(spec))

    def dependences(self, model_id: str) -> wire.DependenceList:
        """List the partial dependences of a model."""
        self.spec(model_id)
        found = []
        if model_id == "bank":
            x = np.linspace(20_000.0, 150_000.0, 24)
            age = np.linspace(20.0, 80.0, 24)
            for feature, axis, mean in (
                ("salary", x, 1.0 / (1.0 + np.exp(-(x - 75_000.0) / 12_000.0))),
                ("age", age, 0.4 + 0.15 * np.sin(age / 12.0)),
            ):
                found.append(wire.Dependence(
                    model_id=model_id, model_version="2", feature=feature, kind="number", label="yes",
                    values=[float(one) for one in axis], mean=listed(mean), half_width=listed(0.02 + 0.0 * mean),
                    time_ms=self.now_ms - 40_000, observation=120_000,
                ))  # fmt: skip
        return wire.DependenceList(model_id=model_id, dependences=found)

    def annotations(self) -> list[Mapping[str, Any]]:
        """Return incidents as Grafana takes annotations."""
        return [{"time": one.begun_ms, "text": one.row.sentence, "tags": [one.row.what]} for one in self.told]

    @staticmethod
    def _is_on(mark: wire.Mark, by: str, start: float | None, end: float | None) -> bool:
        at, until = (mark.time_ms, mark.end_ms) if by == "time" else (mark.observation, mark.end_observation)
        return (start or 0) <= (until or np.inf) and (at or 0) <= (end or np.inf)

    @staticmethod
    def _n_dead(spec: Spec) -> int:
        return sum(n for _, _, n in spec.dead)

    def _reasons(self, spec: Spec) -> list[wire.ReasonCount]:
        return [
            wire.ReasonCount(reason=reason, stage=stage, n=n, first_ms=self.now_ms - 300 * MINUTE,
                               last_ms=self.now_ms - 4 * MINUTE)
            for reason, stage, n in spec.dead
        ]  # fmt: skip

    def _versions(self, spec: Spec) -> list[wire.VersionRow]:
        if spec.version is None:
            return []
        numbers = walk(spec, spec.explainers[0], self.now_ms)
        cut = round(0.1 * numbers.n) if spec.model_id == "bank" else 0
        parts = [(spec.version, cut, numbers.n - 1)] + ([("1", 0, cut - 1)] if cut else [])
        return [
            wire.VersionRow(
                version=version, first_ms=int(numbers.time_ms[a]), last_ms=int(numbers.time_ms[b]),
                first_observation=int(numbers.observation[a]), last_observation=int(numbers.observation[b]),
            )
            for version, a, b in parts
        ]  # fmt: skip

    def _marks(self, spec: Spec) -> list[wire.Mark]:
        rows = [one.row for one in self.told if one.row.model_id == spec.model_id and one.row.life != "withdrawn"]
        return [
            wire.Mark(kind="incident", time_ms=row.since.time_ms, observation=row.since.observation,
                        text=row.headline, end_ms=row.time_ms if row.standing == "over" else None,
                        standing=row.standing,
                        end_observation=row.observation if row.standing == "over" else None, incident_id=row.id)
            for row in reversed(rows)
        ]  # fmt: skip

    @staticmethod
    def _feature(numbers: Walk, spec: Spec, i: int, groups: list[Any], ends: Any) -> wire.FeatureSeries:
        value, half = numbers.importance[:, i], numbers.half_width[:, i]
        last = ends[-1]
        return wire.FeatureSeries(
            feature=spec.features[i], importance=listed([value[one].mean() for one in groups]),
            low=listed([(value - half)[one].min() for one in groups]),
            high=listed([(value + half)[one].max() for one in groups]),
            share=listed([numbers.share[one, i].mean() for one in groups]),
            rank=[int(numbers.rank[one, i]) for one in ends], latest=number(value[last]),
            latest_half_width=number(half[last]), latest_share=number(numbers.share[last, i]),
            latest_rank=int(numbers.rank[last, i]), moved=number(value[last] - value[groups[0][0]]),
        )  # fmt: skip

    @staticmethod
    def _figures(numbers: Walk, groups: list[Any]) -> wire.Figures:
        def mean(values: Any) -> list[float | None]:
            return listed([values[one].mean() for one in groups])

        accuracy = 1.0 - 0.4 * numbers.model_loss / numbers.baseline_loss
        return wire.Figures(
            model_loss=mean(numbers.model_loss), baseline_loss=mean(numbers.baseline_loss),
            present_loss=mean(numbers.present_loss), discrepancy=mean(numbers.discrepancy), shift=mean(numbers.shift),
            n_waiting=mean(numbers.n_waiting), n_expired=mean(numbers.n_expired),
            label_delay_median_s=mean(numbers.label_delay), fidelity=mean(numbers.fidelity),
            quality={"accuracy": mean(accuracy)}, quality_reference={"accuracy": mean(0.0 * accuracy + 0.82)},
        )  # fmt: skip
