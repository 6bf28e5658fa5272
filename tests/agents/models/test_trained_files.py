"""Trained models of XGBoost, LightGBM, CatBoost and PyTorch from files and factories: explained, stored and restored.

CatBoost and PyTorch are stand-ins where they are not installed.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from support.fingerprint import differences, of_state
from support.foreign import imported
from xgboost import XGBClassifier

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError
from attributary_agents.models.trial import check_models
from attributary_agents.state.checkpoints import encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers import TorchModel
from tests.agents.stand_ins import DEAD_LETTERS, TOPIC, observations

ROWS = observations(200)
TABLE = pd.DataFrame({"a": [o.x["a"] for o in ROWS], "b": [o.x["b"] for o in ROWS], "city": ["Rome", "Oslo"] * 100})
Y = np.array([o.y for o in ROWS]).astype(int)
NUMBERS = TABLE[["a", "b"]]
CATEGORIES = TABLE.assign(city=TABLE["city"].astype("category"))
FEW: dict[str, Any] = {"n_estimators": 5, "n_jobs": 1}
LIGHT: dict[str, Any] = {**FEW, "verbose": -1, "min_child_samples": 5}


@pytest.mark.parametrize("name", ["sub/bank.ubj", "bank.json", "bank.txt"])
def test_a_file_of_the_librarys_own_format_is_refused_with_what_makes_one_of_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = (tmp_path / name).parent
    folder.mkdir(exist_ok=True)
    is_light = name.endswith(".txt")
    estimator: Any = LGBMClassifier(**LIGHT) if is_light else XGBClassifier(**FEW)
    booster = estimator.fit(NUMBERS, Y).booster_ if is_light else estimator.fit(NUMBERS, Y).get_booster()
    booster.save_model(str(tmp_path / name))

    def given(file: str, sha256: str | None = None) -> Config:
        model = {"file": file, **({} if sha256 is None else {"sha256": sha256})}
        return parse_config(
            {"artefacts": {"directory": str(tmp_path)}, "models": {"m": {"model": model, "learn": False}}}
        )

    for sha256 in (None, "0" * 64):  # before any talk of hashes
        with pytest.raises(ConfigError, match=r"expected a file that ends in \.skops, \.joblib") as caught:
            check_models(given(name, sha256))
    command = str(caught.value).partition("in the same folder: ")[2]
    monkeypatch.chdir(folder)
    exec(command, {})
    made = str(Path(name).with_suffix(".joblib"))
    check_models(given(made, hashlib.sha256((tmp_path / made).read_bytes()).hexdigest()))


@pytest.fixture(autouse=True)
def libraries() -> Iterator[None]:
    with imported("torch"), imported("catboost"):
        yield


def network() -> TorchModel:
    """What a factory of the user's may be: the weights come from a file of his."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    torch.manual_seed(1)
    layer = torch.nn.Linear(2, 1)
    return TorchModel(torch.nn.Sequential(layer, torch.nn.Sigmoid()), ["a", "b"], [False, True])


@cache
def catboost() -> Any:
    """A classifier that takes text; trained once, for CatBoost writes into a model when that was."""
    import catboost  # type: ignore[import-not-found, unused-ignore]

    params = {"iterations": 5, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostClassifier(**params, cat_features=["city"]).fit(TABLE, Y)


FILES: dict[str, Callable[[], Any]] = {
    "xgboost": lambda: XGBClassifier(**FEW).fit(NUMBERS, Y),
    "xgboost categories": lambda: XGBClassifier(**FEW, enable_categorical=True).fit(CATEGORIES, Y),
    "xgboost booster": lambda: XGBClassifier(**FEW).fit(NUMBERS, Y).get_booster(),
    "lightgbm": lambda: LGBMClassifier(**LIGHT).fit(NUMBERS, Y),
    "lightgbm categories": lambda: LGBMClassifier(**LIGHT).fit(CATEGORIES, Y),
    "lightgbm booster": lambda: LGBMClassifier(**LIGHT).fit(NUMBERS, Y).booster_,
    "catboost": catboost,
    "torch": network,
}


def content(model: Any, ending: str) -> bytes:
    if ending == ".pkl":
        return pickle.dumps(model)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    return buffer.getvalue()


def config(folder: Path, model: dict[str, Any]) -> Config:
    own = {"model": model, "learn": False, "alpha": 0.05, "publish": {"every": 20}, "explainers": {"pfi": {}}}
    return parse_config({"models": {"bank": own}, "artefacts": {"directory": str(folder)}})


def handle(partition: Partition, begin: int, end: int) -> list[Any]:
    found = []
    for i in range(begin, end):
        x = {**ROWS[i].x, "city": TABLE["city"][i]}
        record = Record(TOPIC, 0, i, i, b"bank", json.dumps({"x": x, "y": int(Y[i])}).encode())
        found += [(out.topic, out.key, out.value) for out in partition.handle(record)]
    return found


def check_restart(chosen: Config) -> None:
    check_models(chosen)
    whole, first = (Partition(TOPIC, 0, chosen, {}.get) for _ in range(2))
    expected = handle(whole, 0, 70)
    found = handle(first, 0, 30)
    table = {
        b"bank": encode_state(first.models["bank"]),
        checkpoint_key(0): encode_checkpoint(first.offset, first.counters),
    }
    second = Partition(TOPIC, 0, chosen, table.get)
    found += handle(second, 30, 70)
    assert found == expected
    assert DEAD_LETTERS not in {topic for topic, _, _ in expected}
    assert [*differences(of_state(second.models["bank"]), of_state(whole.models["bank"]))] == []


@pytest.mark.parametrize(("kind", "ending"), [*((kind, ".pkl") for kind in FILES), ("xgboost", ".joblib")])
def test_a_file_is_explained_and_goes_on_from_its_stored_state(kind: str, ending: str, tmp_path: Path) -> None:
    made = content(FILES[kind](), ending)
    (tmp_path / f"bank{ending}").write_bytes(made)
    check_restart(config(tmp_path, {"file": f"bank{ending}", "sha256": hashlib.sha256(made).hexdigest()}))


@pytest.mark.parametrize("factory", ["network", "catboost"])
def test_a_factory_is_explained_and_goes_on_from_its_stored_state(factory: str, tmp_path: Path) -> None:
    check_restart(config(tmp_path, {"factory": f"{__name__}:{factory}"}))


def test_a_booster_is_given_the_classes_of_the_configuration(tmp_path: Path) -> None:
    made = pickle.dumps(FILES["lightgbm booster"]())
    (tmp_path / "bank.pkl").write_bytes(made)
    file = {"file": "bank.pkl", "sha256": hashlib.sha256(made).hexdigest(), "classes": ["no", "yes"]}
    partition = Partition(TOPIC, 0, config(tmp_path, file), {}.get)
    record = Record(TOPIC, 0, 0, 0, b"bank", b'{"x": {"a": 1.0, "b": 0.0}, "y": "yes"}')
    assert [out for out in partition.handle(record) if out.topic == DEAD_LETTERS] == []
    assert partition.models["bank"].model.classes == ("no", "yes")
