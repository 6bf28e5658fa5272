"""Trained models of other libraries, which predict in batches.

None of the libraries is imported before a model of it is there.
"""

from .base import TrainedModel
from .boosters import BoosterModel, is_booster
from .onnx import OnnxModel
from .torch import TorchModel, is_module

__all__ = ["BoosterModel", "OnnxModel", "TorchModel", "TrainedModel", "is_booster", "is_module"]
