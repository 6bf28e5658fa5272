"""Draw the dashboards' panels with the data of five minutes of two real workers.

python -m benchmarks.dashboards                     # pictures into docs/images/dashboards
python -m benchmarks.dashboards --folder data       # leaves Prometheus' data there; with --again draws them only
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

from support.monitoring import Prometheus

from attributary_agents.monitoring.dashboards import dashboards

from .draw import draw
from .grafana import Session
from .live import SCRAPE_S, run

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images" / "dashboards"
MODEL = "credit"
"""The model that the dashboard of one model shows: it changes."""


def main() -> int:
    """Run the workers, ask the dashboards' queries, write the pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboards", description=__doc__.split("\n\n")[0])
    parser.add_argument("--broker", default="kafka", help="embedded, kafka or HOST:PORT (kafka)")
    parser.add_argument("--folder", type=Path, help="for logs and Prometheus' data (a temporary one)")
    parser.add_argument("--again", action="store_true", help="draw the data in --folder, run nothing")
    parser.add_argument("--out", type=Path, default=PICTURES, help="for the pictures (docs/images/dashboards)")
    options = parser.parse_args()
    if options.again and options.folder is None:
        parser.error("--again needs --folder")
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        if not options.again:
            run(folder, options.broker)
        seen = json.loads((folder / "range.json").read_text())
        prometheus = Prometheus(folder, {"global": {"scrape_interval": "1m"}})
        prometheus.data = Path(seen["data"])
        stack.enter_context(prometheus)
        options.out.mkdir(parents=True, exist_ok=True)
        for text in dashboards().values():
            dashboard = json.loads(text)
            chosen = {"model_id": MODEL, "before": "30s"} if dashboard["uid"] == "attributary-model" else {}
            for path in draw(Session(prometheus, dashboard, seen["start"], seen["end"], SCRAPE_S, chosen), options.out):
                print(f"{path} {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
