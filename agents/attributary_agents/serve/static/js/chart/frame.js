// Frames a chart as a panel: its title, what it says in a line, and a table and files of the same numbers.

import { h, write } from "page/dom.js";
import { saveMenu } from "page/chart/save.js";
import { tableBehind } from "page/chart/table.js";

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
