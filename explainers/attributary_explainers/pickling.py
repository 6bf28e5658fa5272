"""Copies and bytes of models, which are exact and leave out what no prediction ever reads.

A pickled adaptive random forest is 15 MB after 20 000 observations, 96 % of it the state of a Mersenne
Twister per leaf Gaussian that only `Gaussian.sample()` uses. Leaving it out gives 0.6 MB, equal predictions
and equal learning, in a sixth of the time. River's `clone(include_attributes=True)` is no copy: it shares
state; `copy.deepcopy` takes seconds.
"""

from __future__ import annotations

import gc
import importlib
import io
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from types import BuiltinFunctionType, FunctionType
from typing import Any, Self

from river import compose, proba

from .errors import ModelError

_PROTOCOL = 5
# Every restored Gaussian samples from this one generator; nothing that an explainer or a tree does samples.
_SAMPLING = random.Random(0)


_NAMED = (type, FunctionType, BuiltinFunctionType)


class _SlimPickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, named: dict[int, Any]) -> None:
        super().__init__(file, _PROTOCOL)
        self._named = named

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, _NAMED):
            self._named[id(obj)] = obj
            return NotImplemented
        if type(obj) is proba.Gaussian and obj.seed is None:
            state = {name: value for name, value in vars(obj).items() if name != "_rng"}
            return _restore_gaussian, (state,)
        if (type(obj).__module__, type(obj).__name__) in _TENSORS:
            return _restore_tensor, _numbers(obj)
        if type(obj) is compose.Select:
            return compose.Select, (), {**vars(obj), "keys": _InOrder(obj.keys)}
        return NotImplemented


class _InOrder(frozenset[Any]):
    """The keys of a loaded `Select`, which gives rows the order that they had in the model that was saved.

    A set that is loaded may have another order, in another process nearly always. Models sum over the features in the
    order of the row, and would differ in the last bit, which learning carries on.
    """

    _order: tuple[Any, ...]

    def __new__(cls, values: Iterable[Any]) -> Self:
        order = tuple(values)
        made = super().__new__(cls, order)
        made._order = order
        return made

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __reduce__(self) -> Any:
        return _InOrder, (self._order,)


def _restore_gaussian(state: dict[str, Any]) -> proba.Gaussian:
    gaussian = proba.Gaussian.__new__(proba.Gaussian)
    vars(gaussian).update(state, _rng=_SAMPLING)
    return gaussian


