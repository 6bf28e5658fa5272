// Puts a table of the same numbers behind a chart: a screen reader, and whoever wants the numbers, uses it.

import { h } from "page/dom.js";

/** Return a number with the digits that the answer has, or other text as it is. */
function cell(value) {
  if (value === null || value === undefined) return h("td", { class: "is-none" }, "–");
  if (typeof value === "number") return h("td", { class: "is-number" }, String(Number(value.toPrecision(6))));
  return h("td", null, value);
}

/** Return a table element of `{columns, rows}`; the first cell of each row is its head. */
export function tableOf({ columns, rows }, caption) {
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
export function tableBehind(chart, title) {
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
