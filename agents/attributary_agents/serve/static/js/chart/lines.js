// Lines with their 95 % bands on uPlot, and what uPlot lacks: keys, marks, words, and a table behind it.

import { h, write } from "page/dom.js";
import { count, number, time } from "page/format.js";
import { bands, is, moments, numbers, outliers, runs, width as widthOf, xRange, yRange } from "page/chart/axes.js";
import { dashOf, ink, onTheme, swatch } from "page/chart/colours.js";

const BETWEEN_REDRAWS = 250;
const FONT = 12;

/**
 * Return a chart of lines over time or observations.
 *
 * @param {Object} given
 * @param {string} given.title
 * @param {(data: Object) => string} [given.summary] What it shows, in words.
 * @param {string} given.unit
 * @param {"time"|"observation"} given.by
 * @param {number[]} given.x Milliseconds, or observations.
 * @param {number[]} [given.other] The other of the two, which is read with each point.
 * @param {{name, values, low, high, colour, dash, isReference, hidden}[]} given.series `low`, `high`: edges of the
 *   band; where `low` is null no band is known yet. `colour`: 0 to 9. `hidden`: not drawn.
 * @param {Object[]} [given.marks] Moments: at, text, href; of incidents `standing` and `end`, Infinity while open.
 * @param {[number, number]} [given.range] Of the vertical axis; what lies beyond is marked at the rim.
 * @param {[number, number]} [given.window] Of the horizontal axis; without it the extent of the points.
 * @param {{name, value}} [given.level] A threshold.
 * @param {boolean} [given.zero] Whether 0 is shown in any case.
 * @param {boolean} [given.isReversed] Whether small numbers are above, as of ranks.
 * @param {(value, halfWidth) => string} [given.show] Writes a value.
 * @param {number} [given.height]
 * @param {string} [given.sync] Charts of the same name have one cursor.
 * @param {boolean} [given.isMain] Whether marks can be tabbed to.
 * @param {(from, to) => void} [given.onZoom] Is told the window that was chosen; nulls for all.
 * @param {(mark) => void} [given.onChoose] Opens a mark.
 * @param {(index: number|null) => void} [given.onCursor]
 * @returns {{element, setData, setFocus, moveTo, table, picture, summary, destroy}}
 */
