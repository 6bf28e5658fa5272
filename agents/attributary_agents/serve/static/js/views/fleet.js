// Shows all models: whether anything is wrong, with which one, since when.

import { h, replace } from "page/dom.js";
import { count, thin } from "page/format.js";
import { bind } from "page/keys.js";
import { follow, write as addressOf } from "page/state.js";
import { noModels, notHeard, nothingFound, templateList } from "page/views/fleet/empty.js";
import { createIncidents } from "page/views/fleet/incidents.js";
import { createSide } from "page/views/fleet/side.js";
import { createTable } from "page/views/fleet/table.js";
import { after, isOutdated, partsOf } from "page/views/fleet/words.js";

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
