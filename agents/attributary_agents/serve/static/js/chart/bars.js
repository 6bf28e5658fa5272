// Draws a bar per name with its 95 % interval, and beside it, thinner, that of before or of another explainer.

import { svg } from "page/dom.js";
import { estimate } from "page/format.js";
import { drawn } from "page/chart/drawn.js";
import { is } from "page/chart/geometry.js";
import { extent, f, layOut, whisker } from "page/chart/rows.js";

/**
 * Return a chart of bars.
 * @param {Object} given
 * @param {string} given.title
 * @param {string} given.unit
 * @param {{name, value, halfWidth, before, beforeHalf, note, beforeNote}[]} given.rows
 * @param {[string, string]} [given.sides] What `value` and `before` are: "SAGE", "PFI".
 * @param {number} [given.colour] 0 to 9.
 */
export function bars(given) {
  return drawn(draw, { colour: 0, ...given }, { label, table });
}

const hasBefore = (rows) => rows.some((row) => is(row.before));

function draw(width, colours, { rows, colour, sides }) {
  const both = hasBefore(rows);
  const [one, other] = [colours.series[colour], colours.muted];
  const range = extent(rows.flatMap((row) => [[row.value, row.halfWidth], [row.before, row.beforeHalf]]));
  const bar = (place, value, y, height, fill) => is(value) && svg("rect", { x: f(Math.min(place(0), place(value))), y: f(y), width: f(Math.max(1, Math.abs(place(value) - place(0)))), height, rx: 1.5, fill });
  const element = layOut(width, colours, {
    rows: rows.map((row) => ({ ...row, notes: [row.note ?? (is(row.value) ? estimate(row.value, row.halfWidth) : "–"), ...(both && sides ? [row.beforeNote ?? (is(row.before) ? estimate(row.before, row.beforeHalf) : "–")] : [])] })),
    heads: both && sides ? sides : [],
    range,
    height: both ? 20 : 14,
    draw: (row, place, y) => [
      bar(place, row.value, both ? y - 10 : y - 6, both ? 10 : 12, one),
      both && bar(place, row.before, y + 2, 6, other),
      whisker(place, row.value, row.halfWidth, both ? y - 5 : y, colours.ink),
      both && whisker(place, row.before, row.beforeHalf, y + 5, colours.ink, 3),
    ],
  });
  return element;
}

function label({ title, unit, rows }) {
  const first = rows.slice(0, 5).map((row) => `${row.name} ${is(row.value) ? estimate(row.value, row.halfWidth) : "unknown"}`);
  return `${title}: ${first.join(", ")}${rows.length > 5 ? ` and ${rows.length - 5} more` : ""}${unit ? `, in ${unit}` : ""}.`;
}

function table({ rows, sides }) {
  const [one, other] = sides ?? ["value", "before"];
  const both = hasBefore(rows);
  return {
    columns: ["feature", one, `${one}, ± 95 %`, ...(both ? [other, `${other}, ± 95 %`] : [])],
    rows: rows.map((row) => [row.name, row.value ?? null, row.halfWidth ?? null, ...(both ? [row.before ?? null, row.beforeHalf ?? null] : [])]),
  };
}