export function lineChart(given) {
  let data = { other: [], marks: [], show: (value) => number(value), ...given };
  const layer = markLayer({ isMain: Boolean(given.isMain), open: (mark) => data.onChoose?.(mark), zoom: (a, b) => data.onZoom?.(a, b) });
  const box = h("div", { class: "plot", role: "img", tabindex: "0" });
  const reading = h("p", { class: "reading", "aria-live": "off" });
  const key = h("ul", { class: "chart-key" });
  const element = h("div", { class: "line-chart" }, key, h("div", { class: "plot-frame" }, box, given.isMain && layer.element), reading);
  let plot = null;
  let focused = null;
  let timer = 0;
  let drawnAt = 0;
  let size = 0;

  function build() {
    plot?.destroy();
    plot = new uPlot(options(), arrays(), box);
    place();
  }

  function arrays() {
    return [data.x, ...data.series.map((one) => (one.hidden ? one.values.map(() => null) : one.values))];
  }

  function options() {
    const colours = ink();
    const axis = { stroke: colours.muted, font: `${FONT}px ${colours.font}`, grid: { stroke: colours.line, width: 1 }, ticks: { show: false } };
    const hasFlags = given.isMain;
    return {
      width: size,
      height: data.height ?? 220,
      padding: [hasFlags ? 30 : 12, 22, 0, 4],
      legend: { show: false },
      ms: 1,
      scales: {
        x: { time: data.by === "time", range: () => xRange(data.window, data.x) },
        y: { range: () => yRange(data.range, data.series.filter((one) => !one.hidden), { zero: data.zero, level: data.level?.value }), dir: data.isReversed ? -1 : 1 },
      },
      axes: [
        { ...axis, grid: { show: false }, ticks: { show: true, stroke: colours.line, size: 5 }, space: 76, size: data.by === "time" ? 44 : 30, values: (_, splits) => (data.by === "time" ? moments(splits) : numbers(splits)) },
        { ...axis, space: 34, gap: 6, values: (_, splits) => (data.x.length ? numbers(splits) : splits.map(() => "")), size: (_, values) => 14 + Math.max(24, ...(values ?? []).map((text) => widthOf(text, colours.font, FONT))), incrs: data.isReversed ? [1, 2, 5, 10, 20, 50, 100, 200] : undefined },
      ],
      series: [{}, ...data.series.map((one) => ({ label: one.name, stroke: colours.series[one.colour ?? 0], paths: () => null, points: { show: false } }))],
      cursor: {
        y: false,
        drag: { x: Boolean(data.onZoom), y: false, setScale: false },
        points: { size: 8, width: 2 },
        bind: { dblclick: () => () => data.onZoom?.(null, null) },
        sync: data.sync ? { key: data.sync, setSeries: false, filters: { sub: (type) => !/^mouse(up|down)|click/.test(type), pub: () => true } } : undefined,
      },
      hooks: {
        draw: [(u) => { paint(u, data, ink(), focused); layer.place(u, data.marks); }],
        setCursor: [(u) => read(u.cursor.idx, u.cursor.left >= 0)],
        setSelect: [choose],
      },
    };
  }

  function choose(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    const [from, to] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    data.onZoom?.(Math.floor(from), Math.ceil(to));
  }

  function read(index, isOver) {
    const at = isOver && is(data.x[index]) ? index : null;
    write(reading, at === null ? "" : readingAt(data, at));
    reading.classList.toggle("is-empty", at === null);
    data.onCursor?.(at);
  }

  function moveTo(index) {
    const at = Math.min(data.x.length - 1, Math.max(0, index));
    if (at < 0) return;
    reading.setAttribute("aria-live", "polite");
    plot.setCursor({ left: plot.valToPos(data.x[at], "x"), top: plot.over.clientHeight / 2 }, true, true);
  }

  const keys = onKeys(box, {
    data: () => data,
    index: () => (plot && plot.cursor.left >= 0 ? plot.cursor.idx : null),
    moveTo,
    leave: () => plot.setCursor({ left: -10, top: -10 }, true, true),
  });
  box.addEventListener("pointermove", () => reading.setAttribute("aria-live", "off"));

  function place() {
    box.setAttribute("aria-label", `${data.title}. ${data.summary?.(data) ?? momentsOf(data)} Arrow keys read the points.`);
    read(null, false);
    if (!given.isMain) keyOf(key, data.series);
  }

  function draw() {
    timer = 0;
    drawnAt = performance.now();
    if (!plot) return;
    const index = keys.isInside() ? plot.cursor.idx : null;
    plot.setData(arrays(), true);
    place();
    if (index !== null && index !== undefined) moveTo(index);
  }

  function soon() {
    if (timer) return;
    const wait = Math.max(0, BETWEEN_REDRAWS - (performance.now() - drawnAt));
    timer = setTimeout(() => requestAnimationFrame(draw), wait);
  }

  const watch = new ResizeObserver(() => {
    const now = Math.floor(box.clientWidth);
    if (now < 40 || now === size) return;
    size = now;
    if (plot) plot.setSize({ width: size, height: data.height ?? 220 });
    else build();
  });
  watch.observe(box);
  const forget = onTheme(() => plot && build());
  place();

  return {
    element,
    setData(given) {
      const before = data;
      data = { ...data, ...given };
      const isSame = before.by === data.by && before.isReversed === data.isReversed && same(before.series, data.series);
      if (!plot) place();
      else if (isSame) soon();
      else build();
    },
    setFocus(name) {
      if (focused === name) return;
      focused = name;
      plot?.redraw(false, false);
    },
    moveTo,
    zoom: keys.zoom,
    data: () => data,
    summary: () => box.getAttribute("aria-label"),
    table: () => tableOf(data),
    picture: async () => (await import("page/chart/export.js")).linesPicture(plot, data, ink()),
    destroy() {
      clearTimeout(timer);
      watch.disconnect();
      forget();
      plot?.destroy();
      plot = null;
    },
  };
}

