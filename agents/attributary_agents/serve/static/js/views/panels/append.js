// Puts an importance event at the end of a series, as a reload would show it.

const FIGURES = ["model_loss", "baseline_loss", "present_loss", "discrepancy", "shift", "n_waiting", "n_expired", "fidelity"];

const number = (value) => (Number.isFinite(value) ? value : null);

/**
 * Return a series with the point of an event behind its last one; the same series where it has that event already.
 * @param {Object} series As `answers/series.py` has it.
 * @param {Object} event As the stream has it.
 * @param {number|null} least Time of the earliest point that the window still has.
 */
export function append(series, event, least) {
  const last = series.observation.at(-1);
  if (last !== undefined && event.observation <= last) return series;
  const from = least === null ? 0 : Math.max(0, series.time_ms.findIndex((time) => time >= least));
  const add = (values, value) => [...values.slice(from), value];
  const features = series.features.map((one) => {
    const [value, half, share, rank] = event.features[one.feature] ?? [];
    const [now, width] = [number(value), number(half)];
    const isKnown = now !== null && width !== null;
    const importance = add(one.importance, now);
    const first = importance.find((each) => each !== null);
    return {
      ...one, importance,
      low: add(one.low, isKnown ? now - width : null), high: add(one.high, isKnown ? now + width : null),
      share: add(one.share, number(share)), rank: add(one.rank, number(rank)),
      latest: now, latest_half_width: width, latest_share: number(share), latest_rank: rank ?? one.latest_rank,
      moved: now === null || first === undefined ? one.moved : now - first,
    };
  });
  const figures = { ...series.figures };
  for (const [key, values] of Object.entries(series.figures)) {
    figures[key] = Array.isArray(values)
      ? add(values, FIGURES.includes(key) ? number(event[key]) : null)
      : Object.fromEntries(Object.entries(values).map(([name, each]) => [name, add(each, null)]));
  }
  const shown = features.reduce((sum, one) => sum + (one.latest_share ?? 0), 0);
  return {
    ...series,
    ...reach(series, features),
    n_events: series.n_events + 1,
    time_ms: add(series.time_ms, event.time_ms),
    observation: add(series.observation, event.observation),
    features: features.sort((a, b) => a.latest_rank - b.latest_rank),
    others: { ...series.others, share: series.others.n ? Math.max(0, 1 - shown) : series.others.share },
    figures,
  };
}

/** Widen the range for what goes beyond it by less than half of it; what is farther away is marked at the rim. */
function reach({ low, high }, features) {
  if (low === null || high === null) return { low, high };
  const room = (high - low) / 2;
  const ends = features.flatMap((one) => [one.low.at(-1), one.high.at(-1)]).filter((value) => value !== null && value > low - room && value < high + room);
  return { low: Math.min(low, ...ends), high: Math.max(high, ...ends) };
}
