// Lays out charts with a row per name: the name, a track, and notes; on a narrow place the name above both.

import { svg } from "page/dom.js";
import { is } from "page/chart/geometry.js";
import { width as widthOf, wrap } from "page/chart/text.js";

const LINE = 17;
const LEAST_TRACK = 130;

/**
 * Return an SVG element with a row per name.
 * @param {number} width
 * @param {Object} colours
 * @param {Object} given
 * @param {{name: string, notes: string[]}[]} given.rows
 * @param {[number, number]} given.range What the track goes from and to.
 * @param {(row, place: (value) => number, y: number) => SVGElement[]} given.draw Draws a row's track around y.
 * @param {number} given.height Of a track.
 * @param {string[]} [given.heads] Heads of the notes.
 */
export function layOut(width, colours, { rows, range, draw, height, heads = [] }) {
  const font = colours.font;
  const n = Math.max(0, ...rows.map((row) => row.notes.length));
  const columns = Array.from({ length: n }, (_, k) => Math.ceil(Math.max(...[heads[k] ?? "", ...rows.map((row) => row.notes[k] ?? "")].map((text) => widthOf(text, font)))) + 14);
  const notes = columns.reduce((a, b) => a + b, 0);
  const longest = Math.max(40, ...rows.map((row) => widthOf(row.name, font)));
  const isNarrow = Math.min(longest, 190) + notes + 22 + LEAST_TRACK > width;
  const names = isNarrow ? width : Math.min(longest, Math.max(190, width * 0.32), width - notes - 22 - LEAST_TRACK);
  const [left, right] = [isNarrow ? 4 : names + 14, width - notes - 8];
  const [low, high] = range;
  const place = (value) => left + ((Math.min(high, Math.max(low, value)) - low) / (high - low || 1)) * (right - left);
  let y = heads.some(Boolean) ? 20 : 2;
  const parts = heads.map((text, k) => svg("text", { x: width - sum(columns, k + 1), y: 13, "text-anchor": "end", fill: colours.muted, "font-size": 12 }, text));
  const hasZero = low <= 0 && high >= 0;
  let zero = "";
  for (const row of rows) {
    const lines = wrap(row.name, names, font);
    const tall = Math.max(isNarrow ? lines.length * LINE + height + 4 : Math.max(lines.length * LINE, height), 24) + 6;
    const track = isNarrow ? y + lines.length * LINE + 4 + height / 2 : y + tall / 2;
    // Above a track that has its name above it the line would go through the name.
    if (hasZero) zero += `M${f(place(0))} ${f(isNarrow ? track - height / 2 - 2 : y)}V${f(y + tall)}`;
    const first = isNarrow ? y + 13 : y + tall / 2 - ((lines.length - 1) * LINE) / 2 + 4.5;
    parts.push(svg("g", { opacity: row.isFaint ? 0.6 : null },
      svg("title", null, `${row.name} ${row.notes.join(" ")}`),
      lines.map((line, i) => svg("text", { x: isNarrow ? 0 : names, y: f(first + i * LINE), "text-anchor": isNarrow ? null : "end", fill: colours.ink }, line)),
      row.notes.map((text, k) => svg("text", { x: width - sum(columns, k + 1), y: f(track + 4.5), "text-anchor": "end", fill: colours.ink }, text)),
      draw(row, place, track)));
    y += tall;
  }
  const line = zero && svg("path", { d: zero, stroke: colours.muted, "stroke-opacity": 0.7, fill: "none" });
  return svg("svg", { width, height: Math.ceil(y + 2), viewBox: `0 0 ${width} ${Math.ceil(y + 2)}`, "font-family": font, "font-size": 13, "aria-hidden": "true" }, line, parts);
}

const sum = (columns, from) => columns.slice(from).reduce((a, b) => a + b, 0);
const f = (value) => Number(value.toFixed(2));

/** Return the range of values with their half-widths, with 0 in it. */
export function extent(pairs) {
  const ends = pairs.filter(([value]) => is(value)).flatMap(([value, half]) => [value - (half ?? 0), value + (half ?? 0)]);
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  return low === high ? [0, 1] : [low, high];
}

/** Return a line with ends: the 95 % interval of a value. */
export function whisker(place, value, half, y, colour, size = 4) {
  if (!is(value) || !is(half) || half <= 0) return null;
  const [a, b] = [f(place(value - half)), f(place(value + half))];
  return svg("path", { d: `M${a} ${y - size}v${2 * size}M${a} ${y}H${b}M${b} ${y - size}v${2 * size}`, stroke: colour, "stroke-width": 1.3, fill: "none" });
}

export { f };
