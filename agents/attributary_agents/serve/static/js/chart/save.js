// Offers the files of a chart; what makes them is loaded with the first one.

import { h } from "page/dom.js";

/**
 * Return a menu that saves a chart.
 * @param {{table, picture}} chart
 * @param {{title: string, note: () => string, owner: string}} words
 */
export function saveMenu(chart, { title, note, owner }) {
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
