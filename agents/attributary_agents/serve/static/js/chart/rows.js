// Charts of plain SVG: bars, dots, partial dependence and sparks, as wide as their place and in the colours of the theme.

import { h, svg } from "page/dom.js";
import { estimate, number } from "page/format.js";
import { bands, is, numbers, runs, steps, width as widthOf, wrap, yRange } from "page/chart/axes.js";
import { ink, onTheme } from "page/chart/colours.js";

/**
 * Return a chart that is drawn anew when its place or the theme changes.
 * @param {(width: number, colours: Object, data: any) => SVGElement} draw
 * @param {any} data
 * @param {{label: (data) => string, table: (data) => Object}} words
 */
export function drawn(draw, data, { label, table }) {
  const element = h("div", { class: "drawn", role: "img" });
  let width = 0;

  function redraw() {
    element.setAttribute("aria-label", label(data));
    if (width) element.replaceChildren(draw(width, ink(), data));
  }

  const watch = new ResizeObserver(() => {
    const now = Math.floor(element.clientWidth);
    if (now < 40 || now === width) return;
    width = now;
    redraw();
  });
  watch.observe(element);
  const forget = onTheme(redraw);
  redraw();
  return {
    element,
    setData(given) {
      data = { ...data, ...given };
      redraw();
    },
    table: () => table(data),
    summary: () => label(data),
    picture: () => draw(Math.max(width, 640), ink(), data),
    destroy() {
      watch.disconnect();
      forget();
    },
  };
}

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
function whisker(place, value, half, y, colour, size = 4) {
  if (!is(value) || !is(half) || half <= 0) return null;
  const [a, b] = [f(place(value - half)), f(place(value + half))];
  return svg("path", { d: `M${a} ${y - size}v${2 * size}M${a} ${y}H${b}M${b} ${y - size}v${2 * size}`, stroke: colour, "stroke-width": 1.3, fill: "none" });
}

export { f };

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
  return drawn(drawBars, { colour: 0, ...given }, { label: barsLabel, table: barsTable });
}

const hasBefore = (rows) => rows.some((row) => is(row.before));

