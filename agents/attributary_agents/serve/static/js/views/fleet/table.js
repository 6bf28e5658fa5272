// Draws the table of models, and keeps its rows up to date without moving any of them under the pointer.

import { spark } from "page/chart/spark.js";
import { h, replace, unseen, write } from "page/dom.js";
import { count, middle, number, thin, time } from "page/format.js";
import { follow, link, write as addressOf } from "page/state.js";
import { lossWords, sorted, stateOf, waitingWords } from "page/views/fleet/words.js";
import { courseOf, standingOf } from "page/views/incident/words.js";

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
export function createTable({ state, now, choose }) {
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
