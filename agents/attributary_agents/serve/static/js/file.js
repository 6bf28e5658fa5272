// Answers from the object that a single file carries, as the server would.

import { problem } from "page/source.js";
import { WINDOWS } from "page/state.js";

/**
 * Return the answers that a single file carries.
 * @param {{health: Object, fleet: Object, models: Object<string, Object>, incidents: Object<string, Object>,
 *   comparisons: {a: string, b: string, answer: Object}[]}} data
 */
export function fileSource(data) {
  const found = (id) => data.models[id] ?? missing(id, Object.keys(data.models));
  return {
    kind: "file",
    axis: axisOf(data),
    only: Object.keys(data.models).length === 1 ? Object.keys(data.models)[0] : null,
    stream: null,
    address: () => null,
    now: () => data.fleet.now_ms,
    fleet: async ({ q, offset = 0, limit = 50 } = {}) => pageOf(data.fleet, q, offset, limit),
    model: async (id) => found(id).view,
    series: async (id, asked = {}) => slice(seriesOf(found(id), asked.explainer), asked),
    incidents: async (id, { from, to } = {}) => between(found(id).incidents, from, to),
    incident: async (id) => data.incidents[id] ?? missing(id, []),
    compare: async (a, b, explainer) => compared(data.comparisons, a, b, explainer),
    deadLetters: async (id) => found(id).dead_letters,
    dependences: async (id) => found(id).dependences,
    health: async () => data.health,
  };
}

/** Return what all that a file shows is drawn along: observations, where no event has a time. */
function axisOf(data) {
  const all = Object.values(data.models).flatMap((model) => Object.values(model.series));
  return all.some((series) => series.by === "time") ? "time" : "observation";
}

function missing(id, ids) {
  const suggestion = closest(id, ids);
  throw problem(404, { title: "Not found", detail: `This file has no '${id}'.`, suggestion });
}

/** Return the name that is most like another one; null where none is. */
export function closest(name, names) {
  const ranked = names.map((one) => [distance(name.toLowerCase(), one.toLowerCase()), one]).sort((a, b) => a[0] - b[0]);
  return ranked.length && ranked[0][0] <= Math.ceil(name.length / 3) ? ranked[0][1] : null;
}

/** Count the letters that are to be put in, left out or changed; of two that are swapped, two. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

function pageOf(fleet, q, offset, limit) {
  const found = q ? fleet.models.filter((row) => matches(row, q.toLowerCase())) : fleet.models;
  return { ...fleet, models: found.slice(offset, offset + limit), offset, n_found: found.length };
}

/** Say whether a part of a name, or a pattern with stars, is found in a model's id or its template. */
function matches({ model_id, template }, q) {
  const pattern = q.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  const found = new RegExp(q.includes("*") ? `^${pattern}$` : pattern, "s");
  return found.test(model_id.toLowerCase()) || (template ?? "").toLowerCase().includes(q);
}

function between(list, from, to) {
  const isIn = ({ standing, time_ms, since }) => time_ms === null || ((standing !== "over" || time_ms >= (from ?? -Infinity)) && since.time_ms <= (to ?? Infinity));
  const incidents = list.incidents.filter(isIn);
  return { incidents, n: incidents.length === list.incidents.length ? list.n : incidents.length };
}

function compared(comparisons, a, b, explainer) {
  const found = comparisons.filter((one) => one.a === a && one.b === b);
  const wanted = found.find((one) => one.answer.a.explainer === explainer) ?? found[0];
  if (wanted) return wanted.answer;
  throw problem(404, { title: "This comparison is not in the file", detail: "A file carries the comparisons that were made when it was written; a server makes any." });
}

function seriesOf(model, explainer) {
  return model.series[explainer] ?? Object.values(model.series)[0] ?? missing(explainer ?? "", Object.keys(model.series));
}

const TOP = 10;

/**
 * Return the part of a series that was asked for, thinned to so many points: as the server does it.
 * @param {Object} series As `answers/series.py` has it.
 * @param {{from?: number, to?: number, by?: string, points?: number, top?: number, features?: string[], window?: string}}
 *   asked
 */
