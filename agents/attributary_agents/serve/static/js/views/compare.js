// Two moments of a model, or two models: what each relies on, and by how much they differ.

import { copyLink, h, replace, svg } from "page/dom.js";
import { count, estimate, isScore, lossOf, middle, number, percent, thin, time } from "page/format.js";
import { panel } from "page/chart/panel.js";
import { dots } from "page/chart/rows.js";

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
    return replace(place, sides(answer, context), table.element);
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

/**
 * @param {string} text
 * @returns {{model: string, kind: "now"|"time"|"observation", at: string}}
 */
export function parse(text) {
  const place = text.lastIndexOf("@");
  if (place < 0) return { model: text, kind: "now", at: "" };
  const [model, at] = [text.slice(0, place), text.slice(place + 1)];
  if (at === "now" || at === "") return { model, kind: "now", at: "" };
  if (at.startsWith("#")) return { model, kind: "observation", at: at.slice(1) };
  const ms = /^\d+$/.test(at) ? Number(at) : Date.parse(at);
  return { model, kind: "time", at: Number.isNaN(ms) ? "" : local(ms) };
}

/** Return a side as addresses and the server have it. */
export function text({ model, kind, at }) {
  if (kind === "observation" && /^\d+$/.test(at)) return `${model}@#${at}`;
  const ms = kind === "time" ? Date.parse(at) : Number.NaN;
  return `${model}@${Number.isNaN(ms) ? "now" : new Date(ms).toISOString().replace(/(:00)?\.000Z$/, "Z")}`;
}

