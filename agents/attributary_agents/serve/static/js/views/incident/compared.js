// Draws the importances of the reference and of the present model: dots with their intervals, the difference, chance; noise is folded.

import { h } from "page/dom.js";
import { count, estimate, number, percent } from "page/format.js";
import { dots } from "page/chart/dots.js";
import { panel } from "page/chart/frame.js";
import { lossWords } from "page/views/panels/asked.js";

const Z = 1.96;
const NAMES = { pfi: "PFI", sage: "SAGE" };
const MOST = 20;

/**
 * Return the panel of one kind of importance.
 * @param {string} name pfi or sage
 * @param {Object} one As `ImportanceComparison` of the topic.
 * @param {string} modelId
 */
export function compared(name, one, modelId) {
  const all = Object.entries(one.features).map(([feature, change]) => ({ feature, ...change }));
  const loud = all.filter((row) => row.significant);
  const quiet = all.filter((row) => !row.significant);
  const title = `${NAMES[name] ?? name} before → after`;
  const unit = lossWords({ name: one.loss, unit: one.loss_unit });
  const drawn = (rows, of) => dots({ title: of, unit, rows: rows.slice(0, MOST).map(rowOf) });
  const first = drawn(loud, title);
  const second = quiet.length > 0 && drawn(quiet, `${title}, within noise`);
  const framed = panel({
    title,
    owner: modelId,
    note: [
      unit, `n = ${count(one.n)} each`,
      one.shift !== null && `share of importance that moved ${percent(one.shift)}`,
      one.ndcg !== null && `NDCG of the ranking ${number(one.ndcg)}`,
    ].filter(Boolean).join(" · "),
    chart: { ...first, table: () => tableOf(all) },
    below: [
      !loud.length && h("p", { class: "say" }, "No feature changed beyond noise."),
      loud.length > MOST && h("p", { class: "hint" }, `${count(loud.length - MOST)} more changed beyond noise; the table has all.`),
      second && h("details", { class: "noise", open: !loud.length },
        h("summary", null, `within noise (${count(quiet.length)})`),
        second.element,
        quiet.length > MOST && h("p", { class: "hint" }, `${count(quiet.length - MOST)} others changed less still; the table has all.`)),
    ],
  });
  if (!loud.length) first.element.hidden = true;
  return { element: framed.element, close() { framed.destroy(); if (second) second.destroy(); } };
}

function rowOf(row) {
  return {
    name: row.feature,
    before: row.before,
    beforeHalf: half(row.before_std_error),
    after: row.after,
    afterHalf: half(row.after_std_error),
    note: delta(row),
    p: row.p_value,
  };
}

const half = (error) => (error === null ? null : Z * error);

function delta(row) {
  const said = estimate(row.delta, half(row.delta_std_error));
  return row.delta > 0 ? `+${said}` : said;
}

/** Return what stands behind the panel as a table: all features, also those within noise. */
function tableOf(all) {
  return {
    columns: ["feature", "before", "before, ± 95 %", "after", "after, ± 95 %", "change", "change, ± 95 %", "p (Holm)", "beyond noise", "rank before", "rank after"],
    rows: all.map((row) => [
      row.feature, row.before, half(row.before_std_error), row.after, half(row.after_std_error), row.delta,
      half(row.delta_std_error), row.p_value, row.significant ? "yes" : "no", row.before_rank, row.after_rank,
    ]),
  };
}
