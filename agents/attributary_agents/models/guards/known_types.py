"""Lists what stored models may hold without being asked: what the pickles of River, numpy and scikit-learn name.

A class may be made with any arguments and given any attributes; a function may be called with any arguments. So whole
packages are listed only where no class opens a file, starts a process or imports by name, and functions one by one.
"""

from __future__ import annotations


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

EXPLAINERS = ("attributary_explainers.change", "attributary_explainers.imputers", "attributary_explainers.models")
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
