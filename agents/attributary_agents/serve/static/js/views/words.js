// Words for rows of models and for incidents, and the order of rows: without an element of the page.

import { ago, count, duration, isScore, lossOf, number, time } from "page/format.js";

/** Symbol, kind of colour and meaning of each state. */
export const STATES = {
  refused: { sign: "✕", kind: "bad", said: "its stored state is damaged: its observations become dead letters" },
  incident: { sign: "▲", kind: "bad", said: "an incident is open" },
  suspected: { sign: "△", kind: "warn", said: "an incident is being confirmed" },
  learning: { sign: "◔", kind: "plain", said: "no importance of the model has been published yet" },
  explained: { sign: "●", kind: "good", said: "its importances are published, and nothing is wrong" },
  silent: { sign: "○", kind: "warn", said: "no worker has told of it lately" },
};

const FAILING = { sign: "✕", kind: "bad", word: "failing", said: "of late nothing but dead letters has come of it" };

export function stateOf(row) {
  if (row.is_failing && row.state !== "refused") return FAILING;
  return { word: row.state, ...(STATES[row.state] ?? { sign: "·", kind: "plain", said: "" }) };
}

/**
 * Return how the loss of a model stands to that of its baseline.
 * @returns {{ratio: number|null, text: string, detail: string, isLow: boolean}} text: the ratio, or what is in its place.
 */
export function lossWords(row) {
  if (row.mode === "mirror") {
    const text = row.fidelity === null ? "–" : number(row.fidelity);
    const said = "how well the mirror predicts what the model predicts; 1 is exactly";
    return { ratio: null, text, detail: row.is_unfaithful ? "fidelity (low)" : "fidelity", said, isLow: row.is_unfaithful };
  }
  if (isScore(row.loss?.name)) return { ratio: null, text: number(row.model_loss), detail: "mean score", said: "mean anomaly score, smoothed", isLow: false };
  if (row.mode === "unlabelled") return { ratio: null, text: "–", detail: "unlabelled", isLow: false };
  const [model, baseline] = [lossOf(row.model_loss, row.loss), lossOf(row.baseline_loss, row.loss)];
  if (row.model_loss === null) return { ratio: null, text: "–", detail: "", isLow: false };
  const ratio = baseline.value ? model.value / baseline.value : null;
  const detail = `${model.isRoot ? "√loss " : ""}${number(model.value)} ÷ ${number(baseline.value)}${shortUnit(model.unit)}`;
  const said = `loss of the model ÷ loss of its baseline${model.unit ? `, ${model.isRoot ? "roots, " : ""}in ${model.unit}` : ""}`;
  return { ratio, text: ratio === null ? number(model.value) : number(ratio), detail, said, isLow: ratio !== null && ratio >= 1 };
}

/** Leave out a unit that says nothing beside a number, or is too long to stand there. */
function shortUnit(unit) {
  return !unit || /^unit of /.test(unit) || unit.length > 10 ? "" : ` ${unit}`;
}

/** Return how many observations wait for their labels. */
export function waitingWords(row) {
  if (row.mode === "unlabelled" || row.mode === "anomaly") return { text: "no labels", detail: "", share: null };
  if (row.n_waiting === null) return { text: "–", detail: "", share: null };
  const share = row.waiting_limit ? row.n_waiting / row.waiting_limit : null;
  return { text: count(row.n_waiting), detail: row.waiting_limit ? `of ${count(row.waiting_limit)}` : "", share };
}

/** What rows can be sorted by: key to what is compared; null comes last. */
const COLUMNS = {
  model: (row) => row.model_id.toLowerCase(),
  state: (row) => Object.keys(STATES).indexOf(row.state),
  rate: (row) => row.observations_per_second,
  loss: (row) => lossWords(row).ratio,
  shift: (row) => row.shift,
  incident: (row) => row.incident?.since.time_ms ?? row.incident?.since.observation ?? null,
  waiting: (row) => row.n_waiting,
};

/**
 * Sort rows by a column.
 * @param {Object[]} rows In the order of attention, which is kept where no column is named.
 * @param {string|null} order Name of a column; with a minus before it the largest first.
 */
export function sorted(rows, order) {
  const key = COLUMNS[order?.replace(/^-/, "")];
  if (!key) return rows;
  const turn = order.startsWith("-") ? -1 : 1;
  return rows.map((row) => [key(row), row]).sort(([a], [b]) => compare(a, b, turn)).map(([, row]) => row);
}

function compare(a, b, turn) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return (a < b ? -1 : 1) * turn;
}

const MOST_SHIFTS = 24;
const TOP = 5;

/** Return a row after a live event: what the event says is taken, all else kept. */
export function after(row, kind, event) {
  if (kind === "status") return { ...row, ...told(row, event) };
  if (kind === "incident") return { ...row, incident: event };
  if (kind === "importance" && event.explainer === (row.explainer ?? event.explainer)) return { ...row, ...explained(row, event) };
  return row;
}

/**
 * Say whether the server is to be asked for the state of a row anew. It is assessed there, of all that is known: a
 * status has the word of one worker, which knows nothing of incidents or of silence.
 */
export function isOutdated(row, status) {
  if ((status.state === "refused") !== (row.state === "refused") || row.state === "silent") return true;
  return (row.is_failing && status.observations_per_second > 0) || (row.state === "learning" && status.state === "explained");
}

function told(row, event) {
  const known = Object.fromEntries(Object.entries(event).filter(([key, value]) => key !== "state" && key in row && value !== null && value !== undefined));
  return { ...known, observations_per_second: event.observations_per_second ?? row.observations_per_second };
}

function explained(row, event) {
  const shift = event.shift ?? row.shift;
  return {
    model_loss: event.model_loss,
    baseline_loss: event.baseline_loss,
    present_loss: event.present_loss,
    fidelity: event.fidelity ?? row.fidelity,
    n_waiting: event.n_waiting ?? row.n_waiting,
    n_expired: event.n_expired ?? row.n_expired,
    version: event.version ?? row.version,
    explainer: event.explainer,
    n_features: event.n_features,
    last_event_ms: event.time_ms,
    shift,
    shifts: event.shift === null || event.shift === undefined ? row.shifts : [...row.shifts, event.shift].slice(-MOST_SHIFTS),
    top: topOf(event.features) ?? row.top,
  };
}

function topOf(features) {
  if (!features) return null;
  return Object.entries(features)
    .map(([feature, [importance, half_width, share, rank]]) => ({ feature, importance, half_width, share, rank }))
    .sort((a, b) => a.rank - b.rank).slice(0, TOP);
}

/**
 * Part the sentence of the server: what is wrong, and counts of what else there is.
 * @returns {{lead: string, counts: [string, string][]}} counts: number and words of each.
 */
export function partsOf(sentence) {
  const parts = sentence.split(" · ").map((part) => [part, /^(\d[\d ]*) (?!of )(\D.*)$/.exec(part)]);
  const lead = parts.filter(([, found]) => !found).map(([part]) => part);
  return { lead: lead.join(" · ") || sentence, counts: lead.length ? parts.filter(([, found]) => found).map(([, found]) => [found[1], found[2]]) : [] };
}

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

/** Return the unit of a loss, and its name: "nats (cross entropy)". */
export function lossUnit(loss) {
  if (isScore(loss.name)) return loss.unit;
  const name = loss.name.replaceAll("_", " ");
  return loss.unit.includes(name) ? loss.unit : `${loss.unit} (${name})`;
}