export function slice(series, { from, to, by = series.by, points = 600, top, features, window } = {}) {
  const axis = by === "observation" ? series.observation : series.time_ms;
  const span = by === "time" ? WINDOWS[window] ?? null : null;
  const least = from ?? (span === null || !axis.length ? -Infinity : axis.at(-1) - span);
  const [first, last] = [axis.findIndex((x) => x >= least), axis.findLastIndex((x) => x <= (to ?? Infinity))];
  const groups = first < 0 || last < first ? [] : grouped(first, last + 1, points);
  const shown = chosen(series.features, top, features).map((feature) => cutFeature(feature, groups));
  const left = series.features.length - shown.length;
  const range = rangeOf(shown);
  return {
    ...series,
    by,
    n_events: groups.length ? Math.round((series.n_events * (last + 1 - first)) / axis.length) : 0,
    time_ms: groups.map(([, end]) => series.time_ms[end - 1]),
    observation: groups.map(([, end]) => series.observation[end - 1]),
    features: shown,
    others: left > 0 ? withOthers(series, shown, left) : series.others,
    figures: cutFigures(series.figures, groups),
    marks: series.marks.filter((mark) => isWithin(mark, by, least, to ?? Infinity)),
    low: range?.[0] ?? series.low,
    high: range?.[1] ?? series.high,
    nearest_ms: groups.length ? null : nearest(series.time_ms, axis, least, to),
    nearest_observation: groups.length ? null : nearest(series.observation, axis, least, to),
  };
}

/** Say whether a mark is in a part of an axis: an incident that is open has no end. */
function isWithin({ kind, ...mark }, by, least, most) {
  const [x, end] = by === "observation" ? [mark.observation, mark.end_observation] : [mark.time_ms, mark.end_ms];
  return x === null || ((kind === "incident" ? end ?? Infinity : x) >= least && x <= most);
}

/** Return the starts and ends of at most `points` groups of neighbours. */
function grouped(first, end, points) {
  const size = Math.max(1, Math.ceil((end - first) / Math.max(1, points)));
  const groups = [];
  for (let start = first; start < end; start += size) groups.push([start, Math.min(start + size, end)]);
  return groups;
}

/** Return the most important features, and those that are named in any case. */
function chosen(all, top, names = []) {
  return all.filter((one, place) => place < (top ?? TOP) || names?.includes(one.feature));
}

function cutFeature(feature, groups) {
  const importance = groups.map((group) => mean(feature.importance, group));
  const known = importance.filter((value) => value !== null);
  const end = groups.length ? groups.at(-1)[1] - 1 : -1;
  const half = end < 0 || feature.high[end] === null || feature.low[end] === null ? null : (feature.high[end] - feature.low[end]) / 2;
  const isEnd = end === feature.importance.length - 1;
  return {
    ...feature,
    importance,
    low: groups.map((group) => extreme(Math.min, feature.low, group)),
    high: groups.map((group) => extreme(Math.max, feature.high, group)),
    share: groups.map((group) => mean(feature.share, group)),
    rank: groups.map(([, stop]) => feature.rank[stop - 1]),
    latest: isEnd ? feature.latest : feature.importance[end] ?? null,
    latest_half_width: isEnd ? feature.latest_half_width : half,
    latest_share: isEnd ? feature.latest_share : feature.share[end] ?? null,
    latest_rank: isEnd ? feature.latest_rank : feature.rank[end] ?? feature.latest_rank,
    moved: known.length ? known.at(-1) - known[0] : null,
  };
}

function withOthers(series, shown, left) {
  const share = shown.reduce((sum, one) => sum + (one.latest_share ?? 0), 0);
  return { n: series.others.n + left, share: Math.max(0, 1 - share) };
}

function cutFigures(figures, groups) {
  const cut = (values) => groups.map((group) => mean(values, group));
  const cutAll = (named) => Object.fromEntries(Object.entries(named).map(([key, values]) => [key, cut(values)]));
  return Object.fromEntries(Object.entries(figures).map(([key, values]) => [key, Array.isArray(values) ? cut(values) : cutAll(values)]));
}

function mean(values, [start, end]) {
  let [sum, n] = [0, 0];
  for (let i = start; i < end; i += 1) {
    if (values[i] !== null && values[i] !== undefined) { sum += values[i]; n += 1; }
  }
  return n ? sum / n : null;
}

function extreme(of, values, [start, end]) {
  const known = values.slice(start, end).filter((value) => value !== null);
  return known.length ? of(...known) : null;
}

/** Return the range from the 1 % quantile of lower edges to the 99 % quantile of upper ones; null where none is known. */
function rangeOf(features) {
  const low = features.flatMap((one) => one.low.map((value, i) => value ?? one.importance[i])).filter((value) => value !== null);
  const high = features.flatMap((one) => one.high.map((value, i) => value ?? one.importance[i])).filter((value) => value !== null);
  return low.length && high.length ? [quantile(low, 0.01), quantile(high, 0.99)] : null;
}

function quantile(values, q) {
  const sorted = Float64Array.from(values).sort();
  const place = q * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

function nearest(answer, axis, from, to) {
  const place = axis.findLastIndex((x) => x <= (to ?? from));
  return answer[place >= 0 ? place : 0] ?? null;
}
