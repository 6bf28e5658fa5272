// Starts the page: finds the view that the address names, shows it, and gives it what happens.

import { h, replace, write } from "page/dom.js";
import { applyTheme, createHead } from "page/head.js";
import { bind, listen, showKeys } from "page/keys.js";
import { createLive } from "page/live.js";
import { createSource, served } from "page/source.js";
import { configure, follow, go, link, read } from "page/state.js";
import * as missing from "page/views/missing.js";

const VIEWS = {
  fleet: () => import("page/views/fleet.js"),
  model: () => import("page/views/model.js"),
  incident: () => import("page/views/incident.js"),
  compare: () => import("page/views/compare.js"),
  missing: async () => missing,
};
const LOADING_MS = 200;
const AGAIN_MS = 5000;
const LATER_MS = 15_000;

const place = document.getElementById("view");
const announcer = document.getElementById("announcer");
const source = await createSource();
configure(source.kind === "file" ? { inHash: true, window: "all", by: source.axis } : { root: served().root });
// A file of one model, as of a replay, opens with it.
if (source.only && !location.hash) go({ view: "model", model: source.only }, { replace: true });
const live = createLive(source);
const head = createHead(document.getElementById("head"), document.getElementById("strips"), { source, now: source.now });

let shown = null;
let state = null;
let turn = 0;
let retry = null;

/** Write a sentence into the region that a screen reader reads out. */
function announce(text) {
  write(announcer, "");
  requestAnimationFrame(() => write(announcer, text));
}

/** Show what the address names; `isNew` is false where the same view is drawn anew, which leaves the focus where it is. */
async function draw({ isNew = true } = {}) {
  const mine = (turn += 1);
  clearTimeout(retry);
  state = read(location);
  applyTheme(state.theme);
  head.state(state);
  const loading = setTimeout(() => { if (mine === turn) wait(); }, LOADING_MS);
  const view = await viewOf(state, isNew);
  clearTimeout(loading);
  if (mine !== turn) return view?.close();
  if (!view) return place.removeAttribute("aria-busy");
  const old = shown;
  shown = view;
  old?.close();
  replace(place, view.element);
  place.removeAttribute("aria-busy");
  title();
  if (isNew && old) arrive(view);
  return undefined;
}

/** Return the view, or one that says why there is none; null where what is shown may stay until the next try. */
async function viewOf(wanted, isNew) {
  const context = { source, live, state: wanted, go, link, now: source.now, announce, notice, again: () => draw({ isNew: false }) };
  try {
    const view = await (await code(wanted.view)).show(context);
    notice(null);
    return view;
  } catch (problem) {
    if (problem.status === undefined) console.error(problem);
    const isPassing = problem.status === 0 || problem.status === 429 || problem.status === 503;
    if (isPassing) retry = setTimeout(() => draw({ isNew: false }), AGAIN_MS);
    if (isPassing && shown && !isNew && !shown.isMissing) return notice(problem);
    const view = await missing.show({ ...context, problem: named(problem) });
    return { ...view, isMissing: true };
  }
}

async function code(view) {
  try {
    return await VIEWS[view]();
  } catch (problem) {
    if (!(problem instanceof TypeError)) throw problem;
    throw { status: 0, title: "The server does not answer", detail: "" };
  }
}

/** Say that what is shown is older than it could be, and why; null: it is not. Return null. */
function notice(problem) {
  const said = problem && `What is shown could not be fetched anew: ${(problem.detail || problem.title || String(problem)).replace(/\.$/, "")}. It is asked for again.`;
  head.strip("stale", said);
  if (problem?.status === 0) live.suspect?.();
  return null;
}

function named(problem) {
  if (problem.status !== undefined) return problem;
  return { status: null, title: "This view could not be drawn", detail: String(problem.message ?? problem) };
}

function wait() {
  place.setAttribute("aria-busy", "true");
  if (!shown) replace(place, h("p", { class: "loading", role: "status" }, "Loading…"));
}

