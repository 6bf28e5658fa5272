// Draws what stands beside the table: the features of the chosen model.

import { bars } from "page/chart/bars.js";
import { h, replace } from "page/dom.js";
import { count } from "page/format.js";
import { link } from "page/state.js";

/** @param {{state: Object}} context */
export function createSide({ state }) {
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
