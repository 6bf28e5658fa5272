// All models: whether anything is wrong, with which one, since when.

import { h, replace, unseen, write } from "page/dom.js";
import { count, middle, number, thin, time } from "page/format.js";
import { bind } from "page/keys.js";
import { follow, link, write as addressOf } from "page/state.js";
import { bars, spark } from "page/chart/rows.js";
import { after, courseOf, isOutdated, lossWords, partsOf, sorted, standingOf, stateOf, waitingWords } from "page/views/words.js";

const PAGE = 50;
const SOON_MS = 700;
const REGULARLY_MS = 60_000;

export async function show(context) {
  const [fleet, health] = await Promise.all([asked(context), context.source.health()]);
  return new FleetView(context, fleet, health).view;
}

function asked({ source, state }) {
  return source.fleet({ window: state.window, q: state.q, offset: state.offset, limit: PAGE });
}

class FleetView {
  #context;
  #fleet;
  #rows = new Map();
  #chosen = null;
  #again = null;
  #changed = new Set();
  #isOld = false;
  #isClosed = false;
  #parts;

  constructor(context, fleet, health) {
    this.#context = context;
    this.#parts = this.#build(health);
    this.#take(fleet);
    const regularly = setInterval(() => this.#soon(), REGULARLY_MS);
    const ticking = setInterval(() => this.#tick(), 1000);
    const unbind = bind([
      { keys: ["j", "ArrowDown"], text: "next model", run: (event) => this.#step(event, 1) },
      { keys: ["k", "ArrowUp"], text: "model before", run: (event) => this.#step(event, -1) },
      { keys: ["Enter"], text: "open it", run: () => false },
    ]);
    const fetchAnew = () => this.#fetch();
    const view = {
      element: this.#parts.element,
      update: (kind, data) => this.#update(kind, data),
      reload: fetchAnew,
      close: () => { this.#isClosed = true; clearInterval(regularly); clearInterval(ticking); clearTimeout(this.#again); unbind(); },
    };
    Object.defineProperty(view, "title", { get: () => this.#title() });
    this.view = view;
  }

  #build(health) {
    const { state, now } = this.#context;
    const heading = h("h1", { class: "verdict", tabindex: "-1" });
    const incidents = createIncidents({ state, now });
    const counts = h("ul", { class: "counts" });
    const side = createSide({ state });
    const table = createTable({ state, now, choose: (row) => this.#choose(row.model_id) });
    const filter = this.#filter();
    const pages = h("nav", { class: "pages", "aria-label": "Pages of models" });
    const rest = h("div");
    const models = h("section", { class: "card models", "aria-labelledby": "models-title" },
      h("div", { class: "card-head" }, h("h2", { id: "models-title" }, "Models"), filter.element), table.element, pages, rest);
    const content = h("div", { class: "fleet-columns" }, models, side.element);
    const element = h("div", { class: "fleet-view" }, h("section", { class: "verdict-card", "aria-label": "Verdict" }, heading, counts), incidents.element, content);
    return { element, heading, incidents, counts, side, table, filter, pages, rest, models, content, health };
  }

  #filter() {
    const { state } = this.#context;
    const input = h("input", { type: "search", value: state.q, placeholder: "Filter by name", "aria-label": "Filter models by name", autocomplete: "off", spellcheck: "false" });
    const element = h("form", { class: "filter", role: "search", onsubmit: (event) => {
      event.preventDefault();
      follow(addressOf({ ...state, q: input.value.trim(), offset: 0 }));
    } }, input);
    input.addEventListener("search", () => { if (!input.value && state.q) follow(addressOf({ ...state, q: "", offset: 0 })); });
    return { element };
  }

  /** Take an answer of the server: all rows anew. */
  #take(fleet) {
    this.#fleet = fleet;
    this.#rows = new Map(fleet.models.map((row) => [row.model_id, row]));
    const { table, side, incidents, content, models, rest, filter, pages } = this.#parts;
    this.#drawVerdict();
    this.#drawCounts();
    filter.element.hidden = !this.#context.state.q && fleet.n_found <= 12;
    incidents.set(fleet.incidents);
    replace(pages, this.#pageLinks());
    replace(rest, templateList(fleet.templates, this.#context.state), notHeard(fleet.configured));
    if (!fleet.models.length) return this.#drawEmpty();
    if (!models.isConnected) replace(content, models, side.element);
    table.set(fleet.models);
    if (!this.#rows.has(this.#chosen)) this.#chosen = this.#rows.has(this.#context.state.row) ? this.#context.state.row : (fleet.models.find((row) => row.top.length) ?? fleet.models[0]).model_id;
    this.#drawChosen();
    return undefined;
  }

  #drawEmpty() {
    const { state } = this.#context;
    const { content, health, filter } = this.#parts;
    const isSearch = state.q && this.#fleet.n_models;
    filter.element.hidden = !isSearch;
    replace(content, isSearch ? [filter.element, nothingFound(state)] : noModels(this.#fleet, health));
  }

  #drawVerdict() {
    const { heading, element } = this.#parts;
    const fleet = this.#fleet;
    const isSuspected = fleet.incidents.some((line) => line.standing === "suspected");
    element.dataset.verdict = fleet.is_wrong ? "bad" : isSuspected ? "warn" : fleet.models.length ? "good" : "none";
    const sign = fleet.is_wrong ? "▲" : isSuspected ? "△" : fleet.models.length ? "✓" : "○";
    const lead = thin(partsOf(fleet.sentence).lead);
    if (heading.textContent !== sign + lead) replace(heading, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", null, lead));
  }

  #drawCounts() {
    const { n_models, n_dead_letters, sentence } = this.#fleet;
    const isLetters = ([, words]) => /^dead letter/.test(words);
    const told = partsOf(sentence).counts.filter((one) => !isLetters(one));
    const items = [[count(n_models), n_models === 1 ? "model" : "models"], ...told, [count(n_dead_letters), n_dead_letters === 1 ? "dead letter" : "dead letters"]];
    replace(this.#parts.counts, items.map(([n, words]) => h("li", { class: isLetters(["", words]) && n_dead_letters ? "warn" : "" }, h("strong", null, thin(n)), ` ${words}`)));
  }

  #pageLinks() {
    const { state } = this.#context;
    const { n_found, models } = this.#fleet;
    if (n_found <= models.length) return null;
    const to = (offset, text, rel) => h("a", { class: "button quiet", rel, href: addressOf({ ...state, offset }) }, text);
    const last = state.offset + models.length;
    return [
      state.offset > 0 && to(Math.max(0, state.offset - PAGE), "← before", "prev"),
      h("span", null, `${count(state.offset + 1)}–${count(last)} of ${count(n_found)}${state.order ? ", sorted within this page" : ""}`),
      last < n_found && to(state.offset + PAGE, "next →", "next"),
    ];
  }

  #choose(id) {
    if (this.#chosen === id) return;
    this.#chosen = id;
    this.#drawChosen();
  }

  #drawChosen() {
    this.#parts.side.setModel(this.#rows.get(this.#chosen));
    this.#parts.table.mark(this.#chosen);
  }

  #step(event, by) {
    if (event.key.startsWith("Arrow") && !this.#parts.table.hasFocus()) return false;
    this.#parts.table.step(by);
    return true;
  }

  /** Take a live event; what it changes is drawn with the batch. */
  #update(kind, data) {
    if (kind === "batch") return this.#draw();
    if (kind === "gone") return this.#soon();
    if (kind === "dead_letter_counts") return this.#count(data);
    if (kind === "incident") this.#takeIncident(data);
    const row = this.#rows.get(data.model_id);
    if (!row) return kind === "incident" || this.#fleet.n_found > this.#rows.size ? undefined : this.#soon();
    this.#rows.set(row.model_id, after(row, kind, data));
    this.#changed.add(row.model_id);
    if (kind === "status" && isOutdated(row, data)) this.#soon();
    return undefined;
  }

  /** Show an incident at once; the server says soon what it is for the whole fleet. */
  #takeIncident(row) {
    this.#parts.incidents.take(row);
    this.#soon();
  }

  #count(counts) {
    let n = 0;
    for (const more of Object.values(counts)) n += more;
    this.#fleet = { ...this.#fleet, n_dead_letters: this.#fleet.n_dead_letters + n };
    this.#drawCounts();
  }

  #draw() {
    const { table, side } = this.#parts;
    for (const id of this.#changed) table.draw(this.#rows.get(id));
    if (this.#changed.size) table.arrange();
    this.#changed.clear();
    side.setModel(this.#rows.get(this.#chosen));
  }

  /** Ask the server soon, once for whatever happens until then. */
  #soon() {
    this.#again ??= setTimeout(() => { this.#again = null; this.#fetch(); }, SOON_MS);
  }

  async #fetch() {
    this.#isOld = document.hidden;
    if (document.hidden) return;
    try {
      const fleet = await asked(this.#context);
      if (this.#isClosed) return;
      this.#take(fleet);
      this.#context.notice(null);
    } catch (problem) {
      this.#context.notice(problem);
    }
  }

  #tick() {
    if (document.hidden) return;
    if (this.#isOld) this.#soon();
    this.#parts.table.tick();
    this.#parts.incidents.tick();
  }

  #title() {
    const { is_wrong, n_refused, n_incidents } = this.#fleet;
    if (!is_wrong) return "Fleet";
    return `▲ ${n_incidents ? `${count(n_incidents)} wrong` : n_refused ? `${count(n_refused)} refused` : "failing"} · Fleet`;
  }
}

/** Where no topic has said anything yet. */
function noModels({ configured }, { importances_topic: topic, is_reading_past: isReading }) {
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
function notHeard(configured) {
  if (!configured.length) return null;
  const [one, verb] = configured.length === 1 ? ["1 model is", "it publishes"] : [`${count(configured.length)} models are`, "they publish"];
  const names = configured.map((each) => `${each.model_id} after ${count(each.every)} observations`);
  return h("details", { class: "not-heard" },
    h("summary", null, `${one} configured and not heard of yet`),
    h("p", null, `What ${verb} comes with ${names.slice(0, 40).join(", ")}${names.length > 40 ? ` and ${names.length - 40} more` : ""} (publish.every).`));
}

/** Where there are templates, whose models are not all listed. */
function templateList(templates, state) {
  if (!templates?.length || state.q) return null;
  const facts = (one) => [[one.n_incidents, one.n_incidents === 1 ? "with an incident" : "with incidents"], [one.n_refused, "refused"], [one.n_silent, "silent"], [one.n_waiting, "with labels to come"]]
    .filter(([n]) => n).map(([n, word]) => ` · ${count(n)} ${word}`);
  return h("ul", { class: "templates", "aria-label": "Templates" }, templates.map((one) => h("li", null,
    h("a", { class: "name", href: link(state, { view: "fleet", q: one.template }) }, one.template),
    h("span", null, ` ${count(one.n_models)} ${one.n_models === 1 ? "model" : "models"}`, facts(one)),
    one.n_models > 5 && h("span", { class: "hint" }, " · those that need attention most are above"))));
}

/** Where the search finds nothing. */
function nothingFound(state) {
  return h("section", { class: "card empty" },
    h("h2", null, `No model's name has “${state.q}” in it`),
    h("p", null, h("a", { class: "button", href: link(state, { view: "fleet" }) }, "Show all models")));
}

const MOST = 6;

/** @param {{state: Object, now: function(): number}} context */
function createIncidents({ state, now }) {
  const list = h("ol", { class: "incidents" });
  const more = h("button", { type: "button", class: "quiet", onclick: () => { isWhole = true; draw(); } });
  const element = h("section", { class: "card", "aria-labelledby": "incidents-title" }, h("h2", { id: "incidents-title" }, "Incidents"), list, more);
  let lines = [];
  let fresh = null;
  let isWhole = false;
  let times = [];

  function draw() {
    const n_open = lines.filter((line) => line.standing !== "over").length;
    const shown = isWhole ? lines : lines.slice(0, Math.max(MOST, n_open));
    times = [];
    element.hidden = !lines.length;
    more.hidden = shown.length === lines.length;
    write(more, `Show ${count(lines.length - shown.length)} more`);
    replace(list, shown.map(item));
    tick();
  }

  function item(line) {
    const [first] = line.incidents;
    const worst = line.incidents.find((one) => one.standing === line.standing && one.severity === "critical") ?? line.incidents.find((one) => one.standing === line.standing) ?? first;
    const { sign, tone } = standingOf(worst);
    const course = h("span", { class: "course" });
    times.push([course, line.n === 1 ? first : { ...worst, since: first.since }]);
    const isNew = line.incidents.some((one) => one.id === fresh);
    return h("li", { class: `tone-${tone}${isNew ? " new" : ""}` },
      h("p", { class: "what" }, h("span", { class: "sign", "aria-hidden": "true" }, `${sign} `),
        line.n === 1 ? linkTo(first, thin(first.headline)) : h("b", null, together(line))),
      h("p", { class: "meta" }, course,
        line.n === 1 && [" · ", h("a", { href: link(state, { view: "model", model: first.model_id }), title: first.model_id }, middle(first.model_id, 32))]),
      line.n > 1 && h("details", { class: "members" },
        h("summary", null, line.n > line.incidents.length ? `The first ${count(line.incidents.length)} of ${count(line.n)}` : "Show them"),
        h("ul", null, line.incidents.map((one) => h("li", null, linkTo(one, one.model_id), one.standing !== line.standing && ` ${standingOf(one).word}`)))));
  }

  function linkTo(row, text) {
    return h("a", { href: link(state, { view: "incident", incident: row.id }), title: row.sentence }, text);
  }

  function together({ headline, feature, incidents: [{ since }] }) {
    return thin(`${headline} at ${since.time_ms === null ? `observation ${count(since.observation)}` : time(since.time_ms, { now: now() })}${feature === null ? "" : `: ${feature}`}`);
  }

  function tick() {
    for (const [element, row] of times) write(element, thin(courseOf(row, now())));
  }

  return {
    element,
    set(given) { lines = given; draw(); },
    /** Put the newest revision of an incident in its place; a new one stands first. */
    take(row) {
      const line = { headline: row.headline, feature: null, standing: row.standing, n: 1, incidents: [row] };
      const place = lines.findIndex((one) => one.incidents.some(({ id }) => id === row.id));
      if (place < 0) lines = [line, ...lines];
      else if (lines[place].n === 1) lines = lines.with(place, line);
      fresh = row.id;
      draw();
    },
    tick,
  };
}

/** @param {{state: Object}} context */
function createSide({ state }) {
  const features = h("section", { class: "card", "aria-label": "Features of the chosen model" });
  let seen = "";

  function setModel(row) {
    const now_seen = JSON.stringify([row?.model_id, row?.top, row?.n_features]);
    if (now_seen === seen) return;
    seen = now_seen;
    features.hidden = !row;
    if (row) replace(features, featureParts(row, state));
  }

  return { element: h("aside", { class: "side", "aria-label": "Beside the table" }, features), setModel };
}

function featureParts(row, state) {
  const heading = h("h2", null, "What ", h("a", { href: link(state, { view: "model", model: row.model_id }) }, row.model_id), " relies on");
  if (!row.top.length) return [heading, h("p", { class: "hint" }, "No importance has been published yet.")];
  const drawn = bars({
    title: `Most important features of ${row.model_id}`,
    unit: row.loss?.unit ?? "",
    rows: row.top.map((one) => ({ name: one.feature, value: one.importance, halfWidth: one.half_width })),
  });
  const more = row.n_features - row.top.length;
  return [heading, drawn.element ?? drawn,
    h("p", { class: "hint" }, [row.explainer, row.loss && `in ${row.loss.text}`, more > 0 && `${count(more)} more features`].filter(Boolean).join(" · "))];
}

const HEADS = [
  ["model", "Model", "", false],
  ["state", "State", "", false],
  ["rate", "obs/s", "Observations per second", true],
  ["loss", "Loss ÷ baseline", "Loss of the model over that of its baseline, which knows no feature; below 1 the model is better", true],
  ["shift", "Moved", "Share of the importance that has moved since the reference", true],
  ["incident", "Last incident", "", true],
  ["waiting", "Labels waiting", "Observations that wait for their label", true],
];
const LONGEST = 48;

/**
 * @param {{state: Object, now: function(): number, choose: function(Object)}} context choose: is given the row that is
 *   pointed at or has the focus.
 */
function createTable({ state, now, choose }) {
  const lines = new Map();
  let order = [];
  const body = h("tbody", { role: "rowgroup" });
  const table = h("table", { class: "fleet", role: "table", "aria-label": "Models" }, heads(state), body);
  const sortNow = h("button", { type: "button", class: "quiet", onclick: () => arrange(true) }, "sort again");
  const older = h("p", { class: "older", hidden: true }, "The order is older than the numbers. ", sortNow);
  const element = h("div", { class: "table-frame" }, older, table);
  table.addEventListener("pointerleave", () => setTimeout(arrange, 400));

  function set(rows) {
    const wanted = new Set(rows.map((row) => row.model_id));
    for (const [id, line] of lines) if (!wanted.has(id)) { line.element.remove(); lines.delete(id); }
    for (const row of rows) {
      if (lines.has(row.model_id)) lines.get(row.model_id).draw(row);
      else add(row);
    }
    order = rows.map((row) => row.model_id);
    arrange();
  }

  function add(row) {
    const line = createLine(row, { state, now, choose });
    lines.set(row.model_id, line);
    body.append(line.element);
  }

  /** Bring rows into their order, unless somebody is about to press one. */
  function arrange(isAsked = false) {
    const rows = sorted(order.map((id) => lines.get(id)?.row).filter(Boolean), state.order);
    const wanted = rows.map((row) => lines.get(row.model_id).element);
    const isSame = wanted.every((one, place) => body.children[place] === one);
    const isBusy = isAsked !== true && body.childElementCount === wanted.length && (body.matches(":hover") || body.contains(document.activeElement));
    older.hidden = isSame || !isBusy;
    if (!isSame && !isBusy) replace(body, wanted);
  }

  function step(by) {
    const anchors = [...body.querySelectorAll("a.name")];
    const place = anchors.indexOf(document.activeElement?.closest("tr")?.querySelector("a.name"));
    const next = anchors[place < 0 ? (by > 0 ? 0 : anchors.length - 1) : Math.min(anchors.length - 1, Math.max(0, place + by))];
    next?.focus();
  }

  return {
    element,
    set,
    arrange,
    step,
    hasFocus: () => body.contains(document.activeElement),
    draw(row) { lines.get(row.model_id)?.draw(row); },
    tick() { for (const line of lines.values()) line.tick(); },
    mark(id) { for (const [one, line] of lines) line.element.classList.toggle("chosen", one === id); },
  };
}

function heads(state) {
  return h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, HEADS.map(([key, text, said, isNumber]) => head(state, key, text, said, isNumber))));
}

function head(state, key, text, said, isNumber) {
  const down = state.order === `-${key}`;
  const up = state.order === key;
  const sort = up ? "ascending" : down ? "descending" : "none";
  const first = isNumber ? `-${key}` : key;
  const second = isNumber ? key : `-${key}`;
  const next = state.order === first ? second : state.order === second ? null : first;
  const anchor = h("a", { href: addressOf({ ...state, order: next }), title: said || null, "data-sort": key }, text,
    h("span", { class: "arrow", "aria-hidden": "true" }, up ? " ↑" : down ? " ↓" : ""));
  return h("th", { role: "columnheader", scope: "col", class: `c-${key}`, "aria-sort": sort }, anchor);
}

function createLine(first, { state, now, choose }) {
  const cell = (key, label) => h("td", { role: "cell", class: `c-${key}`, "data-label": label });
  const cells = {
    model: h("th", { role: "rowheader", scope: "row", class: "c-model" }),
    state: cell("state", "State"),
    rate: cell("rate", "obs/s"),
    loss: cell("loss", "Loss ÷ baseline"),
    shift: cell("shift", "Moved"),
    incident: cell("incident", "Last incident"),
    waiting: cell("waiting", "Labels waiting"),
  };
  const element = h("tr", { role: "row" }, Object.values(cells));
  const since = h("span", { class: "detail" });
  let old = {};
  const line = { element, row: first, draw, tick };
  let dwell = null;
  element.addEventListener("focusin", () => choose(line.row));
  element.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") dwell = setTimeout(() => choose(line.row), 150); });
  element.addEventListener("pointerleave", () => clearTimeout(dwell));
  element.addEventListener("click", (event) => {
    if (!event.target.closest("a, button") && !String(getSelection())) follow(link(state, { view: "model", model: line.row.model_id }));
  });

  function draw(row) {
    line.row = row;
    const parts = { model: nameParts, state: stateParts, rate: rateParts, loss: lossParts, shift: shiftParts, waiting: waitingParts };
    for (const [key, made] of Object.entries(parts)) {
      const { seen, make } = made(row, state);
      if (old[key] !== seen) replace(cells[key], make());
      old[key] = seen;
    }
    drawIncident(row);
    element.dataset.kind = stateOf(row).kind;
  }

  function drawIncident(row) {
    const seen = row.incident ? `${row.incident.id}|${row.incident.revision}` : "";
    if (old.incident !== seen || !cells.incident.childNodes.length) replace(cells.incident, incidentParts(row, state, since));
    old.incident = seen;
    tick();
  }

  function tick() {
    if (line.row.incident) write(since, thin(courseOf(line.row.incident, now())));
  }

  draw(first);
  return line;
}

const main = (text) => h("span", { class: "main" }, text);
const detail = (text) => text && h("span", { class: "detail" }, text);

function nameParts(row, state) {
  const seen = `${row.model_id}|${row.mode}|${row.template}`;
  const short = middle(row.model_id, LONGEST);
  const isCut = short !== row.model_id;
  const text = isCut ? [h("span", { "aria-hidden": "true" }, short), unseen(row.model_id)] : short;
  return {
    seen,
    make: () => [
      h("a", { class: "name", href: link(state, { view: "model", model: row.model_id }), title: isCut ? row.model_id : null }, text),
      row.mode !== "labelled" && h("span", { class: "tag" }, row.mode),
      row.template && detail(`of ${row.template}`),
    ],
  };
}

function stateParts(row) {
  const { sign, kind, said, word } = stateOf(row);
  const learning = row.state === "learning" && row.n_observations !== null ? `${count(row.n_observations)} observations` : "";
  const refused = row.n_refused ? `${count(row.n_refused)} refused` : "";
  const more = learning || refused;
  return {
    seen: `${word}|${sign}|${more}`,
    make: () => [h("span", { class: `doing ${kind}`, title: said }, h("span", { "aria-hidden": "true" }, `${sign} `), word), detail(more)],
  };
}

function rateParts(row) {
  const text = row.observations_per_second === null ? "–" : number(row.observations_per_second);
  return { seen: text, make: () => main(text) };
}

function lossParts(row) {
  const { text, detail: more, said, isLow } = lossWords(row);
  return { seen: `${text}|${more}`, make: () => h("span", { class: "loss", title: said ?? null }, h("span", { class: `main${isLow ? " warned" : ""}` }, text), detail(more)) };
}

function shiftParts(row) {
  const text = row.shift === null ? "–" : number(row.shift);
  return {
    seen: `${text}|${row.shifts.length}|${row.shifts.at(-1)}`,
    make: () => h("span", { class: "moved" }, row.shifts.filter((one) => one !== null).length > 1 && spark(row.shifts), main(text)),
  };
}

function incidentParts(row, state, since) {
  const found = row.incident;
  if (!found) return main("none");
  const { sign, tone } = standingOf(found);
  return [
    h("a", { class: `gist tone-${tone}`, href: link(state, { view: "incident", incident: found.id }), title: `${time(found.since.time_ms)}: ${found.sentence}` },
      h("span", { "aria-hidden": "true" }, `${sign} `), middle(found.headline, LONGEST)),
    since,
  ];
}

function waitingParts(row) {
  const { text, detail: more, share } = waitingWords(row);
  return {
    seen: `${text}|${more}`,
    make: () => [
      main(text), detail(more),
      share !== null && h("span", { class: `meter${share > 0.8 ? " full" : ""}`, "aria-hidden": "true" }, h("span", { style: { width: `${Math.min(100, share * 100)}%` } })),
    ],
  };
}
