"""What the packages promise is there, and nothing public is left out of the promise."""

import importlib
import inspect
import pkgutil

import pytest

import attributary_explainers
import attributary_topics

INTERNAL = {
    "batch.contributions": "increments by observation inside the batch methods",
    "batch.mixing": "rows of several observations as arrays inside the batch methods",
    "batch.slices": "parts of an explanation inside ChangeExplainer",
    "change.holdout": "the observations that ChangeExplainer compares on",
    "change.measure": "how ChangeExplainer takes importances",
    "change.rows": "the observations that ChangeExplainer keeps",
    "change.state": "the state of ChangeExplainer",
    "change.watch": "how ChangeExplainer feeds its detector",
    "checks": "a package of its own, with a page of its own",
    "core": "what is computed for each observation, by the classes that are offered",
    "evaluation": "how rows become arrays",
    "fast_paths": "evaluators, which the registry finds by the type of a model",
    "incidents.findings": "what watches report, in one form, inside Incidents",
    "incremental.dependence": "the parts of IncrementalPDP",
    "incremental.doubt": "the doubt of removed features inside iSAGE",
    "incremental.feature_sampling": "which features PFI evaluates at an observation",
    "incremental.slowness": "warnings of the explainers by removal",
    "removal.hoeffding": "the conditional sampler's trees",
    "removal.misfit": "what draws given other features miss",
    "removal.sampler": "the rows and weights of observational removal",
    "removal.statistics": "what the sampler of observational removal learns",
    "removal.strata": "the order of the rows inside the imputers",
    "leaves": "forests as arrays inside the batch methods",
    "loss_shift.holdout": "how LossMonitor compares what comes with its hold-out",
    "loss_shift.ladder": "the tests of LossMonitor",
    "loss_shift.law": "what the tests of a frozen classifier rest on",
    "loss_shift.reliability": "the route of LossMonitor for a frozen classifier",
    "loss_shift.route": "the route of LossMonitor",
    "loss_shift.rows": "the observations that LossMonitor keeps",
    "loss_shift.signals": "what LossMonitor reads of an observation",
    "loss_shift.tables": "the tests of LossMonitor of a frozen classifier",
    "losses.watch": "a warning of the explainers by removal",
    "monitor": "what Monitor, which is offered by its name, is made of, and a worker, too",
    "notebook": "how objects are shown, cloned and pickled: what they inherit",
    "plots.parts": "what plots need to know of what they draw",
    "quality.counts": "what Quality counts of classes",
    "quality.tally": "a run of observations inside Quality",
    "shifts.blocks": "the block that ImportanceShift fills",
    "shifts.reference": "what ImportanceShift compares with",
    "shifts.watch": "the evidence of ImportanceShift",
    "snapshots": "how objects become plain data",
    "values": "how numbers are kept and stored",
}
"""Modules and packages whose classes nobody is promised."""

NOT_EXPORTED = {
    "RowByRow": "the model itself, asked for the rows of an observation",
    "EvaluatedPredictions": "what a fast path answered, inside the explainers by removal",
    "ModelRaisedError": "what a model raised, which the explainers by removal count",
    "SageIncrements": "a walk inside one step of iSAGE",
    "MarginalPrediction": "the mean prediction inside one step of iSAGE",
    "Request": "what explainers ask of imputers",
    "RowsRequest": "rows of an imputer of one's own, as explainers ask for them",
    "ReplacedRowsRequest": "what IncrementalPFI asks of an imputer",
    "CoalitionsRequest": "what IncrementalSAGE asks of an imputer",
    "StoredRows": "the reservoir's rows as an array",
    "DrawnRequest": "the rows that ShiftedImputer has drawn",
    "Seating": "the features of each player, inside ShiftedImputer",
    "MetricOfARow": "what as_loss makes of a metric of River",
    "DetectorFunction": "what model_function returns for detectors: known by its protocol",
    "Frames": "how rows become data frames of an estimator",
    "Inputs": "what an ONNX graph takes, inside OnnxModel",
    "Outputs": "what an ONNX graph gives, inside OnnxModel",
    "DataTable": "a model on a data set inside the batch methods",
    "BatchFunction": "what model_function returns for models of many rows: known by its protocol",
    "EstimatorFunction": "what model_function returns for estimators: known by its protocol",
    "Mixing": "rows made of other rows, inside the batch methods",
    "CompatFunction": "what model_function returns for River's wrappers: known by its protocol",
    "QualityMetric": "a row of the table of metrics inside Quality",
    "OrderNumbers": "the order of a column's values inside the stored rows",
    "Course": "what makes a trend or a season of changes inside ChangeExplainer",
    "Mean": "two numbers of an Effect, by their names",
    "PlayersByGroup": "what is removed at a time, inside the explainers by removal",
    "Draws": "what an imputer of one's own returns: a named tuple",
    "At": "which observations count as positive, inside Quality",
    "Predictions": "what a model answered, inside the explainers by removal",
    "GivenPredictions": "what a model answered, inside the explainers by removal",
}


@pytest.mark.parametrize("package", [attributary_explainers, attributary_topics])
def test_every_promised_name_exists_once_and_in_order(package):
    assert sorted(set(package.__all__)) == sorted(package.__all__)
    missing = [name for name in package.__all__ if not hasattr(package, name)]
    assert missing == []


def public_classes(package):
    """Each public class with its module, named below the package."""
    found = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if value.__module__ == module.name and not name.startswith("_"):
                found[name] = module.name.removeprefix(f"{package.__name__}.")
    return found


def is_internal(module):
    return any(module == inner or module.startswith(f"{inner}.") for inner in INTERNAL)


@pytest.mark.parametrize("package", [attributary_explainers, attributary_topics])
def test_every_public_class_is_promised_or_left_out_for_a_reason(package):
    found = public_classes(package)
    assert len(found) >= 10
    left_out = {name for name, module in found.items() if name not in package.__all__ and not is_internal(module)}
    assert left_out - set(NOT_EXPORTED) == set()


def test_what_is_left_out_for_a_reason_is_there():
    found = public_classes(attributary_explainers)
    assert set(NOT_EXPORTED) <= set(found)
    for inner in INTERNAL:
        assert any(module == inner or module.startswith(f"{inner}.") for module in found.values()), inner
    assert not (set(NOT_EXPORTED) & set(attributary_explainers.__all__))
