// Draws the values of a feature before an incident and now: histograms of numbers upon one axis, bars of words.

import { svg } from "page/dom.js";
import { count, number, percent } from "page/format.js";
import { bars } from "page/chart/bars.js";
import { drawn } from "page/chart/drawn.js";
import { steps } from "page/chart/geometry.js";
import { f } from "page/chart/rows.js";
import { numbers } from "page/chart/ticks.js";

/** What shares of the values lie below the quantiles that an event has. */
const SHARES = [0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1];
const HEIGHT = 54;
const HEAD = 20;
const MOST = 8;
/** Pixels from which on a side says of how many values it is, which the table has in any case. */
const WIDE = 420;

/** Return a chart of the numbers before and now, each side a histogram; null where a feature has none. */
export function values({ title, before, after }) {
  if (!before.quantiles.length && !after.quantiles.length) return null;
  return drawn(draw, { title, sides: [["before", before], ["now", after]] }, { label, table });
}

function draw(width, colours, { sides }) {
  const known = sides.filter(([, one]) => one.quantiles.length).flatMap(([, one]) => [one.quantiles[1], one.quantiles[7]]);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = (high - low || Math.abs(high) || 1) * 0.04;
  const place = (value) => 6 + ((value - low + room) / (high - low + 2 * room)) * (width - 12);
  const bottom = sides.length * (HEIGHT + HEAD);
  const ticks = steps(low, high, Math.max(2, Math.floor(width / 110)));
  const height = bottom + 24;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": colours.font, "font-size": 12, "aria-hidden": "true" },
    ticks.map((at) => svg("path", { d: `M${f(place(at))} ${HEAD}V${bottom}`, stroke: colours.line, fill: "none" })),
    sides.map(([name, one], i) => side(name, one, i * (HEIGHT + HEAD), i ? colours.series[0] : colours.muted, { place, width, colours })),
    numbers(ticks).map((text, i) => svg("text", { x: f(Math.min(width - 2, Math.max(2, place(ticks[i])))), y: bottom + 16, "text-anchor": anchor(place(ticks[i]), width), fill: colours.muted }, text)));
}

const anchor = (x, width) => (x < 30 ? "start" : x > width - 30 ? "end" : "middle");

/** Draw one side: what lies between two quantiles is a bar of that share of the values, as wide as it reaches. */
function side(name, { quantiles, n, missing }, top, colour, { place, width, colours }) {
  const base = top + HEAD + HEIGHT;
  const least = Math.max(1.5, width * 0.004);
  const bins = SHARES.slice(1, 7).map((share, k) => {
    const [a, b] = [place(quantiles[k + 1]), place(quantiles[k + 2])];
    return { x: a, width: Math.max(least, b - a), mass: SHARES[k + 2] - share };
  });
  const tallest = Math.max(...bins.map((bin) => bin.mass / bin.width));
  return svg("g", null,
    svg("text", { x: 2, y: top + 14, fill: colours.ink }, svg("tspan", { "font-weight": 600 }, name), summary(quantiles, width < WIDE ? null : n, missing)),
    svg("path", { d: `M0 ${base}H${width}`, stroke: colours.muted, "stroke-opacity": 0.6, fill: "none" }),
    quantiles.length > 0 && bins.map((bin) => {
      const tall = Math.max(1.5, (bin.mass / bin.width / tallest) * (HEIGHT - 4));
      return svg("rect", { x: f(bin.x), y: f(base - tall), width: f(bin.width), height: f(tall), fill: colour, "fill-opacity": 0.75 });
    }),
    quantiles.length > 0 && svg("path", { d: `M${f(place(quantiles[4]))} ${base - HEIGHT + 2}V${base}`, stroke: colours.ink, "stroke-width": 1.5, fill: "none" }));
}

function summary(quantiles, n, missing) {
  const parts = quantiles.length ? [`${number(quantiles[1])} to ${number(quantiles[7])}`, `median ${number(quantiles[4])}`] : ["no number"];
  return `  ${[...parts, missing > 0 && `${percent(missing)} missing`, n !== null && `n = ${count(n)}`].filter(Boolean).join(" · ")}`;
}

function label({ title, sides }) {
  return `${title}: ${sides.map(([name, one]) => `${name}${summary(one.quantiles, one.n, one.missing)}`).join("; ")}.`;
}

function table({ sides }) {
  return {
    columns: ["share of values below", ...sides.map(([name]) => name)],
    rows: [...SHARES.map((share, k) => [share, ...sides.map(([, one]) => one.quantiles[k] ?? null)]), ["missing", ...sides.map(([, one]) => one.missing)], ["n", ...sides.map(([, one]) => one.n)]],
  };
}

/** Return a chart of the most frequent words before and now; null where a feature has none. */
export function valuesOfWords({ title, before, after }) {
  const all = [...new Set([...Object.keys(before.words), ...Object.keys(after.words)])];
  if (!all.length) return null;
  const size = (word) => Math.max(before.words[word] ?? 0, after.words[word] ?? 0);
  const shown = all.sort((a, b) => size(b) - size(a)).slice(0, MOST);
  const row = (name, was, is) => ({ name, value: 100 * is, before: 100 * was, note: percent(is), beforeNote: percent(was) });
  return bars({
    title, unit: "% of values", sides: ["now", "before"],
    rows: [...shown.map((word) => row(word, before.words[word] ?? 0, after.words[word] ?? 0)), ...(before.missing || after.missing ? [row("missing", before.missing, after.missing)] : [])],
  });
}
