"""Stands in for PyTorch: tensors on numpy, linear layers, and what `TorchModel` calls of it. Nothing here learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

IS_STAND_IN = True

float32, float64 = "torch.float32", "torch.float64"
_STATE = {"threads": 4, "inference": False}


class Tensor:
    """Numbers with a type, a device and a wish for gradients."""

    def __init__(self, numbers: Any, requires_grad: bool = False) -> None:
        self._numbers, self.requires_grad, self.device = np.asarray(numbers), requires_grad, "cpu"

    @property
    def dtype(self) -> str:
        return f"torch.{self._numbers.dtype.name}"

    @property
    def shape(self) -> tuple[int, ...]:
        return self._numbers.shape

    def to(self, other: str | None = None, *, device: Any = None, dtype: str | None = None) -> Tensor:
        dtype = dtype or other
        kept = self._numbers if dtype is None else self._numbers.astype(dtype.removeprefix("torch."))
        return Tensor(kept, self.requires_grad)

    def detach(self) -> Tensor:
        return Tensor(self._numbers)

    def cpu(self) -> Tensor:
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.requires_grad = requires_grad
        return self

    def numpy(self) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._numbers


class Parameter(Tensor):
    """A tensor that is learnt."""

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        super().__init__(data._numbers, requires_grad)


class Module:
    """What layers and networks derive from."""

    training = True

    def eval(self) -> Module:
        self.training = False
        for one in vars(self).get("layers", ()):
            one.eval()
        return self

    def parameters(self) -> Iterator[Parameter]:
        for one in vars(self).values():
            if isinstance(one, Parameter):
                yield one
        for one in vars(self).get("layers", ()):
            yield from one.parameters()

    def __call__(self, table: Tensor) -> Tensor:
        found: Tensor = self.forward(table)  # type: ignore[attr-defined]
        found.requires_grad = not _STATE["inference"] and any(True for _ in self.parameters())
        return found


class Linear(Module):
    """A linear layer, its weights drawn by `manual_seed`."""

    def __init__(self, n_in: int, n_out: int) -> None:
        self.weight = Parameter(Tensor(_DRAWS.normal(size=(n_out, n_in)).astype(np.float32)))
        self.bias = Parameter(Tensor(np.zeros(n_out, dtype=np.float32)))

    def forward(self, table: Tensor) -> Tensor:
        if table.dtype != self.weight.dtype:
            raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {table.dtype} and {self.weight.dtype}")
        return Tensor(table._numbers @ self.weight._numbers.T + self.bias._numbers)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, table: Tensor) -> Tensor:
        return Tensor(1 / (1 + np.exp(-table._numbers)))


class Dropout(Module):
    """Puts a 0 for some numbers in training, and nothing else in `eval` mode."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, table: Tensor) -> Tensor:
        kept = _DRAWS.random(table.shape) >= self.p if self.training else 1
        return Tensor(table._numbers * np.asarray(kept, dtype=table._numbers.dtype))


class Sequential(Module):
    """One layer after the other."""

    def __init__(self, *layers: Module) -> None:
        self.layers = layers

    def forward(self, table: Tensor) -> Tensor:
        for layer in self.layers:
            table = layer(table)
        return table


_DRAWS = np.random.default_rng(0)


def manual_seed(seed: int) -> None:
    """Begin the draws anew."""
    global _DRAWS
    _DRAWS = np.random.default_rng(seed)


def from_numpy(numbers: Any) -> Tensor:
    """Return a tensor of an array."""
    return Tensor(numbers)


def tensor(numbers: Any) -> Tensor:
    """Return a tensor of float32."""
    return Tensor(np.array(numbers, dtype=np.float32))


def get_num_threads() -> int:
    """Return how many threads a call takes."""
    return _STATE["threads"]


def set_num_threads(n: int) -> None:
    """Say how many threads a call takes."""
    _STATE["threads"] = n


def is_inference_mode_enabled() -> bool:
    """Return whether gradients are off."""
    return bool(_STATE["inference"])


@contextmanager
def inference_mode() -> Iterator[None]:
    """Turn gradients off."""
    _STATE["inference"] = True
    try:
        yield
    finally:
        _STATE["inference"] = False


def _module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    return made


nn = _module("torch.nn", Module=Module, Parameter=Parameter, Linear=Linear, Sigmoid=Sigmoid, Dropout=Dropout)
vars(nn)["Sequential"] = Sequential
MODULES = {
    "torch.nn": nn,
    "torch.nn.parameter": _module("torch.nn.parameter", Parameter=Parameter),
    "torch.nn.modules": _module("torch.nn.modules"),
    "torch.nn.modules.module": _module("torch.nn.modules.module", Module=Module),
}
for _name, _kinds in {
    "linear": (Linear,),
    "activation": (Sigmoid,),
    "dropout": (Dropout,),
    "container": (Sequential,),
}.items():
    MODULES[f"torch.nn.modules.{_name}"] = _module(f"torch.nn.modules.{_name}", **{k.__name__: k for k in _kinds})
    for _kind in _kinds:
        _kind.__module__ = f"torch.nn.modules.{_name}"
Tensor.__module__, Parameter.__module__, Module.__module__ = "torch", "torch.nn.parameter", "torch.nn.modules.module"
