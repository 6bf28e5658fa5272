"""Lays out what subjects took: microseconds by stage, ratios of the same round with their spread, latency, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from rich.table import Table

BARE, LOOP = "bare Faust agent", "confluent-kafka, learn"

Taken = Mapping[str, Any]


def ratios(taken: Sequence[Taken], case: str, subject: str, to: str, what: str = "cpu_us") -> list[float]:
    """Return a subject's figure over that of another one in the same round, of each round in which both were run."""

    def of(name: str) -> dict[int, float]:
        return {one["round"]: one[what] for one in taken if (one["case"], one["subject"]) == (case, name)}

    mine, its = of(subject), of(to)
    return [mine[number] / its[number] for number in sorted(mine.keys() & its.keys())]


def spread(found: Sequence[float]) -> str:
    """Return the median, with the least and the largest behind it."""
    if not found:
        return ""
    if len(found) == 1:
        return f"{found[0]:.3g}"
    return f"{median(found):.3g} ({min(found):.3g}–{max(found):.3g})"


def figures(taken: Sequence[Taken], case: str, subject: str, what: str) -> list[float]:
    """Return a figure of a subject, of each round."""
    return [one[what] for one in taken if (one["case"], one["subject"]) == (case, subject)]


def fixed_us(found: Mapping[str, Any], case: str, subject: str) -> float | None:
    """Return what a worker takes outside the model and its explainer: the whole, less those by themselves.

    None where there is no such figure: not of a worker, or of a configuration that was not measured by itself.
    """
    alone, rest = found["alone"].get(case), subject.partition(", ")[2] if subject.startswith("worker, ") else ""
    of = {"learn": "model_us", "learn, nothing watched": "model_us", "iPFI 10": "explained_us"}.get(rest)
    if alone is None or of is None:
        return None
    return float(median(figures(found["taken"], case, subject, "cpu_us")) - alone[of])


def tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of a run."""
    taken = found["taken"]
    for case in found["cases"]:
        yield _prices(found, case, taken)
    if len({case["name"] for case in found["cases"]} & {"forest", "forest, 2 workers"}) == 2:
        yield _two_workers(taken)
    if {"one", "many"} <= {case["name"] for case in found["cases"]}:
        yield _many(taken)
    if found["waited"]:
        yield _latency(found["waited"])


def _names(taken: Sequence[Taken], case: str) -> list[str]:
    return list(dict.fromkeys(one["subject"] for one in taken if one["case"] == case))


def _prices(found: Mapping[str, Any], case: Mapping[str, Any], taken: Sequence[Taken]) -> Table:
    name = case["name"]
    models = f"{case['models']:,} models" if case["models"] > 1 else "one model"
    workers = f"{case['workers']} worker{'s' if case['workers'] > 1 else ''}"
    table = Table(
        title=f"{name}: {models} ({case['model']}), {case['features']} features, {workers}; {found['rounds']} rounds",
        caption=_caption(found, name),
    )
    table.add_column("subject")
    titles = (
        "records/s",
        "µs/record",
        "outside the model, µs",
        "over learn",
        "over bare",
        "over confluent-kafka",
        "broker µs",
        "RSS",
        "PSS",
    )
    for title in titles:
        table.add_column(title, justify="right")
    for subject in _names(taken, name):
        fixed = fixed_us(found, name, subject)
        bare = median(figures(taken, name, BARE, "cpu_us")) if figures(taken, name, BARE, "cpu_us") else None
        table.add_row(
            subject,
            f"{median(figures(taken, name, subject, 'per_s')):,.0f}",
            f"{median(figures(taken, name, subject, 'cpu_us')):.1f}",
            "" if fixed is None else f"{fixed:.1f}" + ("" if not bare else f" = {fixed / bare:.2f} bare"),
            spread(ratios(taken, name, subject, f"{subject.partition(', ')[0]}, learn")),
            spread(ratios(taken, name, subject, BARE)),
            spread(ratios(taken, name, subject, LOOP)),
            f"{median(figures(taken, name, subject, 'broker_us')):.1f}",
            *(f"{median(figures(taken, name, subject, what)) / 1e6:.0f} MB" for what in ("rss", "pss")),
        )
    return table


def _caption(found: Mapping[str, Any], case: str) -> str:
    alone = found["alone"][case]
    said = f"the model alone {alone['model_us']:.1f} µs, explained by iPFI 10 {alone['explained_us']:.1f} µs"
    return (
        "outside the model: the whole less the model (and its explainer) in a process of its own, without Kafka. "
        "`learn` watches loss and quality, as by default; `no model`: a model that does nothing, and nothing is "
        "watched. Over learn: the same worker, or loop, that only learns. " + said
    )


def _two_workers(taken: Sequence[Taken]) -> Table:
    table = Table("two workers over one", "records/s", "µs/record", title="forests on two partitions")
    for subject in _names(taken, "forest, 2 workers"):
        row = []
        for what in ("per_s", "cpu_us"):
            two = figures(taken, "forest, 2 workers", subject, what)
            one = figures(taken, "forest", subject, what)
            row.append(spread([a / b for a, b in zip(two, one, strict=False)]))
        table.add_row(subject, *row)
    return table


def _many(taken: Sequence[Taken]) -> Table:
    table = Table("10 000 models over one", "µs/record", title="models that differ only in their id")
    for subject in _names(taken, "many"):
        many, one = (figures(taken, case, subject, "cpu_us") for case in ("many", "one"))
        table.add_row(subject, spread([a / b for a, b in zip(many, one, strict=False)]))
    return table


def _latency(waited: Sequence[Mapping[str, Any]]) -> Table:
    titles = "at half load", "records/s", "part of a core", "p50, ms", "p99, ms", "events"
    table = Table(*titles, title="from the producer's time stamp to the event at a consumer")
    for one in waited:
        table.add_row(
            one["subject"],
            f"{one['per_s']:,.0f}",
            f"{one['load']:.2f}",
            f"{one['p50_ms']:.1f}",
            f"{one['p99_ms']:.1f}",
            str(one["n"]),
        )
    return table
