// Shows the features of an incident: how far the model relied on each before and does now, and their values before and now.

import { h } from "page/dom.js";
import { count, estimate, middle } from "page/format.js";
import { dots } from "page/chart/dots.js";
import { panel } from "page/chart/frame.js";
import { values, valuesOfWords } from "page/views/incident/values.js";

const OPEN = 3;

/** Return the panels of an incident's features; null where it names none. */
export function features(event) {
  const all = Object.entries(event.features).map(([name, one]) => ({ name, ...one }));
  const told = all.filter((one) => one.values_before && one.values_after);
  const moved = told.filter((one) => one.suspect);
  const shown = moved.length ? moved.slice(0, OPEN) : told.slice(0, 1);
  const rest = told.filter((one) => !shown.includes(one));
  const panels = [...shown.flatMap((one) => panelsOf(one, event)), importances(all, event)].filter(Boolean);
  const folded = rest.flatMap((one) => panelsOf(one, event));
  if (!panels.length) return null;
  return {
    element: h("section", { class: "incident-features", "aria-label": "Features" },
      h("div", { class: "panels" }, panels.map((one) => one.element)),
      folded.length > 0 && h("details", { class: "card noise" },
        h("summary", null, `Values of ${count(rest.length)} other ${rest.length === 1 ? "feature" : "features"}`),
        h("div", { class: "panels" }, folded.map((one) => one.element)))),
    close() { for (const one of [...panels, ...folded]) one.destroy(); },
  };
}

function importances(all, event) {
  const known = all.filter((one) => one.before !== null || one.after !== null);
  if (!known.length) return null;
  const title = "Importance before → since";
  const chart = dots({
    title, unit: event.loss_unit, sides: ["before", "since"],
    rows: known.map((one) => ({ name: one.name, before: one.before, after: one.after, note: deltaOf(one) })),
  });
  return panel({ title, owner: event.model_id, chart, note: `Further right: the model relies on it more. ${quietWords(known)}` });
}

function quietWords(known) {
  const quiet = known.filter((one) => !one.significant).map((one) => middle(one.name, 24));
  if (!quiet.length) return "All have clearly moved.";
  return quiet.length === known.length ? "None has clearly moved, as many are compared." : `No clear change, as many are compared: ${quiet.slice(0, 4).join(", ")}${quiet.length > 4 ? ` and ${quiet.length - 4} more` : ""}.`;
}

function deltaOf({ delta, half_width }) {
  if (delta === null) return "";
  return `${delta > 0 ? "+" : ""}${estimate(delta, half_width)}`;
}

function panelsOf(one, event) {
  const note = one.said ? `It ${one.said}.` : one.suspect ? "Its values moved." : "";
  const title = `Values of ${middle(one.name, 40)}`;
  const made = [values, valuesOfWords].map((draw) => draw({ title, before: one.values_before, after: one.values_after })).filter(Boolean);
  return made.map((chart) => panel({ title, owner: event.model_id, chart, note }));
}
