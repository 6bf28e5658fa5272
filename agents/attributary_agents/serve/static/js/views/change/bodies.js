// Draws what each kind of event says beside its sentence.

import { h } from "page/dom.js";
import { count, estimate, isScore, middle, number, thin } from "page/format.js";
import { compared } from "page/views/change/features.js";
import { suspects } from "page/views/change/suspects.js";
import { lossWords } from "page/views/change/words.js";
import { intervals } from "page/views/panels/intervals.js";

/**
 * Return what is drawn of an event.
 * @returns {{element: HTMLElement, close: function(): void}}
 */
export function bodyOf(event, context) {
  const parts = partsOf(event, context).filter(Boolean);
  return {
    element: h("div", { class: "change-body" }, parts.map((part) => part.element ?? part)),
    close() { for (const part of parts) part.close?.(); },
  };
}

function partsOf(event, context) {
  switch (event.event) {
    case "explanation":
      return [...Object.entries(event.importances).map(([name, one], i) => compared(name, one, event, { isFirst: i === 0 })), losses(event)];
    case "not_confirmed":
      return [losses(event)];
    case "alarm":
      return [examined(event, context)];
    case "importance_shift":
    case "importance_shift_released":
      return [shifted(event)];
    case "loss_shift":
    case "loss_shift_explained":
    case "loss_shift_released":
      return [event.event === "loss_shift_explained" && suspects(event), moved(event), levels(event)];
    case "recovered":
      return [recovered(event)];
    default:
      return [];
  }
}

function panel(id, title, ...content) {
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), ...content);
}

function examined(event) {
  const is = event.route === "version" ? "Both versions are compared" : "The model is examined";
  return panel("examined", "What happens now",
    h("p", { class: "say" }, thin(`${is} on the observations after the alarm, none of which either has learnt. The verdict is expected at observation ${count(event.due_at)}.`)),
    h("dl", { class: "points" },
      [["Reference taken after", event.reference_at], ["Alarm at", event.observation], ["Verdict expected at", event.due_at]]
        .map(([name, at]) => h("div", null, h("dt", null, name), h("dd", null, `observation ${count(at)}`)))));
}

function losses(event) {
  const all = event.losses;
  if (!all) return null;
  const isVersion = event.route === "version";
  const isOfScore = isScore(all.loss);
  const row = (name, help, one, tone) => one && { name, help, value: one.loss, low: one.low, high: one.high, n: one.n, tone };
  const rows = [
    row("Reference then", "the model of before, just after it was taken", all.reference_then, "muted"),
    isVersion ? row("Old version", event.model_version_before, all.reference_now, "before") : row("Reference now", "the same model on recent observations", all.reference_now, "before"),
    isVersion ? row("New version", event.model_version, all.model_now, "after") : row("Model now", "on the same recent observations", all.model_now, "after"),
  ].filter(Boolean);
  return panel("losses", isOfScore ? "Mean scores it rests on" : "Losses it rests on",
    intervals({ title: `Mean ${isOfScore ? "score" : "loss"} with its 95 % interval`, unit: lossWords(all), rows }),
    h("ul", { class: "differences" },
      all.worsened && h("li", null, difference("The model of before", all.worsened, ...(isOfScore ? ["scores higher now", "scores lower now"] : ["loses more now", "loses less now"]))),
      all.gain && h("li", null, difference(isVersion ? "The new version" : "The model now", all.gain, ...(isOfScore ? ["scores lower than it", "scores higher than it"] : ["loses less than it", "loses more than it"])))));
}

/** Say a difference with its interval, and whether it is beyond noise. */
function difference(who, { loss, low, high }, more, less) {
  if (loss === null || low === null || high === null) return `${who}: the difference is not known.`;
  const size = estimate(Math.abs(loss), (high - low) / 2);
  if (low <= 0 && high >= 0) return [`${who} ${loss >= 0 ? more : less} by ${size}: `, h("b", null, "within noise"), "."];
  return [`${who} ${loss >= 0 ? more : less} by `, h("b", null, size), "."];
}

