// One model: how it is doing, its importances over time, and all that they are to be read with.

import { h, replace, write } from "page/dom.js";
import { ago, count, duration, estimate, isScore, lossOf, middle, number, percent, scoreVerbs, thin, time } from "page/format.js";
import { WINDOWS } from "page/state.js";
import { is } from "page/chart/axes.js";
import { colouring, DASHES, swatch } from "page/chart/colours.js";
import { lineChart } from "page/chart/lines.js";
import { panel } from "page/chart/panel.js";
import { bars, dependence } from "page/chart/rows.js";
import { after, courseOf, isOutdated, lossUnit, standingOf, stateOf } from "page/views/words.js";

const ANEW_MS = 15_000;

async function fetchAll(context) {
  const { source, state } = context;
  const view = await source.model(state.model, { window: state.window });
  const names = view.explainers.map((one) => one.name);
  const explainer = names.includes(state.explainer) ? state.explainer : names[0];
  const { from, to, by } = windowOf(state, context.now());
  const another = names.find((name) => name !== explainer);
  const [series, incidents, dependences] = await Promise.all([
    explainer ? seriesOf(context, explainer) : null,
    source.incidents(state.model, by === "time" ? { from, to } : {}),
    view.dependences.length ? source.dependences(state.model) : { dependences: [] },
  ]);
  const other = another && series?.features.length
    ? await source.series(state.model, { explainer: another, from, to, by, points: 2, features: series.features.slice(0, 10).map((one) => one.feature) }).catch(() => null)
    : null;
  return { view, series, other, incidents, dependences: dependences.dependences, state };
}

