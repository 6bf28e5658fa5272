// Shows one change: what was told, whether it may be believed, what it rests on, and what came before and after.

import { h, replace } from "page/dom.js";
import { ago, count, middle, thin, time } from "page/format.js";
import { bodyOf } from "page/views/change/bodies.js";
import { chain } from "page/views/change/chain.js";
import { believe } from "page/views/change/believe.js";
import { around } from "page/views/change/around.js";
import { kindOf, parted, patternOf, routeOf, toneOf, verdictOf } from "page/views/change/words.js";
import { copyLink } from "page/views/panels/permalink.js";

/**
 * @param {{source: Object, live: EventTarget, state: Object, link: function, now: function(): number,
 *   announce: function(string)}} context
 */
export async function show(context) {
  const { source, state } = context;
  const element = h("div", { class: "change-view" });
  let view = await source.change(state.change);
  let parts = draw(element, view, context);

  /** Fetch the change anew: what belongs to it may have come. */
  async function reload() {
    view = await source.change(state.change);
    parts.close();
    parts = draw(element, view, context);
  }

  return {
    get title() { return `${kindOf(view.row)}: ${middle(view.row.model_id, 40)}`; },
    element,
    update(kind, data) {
      if (kind === "change" && data.model_id === view.row.model_id) reload().catch(() => {});
    },
    reload,
    close: () => parts.close(),
  };
}

function draw(element, view, context) {
  const { row, event } = view;
  const body = bodyOf(event, context);
  const chart = around(event, context);
  replace(element,
    crumbs(row, context),
    head(row, event, context),
    h("div", { class: "change-columns" },
      h("div", { class: "change-main" }, body.element, chart.element),
      h("aside", { class: "change-side", "aria-label": "Evidence and course" },
        believe(event), chain(view, context))),
    raw(event));
  return { close() { body.close(); chart.close(); } };
}

function crumbs(row, { state, link }) {
  return h("nav", { class: "crumbs", "aria-label": "Where this belongs" },
    h("a", { href: link(state, { view: "fleet" }) }, "All models"), h("span", { "aria-hidden": "true" }, "›"),
    h("a", { href: link(state, { view: "model", model: row.model_id }), title: row.model_id }, middle(row.model_id, 48)),
    h("span", { "aria-hidden": "true" }, "›"), h("span", { "aria-current": "page" }, kindOf(row)));
}

function head(row, event, context) {
  const { state, link, now } = context;
  const [first, rest] = parted(row.sentence);
  const verdict = verdictOf(event);
  const pattern = patternOf(event);
  const tone = toneOf(row);
  return h("header", { class: `card change-head tone-${tone}` },
    h("p", { class: "kicker" },
      h("span", { class: `badge tone-${tone}` }, verdict && event.event !== "not_confirmed" ? [`${kindOf(row)}: `, h("b", null, verdict.word.toLowerCase())] : kindOf(row)),
      row.is_open && h("span", { class: "badge open" }, "open"),
      row.time_ms !== null && h("time", { datetime: new Date(row.time_ms).toISOString(), title: time(row.time_ms, { seconds: true }) },
        `${time(row.time_ms, { now: now() })} · ${ago(row.time_ms, now())}`),
      h("span", null, thin(`observation ${count(row.observation)}`))),
    h("h1", { tabindex: "-1" }, first, rest && h("span", { class: "unseen" }, "; ")),
    rest && h("p", { class: "rest" }, rest),
    h("dl", { class: "points" },
      verdict && fact("What it means", [verdict.means, pattern && ` ${pattern}`]),
      event.route && fact("Raised by", routeOf(event)),
      fact("Version", versions(row)),
      event.mode && fact("Beware", event.mode === "mirror" ? "This is a mirror of another model: what it says is of the copy." : event.mode === "anomaly" ? "An anomaly detector: these are importances of its score; nothing says whether it is right." : "No labels: these are importances of the predictions, not of being right.")),
    h("p", { class: "tools" },
      compareLink(event, row, state, link),
      h("a", { class: "button quiet", href: modelLink(event, row, state, link) }, "See it in the model"),
      copyLink()));
}

function fact(name, ...content) {
  return h("div", null, h("dt", null, name), h("dd", null, ...content));
}

function versions(row) {
  const before = row.model_version_before;
  return before && before !== row.model_version ? [h("b", null, before), " → ", h("b", null, row.model_version)] : row.model_version;
}

function compareLink(event, row, state, link) {
  if (event.reference_at === undefined || event.event === "alarm") return null;
  const [a, b] = [event.reference_at, event.observation].map((at) => `${row.model_id}@#${at}`);
  return h("a", { class: "button", href: link(state, { view: "compare", a, b, explainer: event.explainer ?? null }) }, "Compare before and after");
}

function modelLink(event, row, state, link) {
  const width = event.window ?? 1000;
  const from = Math.max(0, (event.detected_at ?? event.observation) - 4 * width);
  return link(state, { view: "model", model: row.model_id, by: "observation", from, to: event.observation + 4 * width, x: row.feature });
}

function raw(event) {
  return h("details", { class: "card raw" },
    h("summary", null, "The event as the topic has it"),
    h("pre", { tabindex: "0" }, JSON.stringify(event, null, 2)));
}
