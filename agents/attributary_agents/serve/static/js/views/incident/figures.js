// Answers since when, for how long and how much, as three figures.

import { h, write } from "page/dom.js";
import { count, duration, thin, time } from "page/format.js";
import { effectOf } from "page/views/incident/words.js";

/** Return the figures; `tick` draws how long it has been going on. */
export function figures({ row, event, until }, { now }) {
  const { since, standing } = row;
  const isOver = standing === "over";
  const n = Math.max(0, until - since.observation);
  const lasted = h("span");
  const moment = since.time_ms === null ? count(since.observation) : time(since.time_ms, { now: now() });
  const observations = `${since.time_ms === null ? "" : `${time(since.time_ms)}; observation ${count(since.observation)}, `}${since.low === null ? `at the latest ${count(since.high)}` : `95 %: ${count(since.low)} to ${count(since.high)}`}`;
  const effect = effectOf(event);
  return {
    element: h("dl", { class: "three" },
      figure("Since", thin(since.time_ms === null ? `observation ${moment}` : moment), observations),
      figure(isOver ? "Lasted" : "For", lasted, since.time_ms === null ? "" : `${count(n)} observations${isOver ? `, over at ${time(row.time_ms, { now: now() })}` : ""}`),
      effect && figure(effect.name[0].toUpperCase() + effect.name.slice(1),
        h("span", { class: effect.isWorse && standing === "bad" ? "is-bad" : "" }, effect.before === null ? thin(effect.now) : [thin(effect.before), h("span", { "aria-label": "to", class: "arrow" }, " → "), thin(effect.now)]),
        effect.before === null ? "now; not known before" : isOver ? "before, and where it settled" : "before, and now")),
    tick() { write(lasted, thin(since.time_ms === null ? `${count(n)} observations` : duration((isOver ? row.time_ms : now()) - since.time_ms))); },
  };
}

function figure(name, value, help) {
  return h("div", null, h("dt", null, name), h("dd", null, h("span", { class: "value" }, value), help && h("span", { class: "help" }, thin(help))));
}
