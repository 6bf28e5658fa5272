// Draws how the mean prediction depends on a feature: a line with its band for numbers, bars for categories.

import { svg } from "page/dom.js";
import { number } from "page/format.js";
import { bars } from "page/chart/bars.js";
import { drawn } from "page/chart/drawn.js";
import { bands, is, runs, steps, yRange } from "page/chart/geometry.js";
import { f } from "page/chart/rows.js";
import { width as widthOf } from "page/chart/text.js";
import { numbers } from "page/chart/ticks.js";

const HEIGHT = 230;

/** Return a chart of a `Dependence` answer. */
export function dependence({ title, unit, answer }) {
  if (answer.kind === "category") {
    const rows = answer.values.map((value, i) => ({ name: String(value), value: answer.mean[i], halfWidth: answer.half_width[i] }));
    return bars({ title, unit, rows, colour: 2 });
  }
  return drawn(draw, { title, unit, answer }, { label, table });
}

function draw(width, colours, { answer }) {
  const x = answer.values;
  const edge = (sign) => answer.mean.map((value, i) => (is(value) && is(answer.half_width[i]) ? value + sign * answer.half_width[i] : null));
  const one = { values: answer.mean, low: edge(-1), high: edge(1) };
  const [low, high] = yRange(null, [one]);
  const [first, last] = x.length > 1 ? [x[0], x.at(-1)] : [x[0] - 1, x[0] + 1];
  const up = steps(low, high, 4);
  const texts = numbers(up);
  const left = Math.max(...texts.map((text) => widthOf(text, colours.font, 12)), 20) + 10;
  const [right, top, bottom] = [width - 10, 8, HEIGHT - 40];
  const px = (value) => f(left + ((value - first) / (last - first)) * (right - left));
  const py = (value) => f(bottom - ((value - low) / (high - low)) * (bottom - top));
  const across = steps(first, last, Math.max(2, width / 90));
  const path = (run, values) => Array.from({ length: run.to - run.from + 1 }, (_, k) => `${px(x[run.from + k])} ${py(values[run.from + k])}`);
  const colour = colours.series[2];
  return svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "font-family": colours.font, "font-size": 12, "aria-hidden": "true" },
    up.map((value, i) => [svg("path", { d: `M${left} ${py(value)}H${right}`, stroke: colours.line, fill: "none" }),
      svg("text", { x: left - 8, y: py(value) + 4, "text-anchor": "end", fill: colours.muted }, texts[i])]),
    numbers(across).map((text, i) => svg("text", { x: Math.min(px(across[i]), width - widthOf(text, colours.font, 12) / 2), y: bottom + 18, "text-anchor": "middle", fill: colours.muted }, text)),
    svg("text", { x: (left + right) / 2, y: HEIGHT - 4, "text-anchor": "middle", fill: colours.muted }, answer.feature.length > width / 8 ? "value of the feature" : answer.feature),
    bands(one).map((run) => svg("path", { class: "band", d: `M${path(run, one.high).concat(path(run, one.low).reverse()).join("L")}Z`, fill: colour, "fill-opacity": 0.18 })),
    runs({ values: one.values }).map((run) => (run.from === run.to
      ? svg("circle", { cx: px(x[run.from]), cy: py(one.values[run.from]), r: 3.5, fill: colour })
      : svg("path", { class: "line", d: `M${path(run, one.values).join("L")}`, fill: "none", stroke: colour, "stroke-width": 1.8 }))));
}

function label({ title, answer }) {
  const known = answer.mean.map((value, i) => [answer.values[i], value]).filter(([, value]) => is(value));
  if (!known.length) return `${title}: no value is known.`;
  const [least, most] = [known.reduce((a, b) => (b[1] < a[1] ? b : a)), known.reduce((a, b) => (b[1] > a[1] ? b : a))];
  return `${title}: the mean prediction is lowest, ${number(least[1])}, where ${answer.feature} is ${number(least[0])}, and highest, ${number(most[1])}, where it is ${number(most[0])}.`;
}

function table({ answer }) {
  return { columns: [answer.feature, "mean prediction", "± 95 %"], rows: answer.values.map((value, i) => [value, answer.mean[i], answer.half_width[i]]) };
}

