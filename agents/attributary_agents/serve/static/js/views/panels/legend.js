// Shows the features of a chart as a table: value, share, rank and how much each moved; it shows and hides lines.

import { h, replace } from "page/dom.js";
import { count, estimate, middle, number, percent } from "page/format.js";
import { swatch } from "page/chart/lines/swatch.js";

/**
 * Return the legend.
 * @param {{onToggle: (name) => void, onFocus: (name|null) => void, onChoose: (name) => void}} told
 */
export function legend({ onToggle, onFocus, onChoose }) {
  const moment = h("caption", null, "");
  const foot = h("p", { class: "others" });
  const table = h("table", { class: "legend" }, moment,
    h("thead", null, h("tr", null, h("th", { scope: "col", colspan: 2 }, "feature"), h("th", { scope: "col" }, "value ± 95 %"), h("th", { scope: "col" }, "share"),
      h("th", { scope: "col", class: "is-rank" }, "rank"), h("th", { scope: "col", class: "is-moved", title: "since the start of the window" }, "Δ window"))));
  table.addEventListener("pointerleave", () => onFocus(null));

  function row(one, line, chosen, at, isLong) {
    const [value, half, share, rank] = at === null
      ? [one.latest, one.latest_half_width, one.latest_share, one.latest_rank]
      : [one.importance[at], one.low[at] === null ? null : (one.high[at] - one.low[at]) / 2, one.share[at], one.rank[at]];
    const isKnown = line.isBare || (half !== null && half !== undefined);
    const values = [
      h("td", null, value === null || value === undefined ? "–" : estimate(value, half)),
      h("td", null, share === null || share === undefined ? "–" : percent(share)),
      h("td", { class: "is-rank" }, rank || "–"),
      h("td", { class: "is-moved" }, movedWords(one)),
    ];
    const head = [
      h("td", { class: "is-toggle", rowspan: isLong ? 2 : null }, h("button", { type: "button", class: "toggle", "aria-pressed": String(!line.hidden), "aria-label": `Line of ${one.feature}`, onclick: () => onToggle(one.feature) }, swatch(line))),
      h("th", { scope: isLong ? "rowgroup" : "row", colspan: isLong ? 5 : null }, h("button", { type: "button", class: "name", title: one.feature, "aria-current": one.feature === chosen ? "true" : null,
        onfocus: () => onFocus(one.feature), onblur: () => onFocus(null), onclick: () => onChoose(one.feature) }, cut(one.feature, isLong ? 130 : 24))),
    ];
    return h("tbody", { class: [one.feature === chosen && "is-chosen", line.hidden && "is-hidden", !isKnown && "is-collecting"].filter(Boolean).join(" ") || null, onpointerenter: () => onFocus(one.feature) },
      isLong ? [h("tr", null, head), h("tr", null, h("td", { class: "is-blank" }), values)] : h("tr", null, head, values));
  }

  return {
    element: h("div", { class: "legend-box" }, table, foot),
    draw({ features, lines, chosen, at, words, others }) {
      const focus = table.contains(document.activeElement) ? document.activeElement : null;
      const place = focus && [focus.className, focus.title || focus.getAttribute("aria-label")];
      replace(moment, words);
      const isLong = features.some((one) => one.feature.length > 24);
      for (const one of [...table.tBodies]) one.remove();
      table.append(...features.map((one, k) => row(one, lines[k], chosen, at, isLong)));
      if (place) [...table.querySelectorAll("button")].find((one) => one.className === place[0] && (one.title || one.getAttribute("aria-label")) === place[1])?.focus({ preventScroll: true });
      foot.textContent = others.n ? `${count(others.n)} ${others.n === 1 ? "other" : "others"}${others.share === null ? "" : `, together ${percent(others.share)}`}` : "";
      foot.hidden = !others.n;
    },
  };
}

/** Return a name that may be broken behind its separators. */
function breakable(name) {
  return h("span", null, name.split(/(?<=[_./:\-])/u).flatMap((part, i) => (i ? [h("wbr"), part] : [part])));
}

/** Return how much an importance moved, with the digits that its interval lets count. */
function movedWords({ moved, latest_half_width: half }) {
  if (moved === null) return "–";
  const text = half ? estimate(moved, half * Math.SQRT2).replace(/^\(/, "").split(" ± ")[0] : number(moved);
  if (Number(text.replaceAll(" ", "")) === 0) return "0";
  const power = half ? estimate(moved, half * Math.SQRT2).match(/\)? ?(× 10.*|\p{L}+)$/u)?.[1] : null;
  return `${moved > 0 ? "+" : ""}${text}${power ? ` ${power}` : ""}`;
}

/** Return a name with its middle cut where it is too long; on focus the whole one stands in its place. */
function cut(name, most) {
  const shown = middle(name, most);
  return shown === name ? breakable(name) : [h("span", { class: "is-cut" }, shown), h("span", { class: "is-whole" }, name)];
}