export async function show(context) {
  const { source, go, link, now, announce } = context;
  let all = await fetchAll(context);
  let asked = 0;
  let timer = 0;
  let isStale = false;
  let n_new = 0;
  let others = [];
  let charts = null;
  const owner = context.state.model;
  const back = () => go({ ...all.state, from: null, to: null });
  const top = h("div", { class: "model-top" });
  const wide = h("div");
  const grid = h("div", { class: "part" });
  const below = h("div", { class: "part" });
  const element = h("article", { class: "model" }, top, wide, h("div", { class: "panels" }, grid, below));

  function make() {
    if (charts && all.series) return;
    charts?.importance.destroy(); // the server reads its topics anew, and has none of the events yet
    charts?.figures.destroy();
    charts = null;
    replace(grid);
    replace(wide, all.series ? null : h("p", { class: "card panel wide" }, all.view.row.state === "refused"
      ? "The model refuses observations: no importance of it has been published. Dead letters say why."
      : "No importance of this model has been published yet."));
    if (!all.series) return;
    const given = { go, link, source, owner, goBack: back };
    charts = { importance: importancePanel(given), figures: figurePanels({ ...given, place: (elements) => keep(grid, elements) }) };
    wide.append(charts.importance.element);
  }

  function drawTop() {
    const focus = top.contains(document.activeElement) ? document.activeElement.textContent : null;
    replace(top, summaryOf(all.view), bandsOf(all.view), incidentStrip(all.view, all.state, link, now()));
    if (focus !== null) [...top.querySelectorAll("a, h1")].find((one) => one.textContent === focus)?.focus({ preventScroll: true });
  }

  function drawCharts() {
    make();
    charts?.importance.draw(all);
    charts?.figures.draw(all);
    charts?.importance.setPaused(isZoomed(all.state) ? n_new : null);
  }

  function drawBelow() {
    const { view, series, other, incidents, dependences, state } = all;
    for (const one of others) one.destroy();
    others = [
      series && explainersPanel({ series, other, owner }),
      dependencePanel({ dependences, state, owner, go }),
      incidentsPanel({ ...incidents, owner, state, link, now: now() }),
      versionsPanel({ versions: view.versions, owner, state, go }),
      deadLettersPanel({ reasons: view.dead_letters, owner, now: now(), isFile: source.kind === "file" }),
    ].filter(Boolean);
    replace(below, others.map((one) => one.element));
  }

  function drawAll() {
    drawTop();
    drawCharts();
    charts?.importance.controls(all);
    drawBelow();
  }

  /** Fetch all anew; an answer that another question has overtaken is dropped. */
  async function refetch(state = all.state, isQuiet = false) {
    const mine = (asked += 1);
    clearTimeout(timer);
    timer = 0;
    const got = await fetchAll({ ...context, state });
    if (mine !== asked) return;
    const isSame = isQuiet && JSON.stringify(got.view.explainers.map((one) => one.name)) === JSON.stringify(all.view.explainers.map((one) => one.name));
    all = got;
    if (!isQuiet) n_new = 0;
    if (isSame) {
      drawTop();
      drawCharts();
      if (!below.contains(document.activeElement)) drawBelow();
    } else drawAll();
  }

  const later = (ms) => {
    timer ||= setTimeout(() => { timer = 0; refetch(all.state, true).catch(() => {}); }, ms);
  };

  function happened(event) {
    if (!all.series || event.explainer !== all.series.explainer) return later(all.series ? ANEW_MS : 1000);
    const { row } = all.view;
    all.view = { ...all.view, row: { ...row, n_observations: Math.max(row.n_observations ?? 0, event.observation), model_loss: event.model_loss, baseline_loss: event.baseline_loss, version: event.version, fidelity: event.fidelity, last_event_ms: event.time_ms } };
    if (isZoomed(all.state)) {
      n_new += 1;
      isStale = true;
      return undefined;
    }
    const span = WINDOWS[all.state.window];
    const before = all.series;
    all.series = append(before, event, span === null ? null : event.time_ms - span);
    if (all.series !== before) isStale = true;
    return later(all.series.time_ms.length > 1.5 * POINTS || isOvertaken(event) ? 1000 : ANEW_MS);
  }

  /** Say whether another feature is now among the most important ones: its past has to be fetched. */
  function isOvertaken(event) {
    const shown = new Set(all.series.features.map((one) => one.feature));
    const n = Math.min(all.state.top ?? 10, shown.size);
    return Object.entries(event.features).some(([name, [, , , rank]]) => rank <= n && !shown.has(name));
  }

  const actions = {
    importance: happened,
    incident: () => later(500),
    status: (status) => {
      const { row } = all.view;
      if (isOutdated(row, status)) later(500);
      all.view = { ...all.view, row: after(row, "status", status), guard: status.guard ?? all.view.guard };
      isStale = true;
    },
    gone: () => announce(`${owner} is gone: no worker has it any more.`),
  };

  drawAll();
  return {
    get title() {
      return `${all.view.row.state === "incident" ? "▲ " : ""}${owner}`;
    },
    element,
    update(kind, data) {
      if (kind === "dead_letter_counts" && data[owner]) later(2000);
      if (actions[kind] && data.model_id === owner) actions[kind](data);
      if (kind !== "batch" || !isStale) return;
      isStale = false;
      drawTop();
      drawCharts();
    },
    /** Show another window, or other features, of the same model; what has the focus keeps it. */
    move: (state) => refetch(state),
    reload: () => refetch(all.state, true),
    close() {
      asked += 1;
      clearTimeout(timer);
      charts?.importance.destroy();
      charts?.figures.destroy();
      for (const one of others) one.destroy();
    },
  };
}

/** Put elements into a place in this order, without moving those that are there already. */
function keep(place, elements) {
  elements.forEach((element, i) => { if (place.children[i] !== element) place.insertBefore(element, place.children[i] ?? null); });
}

const TOPS = [5, 10, 20, 50];
/** Points of a chart: one for every two or three pixels of its width. */
const POINTS = Math.min(600, Math.max(200, Math.round(innerWidth * 0.24)));
/** Points times features that the server answers with at most. */
const MOST_VALUES = 20_000;

/** Say whether the address names a part of the window, which is then not moved by what comes. */
function isZoomed(state) {
  return state.from !== null || state.to !== null;
}

/** Return from where to where, and by what, series are asked for. */
function windowOf(state, now) {
  if (isZoomed(state)) return { from: state.from, to: state.to, by: state.by };
  const span = WINDOWS[state.window];
  return { from: span === null ? null : now - span, to: null, by: "time" };
}

