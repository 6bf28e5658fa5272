"""Names what the dashboard of one model shows: labels of the chosen series, and the unit of importances and losses."""

from __future__ import annotations

OF = {"model_id": "$model_id"}
OF_EXPLAINER = {**OF, "explainer": "$explainer"}
OF_FEATURE = {**OF_EXPLAINER, "feature": "~$feature"}
UNIT = "$loss, in $loss_unit, at most $loss_largest"
"""What importances and losses are in; the labels are those of `model_info`."""
