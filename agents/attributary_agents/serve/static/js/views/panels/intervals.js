// Draws values with their 95 % intervals below each other: a table whose middle column is a picture of it.

import { h, svg } from "page/dom.js";
import { count, estimate, number } from "page/format.js";

const WIDTH = 100;
const HEIGHT = 22;

/**
 * @param {{title: string, unit?: string, rows: {name: string, help?: string, value: number|null, low: number|null,
 *   high: number|null, n?: number, tone?: string}[], isFrom0?: boolean}} given
 * @returns {HTMLElement}
 */
export function intervals({ title, unit, rows, isFrom0 = false }) {
  const known = rows.flatMap((row) => [row.value, row.low, row.high]).filter(Number.isFinite);
  const scale = scaleOf(isFrom0 ? [0, ...known] : known);
  const hasN = rows.some((row) => Number.isFinite(row.n));
  return h("div", { class: "intervals" },
    h("table", null,
      h("caption", null, title, unit && h("span", { class: "unit" }, ` ${unit}`)),
      h("thead", { class: "unseen" }, h("tr", null, ["of", "interval", "value", hasN && "observations"].filter(Boolean).map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, rows.map((row) => rowOf(row, scale, hasN)))));
}

function rowOf(row, scale, hasN) {
  const half = Number.isFinite(row.low) && Number.isFinite(row.high) ? (row.high - row.low) / 2 : null;
  return h("tr", null,
    h("th", { scope: "row" }, row.name, row.help && h("span", { class: "help" }, row.help)),
    h("td", { class: "picture", "aria-hidden": "true" }, Number.isFinite(row.value) && picture(row, scale)),
    h("td", { class: "number" }, Number.isFinite(row.value) ? estimate(row.value, half) : number(row.value)),
    hasN && h("td", { class: "number muted" }, Number.isFinite(row.n) ? `n = ${count(row.n)}` : ""));
}

function picture(row, scale) {
  const [low, high] = [row.low ?? row.value, row.high ?? row.value].map(scale);
  const at = scale(row.value);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: `tone-${row.tone ?? "plain"}` },
    svg("line", { x1: scale(0), x2: scale(0), y1: 0, y2: HEIGHT, class: "zero" }),
    svg("line", { x1: low, x2: high, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "whisker" }),
    [low, high].map((x) => svg("line", { x1: x, x2: x, y1: HEIGHT / 2 - 4, y2: HEIGHT / 2 + 4, class: "whisker" })),
    svg("line", { x1: at, x2: at, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "point" }));
}

/** Return where a value stands in the picture, in its own units. */
function scaleOf(values) {
  const [least, most] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  return (value) => ((value - least + room) / (most - least + 2 * room)) * WIDTH;
}
