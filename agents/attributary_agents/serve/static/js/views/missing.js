// Shows what cannot be shown: a bad address, a model that is not there, an answer that did not come.

import { h } from "page/dom.js";
import { served } from "page/source.js";
import { link } from "page/state.js";

/**
 * @param {{state: Object, problem?: {status?: number, title?: string, detail?: string, suggestion?: string},
 *   again?: function(): void}} context problem: what was answered instead.
 */
export async function show({ state, problem, again }) {
  const said = words(state, problem);
  const element = h("section", { class: "missing card" },
    h("h1", { tabindex: "-1" }, said.title),
    said.text && h("p", null, said.text),
    h("p", { class: "ways" }, ways(state, problem, again)));
  return { title: said.title, element, update() {}, close() {} };
}

function words(state, problem) {
  if (!problem) return { title: "There is nothing at this address", text: "The fleet, a model, a change and a comparison have pages." };
  if (problem.status === 404 && state.view === "model") return { title: `No model “${state.model}”`, text: problem.detail };
  if (problem.status === 404 && state.view === "change") return { title: "No such change", text: problem.detail };
  if (problem.status === 401) return { title: "A token is asked for", text: problem.detail };
  if (problem.status === 0) return { title: "The server does not answer", text: "It is asked again by itself; nothing is lost." };
  return { title: problem.title || "This cannot be shown", text: problem.detail };
}

function ways(state, problem, again) {
  const suggestion = problem?.suggestion;
  const found = suggestion && state.view === "model";
  return [
    found && h("a", { class: "button", href: link(state, { view: "model", model: suggestion }) }, `Did you mean ${suggestion}?`),
    problem?.status === 401 && h("a", { class: "button", href: `${served().root}/login?next=${encodeURIComponent(location.pathname + location.search)}` }, "Log in"),
    again && problem?.status !== 401 && problem?.status !== 404 && h("button", { type: "button", class: "button", onclick: again }, "Try again"),
    h("a", { class: found ? "" : "button quiet", href: link(state, { view: "fleet" }) }, "All models"),
  ];
}
