// Keeps a chart of plain SVG as wide as its place, and in the colours of the theme.

import { h } from "page/dom.js";
import { ink, onTheme } from "page/chart/colours.js";

/**
 * Return a chart that is drawn anew when its place or the theme changes.
 * @param {(width: number, colours: Object, data: any) => SVGElement} draw
 * @param {any} data
 * @param {{label: (data) => string, table: (data) => Object}} words
 */
export function drawn(draw, data, { label, table }) {
  const element = h("div", { class: "drawn", role: "img" });
  let width = 0;

  function redraw() {
    element.setAttribute("aria-label", label(data));
    if (width) element.replaceChildren(draw(width, ink(), data));
  }

  const watch = new ResizeObserver(() => {
    const now = Math.floor(element.clientWidth);
    if (now < 40 || now === width) return;
    width = now;
    redraw();
  });
  watch.observe(element);
  const forget = onTheme(redraw);
  redraw();
  return {
    element,
    setData(given) {
      data = { ...data, ...given };
      redraw();
    },
    table: () => table(data),
    summary: () => label(data),
    picture: () => draw(Math.max(width, 640), ink(), data),
    destroy() {
      watch.disconnect();
      forget();
    },
  };
}
