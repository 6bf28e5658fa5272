"""Objects with parameters that can be shown, cloned and pickled.

The arguments that an object was made with are kept as they were given, so that a class says its parameters once: in the
signature of its constructor.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import wraps
from types import FunctionType, MethodType, ModuleType
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from ..wording import did_you_mean
from .cards import IMPORTANCE_COLUMNS, Card, Shown, counts, figure, importance_rows

LONGEST = 40
"""Letters of a value that is shown in full; a longer one is shortened."""
FEW = 6
"""Objects of a mapping that are shown by their classes."""


def call(name: str, given: Mapping[str, Any], without_name: Collection[str]) -> str:
    """Return a call as text, with some arguments shown without names.

    Examples
    --------
    >>> call("IncrementalPFI", {"model": len, "alpha": 0.01}, {"model"})
    'IncrementalPFI(len, alpha=0.01)'
    """
    said = [shortened(value) if key in without_name else f"{key}={shortened(value)}" for key, value in given.items()]
    return f"{name}({', '.join(said)})"


def is_default(value: Any, declared: inspect.Parameter | None) -> bool:
    """Return whether a value is the default of its parameter."""
    if declared is None or declared.default is inspect.Parameter.empty:
        return False
    try:
        return value is declared.default or bool(type(value) is type(declared.default) and value == declared.default)
    except Exception:  # noqa: BLE001 - an array, or whatever else a user's parameter is
        return False


def shortened(value: Any) -> str:
    """Return a value in a short line, like `ARFClassifier(...)`.

    Examples
    --------
    >>> shortened(dict.fromkeys(range(100)))
    '{... 100 items}'
    >>> shortened("interventional"), shortened(len)
    ("'interventional'", 'len')
    """
    if isinstance(value, type) or inspect.isroutine(value):
        if isinstance(value, MethodType):
            return f"{type(value.__self__).__name__}.{value.__name__}"
        return str(getattr(value, "__name__", value))
    if isinstance(steps := getattr(value, "steps", None), (Mapping, list)):
        names = steps.values() if isinstance(steps, Mapping) else [step[1] for step in steps]
        return " | ".join(type(step).__name__ for step in names)
    text = repr(value)
    if hasattr(value, "learn_one") or hasattr(value, "fit"):  # River's ensembles say the list of their members
        name = type(value).__name__
        return text if text.startswith(name) and len(text) <= LONGEST and "\n" not in text else f"{name}(...)"
    if isinstance(value, Mapping) and len(value) <= FEW and all(hasattr(one, "_given") for one in value.values()):
        return "{" + ", ".join(f"{key!r}: {type(one).__name__}(...)" for key, one in value.items()) + "}"
    # An object of this package says itself in one line, and shortens what it holds.
    if "\n" not in text and (len(text) <= LONGEST or hasattr(value, "_given")) and " object at 0x" not in text:
        return text
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        begin, end = ("{", "}") if isinstance(value, (Mapping, set, frozenset)) else ("[", "]")
        return f"{begin}... {len(value)} items{end}"
    if isinstance(value, str):
        return f"{text[: LONGEST - 4]}...'"
    return f"{type(value).__name__}(...)" if not text.startswith("<") or "(" in text else type(value).__name__


_MOST = 200
"""Objects that are looked at: the parameters of a model come before what it has learnt."""


def check_picklable(of: Any) -> None:
    """Refuse a model or loss with a function pickle cannot find by name.

    Raises
    ------
    pickle.PicklingError
        Names the function and says what to do.
    """
    for what in ("model", "loss"):
        for function in _functions(getattr(of, what, None)):
            if "<" in function.__qualname__:
                raise pickle.PicklingError(
                    f"cannot pickle {type(of).__name__}: its {what} has the function {function.__qualname__}, which "
                    "pickle cannot find by its name. Define it with `def` at the top of a module, or as __call__ of a "
                    "class; or keep `snapshot()`, which leaves the model out, and use `from_snapshot(snapshot, model)`"
                )


def _functions(value: Any) -> Iterator[FunctionType]:
    """Yield the functions among the first `_MOST` objects of a model or loss."""
    waiting = deque([value])
    for _ in range(_MOST):
        if not waiting:
            return
        value = waiting.popleft()
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            waiting.extend(value)
        elif hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType)):
            waiting.extend(vars(value).values())


_FROM_ATTRIBUTE = "attributary: an iterator, which the attribute of the same name has taken"


class Described(Shown):
    """An object shown and cloned by its constructor's parameters."""

    _given: tuple[tuple[Any, ...], dict[str, Any]]
    """Positional and keyword arguments of the constructor."""
    _replaced: ClassVar[tuple[str, ...]] = ()
    """Names of arguments that may be others by now, which the attributes of the same names are."""

    def __init_subclass__(cls, **of_class: Any) -> None:
        super().__init_subclass__(**of_class)
        # `__new__` below takes anything: what help and completion show is the constructor's own signature.
        own = inspect.signature(cls.__init__)
        cls.__signature__ = own.replace(parameters=list(own.parameters.values())[1:])  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments; refuse a keyword that `__init__` does not have."""
        refuse_unknown(cls.__name__, cls.__signature__, kwargs)  # type: ignore[attr-defined]
        made = super().__new__(cls)
        made._given = tuple(map(_kept, args)), {name: _kept(value) for name, value in kwargs.items()}
        return made

    def _arguments_given(self) -> dict[str, Any]:
        """Return the constructor's given arguments by name, as they are now."""
        args, kwargs = self._given
        own: inspect.Signature = self.__signature__  # type: ignore[attr-defined]
        bound = own.bind_partial(*args, **kwargs).arguments
        given = {name: getattr(self, name) if _is_taken(value) else value for name, value in bound.items()}
        return {**given, **{name: getattr(self, name) for name in self._replaced if name in given}}

    def clone(self, model: Any = None) -> Self:
        """Return a new object with the same parameters, which has seen nothing.

        With a seed it draws what this one drew from its beginning. What `from_snapshot` has restored has no seed any
        more, so its clone draws anew.

        Parameters
        ----------
        model
            The model of the clone; None is the model of this one, which is not copied.
        """
        given = self._arguments_given()
        if model is not None:
            given["model"] = model
        made: Self = _called(type(self), {name: _cloned(value, model) for name, value in given.items()})
        return made

    def __repr__(self) -> str:
        declared = self.__signature__.parameters  # type: ignore[attr-defined]
        given = self._arguments_given()
        others = {name: value for name, value in given.items() if not is_default(value, declared.get(name))}
        without_name = {name for name, one in declared.items() if name == "model" or _is_positional(one)}
        return call(type(self).__name__, others, without_name)

    def _card(self) -> Card:
        importance = getattr(self, "importance", None)
        if not isinstance(importance, Mapping):
            return Card(repr(self), facts=self._facts())
        widths = getattr(self, "half_width", None)
        rows = importance_rows(importance, widths if isinstance(widths, Mapping) else {})
        facts = self._facts()
        if not rows:
            facts = [*facts, ("importance", "none yet")]
        return Card(repr(self), facts=facts, columns=IMPORTANCE_COLUMNS, rows=rows)

    def _facts(self) -> list[tuple[str, str]]:
        """Return a card's other facts: the loss, and how much has been seen."""
        facts = []
        if statement := getattr(getattr(self, "loss", None), "statement", None):
            facts.append(("loss", statement))
        for name in ("n_observations", "n_seen"):
            if (n := getattr(self, name, None)) is not None:
                facts.append((name, figure(n)))
        skipped = getattr(self, "skipped", None)
        n_skipped = counts(skipped) if isinstance(skipped, Mapping) else figure(getattr(self, "n_skipped", None))
        if n_skipped != "–":
            facts.append(("n_skipped", n_skipped))
        return facts

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        vars(copied).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        return copied

    def __getstate__(self) -> dict[str, Any]:
        check_picklable(self)
        return vars(self)


