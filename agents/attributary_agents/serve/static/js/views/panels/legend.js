// Shows the features of a chart as a table: value, share, rank and how much each moved; it shows and hides lines.

import { h, replace, svg } from "page/dom.js";
import { count, estimate, number, percent } from "page/format.js";
import { dashOf } from "page/chart/colours.js";

/** Return a piece of a line as it is drawn. */
export function swatch(one) {
  return svg("svg", { class: `swatch s${(one.colour ?? 0) + 1}`, width: 26, height: 12, "aria-hidden": "true" },
    svg("path", { d: "M1 6H25", stroke: "currentColor", "stroke-width": 3, "stroke-dasharray": dashOf(one).join(" ") || null }));
}

/**
 * Return the legend.
 * @param {{onToggle: (name) => void, onFocus: (name|null) => void, onChoose: (name) => void}} told
 */
export function legend({ onToggle, onFocus, onChoose }) {
  const body = h("tbody");
  const moment = h("caption", null, "");
  const foot = h("p", { class: "others" });
  const table = h("table", { class: "legend" }, moment,
    h("thead", null, h("tr", null, h("th", { scope: "col", colspan: 2 }, "feature"), h("th", { scope: "col" }, "value ± 95 %"), h("th", { scope: "col" }, "share"),
      h("th", { scope: "col", class: "is-rank" }, "rank"), h("th", { scope: "col", class: "is-moved", title: "since the start of the window" }, "Δ window"))), body);
  table.addEventListener("pointerleave", () => onFocus(null));

  function row(one, line, chosen, at) {
    const [value, half, share, rank] = at === null
      ? [one.latest, one.latest_half_width, one.latest_share, one.latest_rank]
      : [one.importance[at], one.low[at] === null ? null : (one.high[at] - one.low[at]) / 2, one.share[at], one.rank[at]];
    const isKnown = half !== null && half !== undefined;
    return h("tr", { class: [one.feature === chosen && "is-chosen", line.hidden && "is-hidden", !isKnown && "is-collecting"].filter(Boolean).join(" ") || null, onpointerenter: () => onFocus(one.feature) },
      h("td", null, h("button", { type: "button", class: "toggle", "aria-pressed": String(!line.hidden), "aria-label": `Line of ${one.feature}`, onclick: () => onToggle(one.feature) }, swatch(line))),
      h("th", { scope: "row" }, h("button", { type: "button", class: "name", title: one.feature, "aria-current": one.feature === chosen ? "true" : null,
        onfocus: () => onFocus(one.feature), onblur: () => onFocus(null), onclick: () => onChoose(one.feature) }, cut(one.feature))),
      h("td", null, value === null || value === undefined ? "–" : estimate(value, half)),
      h("td", null, share === null || share === undefined ? "–" : percent(share)),
      h("td", { class: "is-rank" }, rank || "–"),
      h("td", { class: "is-moved" }, one.moved === null ? "–" : number(one.moved, { signed: true })));
  }

  return {
    element: h("div", { class: "legend-box" }, table, foot),
    draw({ features, lines, chosen, at, words, others }) {
      const focus = body.contains(document.activeElement) ? document.activeElement : null;
      const place = focus && [focus.className, focus.title || focus.getAttribute("aria-label")];
      replace(moment, words);
      replace(body, features.map((one, k) => row(one, lines[k], chosen, at)));
      if (place) [...body.querySelectorAll("button")].find((one) => one.className === place[0] && (one.title || one.getAttribute("aria-label")) === place[1])?.focus({ preventScroll: true });
      foot.textContent = others.n ? `${count(others.n)} ${others.n === 1 ? "other" : "others"}${others.share === null ? "" : `, together ${percent(others.share)}`}` : "";
      foot.hidden = !others.n;
    },
  };
}

/** Return a name whose middle can give way: the end, where names mostly differ, stays; all is shown on focus. */
function cut(name) {
  const characters = [...name];
  if (characters.length <= 14) return name;
  const tail = characters.splice(-Math.min(18, Math.floor(characters.length * 0.4))).join("");
  return [h("span", { class: "name-head" }, characters.join("")), h("span", { class: "name-tail" }, tail)];
}
