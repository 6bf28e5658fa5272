"""What a stored model may hold is let through; everything that could run or read something else is not, and is told."""

from __future__ import annotations

import array
import bisect
import collections
import copyreg
import functools
import importlib
import inspect
import itertools
import logging
import os
import pickle
import pkgutil
import random
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import river
import scipy.sparse
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from river import base, compose, linear_model, preprocessing, tree

from attributary_agents.config.models import ModelConfig
from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError, DeploymentError, ForeignTypeError
from attributary_agents.models.deployments import Job, prepare
from attributary_agents.models.factory import make_model
from attributary_agents.models.guards.allowlist import PLAIN, RIVER, RIVER_ASIDE, Allowlist, names_in
from attributary_agents.models.trial import check_models
from attributary_agents.models.versions import allowlist_of
from attributary_explainers import ModelError, dump_model, load_model
from attributary_topics import Deployment
from tests.agents.stand_ins import FACTORY, CountingClassifier

RIVER_MODEL = ModelConfig.model_validate({"model": {"class": "river.linear_model.LogisticRegression"}})


def allowlist(config: ModelConfig = RIVER_MODEL) -> Allowlist:
    return Allowlist(config, make_model)


def text(value: str) -> bytes:
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def found(module: str, name: str) -> bytes:
    """STACK_GLOBAL."""
    return text(module) + text(name) + b"\x93"


def called(callee: bytes, *arguments: bytes) -> bytes:
    """REDUCE."""
    return callee + b"(" + b"".join(arguments) + b"tR"


def whole(body: bytes) -> bytes:
    return b"\x80\x05" + body + b"."


GETATTR = found("builtins", "getattr")
PARTIAL = found("functools", "partial")
WEIGHTS = found("river.linear_model.log_reg", "LogisticRegression")


def attacks(path: Path) -> dict[str, bytes]:
    """Pickles of which each would make a file, if it were read as pickles are."""
    command, source = text(f"touch {path}"), text(f"open({str(path)!r}, 'w')")
    system = found("posix", "system")
    return {
        "system": called(system, command),
        "os.system": called(found("os", "system"), command),
        "old opcode": b"cposix\nsystem\n" + b"(" + command + b"tR",
        "inst": b"(" + command + b"iposix\nsystem\n",
        "obj": b"(" + found("subprocess", "Popen") + b"(" + text("touch") + text(str(path)) + b"lo",
        "eval": called(found("builtins", "eval"), source),
        "exec": called(found("builtins", "exec"), source),
        "open": called(found("builtins", "open"), text(str(path)), text("w")),
        "io.open": called(found("_io", "open"), text(str(path)), text("w")),
        "import": called(found("importlib", "import_module"), text("os")),
        "getattr of a module": called(called(GETATTR, found("river", "base"), text("os")), command),
        "getattr of a class": called(called(GETATTR, WEIGHTS, text("__subclasses__"))),
        "getattr of an object": called(called(GETATTR, called(WEIGHTS), text("__reduce_ex__")), b"K\x04"),
        "attrgetter": called(called(found("operator", "attrgetter"), text("__class__.__base__")), called(WEIGHTS)),
        "methodcaller": called(called(found("operator", "methodcaller"), text("learn_one")), called(WEIGHTS)),
        "partial": called(called(PARTIAL, system, command)),
        "partial of a partial": called(called(PARTIAL, called(PARTIAL, system), command)),
        "defaultdict": called(found("collections", "defaultdict"), called(PARTIAL, system, command)),
        "dotted name": called(found("river.stream.cache", "os.system"), command),
        "dotted name in an allowed package": called(found("river.compose.pipeline", "base.os.system"), command),
        "module for a class": found("river.compose", "pipeline"),
        "imported class": found("attributary_explainers.change.holdout", "array"),
        "data set": called(found("river.datasets", "Phishing")),
        "data set of drift": found("river.datasets.synth", "Agrawal"),
        "cache": called(found("river.stream", "Cache"), text(str(path.parent))),
        "evaluation": found("river.evaluate", "progressive_val_score"),
        "numpy's ufunc by name": called(found("numpy._core", "_ufunc_reconstruct"), text("os"), text("system")),
        "numpy.memmap": called(found("numpy", "memmap"), text(str(path)), text("uint8"), text("w+"), b"K\x00K\x08"),
        "numpy.load": called(found("numpy", "load"), text(str(path))),
        "numpy.fromfile": found("numpy", "fromfile"),
        "exec by numpy": called(found("numpy.testing._private.utils", "runstring"), source, b"}"),
        "timeit": called(found("timeit", "timeit"), source),
        "code of a function": found("types", "FunctionType"),
        "class of its own": called(found("builtins", "type"), text("A"), b")", b"}"),
        "settings": called(found("attributary_agents.config.settings", "Config")),
        "our own loader": called(found("attributary_explainers.pickling", "load_model"), b"C\x00"),
        "pickle in a pickle": called(found("_pickle", "loads"), b"C\x00"),
        "joblib": found("joblib", "load"),
        "module that is not there": found("attributary_no_such_module", "A"),
    }


