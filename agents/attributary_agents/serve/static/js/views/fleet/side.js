// Draws what stands beside the table: the features of the chosen model, and the last changes of the fleet.

import { bars } from "page/chart/bars.js";
import { h, replace, write } from "page/dom.js";
import { ago, count, thin, time } from "page/format.js";
import { link } from "page/state.js";

/** @param {{state: Object, now: function(): number}} context */
export function createSide({ state, now }) {
  const features = h("section", { class: "card", "aria-label": "Features of the chosen model" });
  const changes = h("section", { class: "card", "aria-labelledby": "last-changes" });
  let seen = "";
  let times = [];

  function setModel(row) {
    const now_seen = JSON.stringify([row?.model_id, row?.top, row?.n_features]);
    if (now_seen === seen) return;
    seen = now_seen;
    features.hidden = !row;
    if (row) replace(features, featureParts(row, state));
  }

  function setChanges(rows) {
    times = [];
    replace(changes,
      h("h2", { id: "last-changes" }, "Last changes"),
      rows.length ? h("ol", { class: "last-changes" }, rows.map(changeItem)) : h("p", { class: "hint" }, "Nothing has changed in this window."));
    tick();
  }

  function changeItem(change) {
    const since = h("time", change.time_ms === null ? null : { datetime: new Date(change.time_ms).toISOString(), title: time(change.time_ms, { seconds: true }) });
    times.push([since, change]);
    return h("li", { class: change.is_open ? "open" : "" },
      h("p", { class: "meta" }, h("strong", null, change.model_id), " · ", since, change.is_open && h("span", { class: "tag bad" }, "open")),
      h("a", { href: link(state, { view: "change", change: change.id }) }, thin(change.sentence)));
  }

  function tick() {
    for (const [element, { time_ms, observation }] of times) write(element, time_ms === null ? `at observation ${count(observation)}` : ago(time_ms, now()));
  }

  return { element: h("aside", { class: "side", "aria-label": "Beside the table" }, features, changes), setModel, setChanges, tick };
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