/** Return a moment as `input type=datetime-local` has it, in the time zone of whoever looks. */
export function local(ms) {
  const moment = new Date(ms);
  return new Date(ms - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

const KINDS = { now: "now", time: "at a time", observation: "at an observation" };
const MOST_MODELS = 20;

/** Return the form. It goes to the address of what was chosen. */
function chooser({ a, b, answer }, context) {
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
    const { models } = await source.fleet({ window: state.window, q, limit: MOST_MODELS }).catch(() => ({ models: [] }));
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

/** Return the heads of A and B. */
function sides(answer, { state, link, now }) {
  return h("div", { class: "heads" },
    head("A", answer.a, answer, { state, link, now: now() }),
    head("B", answer.b, answer, { state, link, now: now() }),
    answer.note && h("p", { class: "strip warn", role: "note" }, answer.note));
}

function head(name, side, answer, { state, link, now }) {
  const [model, baseline] = [lossOf(side.model_loss, side.loss), lossOf(side.baseline_loss, side.loss)];
  const ratio = model.value !== null && baseline.value ? model.value / baseline.value : null;
  return h("section", { class: "card head-of", "aria-label": `Side ${name}` },
    h("h2", null, h("span", { class: `letter letter-${name}` }, name),
      h("a", { href: link(state, { view: "model", model: side.model_id }), title: side.model_id }, middle(side.model_id, 44))),
    h("p", { class: "hint" }, [side.model_version && `version ${middle(side.model_version, 40)}`, time(side.time_ms, { now }), `observation ${count(side.observation)}`].filter(Boolean).map(thin).join(" · ")),
    h("dl", { class: "points" },
      isScore(side.loss.name) ? fact("Mean score", h("b", null, number(side.model_loss))) : fact("Loss ÷ baseline", ratio === null ? "unknown" : [h("b", null, number(ratio)), thin(` = ${model.isRoot ? "√loss " : ""}${number(model.value)} ÷ ${number(baseline.value)}`)]),
      fact("Importance", `${side.explainer.toUpperCase()}${side.removal === "none" ? "" : `, ${side.removal}`} · ${side.loss.text}`)));
}

function fact(name, value) {
  return h("div", null, h("dt", null, name), h("dd", null, value));
}

const MOST = 15;
const WIDTH = 100;
const HEIGHT = 20;

/** @returns {{element: HTMLElement, close: function(): void}} */
function differences(answer, { state }) {
  const isSame = answer.is_same_loss;
  const rows = answer.features;
  const most = Math.max(...rows.map((row) => reach(row, isSame)), 1e-300);
  const [first, rest] = [rows.slice(0, MOST), rows.slice(MOST)];
  const owner = [...new Set([answer.a.model_id, answer.b.model_id])].join("-");
  const picture = dots({
    title: "A → B", unit: isSame ? answer.a.loss.text : "share of importance", sides: ["A", "B"],
    rows: rows.slice(0, MOST).map((row) => (isSame
      ? { name: row.feature, before: row.a, beforeHalf: row.a_half_width, after: row.b, afterHalf: row.b_half_width, note: signed(row.delta, row.delta_half_width) }
      : { name: row.feature, before: row.a_share, after: row.b_share, note: points(row) })),
  });
  const element = h("div", { class: "differences-of" },
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Differences, a table" }, table(first, isSame, most, answer)),
    rest.length > 0 && h("details", { class: "noise", open: Boolean(state.top && state.top > MOST) },
      h("summary", null, `${count(rest.length)} other features, which differ less`), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Other features, a table" }, table(rest, isSame, most, answer))));
  const framed = panel({
    title: "What they rely on, and by how much it differs",
    owner: `${owner}-compared`,
    note: [
      isSame ? `${answer.a.loss.text}; the largest difference first` : "The losses differ: shares and ranks are compared; the largest difference of shares first",
      answer.shift !== null && `share of importance that moved ${percent(answer.shift)}`,
      answer.ndcg !== null && `NDCG of the ranking ${number(answer.ndcg)}`,
    ].filter(Boolean).join(" · "),
    chart: { element, table: () => numbers(rows), picture: picture.picture, destroy: picture.destroy },
    size: "wide",
  });
  return { element: framed.element, close: () => framed.destroy() };
}

function reach(row, isSame) {
  return isSame ? Math.abs(row.delta ?? 0) + (row.delta_half_width ?? 0) : Math.abs((row.b_share ?? 0) - (row.a_share ?? 0));
}

function table(rows, isSame, most, answer) {
  const heads = ["feature", isSame && "A ±", isSame && "B ±", isSame ? "B − A ±" : "share, B − A", "", "share A → B", "rank A → B"];
  return h("table", { class: "plain compare" },
    h("caption", { class: "unseen" }, `Features of ${answer.a.model_id} and ${answer.b.model_id}`),
    h("thead", null, h("tr", null, heads.filter((text) => text !== false).map((text) => (text ? h("th", { scope: "col" }, text) : h("td", { class: "picture" }))))),
    h("tbody", null, rows.map((row) => h("tr", null,
      h("th", { scope: "row", title: row.feature }, middle(row.feature, 44)),
      isSame && h("td", { class: "number", "data-head": "A" }, value(row.a, row.a_half_width)),
      isSame && h("td", { class: "number", "data-head": "B" }, value(row.b, row.b_half_width)),
      h("td", { class: "number strong", "data-head": isSame ? "B − A" : "share, B − A" }, isSame ? signed(row.delta, row.delta_half_width) : points(row)),
      h("td", { class: "picture", "aria-hidden": "true" }, bar(row, isSame, most)),
      h("td", { class: "number", "data-head": "share" }, `${share(row.a_share)} → ${share(row.b_share)}`),
      h("td", { class: "number", "data-head": "rank" }, rank(row))))));
}

const value = (one, half) => (one === null ? "not known" : estimate(one, half));
const share = (one) => (one === null ? "–" : percent(one));

function rank({ a_rank: a, b_rank: b }) {
  return [`${a ?? "–"} → ${b ?? "–"}`, a !== null && b !== null && a !== b && h("span", { class: "moved", "aria-hidden": "true" }, b < a ? " ▲" : " ▼")];
}

function signed(delta, half) {
  if (delta === null) return "–";
  return `${delta > 0 ? "+" : ""}${estimate(delta, half)}`;
}

function points({ a_share: a, b_share: b }) {
  if (a === null || b === null) return "–";
  return `${number(100 * (b - a), { signed: true })} points`;
}

/** Draw a difference as a bar from the middle, with its interval. */
function bar(row, isSame, most) {
  const delta = isSame ? row.delta : row.a_share === null || row.b_share === null ? null : row.b_share - row.a_share;
  if (delta === null) return null;
  const half = isSame ? row.delta_half_width ?? 0 : 0;
  const at = (one) => WIDTH / 2 + (one / most) * (WIDTH / 2 - 1);
  const isSure = half > 0 ? Math.abs(delta) > half : !isSame;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: `difference ${delta < 0 ? "fell" : "rose"} ${isSure ? "" : "unsure"}` },
    svg("line", { class: "zero", x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT }),
    svg("rect", { x: Math.min(at(0), at(delta)), width: Math.abs(at(delta) - at(0)), y: 5, height: HEIGHT - 10 }),
    half > 0 && svg("line", { class: "whisker", x1: at(delta - half), x2: at(delta + half), y1: HEIGHT / 2, y2: HEIGHT / 2 }));
}

function numbers(rows) {
  return {
    columns: ["feature", "A", "A, ± 95 %", "B", "B, ± 95 %", "B − A", "B − A, ± 95 %", "share A", "share B", "rank A", "rank B"],
    rows: rows.map((row) => [row.feature, row.a, row.a_half_width, row.b, row.b_half_width, row.delta, row.delta_half_width, row.a_share, row.b_share, row.a_rank, row.b_rank]),
  };
}