function drawBars(width, colours, { rows, colour, sides }) {
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

function barsLabel({ title, unit, rows }) {
  const first = rows.slice(0, 5).map((row) => `${row.name} ${is(row.value) ? estimate(row.value, row.halfWidth) : "unknown"}`);
  return `${title}: ${first.join(", ")}${rows.length > 5 ? ` and ${rows.length - 5} more` : ""}${unit ? `, in ${unit}` : ""}.`;
}

function barsTable({ rows, sides }) {
  const [one, other] = sides ?? ["value", "before"];
  const both = hasBefore(rows);
  return {
    columns: ["feature", one, `${one}, ± 95 %`, ...(both ? [other, `${other}, ± 95 %`] : [])],
    rows: rows.map((row) => [row.name, row.value ?? null, row.halfWidth ?? null, ...(both ? [row.before ?? null, row.beforeHalf ?? null] : [])]),
  };
}

/**
 * Return a chart of what changed.
 * @param {Object} given
 * @param {string} given.title
 * @param {string} given.unit
 * @param {[string, string]} [given.sides] Names of both sides: "before", "after".
 * @param {{name, before, beforeHalf, after, afterHalf, note, p}[]} given.rows `note`: the difference, in words.
 */
export function dots(given) {
  return drawn(drawDots, { sides: ["before", "after"], ...given }, { label: dotsLabel, table: dotsTable });
}

function drawDots(width, colours, { rows, sides }) {
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
function showP(p) {
  if (!is(p)) return "";
  return p < 0.001 ? "< 0.001" : number(p);
}

function dotsLabel({ title, unit, rows }) {
  const first = rows.slice(0, 5).map((row) => `${row.name} from ${number(row.before)} to ${number(row.after)}`);
  return `${title}: ${first.join(", ")}${rows.length > 5 ? ` and ${rows.length - 5} more` : ""}${unit ? `, in ${unit}` : ""}.`;
}

function dotsTable({ rows, sides: [one, other] }) {
  return {
    columns: ["feature", one, `${one}, ± 95 %`, other, `${other}, ± 95 %`, "change", "p"],
    rows: rows.map((row) => [row.name, row.before ?? null, row.beforeHalf ?? null, row.after ?? null, row.afterHalf ?? null,
      is(row.before) && is(row.after) ? row.after - row.before : null, row.p ?? null]),
  };
}

const DEPENDENCE_HEIGHT = 230;

/** Return a chart of a `Dependence` answer. */
export function dependence({ title, unit, answer }) {
  if (answer.kind === "category") {
    const rows = answer.values.map((value, i) => ({ name: String(value), value: answer.mean[i], halfWidth: answer.half_width[i] }));
    return bars({ title, unit, rows, colour: 2 });
  }
  return drawn(drawDependence, { title, unit, answer }, { label: dependenceLabel, table: dependenceTable });
}

function drawDependence(width, colours, { answer }) {
  const x = answer.values;
  const edge = (sign) => answer.mean.map((value, i) => (is(value) && is(answer.half_width[i]) ? value + sign * answer.half_width[i] : null));
  const one = { values: answer.mean, low: edge(-1), high: edge(1) };
  const [low, high] = yRange(null, [one]);
  const [first, last] = x.length > 1 ? [x[0], x.at(-1)] : [x[0] - 1, x[0] + 1];
  const up = steps(low, high, 4);
  const texts = numbers(up);
  const left = Math.max(...texts.map((text) => widthOf(text, colours.font, 12)), 20) + 10;
  const [right, top, bottom] = [width - 10, 8, DEPENDENCE_HEIGHT - 40];
  const px = (value) => f(left + ((value - first) / (last - first)) * (right - left));
  const py = (value) => f(bottom - ((value - low) / (high - low)) * (bottom - top));
  const across = steps(first, last, Math.max(2, width / 90));
  const path = (run, values) => Array.from({ length: run.to - run.from + 1 }, (_, k) => `${px(x[run.from + k])} ${py(values[run.from + k])}`);
  const colour = colours.series[2];
  return svg("svg", { width, height: DEPENDENCE_HEIGHT, viewBox: `0 0 ${width} ${DEPENDENCE_HEIGHT}`, "font-family": colours.font, "font-size": 12, "aria-hidden": "true" },
    up.map((value, i) => [svg("path", { d: `M${left} ${py(value)}H${right}`, stroke: colours.line, fill: "none" }),
      svg("text", { x: left - 8, y: py(value) + 4, "text-anchor": "end", fill: colours.muted }, texts[i])]),
    numbers(across).map((text, i) => svg("text", { x: Math.min(px(across[i]), width - widthOf(text, colours.font, 12) / 2), y: bottom + 18, "text-anchor": "middle", fill: colours.muted }, text)),
    svg("text", { x: (left + right) / 2, y: DEPENDENCE_HEIGHT - 4, "text-anchor": "middle", fill: colours.muted }, answer.feature.length > width / 8 ? "value of the feature" : answer.feature),
    bands(one).map((run) => svg("path", { class: "band", d: `M${path(run, one.high).concat(path(run, one.low).reverse()).join("L")}Z`, fill: colour, "fill-opacity": 0.18 })),
    runs({ values: one.values }).map((run) => (run.from === run.to
      ? svg("circle", { cx: px(x[run.from]), cy: py(one.values[run.from]), r: 3.5, fill: colour })
      : svg("path", { class: "line", d: `M${path(run, one.values).join("L")}`, fill: "none", stroke: colour, "stroke-width": 1.8 }))));
}

function dependenceLabel({ title, answer }) {
  const known = answer.mean.map((value, i) => [answer.values[i], value]).filter(([, value]) => is(value));
  if (!known.length) return `${title}: no value is known.`;
  const [least, most] = [known.reduce((a, b) => (b[1] < a[1] ? b : a)), known.reduce((a, b) => (b[1] > a[1] ? b : a))];
  return `${title}: the mean prediction is lowest, ${number(least[1])}, where ${answer.feature} is ${number(least[0])}, and highest, ${number(most[1])}, where it is ${number(most[0])}.`;
}

function dependenceTable({ answer }) {
  return { columns: [answer.feature, "mean prediction", "± 95 %"], rows: answer.values.map((value, i) => [value, answer.mean[i], answer.half_width[i]]) };
}

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
