// Says what a model's view asks for: the window of the address, its features, and the window that is on the axis.

import { isScore } from "page/format.js";
import { WINDOWS } from "page/state.js";

export const TOPS = [5, 10, 20, 50];
/** Points of a chart: one for every two or three pixels of its width. */
export const POINTS = Math.min(600, Math.max(200, Math.round(innerWidth * 0.24)));
/** Points times features that the server answers with at most. */
const MOST_VALUES = 20_000;

/** Say whether the address names a part of the window, which is then not moved by what comes. */
export function isZoomed(state) {
  return state.from !== null || state.to !== null;
}

/** Return from where to where, and by what, series are asked for. */
export function windowOf(state, now) {
  if (isZoomed(state)) return { from: state.from, to: state.to, by: state.by };
  const span = WINDOWS[state.window];
  return { from: span === null ? null : now - span, to: null, by: "time" };
}

/** Get the series of a model, and of the chosen feature where it is not among the most important ones. */
export async function seriesOf({ source, state, now }, explainer) {
  const top = state.top ?? 10;
  const asked = { explainer, ...windowOf(state, now()), top, points: Math.min(POINTS, Math.floor(MOST_VALUES / top)) };
  const series = await source.series(state.model, asked);
  if (!state.x || !series.features.length || series.features.some((one) => one.feature === state.x)) return series;
  const more = await source.series(state.model, { ...asked, top: undefined, features: [state.x] }).catch(() => null);
  const found = more?.features.find((one) => one.feature === state.x && one.importance.length === series.time_ms.length);
  if (!found) return series;
  const others = { n: Math.max(0, series.others.n - 1), share: series.others.share === null ? null : Math.max(0, series.others.share - (found.latest_share ?? 0)) };
  return { ...series, features: [...series.features, found], others };
}

/** Return the unit of a loss, and its name: "nats (cross entropy)". */
export function lossWords(loss) {
  if (isScore(loss.name)) return loss.unit;
  const name = loss.name.replaceAll("_", " ");
  return loss.unit.includes(name) ? loss.unit : `${loss.unit} (${name})`;
}

/** Return the axis of charts: its points, the other of time and observation, and the window where it is zoomed. */
export function axisOf(series, state) {
  const isTime = state.by === "time";
  const [x, other] = isTime ? [series.time_ms, series.observation] : [series.observation, series.time_ms];
  const edges = [state.from ?? x[0], state.to ?? x.at(-1)];
  return { by: state.by, x, other, window: isZoomed(state) && edges.every(Number.isFinite) ? edges : null };
}

/** Return the marks of a series on that axis, each with the address of what it stands for; those of incidents have an end. */
export function marksOf(series, state, link) {
  const isTime = state.by === "time";
  return series.marks
    .map((mark) => ({
      text: mark.text,
      standing: mark.standing,
      at: isTime ? mark.time_ms : mark.observation,
      end: mark.kind === "incident" ? (isTime ? mark.end_ms : mark.end_observation) ?? Infinity : null,
      href: mark.incident_id && link(state, { view: "incident", incident: mark.incident_id }),
    }))
    .filter((mark) => Number.isFinite(mark.at));
}
