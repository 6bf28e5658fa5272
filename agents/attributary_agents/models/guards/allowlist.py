"""List of the types that stored models may hold.

Nothing else is loaded, so a pickle that somebody has forged runs nothing. What is stored is read with an `Allowlist`,
whether it is signed or not. It lets through what the lists below name, what the configuration of the model names, and
what `control.allowed` and `state.allowed` add. A class may be made with any arguments and given any attributes; a
function may be called with any arguments. So whole packages are listed only where no class opens a file, starts a
process or imports by name, and functions one by one.
"""

from __future__ import annotations

import contextlib
import copyreg
import importlib
import inspect
import logging
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from attributary_explainers import dump_model, load_model

from ...config.models import ModelConfig
from ...errors import ForeignTypeError

logger = logging.getLogger(__name__)

Name = tuple[str, str]
"""Module and qualified name of a class or function."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RIVER = _words(
    "_river_rust active anomaly bandit base cluster compat compose conf covariance drift dummy ensemble facto "
    "feature_extraction feature_selection forest imblearn linear_model metrics misc model_selection multiclass "
    "multioutput naive_bayes neighbors neural_net optim preprocessing proba reco rules sketch stats time_series tree "
    "utils"
)
"""Packages of River whose classes are parts of models: not those that read data, evaluate or check."""

RIVER_ASIDE = frozenset({"datasets", "envs", "evaluate", "checks", "stream"})
"""Parts of a module's name below `RIVER` that are none of that."""

EXPLAINERS = ("attributary_explainers.change", "attributary_explainers.removal", "attributary_explainers.models")
"""Packages of ours whose classes are in snapshots: twins, watches, samplers, and wrappers of models."""

SKLEARN = (
    "sklearn._loss",
    "sklearn.calibration",
    "sklearn.cluster",
    "sklearn.ensemble._hist_gradient_boosting",
    "sklearn.gaussian_process.kernels",
    "sklearn.linear_model",
    "sklearn.metrics._dist_metrics",
    "sklearn.neighbors",
    "sklearn.neural_network._stochastic_optimizers",
    "sklearn.tree._tree",
)
"""Modules of scikit-learn whose classes are parts of estimators; estimators themselves may be of any."""


def _of(module: str, names: str) -> set[str]:
    return {f"{module}.{name}" for name in names.split()}


_SPARSE = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")

