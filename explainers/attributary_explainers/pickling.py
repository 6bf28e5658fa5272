"""Exact copies and bytes of models, without state unused by predictions.

A pickled adaptive random forest is 15 MB after 20 000 observations, 96 % of it the state of a Mersenne
Twister per leaf Gaussian that only `Gaussian.sample()` uses. Leaving it out gives 0.6 MB, equal predictions
and equal learning, in a sixth of the time. River's `clone(include_attributes=True)` is no copy: it shares
state; `copy.deepcopy` takes seconds.
"""

from __future__ import annotations

import copyreg
import gc
import importlib
import io
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from types import BuiltinFunctionType, FunctionType
from typing import Any, Self

from river import compose, proba
from river.tree.splitter.ebst_splitter import EBSTNode
from river.tree.splitter.exhaustive_splitter import ExhaustiveNode

from .errors import ModelError

_PROTOCOL = 5
# Every restored Gaussian samples from this one generator; nothing that an explainer or a tree does samples.
_SAMPLING = random.Random(0)


_NAMED = (type, FunctionType, BuiltinFunctionType)


class _SlimPickler(pickle.Pickler):
    """A pickler that reduces a few types itself; C code does the rest."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, _PROTOCOL)
        self.dispatch_table = {**copyreg.dispatch_table, **_REDUCED}
        for module, name in _TENSORS:
            if (kind := getattr(sys.modules.get(module), name, None)) is not None:
                self.dispatch_table[kind] = _reduced_tensor


class _NotingPickler(_SlimPickler):
    """Notes the classes and functions that it names, by their `id`."""

    def __init__(self, file: io.BytesIO, named: dict[int, Any]) -> None:
        super().__init__(file)
        self._named = named

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, _NAMED):
            self._named[id(obj)] = obj
        return NotImplemented


def _reduced_gaussian(gaussian: proba.Gaussian) -> Any:
    if gaussian.seed is not None:
        return gaussian.__reduce_ex__(_PROTOCOL)
    return _restore_gaussian, ({name: value for name, value in vars(gaussian).items() if name != "_rng"},)


def _reduced_search_tree(root: Any) -> Any:
    return _restore_search_tree, (type(root), _in_a_row(root))


def _reduced_tensor(tensor: Any) -> Any:
    return _restore_tensor, _numbers(tensor)


def _reduced_select(select: compose.Select) -> Any:
    return compose.Select, (), {**vars(select), "keys": _InOrder(select.keys)}


class _InOrder(frozenset[Any]):
    """The keys of a loaded `Select`, in the order of the saved model.

    A loaded set may have another order, and nearly always has in another process. Models sum over features in the order
    of the row: they would differ in the last bit, and learning carries that on.
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


_SEARCH_TREES = (EBSTNode, ExhaustiveNode)
"""Nodes of the trees in which River's leaves keep the values that they have seen.

Where the values only grow, as times and running numbers do, such a tree is a chain of as many nodes as there were
observations, and pickle, which recurses, ends a third of the recursion limit further down.
"""

_CHILDREN = ("_left", "_right")

_REDUCED: dict[type, Callable[[Any], Any]] = {
    proba.Gaussian: _reduced_gaussian,
    compose.Select: _reduced_select,
    **dict.fromkeys(_SEARCH_TREES, _reduced_search_tree),
}
"""What makes of an object of just this type what its bytes say."""


