"""What the page of `attributary serve` costs: until its first chart, for the server's processor, in bytes and memory.

    python -m benchmarks.serve                                  # 100 models, 50 features, 10 000 points each
    python -m benchmarks.serve --models 5 --points 300          # half a minute

Fills two stores, one with a tenth of the points, and starts the real server on each; its brokers are away, so it shows
what the store has. Chromium opens the fleet and a model of both in turn. *First chart* is from the navigation until a
chart is painted: cold with an empty cache, warm with the files of the page cached; the median of several. *CPU* is
what the server uses for one request. Sizes are of bodies, as sent (gzip) and raw. The points of a model are within a
day, the page's own window. Times hold for this machine as busy as it is: compare what is in one run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import httpx
import numpy as np
import yaml
from playwright.sync_api import Browser, BrowserContext, Page, Response, sync_playwright
from rich.console import Console
from rich.progress import Progress

from attributary_agents.demo.local_broker import free_port
from attributary_agents.demo.processes import start_child, stop_child
from attributary_agents.serve.store.rows import Arrived
from attributary_agents.serve.store.store import Store
from attributary_explainers.ranking import ranks, shares
from attributary_topics import FeatureImportance, ImportanceEvent, QualityFigure, Source, decode_json, encode_json
from benchmarks.process import processor_s, resident

AT_ONCE = 2000
"""Records of one transaction, as the server takes them."""


@dataclass(frozen=True)
class Size:
    """How much a store has: of each model so many events, of so many features, so far apart, from a time on."""

    models: int
    features: int
    points: int
    begin_ms: int
    step_ms: int

    @property
    def events(self) -> int:
        """All events."""
        return self.models * self.points

    @property
    def last_ms(self) -> int:
        """Time of the last event of each model."""
        return self.begin_ms + (self.points - 1) * self.step_ms

    def __str__(self) -> str:
        return f"{self.models} models x {self.features} features x {self.points:,} events"


@dataclass(frozen=True)
class Filled:
    """What filling took: seconds by the clock, and the bytes of the file after it."""

    wall_s: float
    bytes: int


def model_id(at: int) -> str:
    """Return the id of a model by its place."""
    return f"model-{at:03}"


def fill(store: Store, size: Size) -> Filled:
    """Fill a store with the events of all models, as when a long past is read."""
    coming = arrivals(events(size.features, min(500, size.points)), size)
    began = time.perf_counter()
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("filling", total=size.events)
        while batch := list(islice(coming, AT_ONCE)):
            store.take(batch, live=False)
            bar.advance(task, len(batch))
    return Filled(time.perf_counter() - began, store.size())


def unbounded(path: Path) -> Store:
    """Open a store that drops nothing."""
    return Store(path, max_bytes=10**11, max_age_s=1e9)


def events(n_features: int, n: int) -> list[bytes]:
    """Return some values of importance events, as they are on the wire; importances wander."""
    draw = np.random.default_rng(1)
    walk = draw.normal(size=(n, n_features)).cumsum(axis=0) / 50.0
    made = []
    for row in walk.tolist():
        importance = {f"feature_{at:02}": value for at, value in enumerate(row)}
        share, rank = shares(importance), ranks(importance)
        features = {
            name: FeatureImportance(importance[name], 0.01, 0.02, share[name], rank[name])
            for name in sorted(importance, key=lambda name: rank[name])
        }
        made.append(
            encode_json(
                ImportanceEvent(
                    model_id="model",
                    model_version="1",
                    explainer="pfi",
                    removal="interventional",
                    loss="cross-entropy",
                    loss_unit="nats",
                    loss_largest=None,
                    alpha=0.002,
                    observation=1,
                    n_observations=1000,
                    model_loss=0.31,
                    baseline_loss=0.68,
                    quality={"accuracy": QualityFigure(0.9, 0.88)},
                    discrepancy=0.1,
                    shift=0.04,
                    ndcg=0.99,
                    reference_id="2000",
                    trigger="interval",
                    stale=False,
                    features=features,
                    source=Source("observations", 0, 1),
                )
            )
        )
    return made


def arrivals(values: list[bytes], size: Size) -> Iterator[Arrived]:
    """Yield events as a long past has them: of all models in turn, decoded one by one."""
    for point in range(size.points):
        for model in range(size.models):
            event = decode_json(values[(point + 7 * model) % len(values)])
            event["model_id"], event["observation"] = model_id(model), (point + 1) * 500
            at = size.begin_ms + point * size.step_ms
            yield Arrived("importance", 0, point, f"{model}:o:0:{point}", model_id(model), at, event)


_NO_BROKER = "127.0.0.1:1"
_STARTS_WITHIN_S = 180.0


class Served:
    """A server that answers.

    Parameters
    ----------
    pid
        Its process.
    address
        Where it answers, without a slash at the end.
    start_s
        Seconds from the start of the process until it did.
    """

    def __init__(self, pid: int, address: str, start_s: float) -> None:
        self.address, self.start_s = address, start_s
        self.pid = pid

    def has_loaded(self, *libraries: str) -> list[str]:
        """Return which of the libraries have compiled parts that the process has mapped."""
        mapped = Path(f"/proc/{self.pid}/maps").read_text()
        return [name for name in libraries if f"/site-packages/{name}/" in mapped]


@contextmanager
def served(store: Path, models: list[str]) -> Iterator[Served]:
    """Start a server on a store, wait until it answers, and end it."""
    folder, port = store.parent, free_port()
    model = {"model": {"class": "river.linear_model.LogisticRegression"}, "explainers": {"pfi": {}}}
    config = folder / f"{store.stem}.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "kafka": {"brokers": [_NO_BROKER]},
                "models": dict.fromkeys(models, model),
                "serve": {"max_bytes": "1TB", "max_age": "3000d"},
            }
        )
    )
    log = folder / f"{store.stem}.log"
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "attributary_agents.cli",
        "serve",
        "--config",
        config,
        "--port",
        str(port),
    ]
    began = time.monotonic()
    child = start_child([*argv, "--store", store], log=log)
    try:
        address = f"http://127.0.0.1:{port}"
        while not _answers(address):
            if child.poll() is not None or time.monotonic() - began > _STARTS_WITHIN_S:
                raise SystemExit(f"the server does not answer:\n{log.read_text()}")
            time.sleep(0.05)
        yield Served(child.pid, address, time.monotonic() - began)
    finally:
        stop_child(child, 30.0)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/livez").status_code == 200
    except httpx.HTTPError:
        return False


SPAN_MS = 77_000_000
"""Between the first and the last event of a model: 21 hours."""

FEWER = 10
HEAVY = ("scipy", "river", "sklearn", "pandas", "faust")
_WITHIN_MS = 120_000

# Notes when a chart has been painted: two frames after it was added.
_WATCH = """
const look = new MutationObserver(() => {
  if (!document.querySelector(".plot canvas, svg.spark")) return;
  look.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.firstChart = performance.now(); }));
});
look.observe(document, { childList: true, subtree: true });
"""


def chromium() -> str:
    """Return where Chromium is.

    Raises
    ------
    SystemExit
        It is nowhere.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise SystemExit("there is no Chromium here: install it (Debian: chromium)")
    return found