/** Get the series of a model, and of the chosen feature where it is not among the most important ones. */
async function seriesOf({ source, state, now }, explainer) {
  const top = state.top ?? 10;
  const asked = { explainer, ...windowOf(state, now()), top, points: Math.min(POINTS, Math.floor(MOST_VALUES / top)) };
  const series = await source.series(state.model, asked);
  if (!state.x || !series.features.length || series.features.some((one) => one.feature === state.x)) return series;
  const more = await source.series(state.model, { ...asked, top: undefined, features: [state.x] }).catch(() => null);
  const found = more?.features.find((one) => one.feature === state.x && one.importance.length === series.time_ms.length);
  if (!found) return series;
  const others = { n: Math.max(0, series.others.n - 1), share: series.others.share === null ? null : Math.max(0, series.others.share - (found.latest_share ?? 0)) };
  return { ...series, features: [...series.features, found], others };
}

/** Return the axis of charts: its points, the other of time and observation, and the window where it is zoomed. */
function axisOf(series, state) {
  const isTime = state.by === "time";
  const [x, other] = isTime ? [series.time_ms, series.observation] : [series.observation, series.time_ms];
  const edges = [state.from ?? x[0], state.to ?? x.at(-1)];
  return { by: state.by, x, other, window: isZoomed(state) && edges.every(Number.isFinite) ? edges : null };
}

/** Return the marks of a series on that axis, each with the address of what it stands for; those of incidents have an end. */
function marksOf(series, state, link) {
  const isTime = state.by === "time";
  return series.marks
    .map((mark) => ({
      text: mark.text,
      standing: mark.standing,
      at: isTime ? mark.time_ms : mark.observation,
      end: mark.kind === "incident" ? (isTime ? mark.end_ms : mark.end_observation) ?? Infinity : null,
      href: mark.incident_id && link(state, { view: "incident", incident: mark.incident_id }),
    }))
    .filter((mark) => Number.isFinite(mark.at));
}

const FIGURES = ["model_loss", "baseline_loss", "present_loss", "discrepancy", "shift", "n_waiting", "n_expired", "fidelity"];

const finite = (value) => (Number.isFinite(value) ? value : null);

/**
 * Return a series with the point of an event behind its last one; the same series where it has that event already.
 * @param {Object} series As `answers/series.py` has it.
 * @param {Object} event As the stream has it.
 * @param {number|null} least Time of the earliest point that the window still has.
 */
export function append(series, event, least) {
  const last = series.observation.at(-1);
  if (last !== undefined && event.observation <= last) return series;
  const from = least === null ? 0 : Math.max(0, series.time_ms.findIndex((time) => time >= least));
  const add = (values, value) => [...values.slice(from), value];
  const features = series.features.map((one) => {
    const [value, half, share, rank] = event.features[one.feature] ?? [];
    const [now, width] = [finite(value), finite(half)];
    const isKnown = now !== null && width !== null;
    const importance = add(one.importance, now);
    const first = importance.find((each) => each !== null);
    return {
      ...one, importance,
      low: add(one.low, isKnown ? now - width : null), high: add(one.high, isKnown ? now + width : null),
      share: add(one.share, finite(share)), rank: add(one.rank, finite(rank)),
      latest: now, latest_half_width: width, latest_share: finite(share), latest_rank: rank ?? one.latest_rank,
      moved: now === null || first === undefined ? one.moved : now - first,
    };
  });
  const figures = { ...series.figures };
  for (const [key, values] of Object.entries(series.figures)) {
    figures[key] = Array.isArray(values)
      ? add(values, FIGURES.includes(key) ? finite(event[key]) : null)
      : Object.fromEntries(Object.entries(values).map(([name, each]) => [name, add(each, null)]));
  }
  const shown = features.reduce((sum, one) => sum + (one.latest_share ?? 0), 0);
  return {
    ...series,
    ...reach(series, features),
    n_events: series.n_events + 1,
    time_ms: add(series.time_ms, event.time_ms),
    observation: add(series.observation, event.observation),
    features: features.sort((a, b) => a.latest_rank - b.latest_rank),
    others: { ...series.others, share: series.others.n ? Math.max(0, 1 - shown) : series.others.share },
    figures,
  };
}

/** Widen the range for what goes beyond it by less than half of it; what is farther away is marked at the rim. */
function reach({ low, high }, features) {
  if (low === null || high === null) return { low, high };
  const room = (high - low) / 2;
  const ends = features.flatMap((one) => [one.low.at(-1), one.high.at(-1)]).filter((value) => value !== null && value > low - room && value < high + room);
  return { low: Math.min(low, ...ends), high: Math.max(high, ...ends) };
}