function title() {
  document.title = `${shown.title} · Attributary`;
}

function arrive(view) {
  scrollTo(0, 0);
  const heading = view.element.querySelector("h1") ?? place;
  if (!heading.hasAttribute("tabindex")) heading.setAttribute("tabindex", "-1");
  heading.focus({ preventScroll: true });
}

/** Follow links of our own without loading the page anew. */
function onClick(event) {
  const anchor = event.target.closest?.("a[href]");
  if (anchor?.classList.contains("skip")) return skip(event);
  if (!anchor || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const address = anchor.getAttribute("href");
  const isOurs = source.kind === "file" ? address.startsWith("#/") : anchor.origin === location.origin && isPage(anchor.pathname);
  if (!isOurs || anchor.target || anchor.hasAttribute("download")) return;
  event.preventDefault();
  follow(address);
}

function skip(event) {
  event.preventDefault();
  place.focus();
}

function isPage(path) {
  const below = path.slice(served().root.length);
  return /^\/(models\/.*|incidents\/.*|compare)?$/.test(below);
}

function onMove() {
  const before = state;
  const after = read(location);
  const isSame = before && before.view === after.view && before.model === after.model && before.incident === after.incident;
  if (isSame && shown?.move) moveWithin(after);
  else draw({ isNew: !isSame });
}

/** Let a view show another part of the same thing in place; where it cannot, draw it anew. */
async function moveWithin(after) {
  turn += 1;
  state = after;
  applyTheme(state.theme);
  head.state(state);
  try {
    await shown.move(after);
    title();
  } catch {
    draw({ isNew: false });
  }
}

function forward(kind) {
  live.addEventListener(kind, (event) => { shown?.update(kind, event.detail); if (shown) title(); });
}

function follows() {
  for (const kind of ["importance", "incident", "status", "dead_letter_counts", "gone", "batch"]) forward(kind);
  live.addEventListener("incident", (event) => announce(event.detail.headline));
  live.addEventListener("connection", (event) => head.connection(event.detail.state));
  live.addEventListener("heard", (event) => head.heard(event.detail.at_ms));
  live.addEventListener("broker", (event) => head.broker(event.detail));
  live.addEventListener("health", (event) => healthy(event.detail));
  live.addEventListener("build", (event) => sameBuild(event.detail.build));
  live.addEventListener("reload", () => anew());
}

/** Fetch everything anew; what is shown stays until the answers are there. */
async function anew() {
  try {
    healthy(await source.health());
  } catch (problem) {
    return notice(problem);
  }
  return shown?.reload ? shown.reload() : draw({ isNew: false });
}

function healthy(health) {
  head.heard(health.last_event_ms);
  if (health.broker !== "none") head.broker({ answers: health.broker === "answers", since_ms: health.broker_since_ms });
  const share = health.read_share;
  head.strip("past", health.is_reading_past ? `The server still reads what the topics have${share === null ? "" : `: ${Math.floor(share * 100)} %`}. What is shown is not complete yet.` : null, "plain");
  sameBuild(health.build);
}

function sameBuild(build) {
  const mine = served().build;
  if (source.kind === "file" || !mine || mine.includes("{{") || !build || build === mine) return;
  head.strip("build", ["This page is older than the server. ", h("button", { type: "button", class: "quiet", onclick: () => location.reload() }, "Reload")]);
}

bind([
  { keys: ["/"], text: "find a model", run: () => head.search.focus() },
  { keys: ["?"], text: "show the keys", run: showKeys },
  { keys: ["g"], text: "go to all models", run: () => follow(link(state, { view: "fleet" })) },
]);
listen();
follows();
addEventListener("popstate", onMove);
document.addEventListener("click", onClick);
head.connection(source.kind === "file" ? "file" : "reconnecting");
live.open?.();
source.health().then(healthy, () => {});
// The code of the other views is fetched once all else is there: they can then be opened while the server is away.
draw().then(() => setTimeout(() => Object.values(VIEWS).forEach((load) => load().catch(() => {})), LATER_MS));
