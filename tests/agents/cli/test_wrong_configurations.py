"""What the command line says of a configuration that is wrong: each fault by its exact line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError

BAYES = "models: {credit: {model: {class: river.naive_bayes.GaussianNB}}}\n"

MODULE = """
from river import tree

def build(depth=None):
    return tree.HoeffdingTreeClassifier(max_depth=depth)
"""


def credit(settings: str) -> str:
    """A configuration of one model with these settings."""
    return f"models: {{credit: {{model: {{class: river.naive_bayes.GaussianNB}}, {settings}}}}}"


# fmt: off
# ruff: noqa: E501
WRONG = [
    ("models: {credit: {model: {class: a.B, factory: 'a:b'}}}", "unknown key 'models.credit.model.factory': give one of class, factory, file, mlflow, served alone"),
    ("kafka: {borkers: [a]}\n" + BAYES, "unknown key 'kafka.borkers': did you mean 'brokers'?"),
    ("alpha: 0.1\n" + BAYES, "unknown key 'alpha': alpha belongs below models.<id>"),
    (credit("explain: {alpha: 0.1}"), "unknown key 'models.credit.explain.alpha': alpha belongs below models.credit"),
    (credit("explainers: {pfi: {n_sample: 4}}"), "unknown key 'models.credit.explainers.pfi.n_sample': did you mean 'n_samples'?"),
    (credit("explainers: {phi: {}}"), "unknown key 'models.credit.explainers.phi': did you mean 'pfi'?"),
    (credit("window: 100"), "unknown key 'models.credit.window': window belongs below models.credit.change"),
    ("models: {credit: {model: {clas: river.naive_bayes.GaussianNB}}}", "models.credit.model should be {class: …, params: …} or {factory: …, params: …} or {file: …, sha256: …} or {mlflow: …, poll: …} or {served: …, protocol: …} or a list of {class: …, params: …}"),
    ("models: {credit: {model: river.naive_bayes.GaussianNB}}", "models.credit.model should be {class: …, params: …} or {factory: …, params: …} or {file: …, sha256: …} or {mlflow: …, poll: …} or {served: …, protocol: …} or a list of {class: …, params: …}, got 'river.naive_bayes.GaussianNB': write {class: river.naive_bayes.GaussianNB}"),
    ("models: {credit: {model: 'mine:build'}}", "models.credit.model should be {class: …, params: …} or {factory: …, params: …} or {file: …, sha256: …} or {mlflow: …, poll: …} or {served: …, protocol: …} or a list of {class: …, params: …}, got 'mine:build': write {factory: mine:build}"),
    ("models: {credit: {model: [river.preprocessing.StandardScaler, {class: river.naive_bayes.GaussianNB}]}}", "models.credit.model.0 should be a mapping with keys such as class, params, got 'river.preprocessing.StandardScaler'"),
    ("models: {credit: {model: {class: river.naive_bayes.GaussianNB, parms: {}}}}", "unknown key 'models.credit.model.parms': did you mean 'params'?"),
    ("models: {credit: {model: {factory: mine.build}}}", "models.credit.model.factory: string should match pattern '^[^:\\s]+:[^:\\s]+$', got 'mine.build' (module:function, installed, beside this file or in the working directory)"),
    ("models: {credit: {}}", "models.credit: give either `model` ({class: …, params: …}, a list of such steps, {factory: module:function, params: …}, {file: …, sha256: …}, {mlflow: models:/NAME@ALIAS} or {served: http://…}) or, in short, `factory`"),
    ("models: {credit: river.naive_bayes.GaussianNB}", "models.credit should be a mapping with keys such as version, learn, missing, got 'river.naive_bayes.GaussianNB'"),
    ("models: [credit]", "models should be a mapping, got ['credit']: write {credit: …}"),
    ("kafka: {group: a}", "models is missing: name a model, such as models: {credit: {model: {class: river.forest.ARFClassifier}}}"),
    ("kafka:\n\tgroup: a\n" + BAYES, "attributary.yaml is not YAML: a tab in line 2, column 1: YAML indents with blanks, so replace each tab by two"),
    ("artefacts: {directory: \"C:\\models\"}\n" + BAYES, "attributary.yaml is not YAML: a backslash in double quotes in line 1, column 28: write the text without quotes, or in single quotes"),
    ("kafka: {brokers: localhost:9092}\n" + BAYES, "kafka.brokers should be a list, got 'localhost:9092': write [localhost:9092]"),
    ("kafka: {partitions: '4.5'}\n" + BAYES, "kafka.partitions should be a valid integer, got '4.5'"),
    ("kafka: {partitions: '4 partitions'}\n" + BAYES, "kafka.partitions should be a valid integer, got '4 partitions'"),
    (credit("alpha: '0,002'"), "models.credit.alpha should be a valid number, got '0,002': write 0.002"),
    (credit("version: 2"), "models.credit.version should be text, got 2: write 2 in quotes"),
    (credit("learn: perhaps"), "models.credit.learn should be true or false, got 'perhaps'"),
    (credit("alpha: 2"), "models.credit.alpha should be less than or equal to 1, got 2"),
    (credit("loss: bier"), "models.credit.loss: expected one of absolute, brier, cross_entropy, expected_zero_one, neg_score, score, squared, zero_one, got 'bier': did you mean 'brier'?"),
    (credit("missing: [skip]"), "models.credit.missing should be absent or skip or value or a mapping, got ['skip']"),
    (credit("missing: skp"), "models.credit.missing should be 'absent', 'skip' or 'value', got 'skp': did you mean 'skip'?"),
    (credit("bounds: {age: 3}"), "models.credit.bounds.age should be a list, got 3"),
    (credit("features: [age]"), "models.credit.features should be a mapping, got ['age']: write {age: …}"),
    (credit("features: {age: numbr}"), "models.credit.features.age should be 'any', 'boolean', 'category' or 'number', got 'numbr': did you mean 'number'?"),
    (credit("features: {age: number}, bounds: {aeg: [0, 1]}"), "models.credit: bounds: 'aeg' is not among `features`: did you mean 'age'?"),
    (credit("features: {age: number}, groups: {all: [age, Aeg]}"), "models.credit: groups.all: 'Aeg' is not among `features`: did you mean 'age'?"),
    (credit("change: {detector: adwn}"), "models.credit.change.detector should be 'adwin', 'ddm', 'eddm', 'fhddm', 'hddm_a', 'hddm_w', 'kswin' or 'page_hinkley', got 'adwn': did you mean 'adwin'?"),
    (credit("change: {signal: los}"), "models.credit.change.signal should be 'zero_one' or 'loss', got 'los': did you mean 'loss'?"),
    (credit("quality: accuracy"), "models.credit.quality should be a list, got 'accuracy': write [accuracy]"),
    (credit("quality: [precision_at_1]"), "models.credit.quality: quality must be precision_at_1%, of so many per cent with the highest scores, or a probability below 1, as precision_at_0.9, got 'precision_at_1'"),
    (credit("quality: [acuracy]"), "models.credit.quality: quality must be made of accuracy, balanced_accuracy, cohen_kappa, cross_entropy, f1, jaccard, macro_f1, macro_jaccard, macro_precision, macro_recall, mae, mape, mcc, micro_f1, micro_jaccard, micro_precision, micro_recall, mse, pr_auc, precision, r2, recall, rmse, roc_auc, smape, weighted_f1, weighted_jaccard, weighted_precision, weighted_recall, and precision or recall as precision_at_1% or recall_at_0.9, got 'acuracy': did you mean 'accuracy'?"),
    ("log: {level: info}\n" + BAYES, "log.level should be 'DEBUG', 'INFO', 'WARNING' or 'ERROR', got 'info': did you mean 'INFO'?"),
    ("models: {credit: {model: {class: river.naive_bayes.GaussianNB}}\nkafka: {}", "attributary.yaml is not YAML: a brace or bracket that is not closed in line 2, column 1: close it, or give each key a line of its own"),
    ("models: {credit: {model: {class: river.naive_bayes.GaussianNB}}}\n alpha: 3", "attributary.yaml is not YAML: a line that is indented otherwise in line 2, column 2: keys of one section are indented alike"),
    ("web: 6066\n" + BAYES, "web should be a mapping with keys such as host, port, stuck_after_s, got 6066"),
    ("defaults: {model: {class: river.naive_bayes.GaussianNB}}\n" + BAYES, "unknown key 'defaults.model': model belongs below models.<id>"),
    (credit("explainers: [pfi, sage]"), "models.credit.explainers should be a mapping with keys such as pfi, sage, mdi, got ['pfi', 'sage']: write {pfi: …, sage: …}"),
    (credit("params: {n_models: 3}"), "unknown key 'models.credit.params': params belongs below models.credit.model"),
    ("models: {credit: {class: river.naive_bayes.GaussianNB}}", "unknown key 'models.credit.class': did you mean 'loss'?"),
    (credit("explainers: {sage: {n_samples: 2, alpa: 0.1}}"), "unknown key 'models.credit.explainers.sage.alpa': did you mean 'alpha'?"),
    ("models: {credit: {model: {class: river.forest.ARFClasifier}}}", "models.credit: cannot import 'river.forest.ARFClasifier': module 'river.forest' has no attribute 'ARFClasifier': did you mean 'river.forest.ARFClassifier'?"),
    ("models: {credit: {model: {class: river.trees.HoeffdingTreeClasifier}}}", "models.credit: cannot import 'river.trees.HoeffdingTreeClasifier': No module named 'river.trees': did you mean 'river.tree.HoeffdingTreeClassifier'?"),
    ("models: {credit: {model: {class: ARFClassifier}}}", "models.credit: cannot import 'ARFClassifier': its module is not named: did you mean 'river.forest.ARFClassifier'?"),
    ("models: {credit: {model: {class: river.ensemble.ARFClassifier}}}", "models.credit: cannot import 'river.ensemble.ARFClassifier': module 'river.ensemble' has no attribute 'ARFClassifier': did you mean 'river.forest.ARFClassifier'?"),
    ("models: {credit: {model: {class: sklear.linear_model.SGDClassifier}}}", "models.credit: cannot import 'sklear.linear_model.SGDClassifier': No module named 'sklear': install the package of sklear, or put sklear.py beside the configuration, into the working directory or on PYTHONPATH"),
    ("models: {credit: {model: {class: river.forest.ARFClassifier, params: {n_model: 3}}}}", "models.credit: river.forest.ARFClassifier has no parameter 'n_model': did you mean 'n_models'?"),
    ("models: {credit: {model: {class: river.forest.ARFClassifier, params: {n_models: '3'}}}}", "models.credit: river.forest.ARFClassifier: params.n_models is '3', a text: write 3 without quotes"),
    ("models: {credit: {model: {factory: 'mine:build'}}}", "models.credit: cannot import 'mine:build': No module named 'mine': install the package of mine, or put mine.py beside the configuration, into the working directory or on PYTHONPATH"),
    ("models: {credit: {model: {factory: 'mymodels:bild'}}}", "models.credit: cannot import 'mymodels:bild': module 'mymodels' has no attribute 'bild': did you mean 'mymodels:build'?"),
    ("models: {credit: {model: {factory: 'mymodels:build', params: {dept: 3}}}}", "models.credit: mymodels:build has no parameter 'dept': did you mean 'depth'?"),
]
# fmt: on


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a module and a file of observations."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mymodels", raising=False)
    (tmp_path / "mymodels.py").write_text(MODULE)
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n")
    return tmp_path


@pytest.mark.parametrize(("yaml", "line"), WRONG)
def test_a_fault_is_one_line_that_says_what_to_write(yaml: str, line: str, folder: Path) -> None:
    (folder / "attributary.yaml").write_text(yaml)
    result = CliRunner().invoke(cli, ["replay", "rows.csv", "-c", "attributary.yaml"])
    assert isinstance(result.exception, AttributaryError)
    assert str(result.exception).removeprefix("attributary.yaml: ") == line
