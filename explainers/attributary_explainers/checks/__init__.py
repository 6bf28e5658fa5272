"""Checks that every explainer has to pass, including your own.

With pytest:

    @pytest.mark.parametrize("check", yield_checks(lambda model, seed: MyExplainer(model, seed=seed)), ids=str)
    def test_my_explainer(check):
        check()

Without it: `print(run_checks(lambda model, seed: MyExplainer(model, seed=seed)))`.
"""

from .suite import Check, CheckFailure, CheckReport, CheckResult, run_checks, yield_checks

__all__ = ["Check", "CheckFailure", "CheckReport", "CheckResult", "run_checks", "yield_checks"]