def _in_a_row(root: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the shape and values of each node of a search tree, in preorder."""
    names = [name for name in type(root).__slots__ if name not in _CHILDREN]
    rows, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        shape = sum(1 << side for side, name in enumerate(_CHILDREN) if getattr(node, name) is not None)
        rows.append((shape, tuple(getattr(node, name) for name in names)))
        waiting += [child for name in reversed(_CHILDREN) if (child := getattr(node, name)) is not None]
    return rows


def _restore_search_tree(kind: Any, rows: list[tuple[int, tuple[Any, ...]]]) -> Any:
    if kind not in _SEARCH_TREES:
        raise ModelError("the bytes have a search tree of an unknown kind: no model that was saved has that")
    names = [name for name in kind.__slots__ if name not in _CHILDREN]
    root, waiting = None, []
    for shape, values in rows:
        node = kind.__new__(kind)
        for name, value in zip((*names, *_CHILDREN), (*values, None, None), strict=True):
            setattr(node, name, value)
        if root is None:
            root = node
        else:
            parent, side = waiting.pop()
            setattr(parent, side, node)
        waiting += [(node, name) for side, name in reversed(list(enumerate(_CHILDREN))) if shape >> side & 1]
    return root


_TENSORS = {("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}


def _numbers(tensor: Any) -> tuple[Any, str, bool, bool]:
    """Return a PyTorch tensor as the arguments of `_restore_tensor`."""
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
    """Return the bytes of a model or River state, without leaf generators.

    Parameters
    ----------
    named
        Takes the classes and functions that the bytes name, by their `id`.

    Raises
    ------
    ModelError
        Something in the model cannot be pickled: a lambda, an open file, a lock; or its parts hold one another,
        thousands of them, each within the one before.
    """
    try:
        with uncollected():
            try:
                return _pickled(model, named)
            except RecursionError:
                return _with_a_deep_stack(lambda: _pickled(model, named))
    except RecursionError:
        raise ModelError(
            f"cannot save {type(model).__name__}: its parts hold one another, thousands of them, each within the one "
            "before. Give trees a max_depth, and keep in a list what is linked from one to the next"
        ) from None
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ModelError(
            f"cannot save {type(model).__name__}: {error}. Build models of classes and functions that can be "
            "imported; no lambdas, locks or open files"
        ) from error


_TRIES = 20
"""How often a model is tried that grows while it is pickled."""


def _pickled(model: Any, named: dict[int, Any] | None) -> bytes:
    for left in reversed(range(_TRIES)):
        buffer = io.BytesIO()
        try:
            (_SlimPickler(buffer) if named is None else _NotingPickler(buffer, named)).dump(model)
        except RecursionError:
            raise
        except RuntimeError as error:
            # Another thread asks the model, and River's scalers note features and categories that they are asked of,
            # with nothing that they have learnt.
            if not left or "changed size during iteration" not in str(error):
                raise
        else:
            return buffer.getvalue()
    raise AssertionError


_DEEP = 40_000
"""Recursion limit for what the usual one is too low for: a tree of River takes some three for each of its levels."""

_STACK = 2**28
"""Bytes of the stack for it, of which only what is used is memory."""

_deep_one_at_a_time = threading.Lock()


def _with_a_deep_stack(work: Callable[[], bytes]) -> bytes:
    """Return the result of `work` from a thread with a deep stack."""
    with _deep_one_at_a_time:
        # Both are of the whole process, and other threads hardly notice: theirs only have more room for a moment.
        limit, stack = sys.getrecursionlimit(), threading.stack_size(_STACK)
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            with ThreadPoolExecutor(1, "deep-stack") as thread:
                return thread.submit(work).result()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(limit)


FindClass = Callable[[str, str], Any]
"""Module and qualified name to the class or function, or an exception: what a pickle may hold."""

_find_class: ContextVar[FindClass | None] = ContextVar("find_class", default=None)


@contextmanager
def loading_with(find_class: FindClass) -> Iterator[None]:
    """Load, inside the block, only objects that `find_class` finds.

    Snapshots hold bytes of models, too.
    """
    token = _find_class.set(find_class)
    try:
        yield
    finally:
        _find_class.reset(token)


def is_loading() -> bool:
    """Return whether a model is being loaded from stored bytes."""
    return _find_class.get() is not None


def load_model(data: bytes, find_class: FindClass | None = None) -> Any:
    """Return the model saved by `dump_model`; load only trusted bytes.

    Unpickling runs code.

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
    """Keep the garbage collector off while many objects are made.

    It would walk all of them over and over. What a pickle remembers is alive too, and no garbage before it is done.
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
    """An unpickler that finds classes by a function, and keeps them as is.

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
    """Restore a class's or function's attributes; return whether any differed."""
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
