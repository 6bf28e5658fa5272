// Shows what an incident rests on: what each watch found, and the comparison of the model with its reference; folded away.

import { h, svg } from "page/dom.js";
import { count, estimate, isScore, number, thin } from "page/format.js";
import { compared } from "page/views/incident/compared.js";
import { lossWords } from "page/views/panels/asked.js";
import { intervals } from "page/views/panels/intervals.js";

const SCALES = {
  relative: "0 is the same function, 1 as far apart as two observed targets",
  absolute: "in the unit of its distance",
};

/** Return what is folded away; null where there is nothing. */
export function evidence(event) {
  const { explanation: told } = event;
  const panels = told ? Object.entries(told.importances).map(([name, one]) => compared(name, one, event.model_id)) : [];
  const findings = event.evidence.length > 0 && fold(`Evidence (${count(event.evidence.length)})`, table(event.evidence));
  const reference = told && fold("Compared with the model before", [facts(told), losses(told), panels.map((one) => one.element)]);
  if (!findings && !reference) return null;
  return { element: h("div", { class: "incident-evidence" }, findings, reference), close() { for (const one of panels) one.close(); } };
}

function fold(title, content) {
  return h("details", { class: "card fold" }, h("summary", null, title), h("div", { class: "fold-body" }, content));
}

function table(rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Evidence, a table" }, h("table", { class: "plain" },
    h("thead", null, h("tr", null, ["watch", "found", "at observation", ""].map((text) => (text ? h("th", { scope: "col", class: text === "found" ? "text" : null }, text) : h("td"))))),
    h("tbody", null, rows.map((one) => h("tr", null, h("th", { scope: "row" }, one.watch), h("td", null, one.said.replaceAll("_", " ")),
      h("td", { class: "number" }, thin(count(one.observation))), h("td", null, one.is_open ? "open" : "closed"))))));
}

function facts(told) {
  const rows = [discrepancy(told), chance(told), window(told), onset(told)].filter(Boolean);
  return h("dl", { class: "believe" }, rows.map(([name, value, help, picture]) => h("div", null,
    h("dt", null, name), h("dd", null, h("span", { class: "value" }, thin(value)), picture, help && h("span", { class: "help" }, thin(help))))));
}

function discrepancy(told) {
  if (told.discrepancy === null) return null;
  return [
    "Discrepancy",
    `${number(told.discrepancy)} ${told.discrepancy > told.threshold ? ">" : "≤"} ${number(told.threshold)}`,
    `over n = ${count(told.n_discrepancy)}; above ${number(told.threshold)} it counts as another model.${SCALES[told.scale] ? ` It compares each ${told.distance}: ${SCALES[told.scale]}.` : ""}`,
    meter(told.discrepancy, told.threshold),
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

function chance({ importances, route }) {
  const all = Object.values(Object.values(importances)[0]?.features ?? {});
  if (!all.length) return null;
  return ["Beyond noise", `${count(all.filter((one) => one.significant).length)} of ${count(all.length)} features`,
    route === "version" ? "that changed by more than the configured margin of the total importance." : "p at most 0.05, adjusted for there being several features (Holm)."];
}

function window(told) {
  const by = told.detector ? `${told.detector.name} on ${told.detector.signal}` : told.route;
  return ["Rests on", `${count(told.window)} observations`, `after ${count(told.detected_at)}, raised by ${by}; the reference is of ${count(told.reference_at)}.`];
}

function onset({ onset: found }) {
  if (!found) return null;
  return ["Its onset", `observation ${count(found.observation)}`, found.low === null ? `at the latest ${count(found.high)}.` : `95 % interval ${count(found.low)} to ${count(found.high)}.`];
}

function losses({ losses: all, route, model_version, model_version_before: before }) {
  if (!all) return null;
  const isVersion = route === "version";
  const word = isScore(all.loss) ? "score" : "loss";
  const row = (name, help, one, tone) => one && { name, help, value: one.loss, low: one.low, high: one.high, n: one.n, tone };
  const rows = [
    row("Reference then", "the model before, just after it was taken", all.reference_then, "muted"),
    row(isVersion ? "Old version" : "Reference now", isVersion ? before : "the same model on recent observations", all.reference_now, "before"),
    row(isVersion ? "New version" : "Model now", isVersion ? model_version : "on the same recent observations", all.model_now, "after"),
  ].filter(Boolean);
  return [
    intervals({ title: `Mean ${word} with its 95 % interval`, unit: lossWords({ name: all.loss, unit: all.loss_unit }), rows }),
    h("ul", { class: "differences" }, [["Reference, now − then", all.worsened], [isVersion ? "Old − new version" : "Reference − model, now", all.gain]]
      .filter(([, one]) => one && one.loss !== null).map(([name, one]) => h("li", null, `${name}: `, h("b", null, estimate(one.loss, one.low === null || one.high === null ? null : (one.high - one.low) / 2))))),
  ];
}
