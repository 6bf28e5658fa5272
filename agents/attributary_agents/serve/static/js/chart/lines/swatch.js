// Draws a piece of a line beside its name.

import { svg } from "page/dom.js";
import { dashOf } from "page/chart/colours.js";

/** Return a piece of a line as it is drawn. */
export function swatch(one) {
  return svg("svg", { class: `swatch s${(one.colour ?? 0) + 1}`, width: 26, height: 12, "aria-hidden": "true" },
    svg("path", { d: "M1 6H25", stroke: "currentColor", "stroke-width": 3, "stroke-dasharray": dashOf(one).join(" ") || null }));
}
