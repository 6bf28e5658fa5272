// Draws lines with their 95 % bands on uPlot, and adds what uPlot lacks: keys, marks, words, and a table behind it.

import { h, write } from "page/dom.js";
import { number } from "page/format.js";
import { ink, onTheme } from "page/chart/colours.js";
import { is, xRange, yRange } from "page/chart/geometry.js";
import { onKeys } from "page/chart/lines/keys.js";
import { swatch } from "page/chart/lines/swatch.js";
import { markLayer } from "page/chart/lines/marks.js";
import { paint } from "page/chart/lines/paint.js";
import { momentsOf, readingAt, tableOf } from "page/chart/lines/reading.js";
import { width as widthOf } from "page/chart/text.js";
import { moments, numbers } from "page/chart/ticks.js";

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
    picture: async () => (await import("page/chart/lines/picture.js")).linesPicture(plot, data, ink()),
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
