// Says in words what an event of the topic of changes is: what it means, what raised it, how sure it is.

import { isScore, thin } from "page/format.js";

/** Of each kind of event: what it is called, and how it stands: bad, warn, good or plain. */
const KINDS = {
  alarm: ["Alarm", "warn"],
  explanation: ["Change", "warn"],
  not_confirmed: ["Alarm not confirmed", "good"],
  importance_shift: ["Importance has shifted", "warn"],
  importance_shift_released: ["Shift of importance is over", "good"],
  loss_shift: ["Loss has shifted", "bad"],
  loss_shift_explained: ["Shift of the loss, explained", "bad"],
  loss_shift_released: ["Shift of the loss is over", "good"],
  recovered: ["Model went back", "bad"],
};

const VERDICTS = {
  followed: ["Followed", "The data changed, and the model has learnt it: on recent observations it is better than the model of before.", "warn"],
  harder: ["Harder", "The data changed, and the model has not gained on the model of before: what is new may be harder to predict, or not learnt yet.", "bad"],
  matured: ["Matured", "The data are as they were. The model has learnt more since: it differs from the model of before because it is better.", "good"],
  degraded: ["Degraded", "The data are not to blame: on the same observations the model has become worse than the model of before.", "bad"],
};

const VERDICTS_OF_SCORES = {
  followed: ["Followed", "The data changed, and the detector takes them for usual: it scores recent observations lower than the one of before.", "warn"],
  harder: ["Not followed", "The data changed, and the detector takes them for no more usual than the one of before.", "warn"],
  matured: ["Matured", "The scores of the detector of before are as they were. It scores lower since it has learnt more.", "good"],
  degraded: ["Scores higher", "On the same observations the detector scores higher than the one of before. Nothing says which is right.", "warn"],
};

const FOUND = {
  equal: "Nothing beyond noise has changed.",
  easier: "The data have become easier; nothing is wrong.",
  matured: "The data are as they were, and the model is still learning. It is told once the model has settled.",
  degraded: "The model looked worse than its reference and no longer does.",
  followed: "It is part of a change that was told already.",
  harder: "It is part of a change that was told already.",
  replaced: "Another version has taken over meanwhile.",
};

const LOSS_KINDS = {
  worse: ["Worse", "The model is wronger than it was, given what it predicts.", "bad"],
  level: ["Off its level", "Some answers come more often or more rarely than predicted. The order of observations is as good as before.", "warn"],
  harder: ["Harder", "More is lost because observations are harder, no more than the model's own doubt says.", "warn"],
  rose: ["Rose", "More is lost than before. A model that gives labels or numbers does not say whether that is its fault.", "warn"],
};

const ROUTES = {
  detector: "the model's drift detector",
  discrepancy: "its distance from its reference",
  version: "a new version that took over",
  check: "a check from time to time, without an alarm",
  importance: "the watch on importances",
  loss: "the watch on the loss",
};

const ENDS = {
  returned: "It is back where it was.",
  settled: "The new level has lasted: it is the reference from now on.",
  replaced: "Another version took over before it ended.",
};

const PATTERNS = {
  trend: "The data keep changing. What follows is told again only when it is twice as large.",
  recurring: "The data go back to what they were. It is told once.",
};

/** Return what an event is called. */
export function kindOf(row) {
  if (row.route === "version") return row.event === "alarm" ? "New version" : "New version, compared";
  return KINDS[row.event]?.[0] ?? row.event.replaceAll("_", " ");
}

/** Return how an event stands: bad, warn, good or plain. */
export function toneOf(row) {
  if (row.event === "explanation") return VERDICTS[row.verdict]?.[2] ?? "plain";
  if (row.event === "loss_shift" || row.event === "loss_shift_explained") return LOSS_KINDS[row.verdict]?.[2] ?? "bad";
  if (row.route === "version") return "plain";
  return KINDS[row.event]?.[1] ?? "plain";
}

/** Return the verdict as a word and what it means; null where there is none. */
export function verdictOf(event) {
  if (event.event === "explanation" && event.verdict) return pair(isScore(event.losses?.loss) ? VERDICTS_OF_SCORES : VERDICTS, event.verdict);
  if (event.event === "explanation") return { word: "Compared", means: "Both versions were compared on observations that neither has learnt." };
  if (event.event === "not_confirmed") return { word: "Not confirmed", means: FOUND[event.verdict] ?? "The models cannot be compared." };
  if (event.reason) return { word: event.reason, means: ENDS[event.reason] ?? "" };
  return event.kind ? pair(LOSS_KINDS, event.kind) : null;
}

/** Return the verdict of one event of a course in a word; `event`, of the same model, says whether it gives scores. */
export function wordOf(row, event) {
  const isOfScore = row.event === "explanation" && isScore(event.losses?.loss);
  return isOfScore ? pair(VERDICTS_OF_SCORES, row.verdict).word.toLowerCase() : row.verdict;
}

function pair(known, verdict) {
  const [word, means] = known[verdict] ?? [verdict, ""];
  return { word, means };
}

/** Return what raised an event. */
export function routeOf(event) {
  const by = ROUTES[event.route] ?? event.route;
  return event.route === "detector" && event.detector ? `${by}: ${event.detector.name} on ${event.detector.signal}` : by;
}

/** Return what is special about the course of changes; null where nothing is. */
export function patternOf(event) {
  return PATTERNS[event.pattern] ?? null;
}

/** Return a sentence in two parts: what happened, and the details behind the first semicolon. */
export function parted(sentence) {
  const text = thin(sentence);
  const place = text.indexOf("; ");
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place + 2)];
}

/** Return a p-value as tables show it. */
export function probability(p) {
  if (p === null || p === undefined) return "–";
  return p < 0.001 ? "< 0.001" : p.toFixed(p < 0.1 ? 3 : 2);
}

/** Return whose a loss is, in words with its unit. */
export function lossWords(event) {
  if (isScore(event.loss)) return event.loss_unit;
  const name = event.loss.replaceAll("_", " ").replace("cross entropy", "cross-entropy");
  return event.loss_unit && event.loss_unit !== event.loss ? `${name}, in ${event.loss_unit}` : name;
}
