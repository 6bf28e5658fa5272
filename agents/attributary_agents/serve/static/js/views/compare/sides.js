// Draws the heads of both sides, and says what may not be compared.

import { h } from "page/dom.js";
import { count, isScore, lossOf, middle, number, thin, time } from "page/format.js";

/** Return the heads of A and B. */
export function sides(answer, _given, { state, link, now }) {
  return h("div", { class: "heads" },
    head("A", answer.a, answer, { state, link, now: now() }),
    head("B", answer.b, answer, { state, link, now: now() }),
    answer.note && h("p", { class: "strip warn", role: "note" }, answer.note));
}

function head(name, side, answer, { state, link, now }) {
  const [model, baseline] = [lossOf(side.model_loss, side.loss), lossOf(side.baseline_loss, side.loss)];
  const ratio = model.value !== null && baseline.value ? model.value / baseline.value : null;
  return h("section", { class: "card head-of", "aria-label": `Side ${name}` },
    h("h2", null, h("span", { class: `letter letter-${name}` }, name),
      h("a", { href: link(state, { view: "model", model: side.model_id }), title: side.model_id }, middle(side.model_id, 44))),
    h("p", { class: "hint" }, [side.model_version && `version ${middle(side.model_version, 40)}`, time(side.time_ms, { now }), `observation ${count(side.observation)}`].filter(Boolean).map(thin).join(" · ")),
    h("dl", { class: "points" },
      isScore(side.loss.name) ? fact("Mean score", h("b", null, number(side.model_loss))) : fact("Loss ÷ baseline", ratio === null ? "unknown" : [h("b", null, number(ratio)), thin(` = ${model.isRoot ? "√loss " : ""}${number(model.value)} ÷ ${number(baseline.value)}`)]),
      fact("Importance", `${side.explainer.toUpperCase()}${side.removal === "none" ? "" : `, ${side.removal}`} · ${side.loss.text}`)));
}

function fact(name, value) {
  return h("div", null, h("dt", null, name), h("dd", null, value));
}