_TENSORS = {("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}


def _numbers(tensor: Any) -> tuple[Any, str, bool, bool]:
    """Return a tensor of PyTorch as an array, the name of its type, and what `_restore_tensor` takes beside."""
    name = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.detach().cpu()
    numbers = (plain.float() if name == "bfloat16" else plain).numpy().copy()
    return numbers, name, tensor.requires_grad, type(tensor).__name__ == "Parameter"


def _restore_tensor(numbers: Any, dtype: str, requires_grad: bool, is_parameter: bool) -> Any:
    # Of PyTorch's own pickles, the numbers are read by `torch.load`, which runs what is in them.
    torch: Any = importlib.import_module("torch")
    tensor = torch.from_numpy(numbers).to(getattr(torch, dtype))
    return torch.nn.Parameter(tensor, requires_grad) if is_parameter else tensor.requires_grad_(requires_grad)


def dump_model(model: Any, named: dict[int, Any] | None = None) -> bytes:
    """Return the bytes of a model, or of any state of River objects, without the generators of leaves.

    Parameters
    ----------
    named
        Takes the classes and functions that the bytes name, by their `id`.

    Raises
    ------
    ModelError
        Something in the model cannot be pickled: a lambda, an open file, a lock.
    """
    buffer = io.BytesIO()
    try:
        with uncollected():
            _SlimPickler(buffer, {} if named is None else named).dump(model)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ModelError(
            f"cannot save {type(model).__name__}: {error}. Build models of classes and functions that can be "
            "imported; no lambdas, locks or open files"
        ) from error
    return buffer.getvalue()


FindClass = Callable[[str, str], Any]
"""Module and qualified name to the class or function, or an exception: what a pickle may hold."""

_find_class: ContextVar[FindClass | None] = ContextVar("find_class", default=None)


@contextmanager
def loading_with(find_class: FindClass) -> Iterator[None]:
    """Let everything that is loaded inside hold only what `find_class` finds: snapshots hold bytes of models, too."""
    token = _find_class.set(find_class)
    try:
        yield
    finally:
        _find_class.reset(token)


def is_loading() -> bool:
    """Return whether what is made now is made of stored bytes: its model has just been loaded, so it can be saved."""
    return _find_class.get() is not None


def load_model(data: bytes, find_class: FindClass | None = None) -> Any:
    """Return the model that `dump_model` saved. Unpickling runs code: load only what you trust.

    Parameters
    ----------
    find_class
        Finds the classes and functions that the bytes name, or raises: they are asked for before anything is made of
        them. None takes that of `loading_with`, and finds all without one.

    Raises
    ------
    ModelError
        There is a `find_class`, and the bytes would have changed a class or function that it found. It is as before.
    """
    find = find_class or _find_class.get()
    with uncollected():
        return pickle.loads(data) if find is None else _FindingUnpickler(data, find).load()


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector off while much comes alive at once: it would walk all of it over and over.

    What a pickle remembers comes alive as well, and none of it is garbage before the pickle is done.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_OF_FUNCTIONS = ("__defaults__", "__kwdefaults__", "__code__", "__name__", "__qualname__", "__module__", "__doc__")


class _FindingUnpickler(pickle.Unpickler):
    """Finds classes by a function, and sees to it that none of them is changed.

    The instruction that gives an object its attributes takes a class or a function as well: bytes that name nothing
    harmful could put another method into a class of the whole process.
    """

    def __init__(self, data: bytes, find_class: FindClass) -> None:
        super().__init__(io.BytesIO(data))
        self._find_class = find_class
        self._found: list[tuple[Any, dict[str, Any], dict[str, Any]]] = []

    def find_class(self, module: str, name: str) -> Any:
        found = self._find_class(module, name)
        if isinstance(found, FunctionType) or (isinstance(found, type) and not found.__flags__ & _IMMUTABLE):
            self._found.append((found, dict(vars(found)), _rest(found)))
        return found

    def load(self) -> Any:
        try:
            loaded = super().load()
        finally:
            changed = [one[0].__qualname__ for one in self._found if _mend(*one)]
        if changed:
            raise ModelError(f"the bytes would have changed {', '.join(changed)}: no model that was saved does that")
        return loaded


def _rest(found: Any) -> dict[str, Any]:
    return {} if isinstance(found, type) else {name: getattr(found, name) for name in _OF_FUNCTIONS}


def _mend(found: Any, before: dict[str, Any], rest: dict[str, Any]) -> bool:
    """Give a class or function the attributes back that it had; return whether one was another."""
    here = vars(found)
    is_as_before = list(here) == list(before) and all(map(is_, here.values(), before.values()))
    if is_as_before and all(getattr(found, name) is value for name, value in rest.items()):
        return False
    now = dict(here) | _rest(found)
    wanted = before | rest
    if now.keys() == wanted.keys() and all(now[name] is value for name, value in wanted.items()):
        return False  # in another order
    for name in now.keys() - wanted.keys():
        delattr(found, name)
    for name, value in wanted.items():
        if name not in now or now[name] is not value:
            setattr(found, name, value)
    return True


def freeze(model: Any) -> Any:
    """Return a copy that shares nothing with `model`, to keep as a reference.

    A plain function is its own copy, unless it closes over something that may change.

    Raises
    ------
    ModelError
        The model cannot be pickled, or is a closure.
    """
    # Not for bound methods, which follow the object that they are bound to.
    if isinstance(model, (FunctionType, BuiltinFunctionType)):
        if getattr(model, "__closure__", None):
            raise ModelError(
                f"cannot copy the function {model.__name__}: it closes over something that may change. Give the model "
                "itself, or a class with __call__"
            )
        return model
    return load_model(dump_model(model))
