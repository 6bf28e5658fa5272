// Shows one incident from the top down: the verdict; what to do and when; since when, for how long, how much; which features; evidence.

import { h, replace, write } from "page/dom.js";
import { count, middle, thin } from "page/format.js";
import { evidence } from "page/views/incident/evidence.js";
import { features } from "page/views/incident/features.js";
import { figures } from "page/views/incident/figures.js";
import { courseOf, detailsOf, standingOf, whatOf } from "page/views/incident/words.js";
import { copyLink } from "page/views/panels/permalink.js";

const AROUND = 4;
const LEAST = 2000;

/** @param {{source: Object, live: EventTarget, state: Object, link: function, now: function(): number}} context */
export async function show(context) {
  const { source, state } = context;
  const element = h("div", { class: "incident-view" });
  let view = await source.incident(state.incident);
  let parts = draw(element, view, context);
  const ticking = setInterval(() => { if (!document.hidden) parts.tick(); }, 1000);

  /** Fetch the incident anew: another revision of it has come. */
  async function reload() {
    view = await source.incident(state.incident);
    parts.close();
    parts = draw(element, view, context);
  }

  return {
    get title() { return `${standingOf(view.row).sign} ${middle(view.row.headline, 60)}`; },
    element,
    update(kind, data) {
      if (kind === "incident" && data.id === view.row.id) reload().catch(() => {});
    },
    reload,
    close() { clearInterval(ticking); parts.close(); },
  };
}

function draw(element, view, context) {
  const { row, event } = view;
  const { tone } = standingOf(row);
  const since = h("span");
  const drawn = [figures(view, context), features(event), evidence(event)].filter(Boolean);
  const [told, ...below] = drawn;
  replace(element,
    crumbs(row, context),
    h("header", { class: `card incident-head tone-${tone}` }, kicker(row, since),
      h("h1", { tabindex: "-1" }, thin(row.headline)),
      event.action && h("p", { class: row.severity === "critical" && row.standing !== "over" ? "now is-bad" : "now" }, thin(event.action)),
      told.element,
      h("p", { class: "sentence" }, thin(detailsOf(event))),
      view.other && another(view.other, context),
      event.mode && h("p", { class: "hint" }, BEWARE[event.mode] ?? ""),
      tools(view, context)),
    below.map((part) => part.element),
    raw(event));
  const tick = () => { write(since, thin(courseOf(row, context.now()))); told.tick(); };
  tick();
  return { tick, close() { for (const part of drawn) part.close?.(); } };
}

/** Say that another incident of the model is open: one that is over says nothing of how the model is now. */
function another(row, { state, link }) {
  return h("p", { class: `tone-${standingOf(row).tone} other` }, "Open now: ",
    h("a", { href: link(state, { view: "incident", incident: row.id }) }, thin(row.headline)));
}

const BEWARE = {
  mirror: "This is a mirror of another model: what it says is of the copy.",
  anomaly: "An anomaly detector: these are importances of its score; nothing says whether it is right.",
  unlabelled: "No labels: these are importances of the predictions, not of being right.",
};

function crumbs(row, { state, link }) {
  return h("nav", { class: "crumbs", "aria-label": "Where this belongs" },
    h("a", { href: link(state, { view: "fleet" }) }, "All models"), h("span", { "aria-hidden": "true" }, "›"),
    h("a", { href: link(state, { view: "model", model: row.model_id }), title: row.model_id }, middle(row.model_id, 48)),
    h("span", { "aria-hidden": "true" }, "›"), h("span", { "aria-current": "page" }, `Incident ${count(row.number)}`));
}

function kicker(row, since) {
  const { sign, tone, word } = standingOf(row);
  return h("p", { class: "kicker" },
    h("span", { class: `badge tone-${tone}` }, h("span", { "aria-hidden": "true" }, `${sign} `), row.standing === "over" ? since : h("b", null, row.standing === "bad" ? row.severity : word)),
    h("span", null, whatOf(row)), h("span", null, `version ${row.model_version}`));
}

function tools({ row, until, compare }, { state, link }) {
  const width = Math.max(LEAST, until - row.since.observation);
  const [from, to] = [Math.max(0, row.since.observation - AROUND * LEAST), row.standing === "over" ? until + width : null];
  return h("p", { class: "tools" },
    compare && h("a", { class: "button", href: link(state, { view: "compare", a: compare.a, b: compare.b }) }, "Compare before and after"),
    h("a", { class: "button quiet", href: link(state, { view: "model", model: row.model_id, by: "observation", from, to, x: row.features[0] ?? null }) }, "See it in the model"),
    copyLink());
}

function raw(event) {
  return h("details", { class: "card raw" },
    h("summary", null, "Raw event"),
    h("pre", { tabindex: "0" }, JSON.stringify(event, null, 2)));
}