def first_chart_ms(page: Page, address: str) -> float:
    """Open an address; return the milliseconds until its first chart was painted."""
    page.goto(address)
    page.wait_for_function("() => window.firstChart !== undefined", timeout=_WITHIN_MS)
    return float(page.evaluate("window.firstChart"))


def opened(browser: Browser) -> tuple[BrowserContext, Page]:
    """Return a page whose cache is empty."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.add_init_script(_WATCH)
    return context, context.new_page()


def visited(browser: Browser, address: str) -> tuple[float, float]:
    """Return the milliseconds until the first chart, cold and then warm."""
    context, page = opened(browser)
    cold = first_chart_ms(page, address)
    warm = first_chart_ms(page, address)
    context.close()
    return cold, warm


def weights(browser: Browser, address: str) -> dict[str, int]:
    """Return the bytes that a page is sent, by kind, with an empty cache."""
    context, page = opened(browser)
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    first_chart_ms(page, address)
    page.wait_for_function("() => !document.querySelector('[aria-busy=\"true\"]')", timeout=_WITHIN_MS)
    found: Counter[str] = Counter()
    for answer in answers:
        if not answer.url.endswith("/stream"):
            kind = answer.headers.get("content-type", "").partition(";")[0].rpartition("/")[2]
            found[kind] += answer.request.sizes()["responseBodySize"]
    context.close()
    return dict(found.most_common())


def cpu_ms(server: Served, path: str, tries: int) -> float:
    """Return the milliseconds of the server's processor that a request takes."""
    with httpx.Client(base_url=server.address, timeout=120.0) as client:
        client.get(path).raise_for_status()
        began = processor_s(server.pid)
        for _ in range(tries):
            client.get(path).raise_for_status()
        return (processor_s(server.pid) - began) / tries * 1000.0


