// Draws the importances of a model: lines with bands, a legend that is a table, and what is drawn of them.

import { h, write } from "page/dom.js";
import { count, duration, estimate, isScore, number, percent, scoreVerbs, time } from "page/format.js";
import { colouring, DASHES } from "page/chart/colours.js";
import { panel } from "page/chart/frame.js";
import { lineChart } from "page/chart/line.js";
import { axisOf, isZoomed, lossWords, marksOf, TOPS } from "page/views/panels/asked.js";
import { legend } from "page/views/panels/legend.js";

const FAR = 5;
/** Say whether an explainer has intervals: the splits of trees have none. */
const hasBands = (series) => series.explainer !== "mdi";
/** Say what is read from the height of an importance, and its unit. */
function meaning(loss) {
  if (!isScore(loss.name)) return `Higher: the model relies on it more. In ${lossWords(loss)}.`;
  const [above, below] = scoreVerbs(loss.name);
  return `Above 0: what is there ${above} the score; below 0: it ${below} it. In the ${loss.unit}.`;
}
const MEASURES = {
  importance: { show: (value, half) => estimate(value, half), say: (series) => `${meaning(series.loss)} ${hasBands(series) ? "Band: the 95 % interval; grey: not known yet." : "By the splits of its trees, which have no interval."}` },
  share: { show: (value) => percent(value), say: () => "Share of all importance." },
  rank: { show: (value) => number(value), say: () => "Rank by importance; 1 is the most important." },
};

/** Return the panel of importances; `draw(all)` shows `{series, view, state}`. */
export function importancePanel({ go, link, source, owner, goBack }) {
  let all = null;
  let at = null;
  const hidden = new Set();
  const colours = colouring();
  const controls = h("div", { class: "controls" });
  const hint = h("p", { class: "panel-note is-hint", hidden: true });
  const empty = h("div", { class: "no-events", hidden: true });
  const paused = h("button", { type: "button", class: "paused", hidden: true, onclick: goBack });
  const change = (given) => go({ ...all.state, ...given });
  const chart = lineChart({
    title: "Importance", unit: "", by: "time", x: [], series: [], height: innerWidth < 600 ? 300 : 390, sync: "model", isMain: true,
    onZoom: (from, to) => change({ from: from === null ? null : Math.max(0, from), to }),
    onChoose: (mark) => mark.href && follow(mark.href),
    onCursor: (index) => { at = index; list(); },
  });
  const table = legend({
    onToggle: (name) => { if (!hidden.delete(name)) hidden.add(name); draw(all); },
    onFocus: (name) => chart.setFocus(hidden.has(name) ? null : name),
    onChoose: (name) => change({ x: all.state.x === name ? null : name }),
  });
  const follow = (href) => h("a", { href }).click();
  const body = { ...chart, element: h("div", { class: "importance" }, h("div", { class: "importance-chart" }, paused, empty, chart.element), table.element) };
  const frame = panel({ title: "Importance", owner, chart: body, controls, below: hint, size: "wide" });

  function lines() {
    const { series, state } = all;
    const places = colours(series.features.map((one) => one.feature));
    return series.features.map((one, k) => ({
      name: one.feature, colour: places[k] % 10, dash: DASHES[(places[k] + 3 * Math.floor(places[k] / 10)) % 10], hidden: hidden.has(one.feature),
      ...(state.measure === "importance" ? { values: one.importance, ...(hasBands(series) && { low: one.low, high: one.high }) } : { values: one[state.measure] }),
      isBare: !hasBands(series),
    }));
  }

  function list() {
    if (!all) return;
    const { series, state } = all;
    const shown = at !== null && at < series.time_ms.length ? at : null;
    const words = shown === null ? "Latest" : `${time(series.time_ms[shown], { seconds: true })} · observation ${count(series.observation[shown])}`;
    table.draw({ features: series.features, lines: lines(), chosen: state.x, at: shown, words, others: series.others });
  }

  function draw(given) {
    all = given;
    const { series, view, state } = all;
    const measure = MEASURES[state.measure];
    chart.setData({
      ...axisOf(series, state), series: lines(), marks: marksOf(series, state, link), show: measure.show,
      unit: state.measure === "importance" ? series.loss.unit : "", isReversed: state.measure === "rank", zero: state.measure !== "rank",
      range: rangeOf(series, state.measure),
    });
    const row = view.explainers.find((one) => one.name === series.explainer);
    const isCollecting = hasBands(series) && series.features.length > 0 && series.features.every((one) => one.latest_half_width === null);
    frame.setNote(measure.say(series) + (isCollecting && row ? ` ${count(row.n_observations)} observations explained so far: bands come with more.` : ""));
    write(hint, farWords(series));
    hint.hidden = !hint.textContent;
    noEvents();
    list();
    frame.refresh();
  }

  function noEvents() {
    const { series, state } = all;
    empty.hidden = series.time_ms.length > 0;
    table.element.hidden = !empty.hidden;
    if (!empty.hidden) empty.replaceChildren(...emptyWords(series, state, source.now()).map((text) => h("p", null, text)), ...lastButton(series, change));
  }

  return { ...frame, draw, chart, controls: (given) => controlsOf(controls, given, change, source, chart.zoom), setPaused: (n) => {
    paused.hidden = n === null;
    write(paused, n ? `${count(n)} new ${n === 1 ? "event" : "events"} – back to live` : "Zoomed – back to live");
  } };
}

