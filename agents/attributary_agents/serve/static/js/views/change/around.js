// Draws importance before and after the mark: two windows to each side.

import { h, replace } from "page/dom.js";
import { count, estimate, middle } from "page/format.js";
import { panel } from "page/chart/frame.js";
import { lineChart } from "page/chart/line.js";
import { lossWords } from "page/views/change/words.js";

const MOST = 5;
const FEW = 24;
const WIDER = [10, 50];

/** Return the panel; what it draws comes later, so that the sentence never waits for it. */
export function around(event, { source, state, link, go }) {
  const element = h("div", { class: "around", "aria-busy": "true" });
  let framed = null;
  let isClosed = false;
  let { from, to } = spanOf(event, 2);
  const explainer = event.explainer ?? Object.keys(event.importances ?? {})[0];
  const say = (text) => replace(element, h("section", { class: "panel" }, h("h2", null, "Importance around the mark"), h("p", { class: "hint" }, text)));
  const ask = () => source.series(event.model_id, { explainer, from, to, by: "observation", points: 400, features: featuresOf(event), top: MOST });

  /** Ask for two windows to each side, and for more where events are so rare that these are a handful of points. */
  async function fetched() {
    let series = await ask();
    for (const windows of WIDER) {
      if (series.observation.length >= FEW) break;
      ({ from, to } = spanOf(event, windows));
      series = await ask();
    }
    return series;
  }

  fetched().finally(() => element.removeAttribute("aria-busy")).then((series) => {
    if (isClosed) return;
    if (!series.observation.length) {
      say(`No importances are kept of observations ${count(from)} to ${count(to)}.`);
      return;
    }
    framed = panel({
      title: "Importance around the mark",
      owner: event.model_id,
      note: `${series.explainer.toUpperCase()} by observation, ${count(from)} to ${count(to)} · ${lossWords({ loss: series.loss.name, loss_unit: series.loss.unit })}`,
      chart: drawn(series, { state, link, go }),
      below: h("ul", { class: "lines" }, series.features.map((one, i) => h("li", { style: { "--colour": `var(--s${i + 1})` } },
        h("span", { class: "swatch", "aria-hidden": "true" }), h("span", { title: one.feature }, middle(one.feature, 40)), h("span", { class: "number" }, estimate(one.latest, one.latest_half_width))))),
    });
    replace(element, framed.element);
  }, (problem) => { if (!isClosed) say(`Importances could not be fetched: ${problem.title || problem.message}.`); });
  return { element, close() { isClosed = true; framed?.destroy(); } };
}

function spanOf(event, windows) {
  const width = event.window ?? Math.max(1000, event.observation - (event.onset?.observation ?? event.observation));
  const first = event.onset?.observation ?? event.detected_at ?? event.observation;
  return { from: Math.max(0, first - windows * width), to: event.observation + windows * width };
}

/** Return the features that the event speaks of first; none for those that are the most important. */
function featuresOf(event) {
  if (event.feature) return [event.feature];
  const compared = Object.values(event.importances ?? {})[0]?.features ?? (event.event === "loss_shift_explained" ? event.features : {});
  return Object.entries(compared).filter(([, one]) => one.significant).slice(0, MOST).map(([name]) => name);
}

function drawn(series, { state, link, go }) {
  return lineChart({
    title: "Importance around the mark",
    unit: series.loss.unit,
    by: "observation",
    x: series.observation,
    other: series.time_ms,
    series: series.features.map((one, i) => ({ name: one.feature, values: one.importance, low: one.low, high: one.high, colour: i })),
    marks: series.marks.map((mark) => ({ ...mark, at: mark.observation, href: mark.change_id && link(state, { view: "change", change: mark.change_id }) })),
    range: [series.low, series.high],
    show: (value, half) => estimate(value, half),
    height: 260,
    isMain: true,
    onChoose: (mark) => mark.change_id && go({ ...state, view: "change", change: mark.change_id }),
  });
}