/** Say which line is which, where there is more than one. */
function keyOf(list, series) {
  list.hidden = series.length < 2;
  if (!list.hidden) list.replaceChildren(...series.map((one) => h("li", null, swatch(one), one.name)));
}

function same(some, others) {
  return some.length === others.length && some.every((one, i) => one.name === others[i].name && one.colour === others[i].colour);
}

/**
 * Listen to the keys of a chart.
 * @param {HTMLElement} box
 * @param {{data, index, moveTo, leave}} chart data: what is drawn now. index: where the cursor is, or null.
 * @returns {{isInside: () => boolean, zoom: (factor: number) => void}} isInside: whether the cursor was moved by a key
 *   and the chart still has the focus.
 */
function onKeys(box, { data, index, moveTo, leave }) {
  let isInside = false;

  function hop(step) {
    const { x, marks } = data();
    const places = [...new Set(marks.map((mark) => nearest(x, mark.at)))].sort((a, b) => a - b);
    const at = index() ?? (step > 0 ? -1 : x.length);
    const next = step > 0 ? places.find((place) => place > at) : places.findLast((place) => place < at);
    if (next !== undefined) moveTo(next);
  }

  function zoom(factor) {
    const { x, window, onZoom } = data();
    if (!onZoom || !x.length) return;
    const [from, to] = window ?? [x[0], x.at(-1)];
    const middle = x[index() ?? x.length - 1];
    onZoom(Math.floor(middle - (middle - from) * factor), Math.ceil(middle + (to - middle) * factor));
  }

  function open() {
    const { x, marks, onChoose } = data();
    const mark = weightiest(marks.filter((one) => one.href && nearest(x, one.at) === index()));
    if (mark) onChoose?.(mark);
  }

  const step = (n) => moveTo((index() ?? (n > 0 ? -1 : data().x.length)) + n);
  const actions = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    Home: () => moveTo(0),
    End: () => moveTo(data().x.length - 1),
    PageUp: () => hop(-1),
    PageDown: () => hop(1),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    Enter: open,
    Escape: () => {
      leave();
      isInside = false;
      if (data().window) data().onZoom?.(null, null);
    },
  };

  box.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || event.target !== box || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    isInside = true;
    action();
  });
  box.addEventListener("blur", () => {
    if (isInside) leave();
    isInside = false;
  });
  return { isInside: () => isInside, zoom };
}

const ROOM = 26;
const VERSION = ["▽", "muted"];

/** Sign, and class, of an incident by how it stands; the first of a cluster is the kind that counts most. */
const STANDINGS = {
  bad: ["▲", "bad"],
  suspected: ["△", "warn"],
  open: ["▲", "accent"],
  over: ["▲", "muted"],
};
const ORDER = Object.keys(STANDINGS);

/** Return sign and class of a mark. */
export function lookOf({ standing }) {
  return STANDINGS[standing] ?? VERSION;
}

/** Return from where to where, in pixels, the band of an incident goes within a plot; null of what has none, or lies beside. */
export function bandOf({ at, end }, toPixel, left, right) {
  if (end === null || end === undefined) return null;
  const [from, to] = [Math.max(left, toPixel(at)), Number.isFinite(end) ? Math.min(right, toPixel(end)) : right];
  return to < left || from > right ? null : [from, Math.max(to, from + 1)];
}

