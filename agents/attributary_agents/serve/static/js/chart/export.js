// Files of a chart: its numbers as CSV, and what is drawn as SVG or PNG, with title, unit and the theme's background.

import { h, svg } from "page/dom.js";
import { number } from "page/format.js";
import { bands, is, outliers, runs, width as widthOf, wrap } from "page/chart/axes.js";
import { dashOf, ink } from "page/chart/colours.js";
import { bandOf, lookOf } from "page/chart/lines.js";

const EDGE = 20;
const TYPES = { csv: "text/csv;charset=utf-8", svg: "image/svg+xml;charset=utf-8" };

/** Return a table as CSV (RFC 4180): numbers with all their digits, nothing where one is unknown. */
function csvOf({ columns, rows }) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Return a picture that stands alone, as an SVG element: a title, its unit, and the theme's background. */
function framed(picture, title, note) {
  const colours = ink();
  const inner = Number(picture.getAttribute("width"));
  const [heads, notes] = [wrap(title, inner, colours.font, 3), note ? wrap(note, inner * 1.05, colours.font, 4) : []];
  const top = EDGE + heads.length * 20 + notes.length * 17 + 10;
  const [width, height] = [inner + 2 * EDGE, Number(picture.getAttribute("height")) + top + EDGE];
  const placed = svg("g", { transform: `translate(${EDGE} ${top})`, "font-family": picture.getAttribute("font-family"), "font-size": picture.getAttribute("font-size") }, [...picture.childNodes]);
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    svg("title", null, title),
    svg("rect", { width, height, fill: colours.card }),
    heads.map((text, i) => svg("text", { x: EDGE, y: EDGE + 14 + i * 20, "font-family": colours.font, "font-size": 15, "font-weight": 600, fill: colours.ink }, text)),
    notes.map((text, i) => svg("text", { x: EDGE, y: EDGE + heads.length * 20 + 12 + i * 17, "font-family": colours.font, "font-size": 12.5, fill: colours.muted }, text)),
    placed);
}

/** Return the text of an SVG file. */
function svgText(element) {
  return new XMLSerializer().serializeToString(element);
}

/** Return a PNG of an SVG element, at twice its size. */
async function pngOf(element) {
  const url = URL.createObjectURL(new Blob([svgText(element)], { type: TYPES.svg }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Return a name of a file that is one on every system. */
function fileName(parts, moment, ending) {
  const plain = (text) => text.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 60);
  const stamp = new Date(moment).toISOString().replace(/[-:]|\.\d+/g, "");
  return `${[...parts.map(plain).filter(Boolean), stamp].join("_")}.${ending}`;
}

/** Let the browser save a file. */
function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const makers = {
  CSV: async (chart) => new Blob([csvOf(chart.table())], { type: TYPES.csv }),
  SVG: async (chart, title, note) => new Blob([svgText(framed(await chart.picture(), title, note))], { type: TYPES.svg }),
  PNG: async (chart, title, note) => pngOf(framed(await chart.picture(), title, note)),
};

/**
 * Save a chart as a file.
 * @param {{table, picture}} chart
 * @param {"CSV"|"SVG"|"PNG"} kind
 * @param {{title: string, note: string, owner: string}} words owner: the model, or what else the file is named after.
 */
export async function save(chart, kind, { title, note, owner }) {
  download(await makers[kind](chart, `${owner}: ${title}`, note), fileName([owner, title], Date.now(), kind.toLowerCase()));
}

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