/** Return the name of a model and the line below it. */
export function summaryOf({ row, guard }) {
  const { sign, kind, word, said } = stateOf(row);
  const loss = lossOf(row.model_loss, row.loss);
  const baseline = lossOf(row.baseline_loss, row.loss);
  const facts = [
    row.version !== null && [h("span", { class: "key" }, "version "), row.version],
    row.n_observations !== null && [count(row.n_observations), h("span", { class: "key" }, " observations")],
    row.observations_per_second !== null && [number(row.observations_per_second), h("span", { class: "key" }, " per second")],
    row.model_loss !== null && [h("span", { class: "key" }, isScore(row.loss?.name) ? "mean score " : loss.isRoot ? "√loss " : "loss "), h("b", null, number(loss.value)),
      row.baseline_loss !== null && [h("span", { class: "key" }, " against "), number(baseline.value), h("span", { class: "key" }, ` of the baseline${row.baseline_loss > 0 ? `, ${percent(loss.value / baseline.value).replace(" ", "\u00a0")}` : ""}`)],
      h("span", { class: "key" }, loss.isRoot ? `, in the ${loss.unit}` : row.loss && !isScore(row.loss.name) && `, in ${lossUnit(row.loss)}`)],
    row.fidelity !== null && [h("span", { class: "key" }, "fidelity "), number(row.fidelity)],
    guard && guardFact(guard),
    row.n_refused > 0 && [count(row.n_refused), h("span", { class: "key" }, " observations refused")],
  ].filter(Boolean);
  return h("header", { class: "model-head" },
    h("h1", null, row.model_id, " ", h("span", { class: `state is-${kind === "plain" ? "muted" : kind}`, title: said }, h("span", { "aria-hidden": "true" }, `${sign} `), row.mode === "labelled" ? word : `${word} · ${row.mode}`)),
    h("ul", { class: "facts" }, facts.map((fact) => h("li", null, fact))));
}

/** Return since when the loss is watched: the verdict, and less loudly its figures. */
function guardFact({ sentence, waits_for }) {
  const [, verdict, figures] = /^(.*?)(: .*)?$/s.exec(thin(sentence));
  return [h("span", { class: "key" }, "loss watch "), verdict, h("span", { class: "key" }, figures, waits_for && "; until then no rise of the loss is told")];
}

/** Return the bands that say how all numbers of a model are meant, and what to know before they are believed. */
function bandsOf({ row, notes }) {
  const isMode = (note) => note.startsWith("These are importances of");
  return [...modeBands(row), ...(notes ?? []).filter((note) => !isMode(note)).map((note) => h("p", { class: "mode-band" }, note))];
}

function scoreBand(loss) {
  const [above, below] = scoreVerbs(loss?.name);
  return `These are importances of an anomaly score: positive where a feature ${above} it, negative where it ${below} it`;
}

function modeBands(row) {
  if (row.mode === "labelled") return [];
  if (row.mode === "unlabelled") return [h("p", { class: "mode-band" }, "These are importances of the predictions, not of being right")];
  if (row.mode === "anomaly") return [h("p", { class: "mode-band" }, scoreBand(row.loss))];
  const fidelity = row.fidelity === null ? "fidelity not known yet" : `fidelity ${number(row.fidelity)}`;
  return [h("p", { class: row.is_unfaithful ? "mode-band is-warn" : "mode-band" }, `These are importances of a mirror; ${fidelity}${row.is_unfaithful ? " (low)" : ""}`)];
}

/** Return the strip of the incident that is open, or of the last one; null where there is none. */
function incidentStrip({ row: { incident } }, state, link, now) {
  if (!incident) return null;
  const { sign, tone } = standingOf(incident);
  return h("div", { class: `incident-strip tone-${tone}` },
    h("p", null, h("b", null, h("span", { "aria-hidden": "true" }, `${sign} `), thin(`${courseOf(incident, now)}: `)), thin(incident.sentence)),
    h("p", { class: "links" }, h("a", { href: link(state, { view: "incident", incident: incident.id }) }, "see the incident")));
}

