// Shows one model: how it is doing, its importances over time, and all that they are to be read with.

import { h, replace } from "page/dom.js";
import { WINDOWS } from "page/state.js";
import { append } from "page/views/panels/append.js";
import { isZoomed, POINTS, seriesOf, windowOf } from "page/views/panels/asked.js";
import { deadLettersPanel, dependencePanel, explainersPanel, incidentsPanel, versionsPanel } from "page/views/panels/beside.js";
import { figurePanels } from "page/views/panels/figures.js";
import { importancePanel } from "page/views/panels/importance.js";
import { after, isOutdated } from "page/views/fleet/words.js";
import { bandsOf, incidentStrip, summaryOf } from "page/views/panels/summary.js";

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
  let isClosed = false;
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

  async function drawBelow() {
    const { view, series, other, incidents, dependences, state } = all;
    const mine = asked;
    const dependent = await dependencePanel({ dependences, state, owner, go });
    if (mine !== asked || isClosed) return dependent?.destroy();
    for (const one of others) one.destroy();
    others = [
      series && explainersPanel({ series, other, owner }),
      dependent,
      incidentsPanel({ ...incidents, owner, state, link, now: now() }),
      versionsPanel({ versions: view.versions, owner, state, go }),
      deadLettersPanel({ reasons: view.dead_letters, owner, now: now(), isFile: source.kind === "file" }),
    ].filter(Boolean);
    replace(below, others.map((one) => one.element));
    return undefined;
  }

  async function drawAll() {
    drawTop();
    drawCharts();
    charts?.importance.controls(all);
    await drawBelow();
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
      if (!below.contains(document.activeElement)) await drawBelow();
    } else await drawAll();
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

  await drawAll();
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
      isClosed = true;
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
