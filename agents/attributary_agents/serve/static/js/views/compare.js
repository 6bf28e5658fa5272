// Compares two moments of a model, or two models: what each relies on, and by how much they differ.

import { h, replace } from "page/dom.js";
import { middle } from "page/format.js";
import { chooser } from "page/views/compare/choosing.js";
import { differences } from "page/views/compare/differences.js";
import { sides } from "page/views/compare/sides.js";
import { copyLink } from "page/views/panels/permalink.js";

const DAY = 24 * 3600e3;

/** @param {{source: Object, state: Object, go: function, link: function, now: function(): number}} context */
export async function show(context) {
  const { source, state } = context;
  const { a, b } = state.a && state.b ? state : given(state, await source.fleet({ window: state.window, limit: 20 }));
  const place = h("div", { class: "compared" });
  let closing = () => {};
  let answer = null;

  async function load() {
    if (!a || !b) return say("There is no model yet to compare.");
    try {
      answer = await source.compare(a, b, state.explainer);
    } catch (problem) {
      if (problem.status === 0) throw problem;
      return say(problem.detail || problem.title, problem.suggestion);
    }
    closing();
    const table = differences(answer, context);
    closing = table.close;
    return replace(place, sides(answer, { a, b }, context), table.element);
  }

  function say(text, suggestion) {
    closing();
    closing = () => {};
    replace(place, h("section", { class: "card", role: "status" }, h("h2", null, "Nothing to compare"), h("p", { class: "say" }, text, suggestion && ` Did you mean “${suggestion}”?`)));
  }

  await load();
  const element = h("div", { class: "compare-view" },
    h("header", { class: "compare-head" }, h("h1", { tabindex: "-1" }, headline(answer)), copyLink()),
    chooser({ a, b, answer }, context),
    place);
  return { title: headline(answer), element, update() {}, reload: load, close: () => closing() };
}

/** Return both sides: those of the address, or the first model a day ago and now. */
function given(state, fleet) {
  const id = state.model ?? (fleet.models.find((row) => row.explainer && row.state !== "refused") ?? fleet.models[0])?.model_id;
  if (!id) return { a: state.a, b: state.b };
  const dayAgo = new Date(Math.floor((fleet.now_ms - DAY) / 60000) * 60000).toISOString().slice(0, 16);
  const other = (side) => side?.slice(0, side.lastIndexOf("@")) || side || id;
  return { a: state.a ?? `${other(state.b)}@${dayAgo}Z`, b: state.b ?? `${other(state.a)}@now` };
}

function headline(answer) {
  if (!answer) return "Compare";
  const [a, b] = [answer.a.model_id, answer.b.model_id].map((id) => middle(id, 40));
  return a === b ? `${a}: two moments compared` : `${a} and ${b} compared`;
}