NAMES = sorted(attacks(Path()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reader", ["model", "plain"])
def test_what_would_run_something_does_not_and_is_named(name: str, reader: str, tmp_path: Path) -> None:
    path = tmp_path / "made"
    before = set(sys.modules)
    with pytest.raises(ForeignTypeError, match="it holds"):
        (allowlist() if reader == "model" else PLAIN).load(whole(attacks(path)[name]))
    assert not path.exists()
    assert not {"antigravity", "joblib"} & (set(sys.modules) - before)


def test_the_attacks_are_ones(tmp_path: Path) -> None:
    for name in ("system", "os.system", "old opcode", "eval", "open", "partial", "dotted name", "inst"):
        path = tmp_path / name.replace(" ", "-")
        pickle.loads(whole(attacks(path)[name]))
        assert path.exists(), name


def test_nothing_is_imported_for_a_name_that_is_not_let_through() -> None:
    sys.modules.pop("antigravity", None)
    with pytest.raises(ForeignTypeError):
        allowlist().load(whole(found("antigravity", "fly")))
    assert "antigravity" not in sys.modules


def test_a_registered_extension_is_asked_for_like_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "made"
    copyreg.add_extension("posix", "system", 241)
    try:
        with pytest.raises(ForeignTypeError, match=r"posix\.system"):
            allowlist().load(whole(called(b"\x82\xf1", text(f"touch {path}"))))
        assert pickle.loads(whole(b"\x82\xf1")) is os.system, "of the whole process: as before"
    finally:
        copyreg.remove_extension("posix", "system", 241)
    assert not path.exists()


def test_a_persistent_id_finds_nothing() -> None:
    with pytest.raises(pickle.UnpicklingError, match="persistent"):
        allowlist().load(whole(b"Posix\n"))
    with pytest.raises(pickle.UnpicklingError, match="persistent"):
        allowlist().load(whole(text("os") + b"Q"))


@pytest.mark.parametrize("kind", ["a method", "a new attribute", "a function's defaults"])
def test_a_class_or_function_that_the_bytes_would_change_is_as_before(kind: str) -> None:
    """BUILD sets attributes, of a class or function as well: all models of the process would have another method."""
    target, name, function = linear_model.LogisticRegression, "learn_one", compose.Select
    before = dict(vars(target))
    if kind == "a function's defaults":
        path = found("river.utils.math", "minkowski_distance")
        body = path + b"N}" + text("__defaults__") + b"K\x01\x85s\x86b"
    else:
        attribute = name if kind == "a method" else "brand_new"
        body = WEIGHTS + b"N}" + text(attribute) + found("river.compose.select", "Select") + b"s\x86b"
    with pytest.raises(ModelError, match=r"would have changed (LogisticRegression|minkowski_distance)"):
        allowlist().load(whole(body))
    assert dict(vars(target)) == before
    assert function is compose.Select
    from river.utils.math import minkowski_distance

    assert minkowski_distance.__defaults__ is None


def every_object() -> Iterator[tuple[str, Any]]:
    """Every class of River that is part of a model and can be made as its own tests make it."""
    for module in pkgutil.walk_packages(river.__path__, "river."):
        parts = module.name.split(".")
        if parts[1] not in RIVER or RIVER_ASIDE & set(parts) or "test_" in module.name:
            continue
        try:
            contents = vars(importlib.import_module(module.name))
        except ImportError:
            continue  # a package that is not installed
        for name, kind in sorted(contents.items()):
            if not isinstance(kind, type) or kind.__module__ != module.name or inspect.isabstract(kind):
                continue
            for params in examples(kind):
                try:
                    yield name, kind(**params)
                except (TypeError, ValueError, RuntimeError):
                    continue  # no example of its arguments, or of a later Python


def examples(kind: Any) -> list[dict[str, Any]]:
    """Arguments with which River's own tests make a class."""
    try:
        return list(kind._unit_test_params())
    except AttributeError:
        return [{}]


def teach(model: Any) -> None:
    rng = random.Random(0)
    for n in range(60):
        x = {"a": rng.gauss(0, 1), "b": rng.random(), "c": float(n % 3)}
        try:
            if isinstance(model, base.Regressor):
                model.predict_one(x), model.learn_one(x, x["a"])
            elif isinstance(model, base.Classifier):
                model.predict_one(x), model.learn_one(x, x["a"] > 0)
            elif hasattr(model, "learn_one"):
                model.learn_one(x, x["a"] > 0) if getattr(model, "_supervised", False) else model.learn_one(x)
            elif hasattr(model, "update"):
                model.update(x["b"])
        except Exception:  # noqa: BLE001 - of another kind of data; it is stored as it is
            return


def test_everything_of_river_is_let_through_before_and_after_it_has_learnt() -> None:
    n, refused = 0, []
    for name, one in every_object():
        for learnt in (False, True):
            if learnt:
                teach(one)
            try:
                data = dump_model(one)
            except ModelError:
                continue  # a lambda: it can be stored in no way
            n += 1
            try:
                allowlist().load(data)
            except ForeignTypeError as error:
                refused.append(f"{name}: {error}")
    assert not refused
    assert n > 500


@pytest.mark.parametrize(
    "model",
    [
        preprocessing.TargetStandardScaler(linear_model.LinearRegression()),
        preprocessing.TargetMinMaxScaler(linear_model.LinearRegression()),
        tree.HoeffdingTreeRegressor(splitter=tree.splitter.QOSplitter()),
    ],
    ids=["standard", "min and max", "quantization"],
)
def test_models_of_river_that_keep_methods_of_their_own_are_let_through(model: base.Regressor) -> None:
    """`test_everything_of_river_…` makes none of them, or none that has learnt."""
    teach(model)
    x = {"a": 0.1, "b": 0.2, "c": 1.0}
    assert allowlist().load(dump_model(model)).predict_one(x) == model.predict_one(x)


@pytest.mark.parametrize(
    "value",
    [
        np.random.default_rng(1),
        np.random.RandomState(1),
        np.random.Generator(np.random.Philox(3)),
        np.float64(1.5),
        np.bool_(True),
        np.array([1, 2]),
        np.asfortranarray(np.ones((3, 2))),
        np.array(["a", None], dtype=object),
        np.ma.array([1, 2], mask=[False, True]),
        scipy.sparse.csr_matrix(np.eye(2)),
        scipy.sparse.csc_array(np.eye(2)),
        random.Random(3),
        collections.OrderedDict(a=1),
        collections.deque([1], 3),
        functools.partial(dict, a=1),
        {1.5, "a"},
        slice(3),
        1 + 2j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_values_and_generators_are_let_through(value: Any) -> None:
    data = dump_model(value)
    again = PLAIN.load(data)
    assert (type(again), repr(again).split(" at 0x")[0]) == (type(value), repr(value).split(" at 0x")[0])


def own(**more: Any) -> ModelConfig:
    return parse_config({"models": {"m": {"factory": FACTORY}}, **more}).models["m"]


def test_classes_of_the_configuration_s_packages_are_let_through_and_their_functions_are_not() -> None:
    data = dump_model(CountingClassifier())
    assert isinstance(allowlist(own()).load(data), CountingClassifier)
    with pytest.raises(ForeignTypeError, match=r"write `state: \{allowed: \[tests\.agents\.stand_ins\.Counting"):
        allowlist().load(data)
    with pytest.raises(ForeignTypeError, match=r"tests\.agents\.stand_ins\.counting_classifier"):
        allowlist(own()).load(whole(called(found("tests.agents.stand_ins", "counting_classifier"))))


@pytest.mark.parametrize("section", ["control", "state"])
def test_what_the_configuration_allows_is_let_through(section: str) -> None:
    data, model = dump_model(CountingClassifier()), {"model": {"class": "river.linear_model.LogisticRegression"}}
    for allowed in ("tests.", "tests", "tests.agents.stand_ins", "tests.agents.stand_ins.CountingClassifier"):
        config = parse_config({"models": {"m": model}, section: {"allowed": ["river.", allowed]}})
        assert isinstance(allowlist_of(config.models["m"]).load(data), CountingClassifier)


def test_a_function_that_the_configured_model_holds_is_let_through_by_name_alone() -> None:
    config = own().model_copy(update={"factory": f"{__name__}:with_functions"})
    reader = Allowlist(config, make_model)
    assert reader.load(dump_model(with_functions()))["f"] is halve
    assert reader.load(dump_model(CountingClassifier().learn_one)).__name__ == "learn_one"
    for name in ("double", "with_functions"):
        with pytest.raises(ForeignTypeError, match=name):
            reader.load(whole(found(__name__, name)))


def test_not_even_the_configuration_lets_code_through() -> None:
    model = {"model": {"class": "river.linear_model.LogisticRegression"}}
    config = parse_config(
        {"models": {"m": model}, "state": {"allowed": ["posix.system", "builtins.eval", "subprocess"]}}
    )
    for module, name in (("posix", "system"), ("builtins", "eval"), ("subprocess", "Popen"), ("numpy", "load")):
        with pytest.raises(ForeignTypeError):
            allowlist_of(config.models["m"]).load(whole(found(module, name)))


def test_a_model_that_could_not_be_read_again_is_refused_before_the_start_and_before_it_is_deployed() -> None:
    config = parse_config({"models": {"m": {"factory": f"{__name__}:with_open"}}})
    with pytest.raises(ConfigError, match=r"models\.m: it holds 'io\.open'"):
        check_models(config)
    good = parse_config(
        {"models": {"m": {"factory": FACTORY}}, "control": {"allowed": ["tests.", "river.", f"{__name__}:with_open"]}}
    )
    with pytest.raises(DeploymentError, match=r"not be read from its stored state: it holds 'io\.open'") as raised:
        prepare(Job.of(good, Deployment("m", "2", {"factory": f"{__name__}:with_open"})))
    assert raised.value.reason == "not_allowed"


def halve(x: float) -> float:
    return x / 2


def double(x: float) -> float:
    return 2 * x


def with_functions() -> dict[str, Any]:
    return {"f": halve, "g": CountingClassifier().learn_one}


class Opens(CountingClassifier):
    def __init__(self) -> None:
        super().__init__()
        self.read = open


def with_open() -> Opens:
    return Opens()


class Foreign:
    """Of a package that no configuration here names."""


def foreign_function() -> None:
    """A function of it."""


def test_all_that_is_not_let_through_is_named_at_once_as_the_line_to_write() -> None:
    held = [Foreign(), foreign_function, scipy.stats.norm(0, 1), Foreign()]
    names = [
        f"{__name__}.Foreign",
        f"{__name__}.foreign_function",
        "scipy.stats._distn_infrastructure.rv_continuous_frozen",
        "scipy.stats._continuous_distns.norm_gen",
    ]
    with pytest.raises(ForeignTypeError) as raised:
        allowlist().load(dump_model(held))
    assert f"write `state: {{allowed: [{', '.join(names)}]}}`" in str(raised.value)
    model = {"model": {"class": "river.linear_model.LogisticRegression"}}
    config = parse_config({"models": {"m": model}, "state": {"allowed": names}})
    again = allowlist_of(config.models["m"]).load(dump_model(held))
    assert again[2].cdf(0.0) == 0.5


def test_what_no_configuration_can_allow_is_told_as_such() -> None:
    with pytest.raises(ForeignTypeError) as raised:
        allowlist().load(dump_model([logging.getLogger("a"), bisect.insort, Foreign(), Path.touch]))
    said = str(raised.value)
    assert f"allowed: [{__name__}.Foreign]" in said
    assert "it holds 'logging.getLogger', '_bisect.insort_right'" in said
    assert "are never read back" in said
    assert "Keep them out of the model's attributes" in said


@pytest.mark.parametrize(
    "value",
    [
        array.array("d", [1.0, 2.0]),
        Path("a/b"),
        types.SimpleNamespace(a=1),
        bytearray(b"a"),
        time.time,
        len,
    ],
    ids=repr,
)
def test_harmless_parts_of_the_standard_library_are_let_through(value: Any) -> None:
    assert repr(PLAIN.load(dump_model(value))) == repr(value)


@pytest.mark.parametrize(
    "value", [range(3), itertools.count(), map(abs, [1]), sum, sorted], ids=["range", "count", "map", "sum", "sorted"]
)
def test_nothing_that_could_make_a_list_endless_is_let_through(value: Any) -> None:
    with pytest.raises(ForeignTypeError):
        PLAIN.load(pickle.dumps(value))


@given(st.recursive(st.sampled_from([*"abc", Foreign, foreign_function, len, "x" * 300, 1.5, b"a"]), st.lists))
def test_the_names_in_a_pickle_are_those_that_loading_it_asks_for(value: Any) -> None:
    data, asked = dump_model([value, *"abc", Foreign()]), {}

    def find(module: str, name: str) -> Any:
        asked[module, name] = None
        return getattr(importlib.import_module(module), name)

    load_model(data, find)
    assert names_in(data) == list(asked)


@pytest.mark.parametrize("name", NAMES)
def test_to_list_the_names_runs_nothing_and_imports_nothing(name: str, tmp_path: Path) -> None:
    path, before = tmp_path / "made", set(sys.modules)
    assert names_in(whole(attacks(path)[name]))
    assert not path.exists()
    assert not set(sys.modules) - before


@given(st.binary(max_size=60))
def test_no_bytes_make_the_listing_of_names_fail(data: bytes) -> None:
    names_in(b"\x80\x05" + data)
