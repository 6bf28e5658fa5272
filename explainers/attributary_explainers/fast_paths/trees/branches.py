"""Branches and trees by exact type: how each kind of branch splits, and which trees change one leaf at a time."""

from __future__ import annotations

from river.forest.adaptive_random_forest import BaseTreeClassifier, BaseTreeRegressor
from river.tree import HoeffdingAdaptiveTreeClassifier, HoeffdingTreeClassifier, HoeffdingTreeRegressor
from river.tree.nodes.branch import (
    NominalBinaryBranch,
    NominalMultiwayBranch,
    NumericBinaryBranch,
    NumericMultiwayBranch,
)
from river.tree.nodes.efdtc_nodes import (
    EFDTNominalBinaryBranch,
    EFDTNominalMultiwayBranch,
    EFDTNumericBinaryBranch,
    EFDTNumericMultiwayBranch,
)
from river.tree.nodes.hatc_nodes import (
    AdaNomBinaryBranchClass,
    AdaNomMultiwayBranchClass,
    AdaNumBinaryBranchClass,
    AdaNumMultiwayBranchClass,
)
from river.tree.nodes.hatr_nodes import (
    AdaNomBinaryBranchReg,
    AdaNomMultiwayBranchReg,
    AdaNumBinaryBranchReg,
    AdaNumMultiwayBranchReg,
)

from .routes import NOMINAL, NOMINAL_MULTIWAY, NUMERIC, NUMERIC_MULTIWAY

KINDS: dict[type, int] = {
    NumericBinaryBranch: NUMERIC,
    EFDTNumericBinaryBranch: NUMERIC,
    AdaNumBinaryBranchClass: NUMERIC,
    AdaNumBinaryBranchReg: NUMERIC,
    NominalBinaryBranch: NOMINAL,
    EFDTNominalBinaryBranch: NOMINAL,
    AdaNomBinaryBranchClass: NOMINAL,
    AdaNomBinaryBranchReg: NOMINAL,
    NumericMultiwayBranch: NUMERIC_MULTIWAY,
    EFDTNumericMultiwayBranch: NUMERIC_MULTIWAY,
    AdaNumMultiwayBranchClass: NUMERIC_MULTIWAY,
    AdaNumMultiwayBranchReg: NUMERIC_MULTIWAY,
    NominalMultiwayBranch: NOMINAL_MULTIWAY,
    EFDTNominalMultiwayBranch: NOMINAL_MULTIWAY,
    AdaNomMultiwayBranchClass: NOMINAL_MULTIWAY,
    AdaNomMultiwayBranchReg: NOMINAL_MULTIWAY,
}
"""Branches by exact type."""

STEADY = (HoeffdingTreeClassifier, HoeffdingTreeRegressor, BaseTreeClassifier, BaseTreeRegressor)
"""Trees in which an observation changes one leaf, which learns its weight, and what may become of that leaf."""

ADAPTIVE = (HoeffdingAdaptiveTreeClassifier,)
"""Trees of which branches and leaves count the observations that come to them."""
