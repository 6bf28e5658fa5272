// Lists the features that may have to do with a shift of the loss, the most suspicious first.

import { h } from "page/dom.js";
import { count, estimate, middle, number, percent } from "page/format.js";
import { probability } from "page/views/change/words.js";

const Z = 1.96;
const MOST = 15;

/** Return the panel of suspects of a `loss_shift_explained`. */
export function suspects(event) {
  const all = Object.entries(event.features);
  if (!all.length) return null;
  const named = all.filter(([, one]) => one.significant).length;
  const most = Math.max(...all.map(([, one]) => Math.abs(one.score ?? 0)), 1e-300);
  const loss = event.importance_loss.replaceAll("_", " ");
  return h("section", { class: "card suspects", "aria-labelledby": "suspects" },
    h("h2", { id: "suspects" }, "Where to look first"),
    h("p", { class: "hint" }, named ? `${count(named)} of ${count(all.length)} features stand out; importance by ${loss} loss.` : "No feature stands out."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Where to look first, a table" }, table(all.slice(0, MOST), most)),
    all.length > MOST && h("details", { class: "noise" }, h("summary", null, `${count(all.length - MOST)} others`), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Other features, a table" }, table(all.slice(MOST), most))));
}

function table(rows, most) {
  return h("table", { class: "plain" },
    h("thead", null, h("tr", null, ["feature", "score", "importance before → after", "difference ±", "p", "values moved"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, rows.map(([name, one]) => h("tr", { class: one.significant ? "named" : "" },
      h("th", { scope: "row", title: name }, middle(name, 40), one.significant && h("span", { class: "badge tone-warn" }, "look here")),
      h("td", { class: "score" }, h("span", { class: "number" }, number(one.score)),
        h("span", { class: "bar", "aria-hidden": "true", style: { width: `${(100 * Math.abs(one.score ?? 0)) / most}%` } })),
      h("td", { class: "number" }, `${number(one.importance_before)} → ${number(one.importance_after)}`),
      h("td", { class: "number" }, one.delta === null ? "–" : `${one.delta > 0 ? "+" : ""}${estimate(one.delta, one.delta_std_error === null ? null : Z * one.delta_std_error)}`),
      h("td", { class: "number" }, probability(one.p_value)),
      h("td", { class: "number" }, one.moved === null ? "–" : one.moved === 0 ? "no" : percent(one.moved))))));
}
