"""What mean decrease in impurity and partial dependence cost in a worker, beside learning and iPFI.

    python -m benchmarks.beside                   # a minute or two
    python -m benchmarks.beside -n 6000 --curves 10

Each row is a model on Agrawal's credit data that is predicted, explained and taught through the worker's own function,
`prequential`, in one process, with the explainers of its column and nothing else: no change explanation, no watch of
the loss, no metrics. *+ mdi* and *+ pdp* are by how much longer an observation takes with them than with iPFI alone, as
processor time over the second half of the stream, and what part of learning that is; a checkpoint's bytes are those of
the whole state. Times are of this machine at this moment: read the ratios.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from rich.console import Console
from rich.table import Table
from river.datasets import synth

from attributary_agents.config.models import ModelConfig
from attributary_agents.models.model_state import new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.state.codec import encode_state
from attributary_topics import Observation, Source

MODELS: dict[str, Any] = {
    "Hoeffding tree": {"class": "river.tree.HoeffdingTreeClassifier"},
    "ARF of 10": {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}},
}
OFF: dict[str, Any] = {"change": None, "watch_loss": False, "quality": []}

out = Console(width=110)


def measure(model: Any, explainers: dict[str, Any], n: int, *, learns_only: bool = False) -> tuple[float, int]:
    """Return microseconds of processor time per observation over the second half of the stream, and bytes of state."""
    settings = {"model": model, "alpha": 0.002, "explainers": explainers, "publish": {"every": 500}, **OFF}
    state = new_state("credit", ModelConfig.model_validate(settings))
    began = 0.0
    for i, (x, y) in enumerate(synth.Agrawal(classification_function=1, seed=1).take(n)):
        if i == n // 2:
            began = time.process_time()
        if learns_only:
            state.model.learn_one(x, y)
        else:
            prequential(state, Observation("credit", x, y), Source("t", 0, i), i)
    return (time.process_time() - began) / (n - n // 2) * 1e6, len(encode_state(state))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=3000, help="observations")
    parser.add_argument("--curves", type=int, default=5, help="features whose partial dependence is followed")
    given = parser.parse_args()
    pfi: dict[str, Any] = {"pfi": {}}
    pdp = {**pfi, "pdp": {"max_features": given.curves}}
    table = Table(title=f"Microseconds per observation; {given.n} of Agrawal's, {given.curves} curves of 20 points")
    for head in ("model", "learn", "iPFI", "+ mdi", "of learning", "+ pdp", "of learning", "state, kB", "with pdp"):
        table.add_column(head, justify="left" if head == "model" else "right")
    for name, model in MODELS.items():
        learn, _ = measure(model, {}, given.n, learns_only=True)
        alone, size = measure(model, pfi, given.n)
        with_mdi, _ = measure(model, {**pfi, "mdi": {}}, given.n)
        with_pdp, larger = measure(model, pdp, given.n)
        more = [with_mdi - alone, with_pdp - alone]
        parts = [cell for one in more for cell in (f"{one:.0f}", f"{100 * one / learn:.0f} %")]
        table.add_row(name, f"{learn:.0f}", f"{alone:.0f}", *parts, f"{size / 1000:.0f}", f"{larger / 1000:.0f}")
    out.print(table)


if __name__ == "__main__":
    main()
