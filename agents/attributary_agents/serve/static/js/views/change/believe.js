// Answers whether a change may be believed: sizes against their thresholds, numbers of observations, intervals, chance.

import { h, svg } from "page/dom.js";
import { count, number, thin } from "page/format.js";

const SCALES = {
  relative: "0 is the same function, 1 as far apart as two observed targets",
  absolute: "in the unit of its distance",
};

/** Return the panel of what an event rests on; null where it says nothing of that. */
export function believe(event) {
  const rows = [discrepancy(event), chance(event), onset(event), window(event), size(event), figures(event), stored(event)].filter(Boolean);
  if (!rows.length) return null;
  return h("section", { class: "card believe", "aria-labelledby": "believe" },
    h("h2", { id: "believe" }, "May I believe it?"),
    h("dl", null, rows.map(([name, value, help, picture]) => h("div", null,
      h("dt", null, name), h("dd", null, h("span", { class: "value" }, thin(value)), picture, help && h("span", { class: "help" }, thin(help)))))));
}

function discrepancy(event) {
  if (event.threshold === undefined || event.discrepancy === null) return null;
  const isOver = event.discrepancy > event.threshold;
  return [
    "Discrepancy",
    `${number(event.discrepancy)} ${isOver ? ">" : "≤"} ${number(event.threshold)}`,
    `over n = ${count(event.n_discrepancy)}; above ${number(event.threshold)} it counts as another model. ${SCALES[event.scale] ? `It compares each ${event.distance}: ${SCALES[event.scale]}.` : ""}`,
    meter(event.discrepancy, event.threshold),
  ];
}

/** Draw a value beside its threshold. */
function meter(value, threshold) {
  const most = Math.max(value, threshold, 1e-12) * 1.25;
  const at = (one) => (100 * one) / most;
  return svg("svg", { class: `meter ${value > threshold ? "over" : ""}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", x: 0, y: 3, width: 100, height: 4 }),
    svg("rect", { class: "filled", x: 0, y: 3, width: at(value), height: 4 }),
    svg("line", { class: "threshold", x1: at(threshold), x2: at(threshold), y1: 0, y2: 10 }));
}

function chance(event) {
  const features = Object.values(event.importances ?? {})[0]?.features ?? (event.event === "loss_shift_explained" ? event.features : null);
  if (!features) return null;
  const all = Object.values(features);
  const n = all.filter((one) => one.significant).length;
  return [
    "Beyond noise",
    `${n} of ${count(all.length)} features`,
    event.route === "version"
      ? "that changed by more than the configured margin of the total importance."
      : "p at most 0.05, adjusted for there being several features (Holm).",
  ];
}

function onset(event) {
  if (!event.onset) return null;
  const { observation, low, high } = event.onset;
  return [
    "Since",
    `observation ${count(observation)}`,
    low === null
      ? `at the latest ${count(high)}; it began before what is kept, or within a block.`
      : `95 % interval ${count(low)} to ${count(high)}; noticed at ${count(event.detected_at)}.`,
  ];
}

function window(event) {
  if (event.window === undefined) return null;
  return ["Verdict rests on", `${count(event.window)} observations`, `after ${count(event.detected_at)}, none of them learnt before they were judged.`];
}

function size(event) {
  if (event.least === undefined || event.least === null) return null;
  return ["Least that can be told", number(event.least), `a smaller change of ${event.feature} is not told from noise.`];
}

function figures(event) {
  if (event.n_reference === undefined) return null;
  const z = event[event.signal]?.z ?? event.model_loss?.z;
  return [
    "Observations",
    `${count(event.n_reference)} before, ${count(event.n_window)} after`,
    `${event.signal === "loss" ? "the loss" : `the ${event.signal}`} passed its test first${Number.isFinite(z) ? `, z = ${number(z)}` : ""}.${event.has_split ? " The tree has split just before: that costs loss until its new leaves have learnt." : ""}`,
  ];
}

function stored(event) {
  if (event.n_before === undefined) return null;
  const share = event.expected === null ? "" : ` Values of features explain ${Math.round(100 * event.expected)} % of the rise.`;
  return ["Features judged on", `${count(event.n_before)} + ${count(event.n_after)}`, `stored observations of before and after.${share}`];
}