/** Return the mark that counts most of several. */
function weightiest(marks) {
  const rank = ({ standing }) => (standing ? ORDER.indexOf(standing) : ORDER.length);
  return marks.toSorted((a, b) => rank(a) - rank(b))[0];
}

/** Return the layer with the marks of a chart: `place(plot, marks)` puts them where they belong. */
function markLayer({ isMain, open, zoom }) {
  const element = h("div", { class: "marks" });
  let written = "";

  function place(plot, marks) {
    if (!isMain) return;
    const { left, top, width } = plot.bbox;
    for (const [side, length] of Object.entries({ left, top, width })) element.style[side] = `${length / devicePixelRatio}px`;
    const groups = grouped(plot, marks);
    const key = JSON.stringify(groups.map((group) => [Math.round(group.left), group.marks.map((mark) => [mark.text, mark.standing])]));
    if (key === written) return;
    written = key;
    const had = element.contains(document.activeElement) ? [...element.children].indexOf(document.activeElement) : -1;
    element.replaceChildren(...groups.map((group) => flag(group)));
    if (had >= 0) element.children[Math.min(had, element.children.length - 1)]?.focus();
  }

  function flag({ left, marks }) {
    const first = weightiest(marks);
    const [sign, tone] = lookOf(first);
    const text = marks.map((mark) => mark.text).join("\n");
    const props = { class: `flag is-${tone}`, style: { left: `${left}px` }, title: text, "aria-label": text };
    const shown = [h("span", { "aria-hidden": "true" }, sign), marks.length > 1 && h("sup", { "aria-hidden": "true" }, String(marks.length))];
    const ends = [Math.min(...marks.map((mark) => mark.at)), Math.max(...marks.map((mark) => mark.at))];
    const isWide = marks.length > 1 && ends[1] > ends[0];
    const act = (event) => {
      if (event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (isWide) zoom(Math.floor(ends[0] - (ends[1] - ends[0]) * 0.3), Math.ceil(ends[1] + (ends[1] - ends[0]) * 0.3));
      else open(first);
    };
    if (!isWide && !first.href) return h("span", { ...props, role: "img" }, shown);
    if (isWide || !first.href) return h("button", { ...props, type: "button", onclick: act }, shown);
    return h("a", { ...props, href: first.href, onclick: act }, shown);
  }

  return { element, place };
}

function grouped(plot, marks) {
  const found = [];
  const right = plot.over.clientWidth;
  for (const { mark, left } of marks.map((mark) => ({ mark, left: leftOf(plot, mark, right) })).filter(({ left }) => left !== null).sort((a, b) => a.left - b.left)) {
    const last = found.at(-1);
    if (last && left - last.left < ROOM) last.marks.push(mark);
    else found.push({ left, marks: [mark] });
  }
  return found;
}

/** Return where the flag of a mark stands; that of an incident which began before the chart does, at its edge. */
function leftOf(plot, mark, right) {
  const toPixel = (value) => plot.valToPos(value, "x");
  const left = toPixel(mark.at);
  if (left >= -1 && left <= right + 1) return left;
  return bandOf(mark, toPixel, 0, right)?.[0] ?? null;
}

/** Draw all of a chart that uPlot leaves out; `focused` is the name of the line that stands out. */
function paint(plot, data, colours, focused) {
  const { ctx, bbox } = plot;
  const ratio = plot.pxRatio ?? devicePixelRatio;
  const x = data.x.map((value) => plot.valToPos(value, "x", true));
  const y = (value) => plot.valToPos(value, "y", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  marksAndLevel(plot, data, colours, ratio);
  const shown = data.series.filter((one) => !one.hidden);
  const weight = (one) => (focused === null || focused === one.name ? 1 : 0.18);
  for (const one of shown) band(ctx, one, x, y, colours, weight(one) * (shown.length > 4 && focused === null ? 0.13 : 0.2));
  for (const one of shown) line(ctx, one, x, y, colours, ratio, weight(one), focused === one.name);
  ctx.restore();
  rim(plot, shown, data, colours, ratio);
}

function band(ctx, one, x, y, colours, alpha) {
  ctx.fillStyle = colours.series[one.colour ?? 0];
  ctx.globalAlpha = alpha;
  for (const { from, to } of bands(one)) {
    ctx.beginPath();
    if (from === to) {
      const half = 3;
      ctx.rect(x[from] - half, y(one.high[from]), 2 * half, y(one.low[from]) - y(one.high[from]));
    } else {
      for (let i = from; i <= to; i += 1) ctx.lineTo(x[i], y(one.high[i]));
      for (let i = to; i >= from; i -= 1) ctx.lineTo(x[i], y(one.low[i]));
    }
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function line(ctx, one, x, y, colours, ratio, alpha, isFocused) {
  ctx.globalAlpha = alpha;
  ctx.lineWidth = (isFocused ? 2.6 : one.isReference ? 1.3 : 1.8) * ratio;
  ctx.lineJoin = "round";
  for (const { from, to, known } of runs(one)) {
    ctx.strokeStyle = ctx.fillStyle = known ? colours.series[one.colour ?? 0] : colours.muted;
    ctx.setLineDash(dashOf(one).map((length) => length * ratio));
    ctx.beginPath();
    if (from === to) {
      ctx.arc(x[from], y(one.values[from]), 3.5 * ratio, 0, 7);
      ctx.fill();
      continue;
    }
    for (let i = from; i <= to; i += 1) ctx.lineTo(x[i], y(one.values[i]));
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

function marksAndLevel(plot, { marks, level }, colours, ratio) {
  const { ctx, bbox } = plot;
  const across = (from, to) => {
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
  };
  ctx.lineWidth = ratio;
  for (const mark of marks) {
    const toPixel = (value) => plot.valToPos(value, "x", true);
    const colour = colours[lookOf(mark)[1]];
    const span = bandOf(mark, toPixel, bbox.left, bbox.left + bbox.width);
    if (span) {
      ctx.fillStyle = colour;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(span[0], bbox.top, span[1] - span[0], bbox.height);
    }
    ctx.strokeStyle = colour;
    ctx.setLineDash((mark.standing ? [3, 3] : [1, 4]).map((length) => length * ratio));
    ctx.globalAlpha = 0.75;
    across([toPixel(mark.at), bbox.top], [toPixel(mark.at), bbox.top + bbox.height]);
  }
  ctx.globalAlpha = 1;
  const zero = plot.valToPos(0, "y", true);
  const [low, high] = [plot.scales.y.min, plot.scales.y.max];
  ctx.setLineDash([]);
  if (low < 0 && high > 0) {
    ctx.strokeStyle = colours.muted;
    ctx.globalAlpha = 0.6;
    across([bbox.left, zero], [bbox.left + bbox.width, zero]);
    ctx.globalAlpha = 1;
  }
  if (level && is(level.value)) {
    const at = plot.valToPos(level.value, "y", true);
    ctx.strokeStyle = ctx.fillStyle = colours.bad;
    ctx.setLineDash([7 * ratio, 4 * ratio]);
    ctx.lineWidth = 1.4 * ratio;
    across([bbox.left, at], [bbox.left + bbox.width, at]);
    ctx.font = `${12 * ratio}px ${colours.font}`;
    ctx.textAlign = "left";
    ctx.textBaseline = at - bbox.top < 18 * ratio ? "top" : "bottom";
    ctx.fillText(`${level.name} ${number(level.value)}`, bbox.left + 6 * ratio, at + (ctx.textBaseline === "top" ? 3 : -3) * ratio);
  }
  ctx.setLineDash([]);
}

function rim(plot, shown, data, colours, ratio) {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.y;
  ctx.save();
  ctx.font = `${11 * ratio}px ${colours.font}`;
  for (const { k, i, value, isAbove } of outliers(shown, data.x, [min, max], (at) => plot.valToPos(at, "x"))) {
    const at = plot.valToPos(data.x[i], "x", true);
    const isUp = isAbove !== Boolean(data.isReversed);
    const edge = isUp ? bbox.top : bbox.top + bbox.height;
    const way = (isUp ? 1 : -1) * ratio;
    const text = number(value);
    ctx.fillStyle = colours.series[shown[k].colour ?? 0];
    ctx.beginPath();
    ctx.moveTo(at, edge + 1 * way);
    ctx.lineTo(at - 5 * ratio, edge + 9 * way);
    ctx.lineTo(at + 5 * ratio, edge + 9 * way);
    ctx.fill();
    const isLeft = at + ctx.measureText(text).width + 10 * ratio > bbox.left + bbox.width;
    ctx.textAlign = isLeft ? "right" : "left";
    ctx.textBaseline = "middle";
    ctx.fillText(text, at + (isLeft ? -8 : 8) * ratio, edge + 6 * way);
  }
  ctx.restore();
}

const half = (one, i) => (one.low && is(one.low[i]) && is(one.high[i]) ? (one.high[i] - one.low[i]) / 2 : null);

/** Return what the charts' cursor is at: the moment, the observation, and the value of each line. */
function readingAt(data, i) {
  const isTime = data.by === "time";
  const [ms, observation] = isTime ? [data.x[i], data.other[i]] : [data.other[i], data.x[i]];
  const moment = [is(ms) && time(ms, { seconds: true }), is(observation) && `observation ${count(observation)}`].filter(Boolean).join(" · ");
  const values = data.series.filter((one) => !one.hidden).map((one) => `${one.name} ${is(one.values[i]) ? data.show(one.values[i], half(one, i)) : "none"}`);
  const marks = data.marks.filter((one) => nearest(data.x, one.at) === i);
  return `${moment}: ${values.join(", ")}${data.unit ? ` (${data.unit})` : ""}${marks.map((one) => `. ${one.text}`).join("")}`;
}

/** Return the index of the point that is nearest to a place on the axis; -1 where there is no point. */
function nearest(x, at) {
  let best = -1;
  for (let i = 0; i < x.length; i += 1) if (best < 0 || Math.abs(x[i] - at) < Math.abs(x[best] - at)) best = i;
  return best;
}

/** Return from when to when a chart goes, how many points it has, and where its lines end. */
function momentsOf(data) {
  const n = data.x.length;
  if (!n) return "No events in this window.";
  const at = (i) => (data.by === "time" ? time(data.x[i]) : `observation ${count(data.x[i])}`);
  const shown = data.series.filter((one) => !one.hidden);
  const ends = shown.slice(0, 5).map((one) => {
    const last = one.values.findLastIndex(is);
    return `${one.name} ${last < 0 ? "has no value" : data.show(one.values[last], half(one, last))}`;
  });
  const more = shown.length > 5 ? ` and ${shown.length - 5} more` : "";
  return `${count(n)} ${n === 1 ? "point" : "points"} from ${at(0)} to ${at(n - 1)}. At the end: ${ends.join(", ")}${more}.`;
}

/** Return the numbers of a chart of lines: a row per point. */
function tableOf(data) {
  const isTime = data.by === "time";
  const lines = data.series.flatMap((one) => [
    { name: one.name, values: one.values },
    ...(one.low ? [{ name: `${one.name}, low`, values: one.low }, { name: `${one.name}, high`, values: one.high }] : []),
  ]);
  const [ms, observations] = isTime ? [data.x, data.other] : [data.other, data.x];
  return {
    columns: ["time", "observation", ...lines.map((line) => line.name)],
    rows: data.x.map((_, i) => [is(ms[i]) ? new Date(ms[i]).toISOString() : null, observations[i] ?? null, ...lines.map((line) => line.values[i] ?? null)]),
  };
}

