"""The connection to the broker fails at the worst moments: around a write of state, of an event, of a dead letter."""

from __future__ import annotations

from attributary_agents.demo.local_broker import HOST
from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.proxy import Proxy, plan
from benchmarks.chaos.lab.workload import observations, raw_config


def run(lab: Lab) -> None:
    """Produce requests are cut off before and after the broker has them, swallowed for a while, and delayed."""
    n_faults, longest_s, n = (6, 1.0, 1_600) if lab.short else (60, 12.0, 30_000)
    proxy = Proxy(lab.broker.advertised_port, lab.broker.proxied_port)
    proxy.start()
    proxy.wait_up()
    raw = raw_config(f"{HOST}:{lab.broker.advertised_port}", "proxy")
    raw["checkpoint"] = {"interval_s": 1, "max_observations": 100}
    try:
        with Fleet(lab, raw, most_exits=n_faults) as fleet:
            topics = fleet.config.kafka.topics
            names = [fleet.config.kafka.changelog, topics.importances, topics.dead_letters]
            fleet.start(1)
            sender = fleet.start_sending(observations(n, lab.seed), n / (15.0 if lab.short else 300.0))
            for i, fault in enumerate(plan(n_faults, lab.random, names, longest_s)):
                fleet.pause(lab.random.uniform(0.0, 1.0))
                proxy.arm(fault)
                lab.note(f"fault {i + 1} of {n_faults}: {fault.how} {fault.seconds:.1f} s, {fault.topic}")
                fleet.wait("the fault hits a request", lambda: proxy.n_armed == 0 or not sender.is_alive(), 90.0)
            sender.finish()
            proxy.disarm()
            lab.check("the faults hit requests", len(proxy.done) >= n_faults // 2, f"{len(proxy.done)} of {n_faults}")
            lab.note(f"{proxy.n_produced} produce requests came by")
            fleet.wait_drained()
            lab.check("no crash loop", len(fleet.exits()) <= len(proxy.done), f"{len(fleet.exits())} exits")
            fleet.stop()
            fleet.compare()
    finally:
        proxy.stop()
