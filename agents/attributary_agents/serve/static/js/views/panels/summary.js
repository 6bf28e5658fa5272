// Says in a few lines how a model is doing: its version, loss, its incident, and how its numbers are meant.

import { h } from "page/dom.js";
import { count, isScore, lossOf, number, percent, scoreVerbs, thin } from "page/format.js";
import { stateOf } from "page/views/fleet/words.js";
import { courseOf, standingOf } from "page/views/incident/words.js";
import { lossWords } from "page/views/panels/asked.js";

/** Return the name of a model and the line below it. */
export function summaryOf({ row, guard }) {
  const { sign, kind, word, said } = stateOf(row);
  const loss = lossOf(row.model_loss, row.loss);
  const baseline = lossOf(row.baseline_loss, row.loss);
  const facts = [
    row.version !== null && [h("span", { class: "key" }, "version "), row.version],
    row.n_observations !== null && [count(row.n_observations), h("span", { class: "key" }, " observations")],
    row.observations_per_second !== null && [number(row.observations_per_second), h("span", { class: "key" }, " per second")],
    row.model_loss !== null && [h("span", { class: "key" }, isScore(row.loss?.name) ? "mean score " : loss.isRoot ? "√loss " : "loss "), h("b", null, number(loss.value)),
      row.baseline_loss !== null && [h("span", { class: "key" }, " against "), number(baseline.value), h("span", { class: "key" }, ` of the baseline${row.baseline_loss > 0 ? `, ${percent(loss.value / baseline.value).replace(" ", "\u00a0")}` : ""}`)],
      h("span", { class: "key" }, loss.isRoot ? `, in the ${loss.unit}` : row.loss && !isScore(row.loss.name) && `, in ${lossWords(row.loss)}`)],
    row.fidelity !== null && [h("span", { class: "key" }, "fidelity "), number(row.fidelity)],
    guard && guardFact(guard),
    row.n_refused > 0 && [count(row.n_refused), h("span", { class: "key" }, " observations refused")],
  ].filter(Boolean);
  return h("header", { class: "model-head" },
    h("h1", null, row.model_id, " ", h("span", { class: `state is-${kind === "plain" ? "muted" : kind}`, title: said }, h("span", { "aria-hidden": "true" }, `${sign} `), row.mode === "labelled" ? word : `${word} · ${row.mode}`)),
    h("ul", { class: "facts" }, facts.map((fact) => h("li", null, fact))));
}

/** Return since when the loss is watched: the verdict, and less loudly its figures. */
function guardFact({ sentence, waits_for }) {
  const [, verdict, figures] = /^(.*?)(: .*)?$/s.exec(thin(sentence));
  return [h("span", { class: "key" }, "loss watch "), verdict, h("span", { class: "key" }, figures, waits_for && "; until then no rise of the loss is told")];
}

/** Return the bands that say how all numbers of a model are meant, and what to know before they are believed. */
export function bandsOf({ row, notes }) {
  const isMode = (note) => note.startsWith("These are importances of");
  return [...modeBands(row), ...(notes ?? []).filter((note) => !isMode(note)).map((note) => h("p", { class: "mode-band" }, note))];
}

function scoreBand(loss) {
  const [above, below] = scoreVerbs(loss?.name);
  return `These are importances of an anomaly score: positive where a feature ${above} it, negative where it ${below} it`;
}

function modeBands(row) {
  if (row.mode === "labelled") return [];
  if (row.mode === "unlabelled") return [h("p", { class: "mode-band" }, "These are importances of the predictions, not of being right")];
  if (row.mode === "anomaly") return [h("p", { class: "mode-band" }, scoreBand(row.loss))];
  const fidelity = row.fidelity === null ? "fidelity not known yet" : `fidelity ${number(row.fidelity)}`;
  return [h("p", { class: row.is_unfaithful ? "mode-band is-warn" : "mode-band" }, `These are importances of a mirror; ${fidelity}${row.is_unfaithful ? " (low)" : ""}`)];
}

/** Return the strip of the incident that is open, or of the last one; null where there is none. */
export function incidentStrip({ row: { incident } }, state, link, now) {
  if (!incident) return null;
  const { sign, tone } = standingOf(incident);
  return h("div", { class: `incident-strip tone-${tone}` },
    h("p", null, h("b", null, h("span", { "aria-hidden": "true" }, `${sign} `), thin(`${courseOf(incident, now)}: `)), thin(incident.sentence)),
    h("p", { class: "links" }, h("a", { href: link(state, { view: "incident", incident: incident.id }) }, "see the incident")));
}
