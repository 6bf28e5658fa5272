// Draws a small line without axes beside a number.

import { svg } from "page/dom.js";
import { is, runs } from "page/chart/geometry.js";

/**
 * Return a spark: its lower edge is 0 or the least value; a gap where a value is null. It says nothing to a screen
 * reader: the number stands beside it.
 */
export function spark(values, { width = 88, height = 22 } = {}) {
  const known = values.filter(is);
  const low = Math.min(0, ...known);
  const high = Math.max(...known, low + 1e-12);
  const x = (i) => (2 + (i / Math.max(1, values.length - 1)) * (width - 5)).toFixed(1);
  const y = (value) => (height - 3 - ((value - low) / (high - low)) * (height - 6)).toFixed(1);
  const lines = runs({ values }).map(({ from, to }) =>
    values.slice(from, to + 1).map((value, k) => `${k ? "L" : "M"}${x(from + k)} ${y(value)}`).join(""));
  const last = values.findLastIndex(is);
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: lines.join(""), fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linejoin": "round" }),
    last >= 0 && svg("circle", { cx: x(last), cy: y(values[last]), r: 2.2, fill: "currentColor" }));
}