function rangeOf(series, measure) {
  if (measure === "importance") return series.low === null ? null : [series.low, series.high];
  if (measure === "share") return null;
  const ranks = series.features.flatMap((one) => one.rank).filter(Number.isFinite);
  return ranks.length ? [1, Math.max(2, ...ranks)] : null;
}

function farWords(series) {
  const baseline = series.figures.baseline_loss.findLast((value) => value !== null);
  if (!(baseline > 0)) return "";
  const far = series.features.filter((one) => Math.abs(one.latest ?? 0) > FAR * baseline).map((one) => one.feature);
  if (!far.length) return "";
  const names = far.slice(0, 5).join(", ") + (far.length > 5 ? ` and ${far.length - 5} more` : "");
  return `${names}: far more than a model without features loses. The values that are drawn in its place are far from where the model is in use, as those of a clock or a counter are; it says no more than that the model needs the feature.`;
}

function emptyWords(series, state, now) {
  const isTime = state.by === "time";
  const place = (value) => (isTime || !isZoomed(state) ? time(value, { now }) : `observation ${count(value)}`);
  const from = isZoomed(state) ? state.from : now - ({ "1h": 3600e3, "24h": 86400e3, "7d": 7 * 86400e3 }[state.window] ?? 0);
  const to = state.to ?? (isTime || !isZoomed(state) ? now : null);
  const isLater = to !== null && (isTime || !isZoomed(state) ? series.nearest_ms : series.nearest_observation) > to;
  if (series.nearest_ms === null) return ["No events of this model have been read yet."];
  const last = isTime || !isZoomed(state) ? `${time(series.nearest_ms, { now })} (${duration(now - series.nearest_ms)} ago)` : `observation ${count(series.nearest_observation)}`;
  return [`No events between ${from === null ? "the beginning" : place(from)} and ${to === null ? "the end" : place(to)}; the ${isLater ? "nearest" : "last"} one is of ${last}.`];
}

function lastButton(series, change) {
  if (series.nearest_ms === null) return [];
  return [h("button", { type: "button", class: "plain", onclick: () => change({ by: "time", from: series.nearest_ms - 3600e3, to: series.nearest_ms + 60e3 }) }, "Show it")];
}

/** Put the choices of what is drawn into their place: they are made once per explainer and model. */
function controlsOf(place, { view, state, series }, change, source, zoom) {
  const select = (label, value, choices, chosen) => h("label", { class: "choice" }, h("span", null, label),
    h("select", { onchange: (event) => chosen(event.target.value) }, choices.map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text))));
  const n = series.features.length + series.others.n;
  const tops = TOPS.filter((top, i) => i === 0 || TOPS[i - 1] < n);
  place.replaceChildren(
    ...(view.explainers.length > 1 ? [select("by", series.explainer, view.explainers.map((one) => [one.name, one.name.toUpperCase()]), (explainer) => change({ explainer }))] : []),
    ...(n > TOPS[0] ? [select("top", state.top ?? 10, tops.map((top) => [top, top]), (top) => change({ top: Number(top) }))] : []),
    h("div", { class: "segments", role: "group", "aria-label": "Zoom" }, [["−", "Zoom out", 2], ["+", "Zoom in", 0.5]].map(([sign, label, factor]) =>
      h("button", { type: "button", class: "sign", "aria-label": label, title: `${label} (${sign === "+" ? "+" : "-"} in the chart)`, onclick: () => zoom(factor) }, sign))),
    h("div", { class: "segments", role: "group", "aria-label": "Drawn" }, Object.keys(MEASURES).map((key) =>
      h("button", { type: "button", "aria-pressed": String(state.measure === key), onclick: () => change({ measure: key }) }, key))),
    ...(series.others.n ? [searchBox({ state, series, change, source })] : []));
}

function searchBox({ state, series, change, source }) {
  const options = h("datalist", { id: "feature-names" });
  const fill = async () => {
    if (options.children.length) return;
    const now = `${state.model}@now`;
    const names = await source.compare(now, now, series.explainer).then((found) => found.features.map((one) => one.feature), () => series.features.map((one) => one.feature));
    options.replaceChildren(...names.map((name) => h("option", { value: name })));
  };
  const choose = (event) => {
    const name = event.target.value.trim();
    if (name && [...options.children].some((one) => one.value === name)) change({ x: name });
  };
  return h("label", { class: "choice" }, h("span", { class: "unseen" }, "Find a feature"),
    h("input", { type: "search", list: "feature-names", placeholder: "find a feature", size: 14, onfocus: fill, onchange: choose, oninput: (event) => event.inputType !== "insertText" && choose(event) }), options);
}
