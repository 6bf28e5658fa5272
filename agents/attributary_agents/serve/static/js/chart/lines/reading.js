// Says in words and in a table what a chart of lines shows.

import { count, time } from "page/format.js";
import { is } from "page/chart/geometry.js";

const half = (one, i) => (one.low && is(one.low[i]) && is(one.high[i]) ? (one.high[i] - one.low[i]) / 2 : null);

/** Return what the charts' cursor is at: the moment, the observation, and the value of each line. */
export function readingAt(data, i) {
  const isTime = data.by === "time";
  const [ms, observation] = isTime ? [data.x[i], data.other[i]] : [data.other[i], data.x[i]];
  const moment = [is(ms) && time(ms, { seconds: true }), is(observation) && `observation ${count(observation)}`].filter(Boolean).join(" · ");
  const values = data.series.filter((one) => !one.hidden).map((one) => `${one.name} ${is(one.values[i]) ? data.show(one.values[i], half(one, i)) : "none"}`);
  const marks = data.marks.filter((one) => nearest(data.x, one.at) === i);
  return `${moment}: ${values.join(", ")}${data.unit ? ` (${data.unit})` : ""}${marks.map((one) => `. ${one.text}`).join("")}`;
}

/** Return the index of the point that is nearest to a place on the axis; -1 where there is no point. */
export function nearest(x, at) {
  let best = -1;
  for (let i = 0; i < x.length; i += 1) if (best < 0 || Math.abs(x[i] - at) < Math.abs(x[best] - at)) best = i;
  return best;
}

/** Return from when to when a chart goes, how many points it has, and where its lines end. */
export function momentsOf(data) {
  const n = data.x.length;
  if (!n) return "No events in this window.";
  const at = (i) => (data.by === "time" ? time(data.x[i]) : `observation ${count(data.x[i])}`);
  const shown = data.series.filter((one) => !one.hidden);
  const ends = shown.slice(0, 5).map((one) => {
    const last = one.values.findLastIndex(is);
    return `${one.name} ${last < 0 ? "has no value" : data.show(one.values[last], half(one, last))}`;
  });
  const more = shown.length > 5 ? ` and ${shown.length - 5} more` : "";
  return `${count(n)} ${n === 1 ? "point" : "points"} from ${at(0)} to ${at(n - 1)}. At the end: ${ends.join(", ")}${more}.`;
}

/** Return the numbers of a chart of lines: a row per point. */
export function tableOf(data) {
  const isTime = data.by === "time";
  const lines = data.series.flatMap((one) => [
    { name: one.name, values: one.values },
    ...(one.low ? [{ name: `${one.name}, low`, values: one.low }, { name: `${one.name}, high`, values: one.high }] : []),
  ]);
  const [ms, observations] = isTime ? [data.x, data.other] : [data.other, data.x];
  return {
    columns: ["time", "observation", ...lines.map((line) => line.name)],
    rows: data.x.map((_, i) => [is(ms[i]) ? new Date(ms[i]).toISOString() : null, observations[i] ?? null, ...lines.map((line) => line.values[i] ?? null)]),
  };
}

export { half };
