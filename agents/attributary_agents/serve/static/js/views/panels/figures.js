// Draws what events say beside importances: losses, discrepancy, shift, labels, fidelity, quality.

import { count, duration, isScore, lossOf, number, percent } from "page/format.js";
import { panel } from "page/chart/frame.js";
import { is } from "page/chart/geometry.js";
import { lineChart } from "page/chart/line.js";
import { axisOf, marksOf } from "page/views/panels/asked.js";

const OWN_SCALE = ["cross_entropy", "mae", "mape", "mse", "r2", "rmse", "smape"];
const known = (values) => (values ?? []).some(is);

function lossLines({ series, view }) {
  const root = (values) => values.map((value) => (is(value) ? lossOf(value, view.row.loss ?? series.loss).value : null));
  const { model_loss, baseline_loss, present_loss } = series.figures;
  return [
    { name: "model", values: root(model_loss), colour: 0 },
    { name: "baseline", values: root(baseline_loss), colour: 9, isReference: true },
    ...(known(present_loss) ? [{ name: "present model", values: root(present_loss), colour: 3 }] : []),
  ];
}

function qualityLines({ series }, names) {
  return names.flatMap((name, i) => [
    { name, values: series.figures.quality[name], colour: i },
    { name: `${name}, reference`, values: series.figures.quality_reference[name] ?? [], colour: i, isReference: true },
  ]).filter((line) => known(line.values));
}

/** Return what can be drawn: a title, whether there is anything, its lines, and words. */
function figuresOf({ series, view }) {
  const { figures } = series;
  const loss = lossOf(1, view.row.loss ?? series.loss);
  const isOfScore = isScore((view.row.loss ?? series.loss)?.name);
  const spreads = `spreads of the ${isOfScore ? "score" : "target"}`;
  const qualities = Object.keys(figures.quality).filter((name) => known(figures.quality[name]));
  const groups = [qualities.filter((name) => !OWN_SCALE.includes(name)), ...qualities.filter((name) => OWN_SCALE.includes(name)).map((name) => [name])].filter((names) => names.length);
  return [
    { title: "Mean score", has: isOfScore && known(figures.model_loss), unit: "", zero: true,
      lines: () => [{ name: "score", values: figures.model_loss, colour: 0 }],
      note: () => "Mean of the anomaly score before the model learns each observation, smoothed. Higher is stranger." },
    { title: "Loss and baseline", has: !isOfScore && known(figures.model_loss), unit: loss.unit, zero: true, lines: lossLines,
      note: () => `Lower is better. Baseline: the mean prediction, which knows no feature. ${loss.isRoot ? `Root of the squared loss, in the ${loss.unit}.` : `In ${loss.unit}.`}${known(figures.present_loss) ? " Present model: what has learnt since, on the same observations." : ""}` },
    // A model that does not learn is its own reference: there is no distance to draw.
    { title: "Discrepancy", has: (figures.discrepancy ?? []).some((value) => is(value) && value !== 0), unit: spreads, zero: true,
      lines: () => [{ name: "discrepancy", values: figures.discrepancy, colour: 0 }],
      level: view.threshold === null ? null : { name: "threshold", value: view.threshold },
      note: () => `How far predictions are from those of the reference model, in ${spreads}; it starts anew with each reference.` },
    { title: "Shift of importance", has: known(figures.shift), unit: "share", zero: true, show: percent,
      lines: () => [{ name: "moved", values: figures.shift, colour: 4 }],
      note: () => "Share of importance that has moved since the reference." },
    { title: "Labels", has: known(figures.n_waiting), unit: "observations", zero: true, show: (value) => count(value),
      lines: () => [{ name: "waiting", values: figures.n_waiting, colour: 0 }, { name: "expired", values: figures.n_expired, colour: 7 }].filter((line) => known(line.values)),
      note: () => labelWords(view) },
    { title: "Fidelity of the mirror", has: known(figures.fidelity), unit: "", lines: () => [{ name: "fidelity", values: figures.fidelity, colour: 2 }],
      note: () => "How well the mirror follows the model that it stands for; 1 is exactly." },
    ...groups.map((names, i) => ({ title: i === 0 && !OWN_SCALE.includes(names[0]) ? "Quality" : `Quality: ${names[0]}`, has: true, unit: "", lines: () => qualityLines({ series }, names),
      note: () => "By River's metrics, before the model learns each observation, smoothed. Dashed: over the reference." })),
  ].filter((figure) => figure.has);
}

function labelWords({ row, label_delay_median_s }) {
  const parts = [
    row.n_waiting !== null && `${count(row.n_waiting)}${row.waiting_limit ? ` of ${count(row.waiting_limit)}` : ""} wait for their label`,
    row.n_expired !== null && `${count(row.n_expired)} expired without one`,
    label_delay_median_s !== null && `half of the labels come within ${duration(label_delay_median_s * 1000)}`,
  ].filter(Boolean);
  return parts.length ? `${parts.join(", ")}.` : "";
}

/** Return the panels of figures; `draw(all)` makes those that have become known, and removes those that are not. */
export function figurePanels({ go, link, owner, place }) {
  const made = new Map();
  let all = null;
  const zoom = (from, to) => go({ ...all.state, from: from === null ? null : Math.max(0, from), to });

  function make(figure) {
    const chart = lineChart({ title: figure.title, unit: figure.unit, by: "time", x: [], series: [], sync: "model", height: 200, onZoom: zoom, onChoose: () => {} });
    return { chart, frame: panel({ title: figure.title, owner, chart }) };
  }

  return {
    draw(given) {
      all = given;
      const figures = figuresOf(all);
      for (const [title, one] of made) {
        if (figures.some((figure) => figure.title === title)) continue;
        one.frame.destroy();
        one.frame.element.remove();
        made.delete(title);
      }
      for (const figure of figures) {
        if (!made.has(figure.title)) made.set(figure.title, make(figure));
        const { chart, frame } = made.get(figure.title);
        const marks = marksOf(all.series, all.state, link);
        chart.setData({ ...axisOf(all.series, all.state), series: figure.lines(all), level: figure.level, zero: figure.zero, show: figure.show ?? ((value) => number(value)), marks });
        frame.setNote(figure.note());
        frame.refresh();
      }
      place([...made.values()].map((one) => one.frame.element));
    },
    destroy() {
      for (const one of made.values()) one.frame.destroy();
    },
  };
}
