// Says what to do where there is no model to show.

import { h } from "page/dom.js";
import { count } from "page/format.js";
import { link } from "page/state.js";

/** Where no topic has said anything yet. */
export function noModels({ configured }, { importances_topic: topic, is_reading_past: isReading }) {
  if (isReading) return h("section", { class: "card empty" }, h("h2", null, "Reading what the topics have"), h("p", null, "Models appear as their events are read."));
  const first = configured[0];
  return h("section", { class: "card empty" },
    h("h2", null, "No events on ", h("code", null, topic), " yet"),
    first && h("p", null, configured.length === 1 ? `${first.model_id} publishes its importances after ${count(first.every)} observations (publish.every).` : "A model publishes its importances after so many observations (publish.every):"),
    configured.length > 1 && waitingList(configured),
    h("p", null, "Start a worker, and send it observations:"),
    h("pre", null, h("code", null, commands(first?.model_id))),
    h("p", { class: "hint" }, "This page shows the first importances as soon as they are on the topic; it need not be loaded again."));
}

function commands(model) {
  return `attributary run --config attributary.yaml\nattributary produce history.csv --config attributary.yaml${model ? ` --model ${model}` : ""}`;
}

function waitingList(configured) {
  return h("ul", null, configured.slice(0, 12).map((one) => h("li", null, h("strong", null, one.model_id), ` after ${count(one.every)} observations`)));
}

/** Where models are configured of which nothing has been heard. */
export function notHeard(configured) {
  if (!configured.length) return null;
  const [one, verb] = configured.length === 1 ? ["1 model is", "it publishes"] : [`${count(configured.length)} models are`, "they publish"];
  const names = configured.map((each) => `${each.model_id} after ${count(each.every)} observations`);
  return h("details", { class: "not-heard" },
    h("summary", null, `${one} configured and not heard of yet`),
    h("p", null, `What ${verb} comes with ${names.slice(0, 40).join(", ")}${names.length > 40 ? ` and ${names.length - 40} more` : ""} (publish.every).`));
}

/** Where there are templates, whose models are not all listed. */
export function templateList(templates, state) {
  if (!templates?.length || state.q) return null;
  const facts = (one) => [[one.n_incidents, one.n_incidents === 1 ? "with an incident" : "with incidents"], [one.n_refused, "refused"], [one.n_silent, "silent"], [one.n_waiting, "with labels to come"]]
    .filter(([n]) => n).map(([n, word]) => ` · ${count(n)} ${word}`);
  return h("ul", { class: "templates", "aria-label": "Templates" }, templates.map((one) => h("li", null,
    h("a", { class: "name", href: link(state, { view: "fleet", q: one.template }) }, one.template),
    h("span", null, ` ${count(one.n_models)} ${one.n_models === 1 ? "model" : "models"}`, facts(one)),
    one.n_models > 5 && h("span", { class: "hint" }, " · those that need attention most are above"))));
}

/** Where the search finds nothing. */
export function nothingFound(state) {
  return h("section", { class: "card empty" },
    h("h2", null, `No model's name has “${state.q}” in it`),
    h("p", null, h("a", { class: "button", href: link(state, { view: "fleet" }) }, "Show all models")));
}
