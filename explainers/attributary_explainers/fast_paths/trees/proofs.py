"""What the fast paths of trees and forests reproduce of River, with the hashes of the sources they were proved for."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from river.ensemble.bagging import (
    ADWINBaggingClassifier,
    BaggingClassifier,
    BaseBagging,
    LeveragingBaggingClassifier,
)
from river.forest.adaptive_random_forest import (
    ARFClassifier,
    ARFRegressor,
    BaseForest,
    BaseTreeClassifier,
    BaseTreeRegressor,
)
from river.linear_model import LinearRegression
from river.optim.losses import Squared
from river.proba import Gaussian
from river.stats import Mean, Var
from river.tree import (
    ExtremelyFastDecisionTreeClassifier,
    HoeffdingAdaptiveTreeClassifier,
    HoeffdingAdaptiveTreeRegressor,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
)
from river.tree import hoeffding_adaptive_tree_classifier as hatc
from river.tree.base import Branch
from river.tree.hoeffding_tree import HoeffdingTree
from river.tree.nodes import hatc_nodes, htc_nodes
from river.tree.nodes.branch import (
    DTBranch,
    NominalBinaryBranch,
    NominalMultiwayBranch,
    NumericBinaryBranch,
    NumericMultiwayBranch,
)
from river.tree.nodes.hatc_nodes import AdaBranchClassifier, AdaLeafClassifier
from river.tree.nodes.hatr_nodes import (
    AdaBranchRegressor,
    AdaLeafRegAdaptive,
    AdaLeafRegMean,
    AdaLeafRegModel,
    AdaLeafRegressor,
)
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive
from river.tree.nodes.htr_nodes import LeafAdaptive, LeafMean, LeafModel
from river.tree.nodes.leaf import HTLeaf
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from ...evaluation.evaluator import proved, unchanged

Hashes = dict[tuple[type | ModuleType, str], str]
Relied = tuple[tuple[type | ModuleType, str, Any], ...]

TREES: Hashes = {
    (DTBranch, "__init__"): "885705b5cd28",
    (NumericBinaryBranch, "branch_no"): "ec79528c807b",
    (NumericBinaryBranch, "most_common_path"): "2e9d13eb8dee",
    (NominalBinaryBranch, "branch_no"): "82b8d40c73c0",
    (NominalBinaryBranch, "most_common_path"): "2e9d13eb8dee",
    (NumericMultiwayBranch, "branch_no"): "cd3bccba0fb8",
    (NumericMultiwayBranch, "most_common_path"): "e2515dae7899",
    (NumericMultiwayBranch, "add_child"): "a8b5e55109b5",
    (NominalMultiwayBranch, "branch_no"): "b0d944f2315c",
    (NominalMultiwayBranch, "most_common_path"): "e2515dae7899",
    (NominalMultiwayBranch, "add_child"): "4ca65efd090f",
    (Branch, "walk"): "33f0076dc03b",
    (Branch, "traverse"): "a12778b7b517",
    (HTLeaf, "activate"): "974fb2f44f37",
    (HTLeaf, "deactivate"): "58a4a78f5a69",
    (HTLeaf, "is_active"): "1b1e97960007",
    (HTLeaf, "learn_one"): "2696811c1389",
    (HTLeaf, "update_splitters"): "4fa9253723ef",
    (HoeffdingTree, "_enforce_size_limit"): "18235d01b7f0",
    (HoeffdingTree, "_estimate_model_size"): "21f1002b6ac9",
}
"""Ways through trees, and what changes leaves that no observation reaches."""

CLASSIFIERS: Hashes = {
    (htc_nodes, "do_naive_bayes_prediction"): "b4a80a3a90a1",
    (htc_nodes, "normalize_values_in_dict"): "f6139208fe1c",
    (hatc_nodes, "do_naive_bayes_prediction"): "b4a80a3a90a1",
    (hatc_nodes, "normalize_values_in_dict"): "f6139208fe1c",
    (LeafMajorityClass, "prediction"): "cfa4d2170daf",
    (LeafMajorityClass, "total_weight"): "78e8006a2f31",
    (LeafMajorityClass, "update_stats"): "f75d6bdc9f38",
    (LeafNaiveBayes, "prediction"): "3c1ce72f00a6",
    (LeafNaiveBayesAdaptive, "prediction"): "8beddf91c4d1",
    (LeafNaiveBayesAdaptive, "learn_one"): "59ac343cf891",
    (AdaLeafClassifier, "prediction"): "2decc322218e",
    (AdaLeafClassifier, "learn_one"): "1c18bdab0984",
    (AdaBranchClassifier, "traverse"): "007520dc9c11",
    (AdaBranchClassifier, "learn_one"): "ab91f5f8b44d",
    (hatc, "add_dict_values"): "88d5c3ceae4c",
    (hatc, "normalize_values_in_dict"): "f6139208fe1c",
    (GaussianSplitter, "cond_log_proba"): "f76f6194524f",
    (GaussianSplitter, "update"): "31c7e52b2f12",
    (NominalSplitterClassif, "cond_proba"): "36d3094d20b4",
    (NominalSplitterClassif, "update"): "6ade17a45388",
    (Gaussian, "__init__"): "d3494305d7b9",
    (Gaussian, "log_pdf"): "a7c067519145",
    (Gaussian, "update"): "ad51dd754f74",
    (Var, "update"): "a12f24d714a1",
    (Mean, "update"): "dce623d61578",
    (Mean, "get"): "5e68f8a99b37",
    (HoeffdingTreeClassifier, "predict_proba_one"): "7a891ebe8d15",
    (HoeffdingTreeClassifier, "learn_one"): "3824c2e9a651",
    (HoeffdingTreeClassifier, "_attempt_to_split"): "27b32d93d56c",
    (HoeffdingAdaptiveTreeClassifier, "predict_proba_one"): "effa3a25060b",
    (HoeffdingAdaptiveTreeClassifier, "learn_one"): "ce6a9eae573e",
    (ExtremelyFastDecisionTreeClassifier, "predict_proba_one"): "7a891ebe8d15",
    (ExtremelyFastDecisionTreeClassifier, "learn_one"): "e7cd9afb15e8",
    (BaseTreeClassifier, "predict_proba_one"): "7a891ebe8d15",
    (BaseTreeClassifier, "learn_one"): "3824c2e9a651",
}
"""Leaves and trees that give probabilities."""

REGRESSORS: Hashes = {
    (LeafMean, "prediction"): "61fe219d1228",
    (LeafMean, "update_stats"): "70d9e98c732d",
    (LeafMean, "total_weight"): "985806ea882a",
    (LeafModel, "prediction"): "ee347d22a33a",
    (LeafModel, "learn_one"): "1df3d6b0945d",
    (LeafAdaptive, "prediction"): "3a4219478739",
    (LeafAdaptive, "learn_one"): "54ade3bf668a",
    (AdaLeafRegressor, "learn_one"): "3d752c41d200",
    (AdaBranchRegressor, "traverse"): "e16ab9b6ac4f",
    (AdaBranchRegressor, "learn_one"): "4e9b214af995",
    (AdaLeafRegMean, "prediction"): "61fe219d1228",
    (AdaLeafRegModel, "prediction"): "ee347d22a33a",
    (AdaLeafRegAdaptive, "prediction"): "3a4219478739",
    (LinearRegression, "predict_one"): "8e7042662804",
    (LinearRegression, "_raw_dot_one"): "544e9b0cba0d",
    (Squared, "mean_func"): "5573b6f68302",
    (Var, "update"): "a12f24d714a1",
    (Mean, "update"): "dce623d61578",
    (Mean, "get"): "5e68f8a99b37",
    (HoeffdingTreeRegressor, "predict_one"): "8a3d3cfc02f0",
    (HoeffdingTreeRegressor, "learn_one"): "44723ba3cbe0",
    (HoeffdingTreeRegressor, "_attempt_to_split"): "44d839eb44d2",
    (HoeffdingAdaptiveTreeRegressor, "predict_one"): "bc8e346daae6",
    (HoeffdingAdaptiveTreeRegressor, "learn_one"): "0ff922587c97",
    (BaseTreeRegressor, "predict_one"): "8a3d3cfc02f0",
    (BaseTreeRegressor, "learn_one"): "44723ba3cbe0",
}
"""Leaves and trees that give numbers."""

FORESTS: Hashes = {
    (BaseForest, "learn_one"): "1e7ceb70a731",
    (ARFClassifier, "predict_proba_one"): "8b08eb466a79",
    (ARFRegressor, "predict_one"): "f45bc4fabf43",
    (BaseBagging, "learn_one"): "114a6bed1142",
    (BaggingClassifier, "predict_proba_one"): "69a1279ebe28",
    (ADWINBaggingClassifier, "predict_proba_one"): "69a1279ebe28",
    (LeveragingBaggingClassifier, "predict_proba_one"): "69a1279ebe28",
}
"""How votes and numbers of trees become those of an ensemble."""

_proved: dict[int, Relied] = {}


def relied_on(*groups: Hashes) -> Relied:
    """All that the groups name, as it is; hashed once, and again when it is no longer what it was.

    Raises
    ------
    NotCoveredError
        See `proved`.
    """
    found: Relied = ()
    for group in groups:
        known = _proved.get(id(group))
        if known is None or not unchanged(known):
            known = _proved[id(group)] = proved(group)
        found += known
    return found
