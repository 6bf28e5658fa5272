// Says in words how an incident stands, since when and how much.

import { ago, count, duration, lossOf, number, time } from "page/format.js";

/** Of each standing: sign, tone, and what it is called. */
const STANDINGS = {
  bad: { sign: "▲", tone: "bad", word: "open" },
  suspected: { sign: "△", tone: "warn", word: "being confirmed" },
  open: { sign: "▲", tone: "plain", word: "open" },
  over: { sign: "✓", tone: "over", word: "over" },
};

const WHATS = {
  inputs: "broken inputs",
  changed: "changed data",
  worse: "worse model",
  level: "base rate moved",
  harder: "harder data",
  relies_differently: "other importances",
  version: "new version",
  recovered: "went back",
};

const MEASURES = { "error rate": "errors", "mean absolute error": "average error", "mean target": "target, on average" };

/** Return sign, tone and word of how an incident, or a line of several, stands. */
export function standingOf({ standing, life }) {
  const found = STANDINGS[standing] ?? STANDINGS.open;
  return life === "withdrawn" ? { ...found, word: "withdrawn" } : found;
}

/** Return in two words what happened. */
export function whatOf({ what }) {
  return WHATS[what] ?? what.replaceAll("_", " ");
}

/** Return in a line how bad an incident is and since when, or when it was over. */
export function courseOf(row, now) {
  const { standing, severity, since, time_ms, observation } = row;
  const { word } = standingOf(row);
  const hasTime = since.time_ms !== null;
  if (standing === "over") return hasTime ? `${word} ${ago(time_ms, now)}, lasted ${duration(time_ms - since.time_ms)}` : `${word}, from observation ${count(since.observation)} to ${count(observation)}`;
  return `${standing === "bad" ? severity : word}, since ${hasTime ? `${time(since.time_ms, { now })}, ${ago(since.time_ms, now)}` : `observation ${count(since.observation)}`}`;
}

/**
 * Return what an incident did to the model, in the measure that a person knows best.
 * @returns {{name: string, before: string|null, now: string, isWorse: boolean}|null} null where nothing is known of it.
 */
export function effectOf({ effects, life, loss, loss_unit }) {
  const one = effects.findLast(({ name, before, after, now }) => name !== "constant" && (before || after || now));
  if (!one) return null;
  const last = (life === "over" ? one.now ?? one.after : one.now ?? one.after) ?? null;
  const show = shown(one.name, loss, loss_unit);
  return {
    name: one.name === "loss" ? `mean loss${lossOf(1, { name: loss, unit: loss_unit }).isRoot ? ", its root" : ""}` : MEASURES[one.name] ?? one.name,
    before: one.before && show(one.before.value),
    now: last ? show(last.value) : "not known",
    isWorse: Boolean(one.before && last && last.value > one.before.value),
  };
}

function shown(name, loss, unit) {
  if (name === "error rate" || name.startsWith("share of ")) return (value) => `${number(100 * value)}\u00a0%`;
  if (name === "loss") return (value) => number(lossOf(value, { name: loss, unit }).value);
  return (value) => number(value);
}

/** Return what the sentence of an incident says beyond its verdict and what to do. */
export function detailsOf({ sentence, headline, action }) {
  const known = `${headline}. ${action} `;
  return sentence.startsWith(known) ? sentence.slice(known.length) : sentence;
}
