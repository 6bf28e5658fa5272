// Lists features by how much they differ between both sides: values with their intervals, shares, ranks.

import { h, svg } from "page/dom.js";
import { count, estimate, middle, number, percent } from "page/format.js";
import { dots } from "page/chart/dots.js";
import { panel } from "page/chart/frame.js";

const MOST = 15;
const WIDTH = 100;
const HEIGHT = 20;

/** @returns {{element: HTMLElement, close: function(): void}} */
export function differences(answer, { state }) {
  const isSame = answer.is_same_loss;
  const rows = answer.features;
  const most = Math.max(...rows.map((row) => reach(row, isSame)), 1e-300);
  const [first, rest] = [rows.slice(0, MOST), rows.slice(MOST)];
  const owner = [...new Set([answer.a.model_id, answer.b.model_id])].join("-");
  const picture = dots({
    title: "A → B", unit: isSame ? answer.a.loss.text : "share of importance", sides: ["A", "B"],
    rows: rows.slice(0, MOST).map((row) => (isSame
      ? { name: row.feature, before: row.a, beforeHalf: row.a_half_width, after: row.b, afterHalf: row.b_half_width, note: signed(row.delta, row.delta_half_width) }
      : { name: row.feature, before: row.a_share, after: row.b_share, note: points(row) })),
  });
  const element = h("div", { class: "differences-of" },
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Differences, a table" }, table(first, isSame, most, answer)),
    rest.length > 0 && h("details", { class: "noise", open: Boolean(state.top && state.top > MOST) },
      h("summary", null, `${count(rest.length)} other features, which differ less`), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Other features, a table" }, table(rest, isSame, most, answer))));
  const framed = panel({
    title: "What they rely on, and by how much it differs",
    owner: `${owner}-compared`,
    note: [
      isSame ? `${answer.a.loss.text}; the largest difference first` : "The losses differ: shares and ranks are compared; the largest difference of shares first",
      answer.shift !== null && `share of importance that moved ${percent(answer.shift)}`,
      answer.ndcg !== null && `NDCG of the ranking ${number(answer.ndcg)}`,
    ].filter(Boolean).join(" · "),
    chart: { element, table: () => numbers(rows), picture: picture.picture, destroy: picture.destroy },
    size: "wide",
  });
  return { element: framed.element, close: () => framed.destroy() };
}

function reach(row, isSame) {
  return isSame ? Math.abs(row.delta ?? 0) + (row.delta_half_width ?? 0) : Math.abs((row.b_share ?? 0) - (row.a_share ?? 0));
}

function table(rows, isSame, most, answer) {
  const heads = ["feature", isSame && "A ±", isSame && "B ±", isSame ? "B − A ±" : "share, B − A", "", "share A → B", "rank A → B"];
  return h("table", { class: "plain compare" },
    h("caption", { class: "unseen" }, `Features of ${answer.a.model_id} and ${answer.b.model_id}`),
    h("thead", null, h("tr", null, heads.filter((text) => text !== false).map((text) => (text ? h("th", { scope: "col" }, text) : h("td", { class: "picture" }))))),
    h("tbody", null, rows.map((row) => h("tr", null,
      h("th", { scope: "row", title: row.feature }, middle(row.feature, 44)),
      isSame && h("td", { class: "number", "data-head": "A" }, value(row.a, row.a_half_width)),
      isSame && h("td", { class: "number", "data-head": "B" }, value(row.b, row.b_half_width)),
      h("td", { class: "number strong", "data-head": isSame ? "B − A" : "share, B − A" }, isSame ? signed(row.delta, row.delta_half_width) : points(row)),
      h("td", { class: "picture", "aria-hidden": "true" }, bar(row, isSame, most)),
      h("td", { class: "number", "data-head": "share" }, `${share(row.a_share)} → ${share(row.b_share)}`),
      h("td", { class: "number", "data-head": "rank" }, rank(row))))));
}

const value = (one, half) => (one === null ? "not known" : estimate(one, half));
const share = (one) => (one === null ? "–" : percent(one));

function rank({ a_rank: a, b_rank: b }) {
  return [`${a ?? "–"} → ${b ?? "–"}`, a !== null && b !== null && a !== b && h("span", { class: "moved", "aria-hidden": "true" }, b < a ? " ▲" : " ▼")];
}

function signed(delta, half) {
  if (delta === null) return "–";
  return `${delta > 0 ? "+" : ""}${estimate(delta, half)}`;
}

function points({ a_share: a, b_share: b }) {
  if (a === null || b === null) return "–";
  return `${number(100 * (b - a), { signed: true })} points`;
}

/** Draw a difference as a bar from the middle, with its interval. */
function bar(row, isSame, most) {
  const delta = isSame ? row.delta : row.a_share === null || row.b_share === null ? null : row.b_share - row.a_share;
  if (delta === null) return null;
  const half = isSame ? row.delta_half_width ?? 0 : 0;
  const at = (one) => WIDTH / 2 + (one / most) * (WIDTH / 2 - 1);
  const isSure = half > 0 ? Math.abs(delta) > half : !isSame;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: `difference ${delta < 0 ? "fell" : "rose"} ${isSure ? "" : "unsure"}` },
    svg("line", { class: "zero", x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT }),
    svg("rect", { x: Math.min(at(0), at(delta)), width: Math.abs(at(delta) - at(0)), y: 5, height: HEIGHT - 10 }),
    half > 0 && svg("line", { class: "whisker", x1: at(delta - half), x2: at(delta + half), y1: HEIGHT / 2, y2: HEIGHT / 2 }));
}

function numbers(rows) {
  return {
    columns: ["feature", "A", "A, ± 95 %", "B", "B, ± 95 %", "B − A", "B − A, ± 95 %", "share A", "share B", "rank A", "rank B"],
    rows: rows.map((row) => [row.feature, row.a, row.a_half_width, row.b, row.b_half_width, row.delta, row.delta_half_width, row.a_share, row.b_share, row.a_rank, row.b_rank]),
  };
}
