// Axes: ranges and steps, runs without a gap, widths of texts, and ticks.

import { count, middle, number } from "page/format.js";

const is = (value) => value !== null && value !== undefined && Number.isFinite(value);

/**
 * Return the runs of a series without a gap: `known` ones have a band, others are still collecting. Two runs that
 * meet share a point.
 * @returns {{from: number, to: number, known: boolean}[]}
 */
export function runs({ values, low }) {
  const found = [];
  let run = null;
  for (let i = 0; i < values.length; i += 1) {
    if (!is(values[i])) {
      run = null;
      continue;
    }
    const known = !low || is(low[i]);
    if (run && run.known === known) run.to = i;
    else {
      const meets = run !== null;
      run = { from: meets ? i - 1 : i, to: i, known };
      found.push(run);
    }
  }
  return found;
}

/** Return the runs of a series where both edges of its band are known. */
export function bands({ low, high }) {
  const found = [];
  for (let i = 0; low && i < low.length; i += 1) {
    if (!is(low[i]) || !is(high[i])) continue;
    const last = found.at(-1);
    if (last && last.to === i - 1) last.to = i;
    else found.push({ from: i, to: i });
  }
  return found;
}

/** Return what lies beyond a range: the farthest value of each `every` pixels, above and below. */
export function outliers(series, x, [low, high], xOf, every = 56) {
  const far = new Map();
  series.forEach((one, k) => {
    if (one.hidden) return;
    one.values.forEach((value, i) => {
      if (!is(value) || (value <= high && value >= low)) return;
      const isAbove = value > high;
      const place = `${isAbove}${Math.floor(xOf(x[i]) / every)}`;
      const other = far.get(place);
      if (!other || Math.abs(value) > Math.abs(other.value)) far.set(place, { k, i, value, isAbove });
    });
  });
  return [...far.values()];
}

/** Return a range of the vertical axis: the one that is given, or that of the values; with room at both ends. */
export function yRange(range, series, { zero = false, level = null } = {}) {
  let [low, high] = range ?? [null, null];
  if (!is(low) || !is(high)) {
    const all = series.flatMap((one) => one.values.concat(one.low ?? [], one.high ?? [])).filter(is);
    if (is(level)) all.push(level);
    low = all.reduce((a, b) => Math.min(a, b), Infinity);
    high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    if (low > high) [low, high] = [0, 1];
  } else if (is(level)) [low, high] = [Math.min(low, level), Math.max(high, level)];
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    return [low - room, high + room];
  }
  const room = (high - low) * 0.05;
  return [zero && low === 0 ? 0 : low - room, zero && high === 0 ? 0 : high + room];
}

/** Return a range of the horizontal axis: the window, or the extent of the points. */
export function xRange(window, x) {
  if (window && is(window[0]) && is(window[1]) && window[0] < window[1]) return window;
  const [low, high] = [x[0] ?? 0, x.at(-1) ?? 1];
  return low < high ? [low, high] : [low - 1, high + 1];
}

/** Return at most about `n` round steps between two numbers. */
export function steps(low, high, n = 5) {
  const rough = (high - low) / Math.max(1, n);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
  return found;
}

export { is };

const context = document.createElement("canvas").getContext("2d");
const SIZE = 13;

/** Return the width of a text in pixels. */
export function width(text, font, size = SIZE) {
  context.font = `${size}px ${font}`;
  return context.measureText(text).width;
}

/**
 * Return a name in lines that are no wider than `most` pixels, broken behind its separators where it has them; of one
 * that needs more than `lines` the middle is cut.
 */
export function wrap(name, most, font, lines = 3) {
  const fits = Math.max(4, Math.floor((most / Math.max(1, width(name, font))) * name.length));
  const cut = middle(name, Math.max(6, fits * lines - lines * 2));
  const found = [""];
  for (const part of cut.split(/(?<=[_\-./:,;\s])/u)) {
    for (let rest = part; rest; ) {
      const room = found.at(-1) + rest;
      if (width(room, font) <= most) {
        found[found.length - 1] = room;
        break;
      }
      if (found.at(-1) !== "") found.push("");
      if (width(rest, font) <= most) continue;
      const head = [...rest].slice(0, fits).join("");
      found[found.length - 1] = head;
      rest = rest.slice(head.length);
      if (rest) found.push("");
    }
  }
  return found.filter((line) => line !== "");
}

const DAY = 86400e3;
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Return the texts of numbers on an axis. */
export function numbers(values) {
  const shown = values.filter((value) => value !== null);
  const step = shown.length > 1 ? Math.abs(shown[1] - shown[0]) : Math.abs(shown[0] ?? 1);
  const largest = Math.max(...shown.map(Math.abs), 0);
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) {
    return values.map((value) => (value === null ? "" : number(Math.abs(value) < step * 1e-6 ? 0 : value)));
  }
  let places = 0;
  while (places < 8 && Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-6 * step * 10 ** places) places += 1;
  return values.map((value) => {
    if (value === null) return "";
    const [whole, rest] = Math.abs(value).toFixed(places).split(".");
    const sign = value < 0 && Number(value.toFixed(places)) !== 0 ? "-" : "";
    return `${sign}${count(Number(whole))}${rest ? `.${rest}` : ""}`;
  });
}

/** Return the texts of moments on an axis: a second line has the day where it is another one than before. */
export function moments(values) {
  const step = values.length > 1 ? values[1] - values[0] : DAY;
  let before = "";
  return values.map((value) => {
    const moment = new Date(value);
    const date = day.format(moment);
    if (step >= DAY) return date;
    // Ticks that are closer than a second would all be the same otherwise.
    const part = step < 1000 ? `.${String(moment.getMilliseconds()).padStart(3, "0").slice(0, step % 100 === 0 ? 1 : 3)}` : "";
    const text = `${(step < 60e3 ? seconds : clock).format(moment)}${part}`;
    const isNew = date !== before;
    before = date;
    return isNew ? `${text}\n${date}` : text;
  });
}
