// A chart's panel: its title, what it says in a line, and a table and files of the same numbers.

import { h, write } from "page/dom.js";

let made = 0;

/**
 * Return a panel.
 * @param {Object} given
 * @param {string} given.title
 * @param {string} [given.note] What is drawn, in which unit.
 * @param {string} given.owner What files are named after: the model.
 * @param {Object} [given.chart] With element, table, picture, destroy; none of a panel of text.
 * @param {any} [given.controls] Elements beside the title.
 * @param {any} [given.below] Elements below the chart.
 * @param {string} [given.size] "wide" takes the whole row.
 * @returns {{element, setNote, refresh, destroy}} `refresh` after the chart has other data.
 */
export function panel({ title, note = "", owner, chart, controls, below, size = "" }) {
  made += 1;
  const id = `panel-${made}`;
  const words = h("p", { class: "panel-note", hidden: !note }, note);
  const table = chart && tableBehind(chart, title);
  const save = chart && saveMenu(chart, { title, owner, note: () => words.textContent });
  const element = h("section", { class: `card panel ${size}`, "aria-labelledby": id },
    h("header", { class: "panel-head" }, h("h2", { id }, title), controls && h("div", { class: "panel-controls" }, controls), chart && h("div", { class: "panel-tools" }, table.button, save)),
    words, chart?.element, table?.place, below);
  return {
    element,
    setNote(text) {
      write(words, text);
      words.hidden = !text;
    },
    refresh: () => table?.refresh(),
    destroy: () => chart?.destroy(),
  };
}

/** Return a number with the digits that the answer has, or other text as it is. */
function cell(value) {
  if (value === null || value === undefined) return h("td", { class: "is-none" }, "–");
  if (typeof value === "number") return h("td", { class: "is-number" }, String(Number(value.toPrecision(6))));
  return h("td", null, value);
}

/** Return a table element of `{columns, rows}`; the first cell of each row is its head. */
function tableOf({ columns, rows }, caption) {
  return h("table", { class: "numbers" },
    h("caption", null, caption),
    h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, rows.map(([first, ...rest]) => h("tr", null, h("th", { scope: "row" }, String(first ?? "–")), rest.map(cell)))));
}

/**
 * Return a button that shows the numbers of a chart in its place, and back.
 * @param {{element, table}} chart
 * @param {string} title
 */
function tableBehind(chart, title) {
  const place = h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": `${title}, as a table`, hidden: true });
  const button = h("button", { type: "button", class: "quiet", "aria-pressed": "false", "aria-label": `Show ${title} as table`, onclick: () => toggle() }, "Table");
  let isShown = false;

  function toggle() {
    isShown = !isShown;
    button.setAttribute("aria-pressed", String(isShown));
    refresh();
    place.hidden = !isShown;
    chart.element.hidden = isShown;
  }

  function refresh() {
    if (isShown) place.replaceChildren(tableOf(chart.table(), title));
  }

  return { button, place, refresh };
}

/**
 * Return a menu that saves a chart.
 * @param {{table, picture}} chart
 * @param {{title: string, note: () => string, owner: string}} words
 */
function saveMenu(chart, { title, note, owner }) {
  const choose = async (kind) => {
    menu.open = false;
    (await import("page/chart/export.js")).save(chart, kind, { title, owner, note: note() });
  };
  const menu = h("details", { class: "save" },
    h("summary", { class: "quiet", "aria-label": `Save ${title}` }, "Save"),
    h("div", { class: "save-menu" }, ["CSV", "SVG", "PNG"].map((kind) =>
      h("button", { type: "button", "aria-label": `Save ${title} as ${kind}`, onclick: () => choose(kind) }, kind))));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  return menu;
}