def sizes(server: Served, path: str) -> tuple[int, int]:
    """Return the bytes of an answer, raw and as a browser gets it."""
    with httpx.stream("GET", server.address + path, headers={"Accept-Encoding": "gzip"}, timeout=120.0) as answer:
        sent = sum(len(part) for part in answer.iter_raw())
        assert answer.headers.get("content-encoding") == "gzip", "the answer is not compressed"
    return len(httpx.get(server.address + path, headers={"Accept-Encoding": "identity"}, timeout=120.0).content), sent


def requests_of(size: Size) -> dict[str, str]:
    """Return what is asked for, by name."""
    model = f"/api/v1/models/{model_id(size.models // 2)}"
    lately = max(size.begin_ms, size.last_ms - 999 * size.step_ms)
    return {
        "fleet": "/api/v1/models",
        "model": model,
        "series over all points": f"{model}/importances",
        "series over the last 1000": f"{model}/importances?from={lately}",
    }


def measured(size: Size, smaller: Size, folder: Path, tries: int) -> Iterator[tuple[str, str]]:
    """Fill, serve and look; yield each figure as soon as it is known."""
    filled = [_filled(folder / "all.sqlite", size), _filled(folder / "fewer.sqlite", smaller)]
    yield "filling it, by the clock", f"{filled[0].wall_s:.0f} s; with a tenth of the points {filled[1].wall_s:.0f} s"
    yield "the store", f"{filled[0].bytes / 1e6:,.0f} MB, {filled[0].bytes / size.events:,.0f} bytes an event"
    models = [model_id(at) for at in range(size.models)]
    with ExitStack() as stack:
        server, small = (stack.enter_context(served(folder / name, models)) for name in ("all.sqlite", "fewer.sqlite"))
        yield "the server answers after", f"{server.start_s:.1f} s"
        yield "memory at the start", _memory(server)
        yield "large libraries in it", ", ".join(server.has_loaded(*HEAVY)) or "none"
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        stack.callback(browser.close)
        for name, path in (("fleet", "/"), (f"a model of {size.features} features", f"/models/{models[-1]}")):
            both = [
                (visited(browser, server.address + path), visited(browser, small.address + path)) for _ in range(tries)
            ]
            for at, cache in enumerate(("cold", "warm")):
                ours, theirs = (median(pair[which][at] for pair in both) for which in (0, 1))
                said = f"{ours:.0f} ms; with a tenth of the points {theirs:.0f} ms: ratio {ours / theirs:.2f}"
                yield f"first chart, {name}, {cache}", said
            sent = weights(browser, server.address + path)
            kinds = ", ".join(f"{kind} {n / 1000:.1f}" for kind, n in sent.items())
            yield f"page weight, {name}", f"{sum(sent.values()) / 1000:.1f} kB sent: {kinds}"
        small_paths = requests_of(smaller)
        for name, path in requests_of(size).items():
            ours, theirs = cpu_ms(server, path, 2 * tries), cpu_ms(small, small_paths[name], 10 * tries)
            yield f"CPU of a request, {name}", f"{ours:.1f} ms; with a tenth of the points {theirs:.1f} ms"
        for name, path in requests_of(size).items():
            raw, compressed = sizes(server, path)
            yield f"bytes of an answer, {name}", f"{raw / 1000:.1f} kB, {compressed / 1000:.1f} kB as gzip"
        yield "memory afterwards", _memory(server)


def _memory(server: Served) -> str:
    found = resident(server.pid)
    return f"{found.total:.0f} MB resident, {found.own:.0f} MB its own"


def _filled(path: Path, size: Size) -> Filled:
    with unbounded(path) as store:
        return fill(store, size)


def size_until(now_ms: int) -> Callable[[int, int, int], Size]:
    """Return what makes a size whose last event is now."""

    def of(models: int, features: int, points: int) -> Size:
        step = SPAN_MS // points
        return Size(models, features, points, now_ms - points * step, step)

    return of


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serve", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--points", type=int, default=10_000, help="of each model, 20 or more")
    parser.add_argument("--tries", type=int, default=5, help="how often each view is opened")
    given = parser.parse_args(argv)
    of = size_until(round(time.time() * 1000))
    size = of(given.models, given.features, given.points)
    chromium()
    print(size, flush=True)
    with tempfile.TemporaryDirectory(prefix="attributary-page-") as folder:
        smaller = of(given.models, given.features, given.points // FEWER)
        for what, figure in measured(size, smaller, Path(folder), given.tries):
            print(f"{what:46} {figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
