// Draws a chart of lines again as SVG, from the numbers: what is saved is made of paths, not of pixels.

import { svg } from "page/dom.js";
import { number } from "page/format.js";
import { dashOf } from "page/chart/colours.js";
import { bands, is, outliers, runs } from "page/chart/geometry.js";
import { bandOf, lookOf } from "page/chart/lines/marks.js";
import { width as widthOf } from "page/chart/text.js";

const SIZE = 12;

/** Return the chart as an SVG element of the size it has on the page, with a legend below. */
export function linesPicture(plot, data, colours) {
  const ratio = devicePixelRatio;
  const area = Object.fromEntries(Object.entries(plot.bbox).map(([key, value]) => [key, value / ratio]));
  const x = (value) => area.left + plot.valToPos(value, "x");
  const y = (value) => area.top + plot.valToPos(value, "y");
  const shown = data.series.filter((one) => !one.hidden);
  const clip = `plot-${Math.random().toString(36).slice(2)}`;
  const legend = legendOf(shown, colours, plot.width, plot.height + 8);
  return svg("svg", { width: plot.width, height: plot.height + legend.height + 12, "font-family": colours.font, "font-size": SIZE },
    svg("clipPath", { id: clip }, svg("rect", { x: area.left, y: area.top, width: area.width, height: area.height })),
    axes(plot, area, x, y, colours),
    svg("g", { "clip-path": `url(#${clip})` },
      data.marks.map((mark) => {
        const [, tone] = lookOf(mark);
        const span = bandOf(mark, x, area.left, area.left + area.width);
        const at = f(x(mark.at));
        return [
          span && svg("rect", { x: f(span[0]), y: f(area.top), width: f(span[1] - span[0]), height: f(area.height), fill: colours[tone], "fill-opacity": 0.1 }),
          svg("path", { d: `M${at} ${f(area.top)}V${f(area.top + area.height)}`, stroke: colours[tone], "stroke-dasharray": "3 3", fill: "none" }, svg("title", null, mark.text)),
        ];
      }),
      level(data.level, area, y, colours),
      shown.map((one) => svg("path", { class: "band", d: bandPath(one, data.x, x, y), fill: colours.series[one.colour ?? 0], "fill-opacity": 0.16 })),
      shown.map((one) => lines(one, data.x, x, y, colours))),
    flags(data.marks, area, x, colours),
    outliers(shown, data.x, [plot.scales.y.min, plot.scales.y.max], (at) => plot.valToPos(at, "x")).map(({ k, i, value, isAbove }) => {
      const isUp = isAbove !== Boolean(data.isReversed);
      const edge = isUp ? area.top + 9 : area.top + area.height - 3;
      return svg("text", { x: f(x(data.x[i]) - 5), y: f(edge), fill: colours.series[shown[k].colour ?? 0], "font-size": 11 }, `${isUp ? "▲" : "▼"} ${number(value)}`);
    }),
    legend.element);
}

const f = (value) => Number(value.toFixed(2));

function axes(plot, area, x, y, colours) {
  const [across, up] = plot.axes;
  const bottom = area.top + area.height;
  return svg("g", { fill: colours.muted },
    (up._splits ?? []).map((value, i) => is(value) && y(value) >= area.top - 1 && y(value) <= bottom + 1 && svg("g", null,
      svg("path", { d: `M${f(area.left)} ${f(y(value))}h${f(area.width)}`, stroke: colours.line }),
      svg("text", { x: f(area.left - 8), y: f(y(value) + 4), "text-anchor": "end" }, up._values[i]))),
    (across._splits ?? []).map((value, i) => String(across._values[i] ?? "").split("\n").map((text, row) =>
      svg("text", { x: f(x(value)), y: f(bottom + 18 + row * 14), "text-anchor": "middle" }, text))));
}

function level(found, area, y, colours) {
  if (!found || !is(found.value)) return null;
  return [svg("path", { d: `M${f(area.left)} ${f(y(found.value))}h${f(area.width)}`, stroke: colours.bad, "stroke-dasharray": "7 4" }),
    svg("text", { x: f(area.left + 6), y: f(y(found.value) - 4), fill: colours.bad }, `${found.name} ${number(found.value)}`)];
}

function flags(marks, area, x, colours) {
  let last = -Infinity;
  const placed = marks.filter((mark) => x(mark.at) >= area.left && x(mark.at) <= area.left + area.width).sort((a, b) => a.at - b.at);
  return placed.map((mark) => {
    if (x(mark.at) - last < 14) return null;
    last = x(mark.at);
    const [sign, tone] = lookOf(mark);
    return svg("text", { x: f(x(mark.at)), y: f(area.top - 6), fill: colours[tone], "text-anchor": "middle" }, sign);
  });
}

function bandPath(one, at, x, y) {
  return bands(one).map(({ from, to }) => {
    const up = [];
    const down = [];
    for (let i = from; i <= to; i += 1) {
      up.push(`${f(x(at[i]))} ${f(y(one.high[i]))}`);
      down.unshift(`${f(x(at[i]))} ${f(y(one.low[i]))}`);
    }
    return `M${up.concat(down).join("L")}Z`;
  }).join("");
}

function lines(one, at, x, y, colours) {
  const colour = colours.series[one.colour ?? 0];
  return runs(one).map(({ from, to, known }) => {
    const stroke = known ? colour : colours.muted;
    if (from === to) return svg("circle", { cx: f(x(at[from])), cy: f(y(one.values[from])), r: 3.5, fill: stroke });
    const points = [];
    for (let i = from; i <= to; i += 1) points.push(`${f(x(at[i]))} ${f(y(one.values[i]))}`);
    return svg("path", { class: "line", "data-name": one.name, d: `M${points.join("L")}`, fill: "none", stroke, "stroke-width": 1.8, "stroke-linejoin": "round", "stroke-dasharray": dashOf(one).join(" ") || null });
  });
}

function legendOf(shown, colours, width, top) {
  let left = 8;
  let row = 0;
  const items = shown.map((one) => {
    const size = widthOf(one.name, colours.font, SIZE) + 50;
    if (left > 8 && left + size > width) [left, row] = [8, row + 1];
    const y = top + 8 + row * 20;
    const item = svg("g", null,
      svg("path", { d: `M${f(left)} ${y}h24`, stroke: colours.series[one.colour ?? 0], "stroke-width": 2, "stroke-dasharray": dashOf(one).join(" ") || null }),
      svg("text", { x: f(left + 30), y: y + 4, fill: colours.ink }, one.name));
    left += size;
    return item;
  });
  return { element: svg("g", null, items), height: 20 * (row + 1) };
}
