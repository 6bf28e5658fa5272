// Draws, for each name, a dot before and a dot after with their 95 % intervals, and an arrow from one to the other.

import { svg } from "page/dom.js";
import { number } from "page/format.js";
import { drawn } from "page/chart/drawn.js";
import { is } from "page/chart/geometry.js";
import { extent, f, layOut, whisker } from "page/chart/rows.js";

/**
 * Return a chart of what changed.
 * @param {Object} given
 * @param {string} given.title
 * @param {string} given.unit
 * @param {[string, string]} [given.sides] Names of both sides: "before", "after".
 * @param {{name, before, beforeHalf, after, afterHalf, note, p}[]} given.rows `note`: the difference, in words.
 */
export function dots(given) {
  return drawn(draw, { sides: ["before", "after"], ...given }, { label, table });
}

function draw(width, colours, { rows, sides }) {
  const hasP = rows.some((row) => is(row.p));
  const range = extent(rows.flatMap((row) => [[row.before, row.beforeHalf], [row.after, row.afterHalf]]));
  const [faint, strong] = [colours.muted, colours.series[0]];
  const element = layOut(width, colours, {
    rows: rows.map((row) => ({ ...row, notes: [row.note ?? "", ...(hasP ? [showP(row.p)] : [])] })),
    heads: hasP ? ["change", "p"] : ["change"],
    range,
    height: 22,
    draw: (row, place, y) => {
      const [a, b] = [row.before, row.after].map((value) => (is(value) ? f(place(value)) : null));
      const way = Math.sign(b - a);
      const isFar = a !== null && b !== null && Math.abs(b - a) > 14;
      return [
        svg("path", { d: `M${f(place(range[0]))} ${y}H${f(place(range[1]))}`, stroke: colours.line, fill: "none" }),
        whisker(place, row.before, row.beforeHalf, y - 5, faint, 3),
        whisker(place, row.after, row.afterHalf, y + 5, strong, 3),
        isFar && svg("path", { d: `M${a} ${y}H${b - way * 7}m${-way * 5} -3.5l${way * 5} 3.5l${-way * 5} 3.5`, stroke: strong, "stroke-width": 1.6, fill: "none" }),
        a !== null && svg("circle", { cx: a, cy: y, r: 4.5, fill: colours.card, stroke: faint, "stroke-width": 2 }),
        b !== null && svg("circle", { cx: b, cy: y, r: 5, fill: strong }),
      ];
    },
  });
  const y = Number(element.getAttribute("height")) + 12;
  element.setAttribute("height", y + 8);
  element.setAttribute("viewBox", `0 0 ${width} ${y + 8}`);
  element.append(svg("circle", { cx: 8, cy: y, r: 4.5, fill: colours.card, stroke: faint, "stroke-width": 2 }),
    svg("text", { x: 18, y: y + 4, fill: colours.muted, "font-size": 12 }, `${sides[0]}${rows.some((row) => is(row.beforeHalf)) ? ", with its 95 % interval" : ""}`),
    svg("circle", { cx: width > 400 ? 208 : 8 + width / 2, cy: y, r: 5, fill: strong }),
    svg("text", { x: width > 400 ? 218 : 18 + width / 2, y: y + 4, fill: colours.muted, "font-size": 12 }, sides[1]));
  return element;
}

/** Return a p-value as tables show it. */
export function showP(p) {
  if (!is(p)) return "";
  return p < 0.001 ? "< 0.001" : number(p);
}

function label({ title, unit, rows }) {
  const first = rows.slice(0, 5).map((row) => `${row.name} from ${number(row.before)} to ${number(row.after)}`);
  return `${title}: ${first.join(", ")}${rows.length > 5 ? ` and ${rows.length - 5} more` : ""}${unit ? `, in ${unit}` : ""}.`;
}

function table({ rows, sides: [one, other] }) {
  return {
    columns: ["feature", one, `${one}, ± 95 %`, other, `${other}, ± 95 %`, "change", "p"],
    rows: rows.map((row) => [row.name, row.before ?? null, row.beforeHalf ?? null, row.after ?? null, row.afterHalf ?? null,
      is(row.before) && is(row.after) ? row.after - row.before : null, row.p ?? null]),
  };
}

