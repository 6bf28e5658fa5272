// Draws beside importances over time: another explainer, partial dependence, dead letters, versions, incidents.

import { h } from "page/dom.js";
import { ago, count, thin, time } from "page/format.js";
import { bars } from "page/chart/bars.js";
import { panel } from "page/chart/frame.js";
import { courseOf, standingOf } from "page/views/incident/words.js";
import { lossWords } from "page/views/panels/asked.js";

/** Return the panel of two explainers beside each other; null where there is one. */
export function explainersPanel({ series, other, owner }) {
  const features = series.features.slice(0, 10);
  if (!features.length) return null;
  const of = new Map((other?.features ?? []).map((one) => [one.feature, one]));
  const rows = features.map((one) => ({ name: one.feature, value: one.latest, halfWidth: one.latest_half_width, before: of.get(one.feature)?.latest, beforeHalf: of.get(one.feature)?.latest_half_width }));
  const [mine, its] = [series.explainer.toUpperCase(), other?.explainer.toUpperCase()];
  const title = other ? `${its} beside ${mine}` : `${mine} at the end of the window`;
  const chart = bars({ title, unit: series.loss.unit, rows, sides: other ? [mine, its] : undefined });
  return panel({ title, owner, chart, note: `In ${lossWords(series.loss)}${rows.some((row) => Number.isFinite(row.halfWidth ?? row.beforeHalf)) ? ", with the 95 % interval" : ""}.${other ? ` Thin: ${its}.` : ""}` });
}

/** Return the panel of partial dependence; null where there is none. */
export async function dependencePanel({ dependences, state, owner, go }) {
  if (!dependences.length) return null;
  const { dependence } = await import("page/chart/dependence.js");
  const features = [...new Set(dependences.map((one) => one.feature))];
  const feature = features.includes(state.x) ? state.x : features[0];
  const answers = dependences.filter((one) => one.feature === feature);
  const box = h("div");
  const titleOf = (answer) => (features.length > 1 ? "Partial dependence" : `Partial dependence on ${answer.feature}`);
  let chart = null;
  const current = { element: box, table: () => chart.table(), picture: () => chart.picture(), destroy: () => chart.destroy() };
  const choices = features.length > 1 && h("label", { class: "choice" }, h("span", null, "of"),
    h("select", { onchange: (event) => go({ ...state, x: event.target.value }) }, features.map((name) => h("option", { value: name, selected: name === feature }, name))));
  const labels = answers.length > 1 && h("label", { class: "choice" }, h("span", null, "label"),
    h("select", { onchange: (event) => show(answers[Number(event.target.value)]) }, answers.map((one, i) => h("option", { value: i }, one.label))));
  const frame = panel({ title: titleOf(answers[0]), owner, chart: current, controls: [choices, labels] });

  function show(answer) {
    chart?.destroy();
    chart = dependence({ title: `Partial dependence on ${answer.feature}`, unit: "", answer });
    box.replaceChildren(chart.element);
    frame.setNote(`Mean prediction${answer.label === null ? "" : `, the probability of ‘${answer.label}’,`} where ${answer.feature} had this value; at observation ${count(answer.observation)}.`);
    frame.refresh();
  }

  show(answers[0]);
  return frame;
}

/** Return the panel of dead letters by reason; null where there are none. */
export function deadLettersPanel({ reasons, owner, now, isFile }) {
  const n = reasons.reduce((sum, one) => sum + one.n, 0);
  if (!n) return null;
  const table = h("table", { class: "rows" }, h("thead", null, h("tr", null, ["reason", "stage", "records", ...(isFile ? [] : ["last"])].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, reasons.map((one) => h("tr", null, h("th", { scope: "row" }, one.reason), h("td", null, one.stage), h("td", { class: "is-number" }, count(one.n)), !isFile && h("td", { title: time(one.last_ms) }, ago(one.last_ms, now))))));
  const where = isFile ? "dead-letters.jsonl, beside this file, has each with what is wrong." : "attributary dlq list shows each with what is wrong.";
  return panel({ title: "Dead letters", owner, size: "short", note: `${count(n)} ${n === 1 ? "record" : "records"} could not be used; ${where}`, below: table });
}

/** Return the panel of versions; null where no event has named one. */
export function versionsPanel({ versions, owner, state, go }) {
  if (!versions.length) return null;
  const of = (one) => (state.by === "time" && one.first_ms !== null ? [one.first_ms, one.last_ms] : [one.first_observation, one.last_observation]);
  const text = (value) => (state.by === "time" ? time(value) : count(value));
  const table = h("table", { class: "rows" }, h("thead", null, h("tr", null, ["version", "from", "to", ""].map((head) => h("th", { scope: "col" }, head || h("span", { class: "unseen" }, "window"))))),
    h("tbody", null, versions.map((one, i) => h("tr", null, h("th", { scope: "row" }, one.version), h("td", null, text(of(one)[0])), h("td", null, i === 0 ? "now" : text(of(one)[1])),
      h("td", null, h("button", { type: "button", class: "quiet", "aria-label": `Show the window of version ${one.version}`, onclick: () => go({ ...state, by: one.first_ms === null ? "observation" : state.by, from: of(one)[0], to: of(one)[1] }) }, "Show"))))));
  return panel({ title: "Versions", owner, size: "short", below: table });
}

/** Return the panel of a model's incidents, those first that began last. */
export function incidentsPanel({ incidents, n, owner, state, link, now }) {
  const items = incidents.map((row) => {
    const { sign, tone } = standingOf(row);
    return h("li", { class: `tone-${tone}` }, h("span", { class: "glyph", "aria-hidden": "true" }, sign),
      h("div", null, h("a", { href: link(state, { view: "incident", incident: row.id }), title: row.sentence }, thin(row.headline)),
        h("p", { class: "when" }, thin(courseOf(row, now)))));
  });
  const more = h("button", { type: "button", class: "quiet", hidden: items.length <= 6, onclick: () => { list.classList.remove("is-short"); more.remove(); } }, `Show all ${count(items.length)}`);
  const list = h("ol", { class: items.length > 6 ? "incident-list is-short" : "incident-list" }, items);
  const note = items.length ? (n > items.length ? `The last ${count(items.length)} of ${count(n)}.` : "") : "None in this window.";
  return panel({ title: "Incidents", owner, note, size: "tall", below: items.length ? [list, more] : null });
}