# Nothing lazy (range, itertools, map): `list`, `max` or `deque` over it would take the memory or never end.
EXACT: frozenset[str] = frozenset(
    _of("attributary_explainers.pickling", "_InOrder _restore_gaussian _restore_search_tree _restore_tensor")
    | _of("attributary_agents.models.from_mlflow.pyfunc", "PyfuncPredict")
    # Who may be asked is decided when it is asked: `worker/endpoints`.
    | {
        "attributary_agents.models.artefacts.served.model.ServedModel",
        "attributary_agents.models.artefacts.served.served.Served",
    }
    | _of(
        "builtins",
        "Ellipsis NotImplemented abs bool bytearray bytes complex dict float frozenset int iter len list max "
        "min object round set slice str tuple",
    )
    | _of("collections", "ChainMap Counter OrderedDict defaultdict deque")
    | _of("copyreg", "_reconstructor __newobj__ __newobj_ex__")
    | _of("copy", "copy deepcopy")
    | _of("datetime", "date datetime time timedelta timezone")
    | _of("functools", "partial")
    | _of(
        "math",
        "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees dist erf erfc exp expm1 fabs floor fmod "
        "fsum gamma gcd hypot isclose isfinite isinf isnan isqrt lgamma log log10 log1p log2 prod radians sin sinh "
        "sqrt tan tanh trunc",
    )
    | _of("operator", "add and_ eq floordiv ge gt itemgetter le lt mod mul ne neg not_ or_ sub truediv xor")
    | _of("array", "_array_reconstructor array")
    | {"types.SimpleNamespace"}
    | _of("pathlib", "Path PosixPath PurePath PurePosixPath PureWindowsPath")
    | _of("time", "monotonic perf_counter time time_ns")
    | {"decimal.Decimal", "fractions.Fraction", "random.Random", "re._compile", "statistics.NormalDist"}
    | _of("uuid", "UUID SafeUUID")
    | _of(
        "numpy",
        "array bool bool_ bytes_ clongdouble complex128 complex64 datetime64 dtype float16 float32 float64 int16 int32 "
        "int64 int8 longdouble longlong mean ndarray ones str_ timedelta64 uint16 uint32 uint64 uint8 ulonglong zeros",
    )
    | {f"numpy.{core}.multiarray.{name}" for core in ("core", "_core") for name in ("_reconstruct", "scalar")}
    | {f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")}
    | _of("numpy.ma.core", "MaskedArray _mareconstruct")
    | {"numpy.ma.MaskedArray"}
    | _of("numpy.random._pickle", "__bit_generator_ctor __generator_ctor __randomstate_ctor")
    | _of("numpy.random._generator", "Generator")
    | _of("numpy.random.mtrand", "RandomState")
    | _of("numpy.random.bit_generator", "SeedSequence __pyx_unpickle_SeedSequence")
    | {f"numpy.random._{name}" for name in ("mt19937.MT19937", "pcg64.PCG64", "pcg64.PCG64DXSM", "philox.Philox")}
    | {"numpy.random._sfc64.SFC64"}
    | {f"scipy.sparse._{kind}.{kind}_{form}" for kind in _SPARSE for form in ("array", "matrix")}
    | {"scipy.interpolate._bsplines.BSpline"}
    | {f"sklearn.{module}.newObj" for module in ("metrics._dist_metrics", "neighbors._kd_tree", "neighbors._ball_tree")}
    | _of("sklearn.feature_selection._univariate_selection", "chi2 f_classif f_regression r_regression")
    | _of("river._river_rust.vectordict", "euclidean_distance_dict euclidean_distance_tuple")
    | _of("river.feature_extraction.vectorize", "strip_accents_unicode tokenize_using_regex_pattern find_ngrams")
    | _of("river.forest.online_extra_trees", "ExtraTrees._detection_mode_all ExtraTrees._detection_mode_drop")
    | {"river.forest.online_extra_trees.ExtraTrees._detection_mode_off"}
    | {f"river.metrics.mutual_info._average_{mean}" for mean in ("arithmetic", "geometric", "max", "min")}
    | {"river.naive_bayes.gaussian.GaussianNB._make_gaussian", "river.utils.math.minkowski_distance"}
    | {
        f"river.tree.splitter.{module}._update_estimator_{kind}variate"
        for module in ("ebst_splitter.EBSTNode", "nominal_splitter_reg.NominalSplitterReg")
        for kind in ("uni", "multi")
    }
)
"""Classes and functions by module and qualified name."""

METHODS: frozenset[str] = frozenset(
    {
        "builtins.str.lower",
        "random.Random.gauss",
        "river.base.base.Base.clone",
        "river.bandit.thompson.ThompsonSampling._clone_reward_obj_with_seed",
        "river.drift.dummy.DummyDriftDetector._fixed_trigger",
        "river.drift.dummy.DummyDriftDetector._random_trigger",
        "river.feature_extraction.kernel_approx.RBFSampler._random_weights",
        "river.multiclass.occ.OutputCodeClassifier._next_code",
        "river.preprocessing.random_projection.GaussianRandomProjector._rand_gauss",
        "river.preprocessing.random_projection.SparseRandomProjector._rand_weights_for_feature",
    }
    | {f"river.drift.page_hinkley.PageHinkley._test_{kind}" for kind in ("both", "decrease", "increase")}
    | {
        f"river.ensemble.bagging.LeveragingBaggingClassifier._leveraging_{kind}"
        for kind in ("bag", "bag_half", "bag_me", "bag_wt", "subag")
    }
    | {f"river.linear_model.pa.BasePA._calc_tau_{mode}" for mode in (0, 1, 2)}
    | {
        f"river.preprocessing.scale_target.Target{kind}Scaler._{way}"
        for kind in ("MinMax", "Standard")
        for way in ("scale", "unscale")
    }
    | {f"river.tree.splitter.qo_splitter.Slot._update_estimator_{kind}variate" for kind in ("uni", "multi")}
)
"""Methods that an object may keep, bound to an object or to `str`, by the class that defines them."""

MODULES_OF_CODE = _words(
    "asyncio ast bdb builtins code codecs codeop cProfile concurrent copyreg ctypes distutils ensurepip ftplib gc http "
    "idlelib imaplib imp importlib inspect io linecache logging marshal mmap multiprocessing nntplib nt operator os "
    "pathlib pdb pickle pickletools pipes pkgutil platform poplib posix posixpath profile pty pydoc resource runpy "
    "select selectors shelve shutil signal site smtplib socket socketserver sqlite3 ssl subprocess sys sysconfig "
    "tarfile telnetlib tempfile test threading timeit trace traceback types unittest urllib venv webbrowser weakref "
    "xmlrpc zipapp zipfile zipimport _ctypes _io _pickle _posixsubprocess _socket _thread"
)
"""Parts of the standard library of which nothing beyond `EXACT` is let through, whoever names it."""

NEVER = (
    "numpy.core._ufunc_reconstruct",
    "numpy._core._ufunc_reconstruct",
    "numpy.ctypeslib",
    "numpy.distutils",
    "numpy.f2py",
    "numpy.fromfile",
    "numpy.load",
    "numpy.memmap",
    "numpy.testing",
    "cloudpickle",
    "dill",
    "joblib",
    "pandas.eval",
    "pandas.read_pickle",
    "torch.load",
    "numexpr",
    "attributary_explainers.pickling.load_model",
)
"""Modules and names of other packages that run or read what they are given: never, whoever names them."""

_RULED = frozenset({"river", "numpy", "scipy", "sklearn", "attributary_explainers", "attributary_agents"})
"""Packages of which a model's configuration or `control.allowed` lets nothing further through."""


class Allowlist:
    """Finder of the classes and functions that a stored model may hold.

    Parameters
    ----------
    config
        The model's configuration. The packages of its classes and factories are trusted with their classes, what its
        model holds as it is made here with functions as well; None: plain data, which hold neither.
    make
        Makes the model of the configuration, to see what it holds; asked for only where the lists do not know a type.
    """

    def __init__(self, config: ModelConfig | None = None, make: Callable[[ModelConfig], Any] | None = None) -> None:
        self._config = config
        self._make = make

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or function of this module and qualified name.

        Raises
        ------
        ForeignTypeError
            It is not let through; nothing has been imported then.
        """
        path = f"{module}.{name}"
        if path == "builtins.getattr":
            return self._method
        if (listed := _listed(module, name)) is not None:
            return listed
        if self._may_import(module):
            found = _resolve(module, name)
            if isinstance(found, type) and self._is_class_allowed(found):
                return found
        if not _is_never(module, path) and (path in self._exact or path in self._own_types()):
            found = _resolve(module, name)
            if isinstance(found, type) or _root(module) not in sys.stdlib_module_names:
                return found
        raise self._refused(path)

    @cached_property
    def _exact(self) -> set[str]:
        return {name for name in (self._config.allowed if self._config else ()) if not name.endswith(".")}

    @cached_property
    def _packages(self) -> set[str]:
        given = self._config.allowed if self._config else ()
        named = {name for name in map(_root, _named(self._config)) if not _is_ruled(name)}
        return named | {name.rstrip(".") for name in given if not _is_ruled(_root(name))}

    def load(self, data: bytes) -> Any:
        """Load the model that `dump_model` saved, if its types are allowed.

        Raises
        ------
        ForeignTypeError
            It holds what is not let through; all of it is named at once.
        """
        try:
            return load_model(data, self.find_class)
        except ForeignTypeError:
            if refusal := self.refusal(names_in(data)):
                raise refusal from None
            raise  # a method, or what no pickler writes

    def check(self, found: Iterable[Any]) -> None:
        """Check that stored models may hold these classes and functions.

        Methods of objects have no names and are passed over.

        Raises
        ------
        ForeignTypeError
            They may not hold some, all of which are named.
        """
        named = [
            (one.__module__, one.__qualname__)
            for one in found
            if isinstance(getattr(one, "__module__", None), str)
            and not (isinstance(one, BuiltinFunctionType) and not isinstance(one.__self__, ModuleType | None))
        ]
        if refusal := self.refusal(named):
            raise refusal

    def refusal(self, names: Iterable[Name]) -> ForeignTypeError | None:
        """Return the error for all refused names; None if all are allowed."""
        refused = []
        for module, name in names:
            try:
                self.find_class(module, name)
            except ForeignTypeError:
                refused.append(f"{module}.{name}")
            except Exception:  # noqa: BLE001 - it is let through and not there: what loads it says so
                continue
        return self._refused(*refused) if refused else None

    def _method(self, owner: Any, name: Any) -> Any:
        """Return a known method of an object, in place of `getattr`.

        A pickle names the method of an object by `getattr`; unknown methods are refused.
        """
        kind = owner if isinstance(owner, type) else type(owner)
        path = _method_path(kind, name) if isinstance(name, str) else ""
        if path in METHODS or path in self._exact or (path and path in self._own_types()):
            return getattr(owner, name)
        raise self._refused(path or f"{kind.__module__}.{kind.__qualname__}.{name}")

    def _may_import(self, module: str) -> bool:
        listed = _is_listed(module)
        return _is_below(module, self._packages) and not _is_never(module, module) if listed is None else listed

    def _is_class_allowed(self, found: type) -> bool:
        # By where it is defined: a module also holds what it has imported.
        return self._may_import(found.__module__) and _is_of_model(found)

    def _own_types(self) -> frozenset[str]:
        if self._config is None or self._make is None:
            return frozenset()
        if self._config.own_types is None:
            self._config.note_own_types(_types_of(self._make, self._config))
        return self._config.own_types or frozenset()

    def _refused(self, *paths: str) -> ForeignTypeError:
        never = [path for path in paths if self._config is None or path in self._exact or _is_in_vain(path)]
        listed = [path for path in paths if path not in never]
        said = []
        if listed:
            are, them = ("is", "it") if len(listed) == 1 else ("are", "them")
            said.append(
                f"it holds {_quoted(listed)}, which {are} not among the types that stored models may hold. Where the "
                f"model is made of {them}, write `state: {{allowed: [{', '.join(listed)}]}}` into the configuration"
            )
        if never:
            are, they, them = ("is", "it", "it") if len(never) == 1 else ("are", "they", "them")
            said.append(
                f"it holds {_quoted(never)}, which {are} never read back, whatever is allowed: {they} could run or "
                f"read what is given. Keep {them} out of the model's attributes"
            )
        return ForeignTypeError(". ".join(said))


@lru_cache(maxsize=4096)
def _listed(module: str, name: str) -> Any:
    """Return a class or function that any stored model may hold, else None."""
    if f"{module}.{name}" in EXACT:
        return _resolve(module, name)
    if not _is_listed(module):
        return None
    found = _resolve(module, name)
    return found if isinstance(found, type) and _is_listed(found.__module__) and _is_of_model(found) else None


def _is_listed(module: str) -> bool | None:
    """Return whether a module's classes are always allowed.

    Always means whatever the configuration says; None: the configuration decides.
    """
    root = _root(module)
    if root == "river":
        parts = module.split(".")
        return len(parts) > 1 and parts[1] in RIVER and not RIVER_ASIDE & set(parts)
    if root == "sklearn":
        return not module.startswith(("sklearn.datasets", "sklearn.externals"))
    if root == "attributary_explainers":
        return _is_below(module, EXPLAINERS)
    return None


def _is_of_model(found: type) -> bool:
    module = found.__module__
    if _is_never(module, f"{module}.{found.__qualname__}"):
        return False
    if _root(module) == "sklearn" and not _is_below(module, SKLEARN):
        from sklearn.base import BaseEstimator  # an extra: it is there, for one of its classes is

        return issubclass(found, BaseEstimator)
    return True


def _types_of(make: Callable[[ModelConfig], Any], config: ModelConfig) -> frozenset[str]:
    """Return the names in the pickle of a freshly made model.

    Methods are included.
    """
    try:
        reader = _Recorder(dump_model(make(config)))
        reader.load()
    except Exception:  # noqa: BLE001 - a model that cannot be made or saved names nothing; others say so
        return frozenset()
    return frozenset(reader.names)


class _Nothing:
    """Stands for whatever a pickle names; does nothing, whatever it is told."""

    def __new__(cls, *_: Any, **__: Any) -> _Nothing:
        return object.__new__(cls)

    def __setstate__(self, *_: Any) -> None: ...

    __call__ = __setitem__ = append = extend = add = __setstate__


class _Names(pickle.Unpickler):
    """Unpickler that collects the names in bytes without resolving them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(BytesIO(data))
        self.names: dict[Name, None] = {}

    def find_class(self, module: str, name: str) -> Any:
        self.names[module, name] = None
        return _Nothing


def names_in(data: bytes) -> list[Name]:
    """Return the names in a pickle, in order, without duplicates.

    Where the pickle cannot be read to its end, these are the names before.
    """
    reader = _Names(data)
    try:
        with contextlib.suppress(Exception):  # anybody may have written the bytes
            reader.load()
    finally:
        copyreg.clear_extension_cache()  # it would have `_Nothing` for what has been registered
    return list(reader.names)


class _Recorder(pickle.Unpickler):
    """Unpickler that records the names in freshly made bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(BytesIO(data))
        self.names: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if found is getattr:
            return self._method
        self.names.add(f"{module}.{name}")
        return found

    def _method(self, owner: Any, name: str) -> Any:
        self.names.add(_method_path(owner if isinstance(owner, type) else type(owner), name))
        return getattr(owner, name)


def _method_path(kind: type, name: str) -> str:
    """Return the path of a method by the class that defines it.

    Empty where that class has no function of this name.
    """
    for one in inspect.getmro(kind):
        found = vars(one).get(name)
        if found is not None:
            is_method = isinstance(found, FunctionType | classmethod | staticmethod) or inspect.ismethoddescriptor(
                found
            )
            return f"{one.__module__}.{one.__qualname__}.{name}" if is_method else ""
    return ""


def _resolve(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    *outer, last = name.split(".")
    for part in outer:
        found = getattr(found, part)
        if not isinstance(found, type):
            raise ForeignTypeError(f"it holds {module}.{name!r}, and {part} is no class: no worker has written that")
    return getattr(found, last)


def _named(config: ModelConfig | None) -> Iterator[str]:
    """Yield the paths of the classes and the factory in a configuration.

    The dotted paths in the model's spec, at any depth.
    """
    stack: list[Any] = [config.spec] if config else []
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            yield from (one[key] for key in ("class", "factory") if isinstance(one.get(key), str))
            stack += one.values()
        elif isinstance(one, list):
            stack += one


def _quoted(paths: list[str]) -> str:
    return ", ".join(map(repr, paths))


def _is_in_vain(path: str) -> bool:
    """Return whether a path would be refused even if it were configured.

    Nothing is imported to find out.
    """
    module = path
    while module not in sys.modules:
        module, dot, _ = module.rpartition(".")
        if not dot:
            return _is_never(path, path)
    if _is_never(module, path):
        return True
    found = vars(sys.modules[module]).get(path[len(module) + 1 :])
    return _root(module) in sys.stdlib_module_names and found is not None and not isinstance(found, type)


def _root(path: str) -> str:
    return path.split(".")[0].split(":")[0]


def _is_ruled(root: str) -> bool:
    return root in _RULED or root in sys.stdlib_module_names


def _is_below(module: str, packages: Any) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _is_never(module: str, path: str) -> bool:
    return _root(module) in MODULES_OF_CODE or _is_below(path, NEVER)


PLAIN = Allowlist()
"""Of plain data with numpy's types, in which models are bytes of their own."""


class LateTypes:
    """Types that the dumps of a model have named so far.

    It says as soon as a model is stored, and not at the next start, that a type in it could not be read back.
    """

    def __init__(self) -> None:
        self._named: dict[int, Any] = {}

    def dump(self, model: Any, model_id: str, allowlist: Callable[[], Allowlist]) -> bytes:
        """Return the model's bytes; log an error for newly named refused types."""
        named: dict[int, Any] = {}
        data = dump_model(model, named)
        if not named.keys() <= self._named.keys():
            new = [one for key, one in named.items() if key not in self._named]
            self._named.update(named)  # keeps them, so that no other object gets one of their ids
            try:
                allowlist().check(new)
            except ForeignTypeError as error:
                logger.error("model %s: its state could not be read back at the next start: %s", model_id, error)
        return data
