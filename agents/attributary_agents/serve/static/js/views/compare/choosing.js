// Lets both sides be chosen: a model and a moment of each; presets for what is asked most.

import { h, replace } from "page/dom.js";
import { parse, text } from "page/views/compare/side.js";

const KINDS = { now: "now", time: "at a time", observation: "at an observation" };
const MOST = 20;
const DAY = 24 * 3600e3;

/** Return the form. It goes to the address of what was chosen. */
export function chooser({ a, b, answer }, context) {
  const { state, go, source, now } = context;
  const models = suggestions(context);
  const left = sideOf("A", parse(a ?? ""));
  const right = sideOf("B", parse(b ?? ""));
  const to = (one, other) => go({ ...state, view: "compare", a: one, b: other });
  const explainer = explainerOf(answer, state);
  const form = h("form", { class: "card chooser", "aria-label": "What to compare" },
    models.element, left.element,
    h("button", { type: "button", class: "button quiet swap", onclick: () => to(text(right.value()), text(left.value())) }, h("span", { "aria-hidden": "true" }, "⇄ "), "Swap"),
    right.element);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go({ ...state, view: "compare", a: text(left.value()), b: text(right.value()), explainer: explainer.value() });
  });
  const presets = h("p", { class: "presets" }, h("span", null, "Show"),
    h("button", { type: "button", class: "quiet", onclick: () => { const id = right.value().model; to(`${id}@${new Date(now() - DAY).toISOString().slice(0, 16)}Z`, `${id}@now`); } }, "now against a day ago"),
    h("button", { type: "button", class: "quiet", onclick: () => lastIncident(right.value().model) }, "before and after the last incident"));
  const note = h("p", { class: "hint", role: "status" });

  async function lastIncident(id) {
    const { incidents } = await source.incidents(id).catch(() => ({ incidents: [] }));
    const found = incidents.find((row) => row.life !== "withdrawn");
    const { compare } = found ? await source.incident(found.id) : { compare: null };
    if (!compare) return replace(note, `${id} has no incident in what is kept.`);
    return to(compare.a, compare.b);
  }

  for (const side of [left, right]) models.follow(side.model);
  form.append(h("div", { class: "below" }, presets, h("div", { class: "submit" }, explainer.element, h("button", { type: "submit", class: "button" }, "Compare"))), note);
  return form;
}

function sideOf(name, side) {
  const id = `side-${name.toLowerCase()}`;
  const model = h("input", { id: `${id}-model`, type: "text", list: "models-known", autocomplete: "off", spellcheck: "false", required: true, value: side.model, title: side.model });
  const kind = h("select", { id: `${id}-kind`, "aria-label": `Moment of ${name}` },
    Object.entries(KINDS).map(([key, word]) => h("option", { value: key, selected: key === side.kind }, word)));
  const time = h("input", { type: "datetime-local", step: "1", "aria-label": `Time of ${name}`, value: side.kind === "time" ? side.at : "" });
  const observation = h("input", { type: "number", min: "1", step: "1", "aria-label": `Observation of ${name}`, value: side.kind === "observation" ? side.at : "" });
  const draw = () => {
    time.hidden = kind.value !== "time";
    observation.hidden = kind.value !== "observation";
    time.required = !time.hidden;
    observation.required = !observation.hidden;
  };
  kind.addEventListener("change", draw);
  draw();
  return {
    element: h("fieldset", { class: "side" }, h("legend", null, name),
      h("label", { for: model.id, class: "unseen" }, `Model of ${name}`), model,
      h("span", { class: "moment" }, kind, time, observation)),
    model,
    value: () => ({ model: model.value.trim(), kind: kind.value, at: kind.value === "time" ? time.value : observation.value }),
  };
}

/** Suggest models while a name is written: those that the search finds. */
function suggestions({ source, state }) {
  const element = h("datalist", { id: "models-known" });
  let turn = 0;
  let timer = 0;

  async function fill(q) {
    const mine = (turn += 1);
    const { models } = await source.fleet({ window: state.window, q, limit: MOST }).catch(() => ({ models: [] }));
    if (mine === turn) replace(element, models.map((row) => h("option", { value: row.model_id })));
  }

  return {
    element,
    follow(input) {
      input.addEventListener("focus", () => fill(""), { once: true });
      input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => fill(input.value.trim()), 150); });
    },
  };
}

function explainerOf(answer, state) {
  const known = [...new Set([answer?.a.explainer, answer?.b.explainer, "pfi", "sage"].filter(Boolean))];
  const chosen = state.explainer ?? answer?.a.explainer;
  const select = h("select", { "aria-label": "Explainer" }, known.map((name) => h("option", { value: name, selected: name === chosen }, name.toUpperCase())));
  return { element: select, value: () => select.value };
}
