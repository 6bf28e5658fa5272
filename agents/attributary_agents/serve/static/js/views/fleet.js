// Shows all models: whether anything is wrong, with which one, since when.

import { h, replace, write } from "page/dom.js";
import { ago, count, thin } from "page/format.js";
import { bind } from "page/keys.js";
import { follow, link, write as addressOf } from "page/state.js";
import { noModels, notHeard, nothingFound, templateList } from "page/views/fleet/empty.js";
import { createSide } from "page/views/fleet/side.js";
import { createTable } from "page/views/fleet/table.js";
import { after, isOutdated, partsOf, stateOf, urgent } from "page/views/fleet/words.js";

const PAGE = 50;
const MOST_URGENT = 3;
const LAST = 10;
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
  #fresh = null;
  #again = null;
  #changed = new Set();
  #hasNewChange = false;
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
    const urgentList = h("ul", { class: "urgent" });
    const counts = h("ul", { class: "counts" });
    const side = createSide({ state, now });
    const table = createTable({ state, now, choose: (row) => this.#choose(row.model_id) });
    const filter = this.#filter();
    const pages = h("nav", { class: "pages", "aria-label": "Pages of models" });
    const rest = h("div");
    const models = h("section", { class: "card models", "aria-labelledby": "models-title" },
      h("div", { class: "card-head" }, h("h2", { id: "models-title" }, "Models"), filter.element), table.element, pages, rest);
    const content = h("div", { class: "fleet-columns" }, models, side.element);
    const element = h("div", { class: "fleet-view" }, h("section", { class: "verdict-card", "aria-label": "Verdict" }, heading, urgentList, counts), content);
    return { element, heading, urgentList, counts, side, table, filter, pages, rest, models, content, health };
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
    this.#fresh = null;
    this.#rows = new Map(fleet.models.map((row) => [row.model_id, row]));
    const { table, side, content, models, rest, filter, pages } = this.#parts;
    this.#drawVerdict();
    this.#drawCounts();
    filter.element.hidden = !this.#context.state.q && fleet.n_found <= 12;
    side.setChanges(fleet.changes);
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
    const { heading, urgentList, element } = this.#parts;
    const fleet = this.#fleet;
    const isBroken = fleet.n_refused > 0 || fleet.models.some((row) => row.is_failing);
    element.dataset.verdict = isBroken ? "bad" : fleet.is_wrong ? "warn" : fleet.models.length ? "good" : "none";
    const sign = fleet.is_wrong ? "▲" : fleet.models.length ? "✓" : "○";
    const lead = thin(partsOf(fleet.sentence).lead);
    if (heading.textContent !== sign + lead) replace(heading, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", null, lead));
    const rows = urgent([...this.#rows.values()]);
    const more = rows.length - MOST_URGENT;
    replace(urgentList, this.#freshItem(), rows.slice(0, MOST_URGENT).map((row) => this.#urgentItem(row)),
      more > 0 && h("li", { class: "hint" }, `and ${count(more)} more, first in the table`));
  }

  #freshItem() {
    const change = this.#fresh;
    if (!change || urgent([...this.#rows.values()]).slice(0, MOST_URGENT).some((row) => row.last_change?.id === change.id)) return null;
    return this.#item({ sign: "•", kind: "plain" }, change.model_id, change, this.#changeLink(change), true);
  }

  #urgentItem(row) {
    const change = row.last_change;
    const state = stateOf(row);
    const isBroken = row.state === "refused" || row.is_failing;
    const text = isBroken ? `${row.is_failing && row.state !== "refused" ? "" : "refused: "}${state.said}` : change ? this.#changeLink(change) : `${count(row.n_open)} open`;
    return this.#item(state, row.model_id, isBroken ? null : change, text, Boolean(change) && change.id === this.#fresh?.id);
  }

  #item({ sign, kind }, id, change, text, isNew) {
    const since = change && change.time_ms !== null && h("span", { class: "since", dataset: { ms: change.time_ms } }, ago(change.time_ms, this.#context.now()));
    return h("li", { class: isNew ? "new" : "" },
      h("p", { class: "who" }, h("span", { class: `doing ${kind}`, "aria-hidden": "true" }, `${sign} `), this.#link(id), " ", since),
      h("p", { class: "what", title: change?.sentence }, text));
  }

  #link(id) {
    return h("a", { class: "model", href: link(this.#context.state, { view: "model", model: id }) }, id);
  }

  #changeLink(change) {
    return h("a", { href: link(this.#context.state, { view: "change", change: change.id }) }, thin(change.sentence));
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
    if (kind === "change") this.#takeChange(data);
    const row = this.#rows.get(data.model_id);
    if (!row) return kind === "change" || this.#fleet.n_found > this.#rows.size ? undefined : this.#soon();
    this.#rows.set(row.model_id, after(row, kind, data));
    this.#changed.add(row.model_id);
    if (kind === "status" && isOutdated(row, data)) this.#soon();
    return undefined;
  }

  #takeChange(change) {
    this.#fresh = change;
    this.#hasNewChange = true;
    this.#fleet = { ...this.#fleet, changes: [change, ...this.#fleet.changes.filter((one) => one.id !== change.id)].slice(0, LAST) };
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
    if (!this.#hasNewChange) return;
    this.#hasNewChange = false;
    side.setChanges(this.#fleet.changes);
    this.#drawVerdict();
  }

  /** Ask the server soon, once for whatever happens until then. */
  #soon() {
    this.#again ??= setTimeout(() => { this.#again = null; this.#fetch(); }, SOON_MS);
  }

  async #fetch() {
    this.#isOld = document.hidden;
    if (document.hidden) return;
    const fresh = this.#fresh;
    try {
      const fleet = await asked(this.#context);
      if (this.#isClosed) return;
      this.#take(fleet);
      this.#context.notice(null);
    } catch (problem) {
      this.#context.notice(problem);
    }
    if (fresh) { this.#fresh = fresh; this.#drawVerdict(); }
  }

  #tick() {
    if (document.hidden) return;
    if (this.#isOld) this.#soon();
    const now = this.#context.now();
    for (const since of this.#parts.urgentList.querySelectorAll(".since")) write(since, ago(Number(since.dataset.ms), now));
    this.#parts.table.tick();
    this.#parts.side.tick();
  }

  #title() {
    const { is_wrong, n_refused, n_changed } = this.#fleet;
    if (!is_wrong) return "Fleet";
    return `▲ ${n_refused ? `${count(n_refused)} refused` : n_changed ? `${count(n_changed)} changed` : "shift"} · Fleet`;
  }
}
