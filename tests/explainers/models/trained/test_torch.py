"""Modules of PyTorch, or of its stand-in where PyTorch is not installed: the tests are the same for both."""

import importlib

import numpy as np
import pytest
from support.foreign import imported

from attributary_explainers import (
    IncrementalPFI,
    InvalidParameterError,
    ModelError,
    TorchModel,
    dump_model,
    load_model,
    model_function,
    resolve_loss,
)
from attributary_explainers.models.function import model_kind
from attributary_explainers.predictions import predict_rows

ROWS = [{"b": i / 7 - 1, "a": (i * 3 % 10) / 5 - 1, "c": 0.5} for i in range(12)]
TABLE = np.array([[row["a"], row["b"]] for row in ROWS])


@pytest.fixture(autouse=True)
def torch():
    with imported("torch") as found:
        found.manual_seed(3)
        yield found


def weights(layer):
    return layer.weight.detach().numpy().astype(np.float64), layer.bias.detach().numpy().astype(np.float64)


def by_hand(layer):
    w, b = weights(layer)
    return TABLE.astype(np.float32).astype(np.float64) @ w.T + b


def test_a_module_without_classes_is_a_regressor(torch):
    layer = torch.nn.Linear(2, 1)
    model = TorchModel(layer, ["a", "b"])
    assert (model_kind(model), resolve_loss(model, None).name) == ("regressor", "squared")
    found = predict_rows(model_function(model, "number"), ROWS)
    assert found == pytest.approx(by_hand(layer)[:, 0].tolist(), abs=1e-5)


def test_logits_become_probabilities_by_softmax_or_by_the_logistic_function(torch):
    three, one = torch.nn.Linear(2, 3), torch.nn.Linear(2, 1)
    model = TorchModel(three, ["a", "b"], ["u", "v", "w"], logits=True)
    assert (model_kind(model), resolve_loss(model, None).name) == ("classifier", "brier")
    raised = np.exp(by_hand(three))
    expected = (raised / raised.sum(axis=1, keepdims=True)).tolist()
    found = predict_rows(model_function(model, "probabilities"), ROWS)
    assert [list(p) for p in found] == [["u", "v", "w"]] * len(ROWS)
    assert [list(p.values()) for p in found] == [pytest.approx(row, abs=1e-5) for row in expected]
    model = TorchModel(one, ["a", "b"], [False, True], logits=True)
    positive = 1 / (1 + np.exp(-by_hand(one)[:, 0]))
    found = predict_rows(model_function(model, "probabilities"), ROWS)
    assert [p[True] for p in found] == pytest.approx(positive.tolist(), abs=1e-5)
    assert [sum(p.values()) for p in found] == pytest.approx([1.0] * len(ROWS))


def test_what_is_no_probability_says_that_it_may_be_logits(torch):
    layer = torch.nn.Linear(2, 1)
    with pytest.raises(ModelError, match="are no probabilities: say TorchModel"):
        TorchModel(layer, ["a", "b"], [False, True]).predict_many(
            [{"a": 9.0, "b": -30.0}, {"a": -9.0, "b": 30.0}], "any"
        )
    model = TorchModel(torch.nn.Sequential(layer, torch.nn.Sigmoid()), ["a", "b"], [False, True])
    positive = 1 / (1 + np.exp(-by_hand(layer)[:, 0]))
    assert [p[True] for p in model.predict_many(ROWS, "any")] == pytest.approx(positive.tolist(), abs=1e-5)
    (lacking,) = model.predict_many([{"a": 1.0}], "any")
    assert np.isnan(lacking[True])


def test_it_is_asked_in_eval_mode_without_gradients_by_one_thread_and_as_before_afterwards(torch):
    seen = []

    class Asking(torch.nn.Dropout):
        def forward(self, table):
            seen.append((self.training, torch.is_inference_mode_enabled(), torch.get_num_threads(), tuple(table.shape)))
            return super().forward(table)

    layer = torch.nn.Linear(2, 1)
    model = TorchModel(torch.nn.Sequential(Asking(0.5), layer), ["a", "b"])
    before = torch.get_num_threads()
    assert model.predict_many(ROWS, "number") == pytest.approx(by_hand(layer)[:, 0].tolist(), abs=1e-5)
    assert seen == [(False, True, 1, (12, 2))]
    assert torch.get_num_threads() == before


def test_an_observation_takes_one_call(torch):
    calls = []

    class Counted(torch.nn.Linear):
        def forward(self, table):
            calls.append(table.shape[0])
            return super().forward(table)

    pfi = IncrementalPFI(TorchModel(Counted(2, 1), ["a", "b"]), n_samples=5, seed=1)
    for row in ROWS:
        importance = pfi.explain_one(row, 1.0)
    assert len(calls) == len(ROWS)
    assert calls[-1] > 10
    assert importance["c"] == 0.0 != importance["a"]


def test_its_numbers_are_stored_as_arrays_and_nothing_of_torch_is_run_to_read_them(torch):
    model = TorchModel(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid()), ["a", "b"], [False, True])
    stored = dump_model(model)
    named = set()

    def find(module, name):
        named.add(f"{module}.{name}")
        return getattr(importlib.import_module(module), name)

    loaded = load_model(stored, find)
    assert not [name for name in named if "load" in name or "rebuild" in name]
    assert "attributary_explainers.pickling._restore_tensor" in named
    assert loaded.predict_many(ROWS, "any") == model.predict_many(ROWS, "any")
    assert [p.requires_grad for p in loaded.module.parameters()] == [True, True]
    assert dump_model(loaded) == stored


def test_a_module_alone_says_that_its_columns_need_names(torch):
    with pytest.raises(ModelError, match=r"cannot explain Linear as it is: name its columns.*TorchModel\(module"):
        IncrementalPFI(torch.nn.Linear(2, 1))
    with pytest.raises(InvalidParameterError, match=r"module must be a torch\.nn\.Module"):
        TorchModel(len, ["a"])
    with pytest.raises(ModelError, match="expected a number as feature 'a', got 'x': encode it before the module"):
        TorchModel(torch.nn.Linear(2, 1), ["a", "b"]).predict_many([{"a": "x", "b": 1.0}], "number")