P = ParamSpec("P")
R = TypeVar("R")


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function suggest a known keyword for an unknown keyword.

    Examples
    --------
    >>> @suggesting
    ... def read(*, alpha: float = 0.1) -> float:
    ...     return alpha
    >>> read(alhpa=0.5)
    Traceback (most recent call last):
    TypeError: read() got an unexpected keyword argument 'alhpa': did you mean 'alpha'?
    """
    declared = inspect.signature(function)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_unknown(function.__name__, declared, kwargs)
        return function(*args, **kwargs)

    return checked


def refuse_unknown(name: str, declared: inspect.Signature, given: Mapping[str, Any]) -> None:
    """Raise TypeError for an unknown keyword, with a suggestion."""
    unknown = [keyword for keyword in given if keyword not in declared.parameters]
    if not unknown or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in declared.parameters.values()):
        return
    known = [one.name for one in declared.parameters.values() if one.kind is not inspect.Parameter.POSITIONAL_ONLY]
    hint = did_you_mean(unknown[0], known) or f". It takes {', '.join(known)}"
    raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}{hint}")


def _is_positional(declared: inspect.Parameter) -> bool:
    return declared.default is inspect.Parameter.empty and declared.kind is not inspect.Parameter.KEYWORD_ONLY


_PLAIN = (str, int, float, bool, type(None))


def _kept(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if hasattr(value, "__next__"):
        return _FROM_ATTRIBUTE
    if type(value) in (dict, list):  # the caller may go on with it
        return value.copy()
    return value


def _is_taken(value: Any) -> bool:
    return isinstance(value, str) and value == _FROM_ATTRIBUTE


def _cloned(value: Any, model: Any) -> Any:
    if isinstance(value, Described):
        return value.clone(model if "model" in value._arguments_given() else None)
    if isinstance(value, dict):
        return {name: _cloned(one, model) for name, one in value.items()}
    return value


def _called(kind: Any, given: dict[str, Any]) -> Any:
    """Call by name, but with positional-only and spread arguments first."""
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    for name, value in given.items():
        declared = kind.__signature__.parameters[name].kind
        if declared is inspect.Parameter.POSITIONAL_ONLY:
            args.append(value)
        elif declared is inspect.Parameter.VAR_POSITIONAL:
            args += value
        elif declared is inspect.Parameter.VAR_KEYWORD:
            keywords.update(value)
        else:
            keywords[name] = value
    return kind(*args, **keywords)
