// Shows what cannot be shown: a bad address, a model that is not there, an answer that did not come.

import { h } from "page/dom.js";
import { count } from "page/format.js";
import { link } from "page/state.js";

const MOST = 12;

/**
 * @param {{state: Object, problem?: {status?: number, title?: string, detail?: string, suggestion?: string},
 *   again?: function(): void}} context problem: what was answered instead.
 */
export async function show({ source, state, problem, again }) {
  const said = words(state, problem);
  const element = h("div", { class: "missing" },
    h("section", { class: "card" },
      h("h1", { tabindex: "-1" }, said.title),
      said.text && h("p", null, said.text),
      h("p", { class: "ways" }, ways(state, problem, again))),
    problem?.status === 404 && await models(source, state));
  return { title: said.title, element, update() {}, close() {} };
}

/** Return links to the models that need attention most. */
async function models(source, state) {
  const fleet = await source.fleet({ window: state.window, limit: MOST }).catch(() => null);
  if (!fleet?.models.length) return null;
  const item = (row) => h("li", null, h("a", { href: link(state, { view: "model", model: row.model_id }) }, row.model_id), h("span", { class: "hint" }, ` ${row.state}`));
  return h("nav", { class: "card", "aria-labelledby": "there-are" },
    h("h2", { id: "there-are" }, fleet.n_models > fleet.models.length ? `${count(fleet.n_models)} models, these first` : "Models"),
    h("ul", null, fleet.models.map(item)));
}

function words(state, problem) {
  if (!problem) return { title: "There is nothing at this address", text: "The fleet, a model, an incident and a comparison have pages." };
  if (problem.status === 404 && state.view === "model") return { title: `No model “${state.model}”`, text: "" };
  if (problem.status === 404 && state.view === "incident") return { title: "No such incident", text: problem.detail };
  if (problem.status === 401) return { title: "A token is asked for", text: problem.detail };
  if (problem.status === 0) return { title: "The server does not answer", text: "It is asked again by itself; nothing is lost." };
  return { title: problem.title || "This cannot be shown", text: problem.detail };
}

function ways(state, problem, again) {
  const suggestion = problem?.suggestion;
  const found = problem?.status === 404 && suggestion && state.view === "model";
  return [
    found && h("a", { class: "button", href: link(state, { view: "model", model: suggestion }) }, `Did you mean ${suggestion}?`),
    again && problem?.status !== 404 && h("button", { type: "button", class: "button", onclick: again }, "Try again"),
    h("a", { class: found ? "" : "button quiet", href: link(state, { view: "fleet" }) }, "All models"),
  ];
}