const FAR = 5;
/** Say whether an explainer has intervals: the splits of trees have none. */
const hasBands = (series) => series.explainer !== "mdi";
/** Say what is read from the height of an importance, and its unit. */
function meaning(loss) {
  if (!isScore(loss.name)) return `Higher: the model relies on it more. In ${lossUnit(loss)}.`;
  const [above, below] = scoreVerbs(loss.name);
  return `Above 0: what is there ${above} the score; below 0: it ${below} it. In the ${loss.unit}.`;
}
const MEASURES = {
  importance: { show: (value, half) => estimate(value, half), say: (series) => `${meaning(series.loss)} ${hasBands(series) ? "Band: the 95 % interval; grey: not known yet." : "By the splits of its trees, which have no interval."}` },
  share: { show: (value) => percent(value), say: () => "Share of all importance." },
  rank: { show: (value) => number(value), say: () => "Rank by importance; 1 is the most important." },
};

/** Return the panel of importances; `draw(all)` shows `{series, view, state}`. */
function importancePanel({ go, link, source, owner, goBack }) {
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

/**
 * Return the legend.
 * @param {{onToggle: (name) => void, onFocus: (name|null) => void, onChoose: (name) => void}} told
 */
function legend({ onToggle, onFocus, onChoose }) {
  const moment = h("caption", null, "");
  const foot = h("p", { class: "others" });
  const table = h("table", { class: "legend" }, moment,
    h("thead", null, h("tr", null, h("th", { scope: "col", colspan: 2 }, "feature"), h("th", { scope: "col" }, "value ± 95 %"), h("th", { scope: "col" }, "share"),
      h("th", { scope: "col", class: "is-rank" }, "rank"), h("th", { scope: "col", class: "is-moved", title: "since the start of the window" }, "Δ window"))));
  table.addEventListener("pointerleave", () => onFocus(null));

  function row(one, line, chosen, at, isLong) {
    const [value, half, share, rank] = at === null
      ? [one.latest, one.latest_half_width, one.latest_share, one.latest_rank]
      : [one.importance[at], one.low[at] === null ? null : (one.high[at] - one.low[at]) / 2, one.share[at], one.rank[at]];
    const isKnown = line.isBare || (half !== null && half !== undefined);
    const values = [
      h("td", null, value === null || value === undefined ? "–" : estimate(value, half)),
      h("td", null, share === null || share === undefined ? "–" : percent(share)),
      h("td", { class: "is-rank" }, rank || "–"),
      h("td", { class: "is-moved" }, movedWords(one)),
    ];
    const head = [
      h("td", { class: "is-toggle", rowspan: isLong ? 2 : null }, h("button", { type: "button", class: "toggle", "aria-pressed": String(!line.hidden), "aria-label": `Line of ${one.feature}`, onclick: () => onToggle(one.feature) }, swatch(line))),
      h("th", { scope: isLong ? "rowgroup" : "row", colspan: isLong ? 5 : null }, h("button", { type: "button", class: "name", title: one.feature, "aria-current": one.feature === chosen ? "true" : null,
        onfocus: () => onFocus(one.feature), onblur: () => onFocus(null), onclick: () => onChoose(one.feature) }, cut(one.feature, isLong ? 130 : 24))),
    ];
    return h("tbody", { class: [one.feature === chosen && "is-chosen", line.hidden && "is-hidden", !isKnown && "is-collecting"].filter(Boolean).join(" ") || null, onpointerenter: () => onFocus(one.feature) },
      isLong ? [h("tr", null, head), h("tr", null, h("td", { class: "is-blank" }), values)] : h("tr", null, head, values));
  }

  return {
    element: h("div", { class: "legend-box" }, table, foot),
    draw({ features, lines, chosen, at, words, others }) {
      const focus = table.contains(document.activeElement) ? document.activeElement : null;
      const place = focus && [focus.className, focus.title || focus.getAttribute("aria-label")];
      replace(moment, words);
      const isLong = features.some((one) => one.feature.length > 24);
      for (const one of [...table.tBodies]) one.remove();
      table.append(...features.map((one, k) => row(one, lines[k], chosen, at, isLong)));
      if (place) [...table.querySelectorAll("button")].find((one) => one.className === place[0] && (one.title || one.getAttribute("aria-label")) === place[1])?.focus({ preventScroll: true });
      foot.textContent = others.n ? `${count(others.n)} ${others.n === 1 ? "other" : "others"}${others.share === null ? "" : `, together ${percent(others.share)}`}` : "";
      foot.hidden = !others.n;
    },
  };
}

/** Return a name that may be broken behind its separators. */
function breakable(name) {
  return h("span", null, name.split(/(?<=[_./:\-])/u).flatMap((part, i) => (i ? [h("wbr"), part] : [part])));
}

/** Return how much an importance moved, with the digits that its interval lets count. */
function movedWords({ moved, latest_half_width: half }) {
  if (moved === null) return "–";
  const text = half ? estimate(moved, half * Math.SQRT2).replace(/^\(/, "").split(" ± ")[0] : number(moved);
  if (Number(text.replaceAll(" ", "")) === 0) return "0";
  const power = half ? estimate(moved, half * Math.SQRT2).match(/\)? ?(× 10.*|\p{L}+)$/u)?.[1] : null;
  return `${moved > 0 ? "+" : ""}${text}${power ? ` ${power}` : ""}`;
}

/** Return a name with its middle cut where it is too long; on focus the whole one stands in its place. */
function cut(name, most) {
  const shown = middle(name, most);
  return shown === name ? breakable(name) : [h("span", { class: "is-cut" }, shown), h("span", { class: "is-whole" }, name)];
}

const OWN_SCALE = ["cross_entropy", "mae", "mape", "mse", "r2", "rmse", "smape"];
const known = (values) => (values ?? []).some(is);

function lossLines({ series, view }) {
  const root = (values) => values.map((value) => (is(value) ? lossOf(value, view.row.loss ?? series.loss).value : null));
  const { model_loss, baseline_loss, present_loss } = series.figures;
  return [
    { name: "model", values: root(model_loss), colour: 0 },
    { name: "baseline", values: root(baseline_loss), colour: 9, isReference: true },
    ...(known(present_loss) ? [{ name: "present model", values: root(present_loss), colour: 3 }] : []),
  ];
}

function qualityLines({ series }, names) {
  return names.flatMap((name, i) => [
    { name, values: series.figures.quality[name], colour: i },
    { name: `${name}, reference`, values: series.figures.quality_reference[name] ?? [], colour: i, isReference: true },
  ]).filter((line) => known(line.values));
}

/** Return what can be drawn: a title, whether there is anything, its lines, and words. */
function figuresOf({ series, view }) {
  const { figures } = series;
  const loss = lossOf(1, view.row.loss ?? series.loss);
  const isOfScore = isScore((view.row.loss ?? series.loss)?.name);
  const spreads = `spreads of the ${isOfScore ? "score" : "target"}`;
  const qualities = Object.keys(figures.quality).filter((name) => known(figures.quality[name]));
  const groups = [qualities.filter((name) => !OWN_SCALE.includes(name)), ...qualities.filter((name) => OWN_SCALE.includes(name)).map((name) => [name])].filter((names) => names.length);
  return [
    { title: "Mean score", has: isOfScore && known(figures.model_loss), unit: "", zero: true,
      lines: () => [{ name: "score", values: figures.model_loss, colour: 0 }],
      note: () => "Mean of the anomaly score before the model learns each observation, smoothed. Higher is stranger." },
    { title: "Loss and baseline", has: !isOfScore && known(figures.model_loss), unit: loss.unit, zero: true, lines: lossLines,
      note: () => `Lower is better. Baseline: the mean prediction, which knows no feature. ${loss.isRoot ? `Root of the squared loss, in the ${loss.unit}.` : `In ${loss.unit}.`}${known(figures.present_loss) ? " Present model: what has learnt since, on the same observations." : ""}` },
    // A model that does not learn is its own reference: there is no distance to draw.
    { title: "Discrepancy", has: (figures.discrepancy ?? []).some((value) => is(value) && value !== 0), unit: spreads, zero: true,
      lines: () => [{ name: "discrepancy", values: figures.discrepancy, colour: 0 }],
      level: view.threshold === null ? null : { name: "threshold", value: view.threshold },
      note: () => `How far predictions are from those of the reference model, in ${spreads}; it starts anew with each reference.` },
    { title: "Shift of importance", has: known(figures.shift), unit: "share", zero: true, show: percent,
      lines: () => [{ name: "moved", values: figures.shift, colour: 4 }],
      note: () => "Share of importance that has moved since the reference." },
    { title: "Labels", has: known(figures.n_waiting), unit: "observations", zero: true, show: (value) => count(value),
      lines: () => [{ name: "waiting", values: figures.n_waiting, colour: 0 }, { name: "expired", values: figures.n_expired, colour: 7 }].filter((line) => known(line.values)),
      note: () => labelWords(view) },
    { title: "Fidelity of the mirror", has: known(figures.fidelity), unit: "", lines: () => [{ name: "fidelity", values: figures.fidelity, colour: 2 }],
      note: () => "How well the mirror follows the model that it stands for; 1 is exactly." },
    ...groups.map((names, i) => ({ title: i === 0 && !OWN_SCALE.includes(names[0]) ? "Quality" : `Quality: ${names[0]}`, has: true, unit: "", lines: () => qualityLines({ series }, names),
      note: () => "By River's metrics, before the model learns each observation, smoothed. Dashed: over the reference." })),
  ].filter((figure) => figure.has);
}

function labelWords({ row, label_delay_median_s }) {
  const parts = [
    row.n_waiting !== null && `${count(row.n_waiting)}${row.waiting_limit ? ` of ${count(row.waiting_limit)}` : ""} wait for their label`,
    row.n_expired !== null && `${count(row.n_expired)} expired without one`,
    label_delay_median_s !== null && `half of the labels come within ${duration(label_delay_median_s * 1000)}`,
  ].filter(Boolean);
  return parts.length ? `${parts.join(", ")}.` : "";
}

/** Return the panels of figures; `draw(all)` makes those that have become known, and removes those that are not. */
function figurePanels({ go, link, owner, place }) {
  const made = new Map();
  let all = null;
  const zoom = (from, to) => go({ ...all.state, from: from === null ? null : Math.max(0, from), to });

  function make(figure) {
    const chart = lineChart({ title: figure.title, unit: figure.unit, by: "time", x: [], series: [], sync: "model", height: 200, onZoom: zoom, onChoose: () => {} });
    return { chart, frame: panel({ title: figure.title, owner, chart }) };
  }

  return {
    draw(given) {
      all = given;
      const figures = figuresOf(all);
      for (const [title, one] of made) {
        if (figures.some((figure) => figure.title === title)) continue;
        one.frame.destroy();
        one.frame.element.remove();
        made.delete(title);
      }
      for (const figure of figures) {
        if (!made.has(figure.title)) made.set(figure.title, make(figure));
        const { chart, frame } = made.get(figure.title);
        const marks = marksOf(all.series, all.state, link);
        chart.setData({ ...axisOf(all.series, all.state), series: figure.lines(all), level: figure.level, zero: figure.zero, show: figure.show ?? ((value) => number(value)), marks });
        frame.setNote(figure.note());
        frame.refresh();
      }
      place([...made.values()].map((one) => one.frame.element));
    },
    destroy() {
      for (const one of made.values()) one.frame.destroy();
    },
  };
}

/** Return the panel of two explainers beside each other; null where there is one. */
function explainersPanel({ series, other, owner }) {
  const features = series.features.slice(0, 10);
  if (!features.length) return null;
  const of = new Map((other?.features ?? []).map((one) => [one.feature, one]));
  const rows = features.map((one) => ({ name: one.feature, value: one.latest, halfWidth: one.latest_half_width, before: of.get(one.feature)?.latest, beforeHalf: of.get(one.feature)?.latest_half_width }));
  const [mine, its] = [series.explainer.toUpperCase(), other?.explainer.toUpperCase()];
  const title = other ? `${its} beside ${mine}` : `${mine} at the end of the window`;
  const chart = bars({ title, unit: series.loss.unit, rows, sides: other ? [mine, its] : undefined });
  return panel({ title, owner, chart, note: `In ${lossUnit(series.loss)}${rows.some((row) => Number.isFinite(row.halfWidth ?? row.beforeHalf)) ? ", with the 95 % interval" : ""}.${other ? ` Thin: ${its}.` : ""}` });
}

/** Return the panel of partial dependence; null where there is none. */
function dependencePanel({ dependences, state, owner, go }) {
  if (!dependences.length) return null;
  const features = [...new Set(dependences.map((one) => one.feature))];
  const feature = features.includes(state.x) ? state.x : features[0];
  const answers = dependences.filter((one) => one.feature === feature);
  const box = h("div");
  const titleOf = (answer) => (features.length > 1 ? "Partial dependence" : `Partial dependence on ${answer.feature}`);
  let chart = null;
  const current = { element: box, table: () => chart.table(), picture: () => chart.picture(), destroy: () => chart.destroy() };
  const choices = features.length > 1 && h("label", { class: "choice" }, h("span", null, "of"),
    h("select", { onchange: (event) => go({ ...state, x: event.target.value }) }, features.map((name) => h("option", { value: name, selected: name === feature }, name))));
  const labels = answers.length > 1 && h("label", { class: "choice" }, h("span", null, "label"),
    h("select", { onchange: (event) => show(answers[Number(event.target.value)]) }, answers.map((one, i) => h("option", { value: i }, one.label))));
  const frame = panel({ title: titleOf(answers[0]), owner, chart: current, controls: [choices, labels] });

  function show(answer) {
    chart?.destroy();
    chart = dependence({ title: `Partial dependence on ${answer.feature}`, unit: "", answer });
    box.replaceChildren(chart.element);
    frame.setNote(`Mean prediction${answer.label === null ? "" : `, the probability of ‘${answer.label}’,`} where ${answer.feature} had this value; at observation ${count(answer.observation)}.`);
    frame.refresh();
  }

  show(answers[0]);
  return frame;
}

/** Return the panel of dead letters by reason; null where there are none. */
function deadLettersPanel({ reasons, owner, now, isFile }) {
  const n = reasons.reduce((sum, one) => sum + one.n, 0);
  if (!n) return null;
  const table = h("table", { class: "rows" }, h("thead", null, h("tr", null, ["reason", "stage", "records", ...(isFile ? [] : ["last"])].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, reasons.map((one) => h("tr", null, h("th", { scope: "row" }, one.reason), h("td", null, one.stage), h("td", { class: "is-number" }, count(one.n)), !isFile && h("td", { title: time(one.last_ms) }, ago(one.last_ms, now))))));
  const where = isFile ? "dead-letters.jsonl, beside this file, has each with what is wrong." : "attributary dlq list shows each with what is wrong.";
  return panel({ title: "Dead letters", owner, size: "short", note: `${count(n)} ${n === 1 ? "record" : "records"} could not be used; ${where}`, below: table });
}

/** Return the panel of versions; null where no event has named one. */
function versionsPanel({ versions, owner, state, go }) {
  if (!versions.length) return null;
  const of = (one) => (state.by === "time" && one.first_ms !== null ? [one.first_ms, one.last_ms] : [one.first_observation, one.last_observation]);
  const text = (value) => (state.by === "time" ? time(value) : count(value));
  const table = h("table", { class: "rows" }, h("thead", null, h("tr", null, ["version", "from", "to", ""].map((head) => h("th", { scope: "col" }, head || h("span", { class: "unseen" }, "window"))))),
    h("tbody", null, versions.map((one, i) => h("tr", null, h("th", { scope: "row" }, one.version), h("td", null, text(of(one)[0])), h("td", null, i === 0 ? "now" : text(of(one)[1])),
      h("td", null, h("button", { type: "button", class: "quiet", "aria-label": `Show the window of version ${one.version}`, onclick: () => go({ ...state, by: one.first_ms === null ? "observation" : state.by, from: of(one)[0], to: of(one)[1] }) }, "Show"))))));
  return panel({ title: "Versions", owner, size: "short", below: table });
}

/** Return the panel of a model's incidents, those first that began last. */
function incidentsPanel({ incidents, n, owner, state, link, now }) {
  const items = incidents.map((row) => {
    const { sign, tone } = standingOf(row);
    return h("li", { class: `tone-${tone}` }, h("span", { class: "glyph", "aria-hidden": "true" }, sign),
      h("div", null, h("a", { href: link(state, { view: "incident", incident: row.id }), title: row.sentence }, thin(row.headline)),
        h("p", { class: "when" }, thin(courseOf(row, now)))));
  });
  const more = h("button", { type: "button", class: "quiet", hidden: items.length <= 6, onclick: () => { list.classList.remove("is-short"); more.remove(); } }, `Show all ${count(items.length)}`);
  const list = h("ol", { class: items.length > 6 ? "incident-list is-short" : "incident-list" }, items);
  const note = items.length ? (n > items.length ? `The last ${count(items.length)} of ${count(n)}.` : "") : "None in this window.";
  return panel({ title: "Incidents", owner, note, size: "tall", below: items.length ? [list, more] : null });
}
