// Draws what belongs together as a timeline: alarm, explanation, release.

import { h } from "page/dom.js";
import { count, duration, thin, time } from "page/format.js";
import { kindOf, parted, toneOf, wordOf } from "page/views/change/words.js";

/** Return the timeline of a change, in the order of time; the one that is shown is marked. */
export function chain({ row, event, chain: rows }, { state, link, now }) {
  const last = rows.at(-1) ?? row;
  return h("section", { class: "card chain", "aria-labelledby": "chain" },
    h("h2", { id: "chain" }, "Course"),
    h("ol", null,
      rows.map((one, i) => step(one, rows[i - 1], one.id === row.id, { event, state, link, now: now() })),
      due(last, event)));
}

function step(row, before, isThis, { event, state, link, now }) {
  const later = before && before.time_ms !== null && row.time_ms !== null ? ` · ${duration(row.time_ms - before.time_ms)} later` : "";
  const [first] = parted(row.sentence);
  // The kind of a shift that is over is that of the shift: "is over: worse" would say the opposite.
  const kind = [kindOf(row), row.verdict && !row.event.endsWith("released") && `: ${wordOf(row, event)}`];
  return h("li", { class: `tone-${toneOf(row)}`, "aria-current": isThis ? "step" : null },
    h("span", { class: "when" }, thin(row.time_ms === null ? `observation ${count(row.observation)}` : `${time(row.time_ms, { now })} · ${count(row.observation)}${later}`)),
    isThis ? h("b", null, kind) : h("a", { href: link(state, { view: "change", change: row.id }) }, kind),
    !isThis && h("span", { class: "said" }, first));
}

function due(last, event) {
  if (!last.is_open) return null;
  const told = last.id && event.due_at ? `expected at observation ${count(event.due_at)}` : "until it is over";
  const text = last.event === "alarm" ? "Examined until then" : event.due_at ? "Features are named" : "Open";
  return h("li", { class: "ahead" }, h("span", { class: "when" }, told), h("span", null, text));
}