function shifted(event) {
  const { before, after, size } = event;
  const fell = event.direction === "fell";
  const half = size.low === null || size.high === null ? null : (size.high - size.low) / 2;
  return panel("shifted", h("span", { title: event.feature }, `Importance of ${middle(event.feature, 60)}`),
    h("p", { class: "figure" },
      h("span", null, number(before)), h("span", { "aria-label": "to", class: "arrow" }, "→"), h("b", null, number(after)),
      h("span", { class: `delta ${fell ? "fell" : "rose"}` }, `${fell ? "▼" : "▲"} ${estimate(size.importance, half)}`)),
    h("p", { class: "hint" }, `${event.explainer.toUpperCase()}, ${lossWords(event)}. Before: up to observation ${count(event.reference_at)}. After: since about ${count(event.onset.observation)}.`),
    intervals({
      title: "Change with its 95 % interval",
      isFrom0: true,
      rows: [
        { name: "Change", value: size.importance, low: size.low, high: size.high, tone: "after" },
        event.least === null ? null : { name: "Least that can be told", value: fell ? -event.least : event.least, low: null, high: null, tone: "muted" },
      ].filter(Boolean),
    }));
}

function moved(event) {
  const rows = [["Loss of the model", event.model_loss], ["Beyond what was to be expected", event.excess], ["How far predictions overreach (slope)", event.slope]].filter(([, one]) => one);
  const isShare = event.loss === "zero_one";
  const points = isShare ? 100 : 1;
  const apart = ({ low, high }, i) => {
    const [from, to] = [low, high].map((value) => number(value * (i < 2 ? points : 1), { signed: true }));
    return `${from} to ${to}${isShare && i < 2 ? " points" : ""}`;
  };
  const show = (value) => (isShare && value !== null ? `${number(100 * value)} %` : number(value));
  return panel("moved", "How far it moved",
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "How far it moved, a table" }, h("table", { class: "plain" },
      h("caption", null, h("span", { class: "unit" }, lossWords(event))),
      h("thead", null, h("tr", null, ["", "before", "after", "difference, 95 %", "z"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, rows.map(([name, one], i) => h("tr", null, h("th", { scope: "row" }, name),
        h("td", { class: "number" }, i < 2 ? show(one.before) : number(one.before)), h("td", { class: "number" }, i < 2 ? show(one.after) : number(one.after)),
        h("td", { class: "number" }, one.low === null || one.high === null ? "–" : apart(one, i)),
        h("td", { class: "number" }, one.z === null ? "–" : number(one.z))))))));
}

function levels(event) {
  if (!event.level?.length) return null;
  const percent = (value) => (value === null ? "–" : `${number(100 * value)} %`);
  return panel("levels", "What came beside what was expected",
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What came beside what was expected, a table" }, h("table", { class: "plain" },
      h("thead", null, h("tr", null, ["label", "expected", "came", "mended by adding"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, event.level.map((one) => h("tr", null,
        h("th", { scope: "row" }, one.label === null ? "mean of the target" : String(one.label)),
        h("td", { class: "number" }, one.label === null ? number(one.expected) : percent(one.expected)),
        h("td", { class: "number" }, one.label === null ? number(one.observed) : percent(one.observed)),
        h("td", { class: "number" }, one.intercept === null ? "–" : `${number(one.intercept, { signed: true })} to ${one.label === null ? "predictions" : "its logit"}`)))))));
}

function recovered(event) {
  return panel("recovered", "What is lost",
    h("dl", { class: "points" },
      [["Went back to its state after", `observation ${count(event.back_to)}`], ["Forgets", `${count(event.n_forgotten)} observations that it had learnt since`],
        ["Failed on", `${count(event.n_failed)} observations in a row: those before the last are dead letters`], ["Failed last", `to ${event.stage}: ${event.error}`]]
        .map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text)))));
}
