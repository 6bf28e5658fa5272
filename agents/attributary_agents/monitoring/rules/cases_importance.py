"""Unit tests of the alerts on importance."""

from __future__ import annotations

from .cases import Case, Fires, series

_AT = {"model_id": "credit", "explainer": "pfi"}
_JOB = {"job": "attributary"}
_OBSERVATIONS = series("explainer_observations", **_AT)
_NDCG, _SHIFT = series("importance_ndcg_ratio", **_AT), series("importance_shift_ratio", **_AT)


def _share(feature: str) -> str:
    return series("feature_importance_share_ratio", **_AT, feature=feature)


def _of(feature: str) -> dict[str, str]:
    return {**_JOB, **_AT, "feature": feature}


def _collapsed(feature: str, share: str, n: str) -> Fires:
    return Fires(
        _of(feature),
        f"{feature} of credit has lost its importance (pfi)",
        f"Its share is {share}, less than 25% of what it was 1h ago, when it was 10% or more; n = {n} observations.",
    )


def _surged(feature: str, share: str, n: str) -> Fires:
    return Fires(
        _of(feature),
        f"{feature} of credit has become important (pfi)",
        f"Its share is {share}, 20% or more, and more than 3 times what it was 1h ago; n = {n} observations.",
    )


IMPORTANCE_CASES = [
    Case(
        "the ranking shifts, and comes back",
        {_OBSERVATIONS: "1000x60", _NDCG: "1x9 0.89x20 1x30"},
        {
            ("14m", "RankingShifted"): [],
            ("15m", "RankingShifted"): [
                Fires(
                    {**_JOB, **_AT},
                    "credit ranks its features differently (pfi)",
                    "NDCG of the ranking against the reference is 0.89, below 0.9; n = 1k observations.",
                )
            ],
            ("50m", "RankingShifted"): [],
        },
    ),
    Case(
        "the ranking of too few observations, or one that has hardly shifted",
        {
            _OBSERVATIONS: "999x60",
            _NDCG: "0.2x60",
            series("explainer_observations", model_id="churn", explainer="pfi"): "5000x60",
            series("importance_ndcg_ratio", model_id="churn", explainer="pfi"): "0.91x60",
        },
        {("30m", "RankingShifted"): []},
    ),
    Case(
        "importance moves, where the ranking stays",
        {_OBSERVATIONS: "1000x60", _NDCG: "1x60", _SHIFT: "0.29x9 0.31x50"},
        {
            ("14m", "ShareShifted"): [],
            ("15m", "ShareShifted"): [
                Fires(
                    {**_JOB, **_AT},
                    "credit relies on other features (pfi)",
                    "31% of the importance has moved since the reference, more than 30%; n = 1k observations.",
                )
            ],
            ("15m", "RankingShifted"): [],
        },
    ),
    Case(
        "importance of too few observations moves, and that of enough by less",
        {
            _OBSERVATIONS: "999x60",
            _SHIFT: "0.9x60",
            series("explainer_observations", model_id="churn", explainer="pfi"): "5000x60",
            series("importance_shift_ratio", model_id="churn", explainer="pfi"): "0.29x60",
        },
        {("30m", "ShareShifted"): []},
    ),
    Case(
        "a feature collapses, another surges",
        {
            _OBSERVATIONS: "1000x150",
            _share("salary"): "0.4x69 0.09x80",
            _share("height"): "0.11x69 0.02x80",
            _share("weight"): "0.09x69 0x80",
            _share("age"): "0.06x69 0.21x80",
            _share("zip"): "0.07x69 0.2x80",
            _share("size"): "0.01x69 0.15x80",
        },
        {
            ("74m", "FeatureCollapsed"): [],
            ("74m", "FeatureSurged"): [],
            ("75m", "FeatureCollapsed"): [_collapsed("salary", "9%", "1k"), _collapsed("height", "2%", "1k")],
            ("75m", "FeatureSurged"): [_surged("age", "21%", "1k")],
        },
    ),
    Case(
        "a feature falls behind the limit of series, another one comes out of the rest",
        {
            _OBSERVATIONS: "5000x150",
            _share("salary"): "0.11x69 stale",
            _share("weight"): "0.09x69 stale",
            _share("age"): "_x70 0.21x80",
            _share("zip"): "_x70 0.19x80",
            _share("__other__"): "0.1x69 0.5x80",
        },
        {
            ("75m", "FeatureCollapsed"): [_collapsed("salary", "0%", "5k")],
            ("75m", "FeatureSurged"): [_surged("age", "21%", "5k")],
        },
    ),
    Case(
        "shares move by less",
        {_OBSERVATIONS: "5000x150", _share("salary"): "0.4x69 0.11x80", _share("age"): "0.15x69 0.44x80"},
        {("75m", "FeatureCollapsed"): [], ("75m", "FeatureSurged"): []},
    ),
    Case(
        "shares of a model that had just begun, of a new version, and of one that has gone",
        {
            _OBSERVATIONS: "0+36x25 999x45 1000x80",  # now there are enough, then there were not
            _share("salary"): "0.4x69 0.02x80",
            _share("age"): "0.05x69 0.43x80",
            series("explainer_observations", model_id="swap", explainer="pfi"): "5000x69 0x3 999x80",
            series("feature_importance_share_ratio", model_id="swap", explainer="pfi", feature="b"): "0.9x69 0x80",
            series("feature_importance_share_ratio", model_id="swap", explainer="pfi", feature="d"): "0.1x69 1x80",
            series("explainer_observations", model_id="gone", explainer="pfi"): "5000x69 stale",
            series("feature_importance_share_ratio", model_id="gone", explainer="pfi", feature="c"): "0.9x69 stale",
        },
        {("83m", "FeatureCollapsed"): [], ("83m", "FeatureSurged"): []},
    ),
    Case(
        "Prometheus begins afresh: there is nothing to compare with",
        {_OBSERVATIONS: "5000x50", _share("salary"): "0.1x50", _share("age"): "0.7x50"},
        {("40m", "FeatureCollapsed"): [], ("40m", "FeatureSurged"): []},
    ),
    Case(
        "one feature has it all",
        {_OBSERVATIONS: "1000x60", _share("salary"): "0.5x9 0.81x50", _share("age"): "0.5x9 0.19x50"},
        {
            ("14m", "SingleFeatureDominates"): [],
            ("15m", "SingleFeatureDominates"): [
                Fires(
                    _of("salary"),
                    "credit relies on salary alone (pfi)",
                    "Its share is 81%, 80% or more; n = 1k observations.",
                )
            ],
        },
    ),
    Case(
        "a model of one feature, the sum of all others, and too few observations",
        {
            _OBSERVATIONS: "5000x60",
            _share("salary"): "1x60",
            series("explainer_observations", model_id="wide", explainer="pfi"): "5000x60",
            series("feature_importance_share_ratio", model_id="wide", explainer="pfi", feature="a"): "0.1x60",
            series("feature_importance_share_ratio", model_id="wide", explainer="pfi", feature="__other__"): "0.9x60",
            series("explainer_observations", model_id="new", explainer="pfi"): "999x60",
            series("feature_importance_share_ratio", model_id="new", explainer="pfi", feature="a"): "0.9x60",
            series("feature_importance_share_ratio", model_id="new", explainer="pfi", feature="b"): "0.1x60",
        },
        {("30m", "SingleFeatureDominates"): []},
    ),
]
