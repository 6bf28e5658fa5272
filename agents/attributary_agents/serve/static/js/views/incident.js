// One incident from the top down: the verdict; what to do; since when, for how long, how much; features; evidence.

import { copyLink, h, replace, svg, write } from "page/dom.js";
import { count, duration, estimate, isScore, middle, number, percent, thin, time } from "page/format.js";
import { numbers, steps } from "page/chart/axes.js";
import { panel } from "page/chart/panel.js";
import { bars, dots, drawn, f } from "page/chart/rows.js";
import { courseOf, detailsOf, effectOf, lossUnit, standingOf, whatOf } from "page/views/words.js";

const AROUND = 4;
const LEAST = 2000;

/** @param {{source: Object, live: EventTarget, state: Object, link: function, now: function(): number}} context */
export async function show(context) {
  const { source, state } = context;
  const element = h("div", { class: "incident-view" });
  let view = await source.incident(state.incident);
  let parts = draw(element, view, context);
  const ticking = setInterval(() => { if (!document.hidden) parts.tick(); }, 1000);

  /** Fetch the incident anew: another revision of it has come. */
  async function reload() {
    view = await source.incident(state.incident);
    parts.close();
    parts = draw(element, view, context);
  }

  return {
    get title() { return `${standingOf(view.row).sign} ${middle(view.row.headline, 60)}`; },
    element,
    update(kind, data) {
      if (kind === "incident" && data.id === view.row.id) reload().catch(() => {});
    },
    reload,
    close() { clearInterval(ticking); parts.close(); },
  };
}

function draw(element, view, context) {
  const { row, event } = view;
  const { tone } = standingOf(row);
  const since = h("span");
  const drawn = [figures(view, context), features(event), evidence(event)].filter(Boolean);
  const [told, ...below] = drawn;
  replace(element,
    crumbs(row, context),
    h("header", { class: `card incident-head tone-${tone}` }, kicker(row, since),
      h("h1", { tabindex: "-1" }, thin(row.headline)),
      event.action && h("p", { class: row.severity === "critical" && row.standing !== "over" ? "now is-bad" : "now" }, thin(event.action)),
      told.element,
      h("p", { class: "sentence" }, thin(detailsOf(event))),
      view.other && another(view.other, context),
      event.mode && h("p", { class: "hint" }, BEWARE[event.mode] ?? ""),
      tools(view, context)),
    below.map((part) => part.element),
    raw(event));
  const tick = () => { write(since, thin(courseOf(row, context.now()))); told.tick(); };
  tick();
  return { tick, close() { for (const part of drawn) part.close?.(); } };
}

/** Say that another incident of the model is open: one that is over says nothing of how the model is now. */
function another(row, { state, link }) {
  return h("p", { class: `tone-${standingOf(row).tone} other` }, "Open now: ",
    h("a", { href: link(state, { view: "incident", incident: row.id }) }, thin(row.headline)));
}

const BEWARE = {
  mirror: "This is a mirror of another model: what it says is of the copy.",
  anomaly: "An anomaly detector: these are importances of its score; nothing says whether it is right.",
  unlabelled: "No labels: these are importances of the predictions, not of being right.",
};

function crumbs(row, { state, link }) {
  return h("nav", { class: "crumbs", "aria-label": "Where this belongs" },
    h("a", { href: link(state, { view: "fleet" }) }, "All models"), h("span", { "aria-hidden": "true" }, "›"),
    h("a", { href: link(state, { view: "model", model: row.model_id }), title: row.model_id }, middle(row.model_id, 48)),
    h("span", { "aria-hidden": "true" }, "›"), h("span", { "aria-current": "page" }, `Incident ${count(row.number)}`));
}

function kicker(row, since) {
  const { sign, tone, word } = standingOf(row);
  return h("p", { class: "kicker" },
    h("span", { class: `badge tone-${tone}` }, h("span", { "aria-hidden": "true" }, `${sign} `), row.standing === "over" ? since : h("b", null, row.standing === "bad" ? row.severity : word)),
    h("span", null, whatOf(row)), h("span", null, `version ${row.model_version}`));
}

function tools({ row, until, compare }, { state, link }) {
  const width = Math.max(LEAST, until - row.since.observation);
  const [from, to] = [Math.max(0, row.since.observation - AROUND * LEAST), row.standing === "over" ? until + width : null];
  return h("p", { class: "tools" },
    compare && h("a", { class: "button", href: link(state, { view: "compare", a: compare.a, b: compare.b }) }, "Compare before and after"),
    h("a", { class: "button quiet", href: link(state, { view: "model", model: row.model_id, by: "observation", from, to, x: row.features[0] ?? null }) }, "See it in the model"),
    copyLink());
}

function raw(event) {
  return h("details", { class: "card raw" },
    h("summary", null, "Raw event"),
    h("pre", { tabindex: "0" }, JSON.stringify(event, null, 2)));
}

/** Return the figures; `tick` draws how long it has been going on. */
function figures({ row, event, until }, { now }) {
  const { since, standing } = row;
  const isOver = standing === "over";
  const n = Math.max(0, until - since.observation);
  const lasted = h("span");
  const moment = since.time_ms === null ? count(since.observation) : time(since.time_ms, { now: now() });
  const observations = `${since.time_ms === null ? "" : `${time(since.time_ms)}; observation ${count(since.observation)}, `}${since.low === null ? `at the latest ${count(since.high)}` : `95 %: ${count(since.low)} to ${count(since.high)}`}`;
  const effect = effectOf(event);
  return {
    element: h("dl", { class: "three" },
      figure("Since", thin(since.time_ms === null ? `observation ${moment}` : moment), observations),
      figure(isOver ? "Lasted" : "For", lasted, since.time_ms === null ? "" : `${count(n)} observations${isOver ? `, over at ${time(row.time_ms, { now: now() })}` : ""}`),
      effect && figure(effect.name[0].toUpperCase() + effect.name.slice(1),
        h("span", { class: effect.isWorse && standing === "bad" ? "is-bad" : "" }, effect.before === null ? thin(effect.now) : [thin(effect.before), h("span", { "aria-label": "to", class: "arrow" }, " → "), thin(effect.now)]),
        effect.before === null ? "now; not known before" : isOver ? "before, and where it settled" : "before, and now")),
    tick() { write(lasted, thin(since.time_ms === null ? `${count(n)} observations` : duration((isOver ? row.time_ms : now()) - since.time_ms))); },
  };
}

function figure(name, value, help) {
  return h("div", null, h("dt", null, name), h("dd", null, h("span", { class: "value" }, value), help && h("span", { class: "help" }, thin(help))));
}

const OPEN = 3;

/** Return the panels of an incident's features; null where it names none. */
export function features(event) {
  const all = Object.entries(event.features).map(([name, one]) => ({ name, ...one }));
  const told = all.filter((one) => one.values_before && one.values_after);
  const moved = told.filter((one) => one.suspect);
  const shown = moved.length ? moved.slice(0, OPEN) : told.slice(0, 1);
  const rest = told.filter((one) => !shown.includes(one));
  const panels = [...shown.flatMap((one) => panelsOf(one, event)), importances(all, event)].filter(Boolean);
  const folded = rest.flatMap((one) => panelsOf(one, event));
  if (!panels.length) return null;
  return {
    element: h("section", { class: "incident-features", "aria-label": "Features" },
      h("div", { class: "panels" }, panels.map((one) => one.element)),
      folded.length > 0 && h("details", { class: "card noise" },
        h("summary", null, `Values of ${count(rest.length)} other ${rest.length === 1 ? "feature" : "features"}`),
        h("div", { class: "panels" }, folded.map((one) => one.element)))),
    close() { for (const one of [...panels, ...folded]) one.destroy(); },
  };
}

function importances(all, event) {
  const known = all.filter((one) => one.before !== null || one.after !== null);
  if (!known.length) return null;
  const title = "Importance before → since";
  const chart = dots({
    title, unit: event.loss_unit, sides: ["before", "since"],
    rows: known.map((one) => ({ name: one.name, before: one.before, after: one.after, note: deltaOf(one) })),
  });
  return panel({ title, owner: event.model_id, chart, note: `Further right: the model relies on it more. ${quietWords(known)}` });
}

function quietWords(known) {
  const quiet = known.filter((one) => !one.significant).map((one) => middle(one.name, 24));
  if (!quiet.length) return "All have clearly moved.";
  return quiet.length === known.length ? "None has clearly moved, as many are compared." : `No clear change, as many are compared: ${quiet.slice(0, 4).join(", ")}${quiet.length > 4 ? ` and ${quiet.length - 4} more` : ""}.`;
}

function deltaOf({ delta, half_width }) {
  if (delta === null) return "";
  return `${delta > 0 ? "+" : ""}${estimate(delta, half_width)}`;
}

function panelsOf(one, event) {
  const note = one.said ? `It ${one.said}.` : one.suspect ? "Its values moved." : "";
  const title = `Values of ${middle(one.name, 40)}`;
  const made = [values, valuesOfWords].map((draw) => draw({ title, before: one.values_before, after: one.values_after })).filter(Boolean);
  return made.map((chart) => panel({ title, owner: event.model_id, chart, note }));
}

/** What shares of the values lie below the quantiles that an event has. */
const SHARES = [0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1];
const HEIGHT = 54;
const HEAD = 20;
const MOST_WORDS = 8;
/** Pixels from which on a side says of how many values it is, which the table has in any case. */
const WIDE = 420;

/** Return a chart of the numbers before and now, each side a histogram; null where a feature has none. */
function values({ title, before, after }) {
  if (!before.quantiles.length && !after.quantiles.length) return null;
  return drawn(drawValues, { title, sides: [["before", before], ["now", after]] }, { label: valuesLabel, table: valuesTable });
}

function drawValues(width, colours, { sides }) {
  const known = sides.filter(([, one]) => one.quantiles.length).flatMap(([, one]) => [one.quantiles[1], one.quantiles[7]]);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = (high - low || Math.abs(high) || 1) * 0.04;
  const place = (value) => 6 + ((value - low + room) / (high - low + 2 * room)) * (width - 12);
  const bottom = sides.length * (HEIGHT + HEAD);
  const ticks = steps(low, high, Math.max(2, Math.floor(width / 110)));
  const height = bottom + 24;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": colours.font, "font-size": 12, "aria-hidden": "true" },
    ticks.map((at) => svg("path", { d: `M${f(place(at))} ${HEAD}V${bottom}`, stroke: colours.line, fill: "none" })),
    sides.map(([name, one], i) => side(name, one, i * (HEIGHT + HEAD), i ? colours.series[0] : colours.muted, { place, width, colours })),
    numbers(ticks).map((text, i) => svg("text", { x: f(Math.min(width - 2, Math.max(2, place(ticks[i])))), y: bottom + 16, "text-anchor": anchor(place(ticks[i]), width), fill: colours.muted }, text)));
}

const anchor = (x, width) => (x < 30 ? "start" : x > width - 30 ? "end" : "middle");

/** Draw one side: what lies between two quantiles is a bar of that share of the values, as wide as it reaches. */
function side(name, { quantiles, n, missing }, top, colour, { place, width, colours }) {
  const base = top + HEAD + HEIGHT;
  const least = Math.max(1.5, width * 0.004);
  const bins = SHARES.slice(1, 7).map((share, k) => {
    const [a, b] = [place(quantiles[k + 1]), place(quantiles[k + 2])];
    return { x: a, width: Math.max(least, b - a), mass: SHARES[k + 2] - share };
  });
  const tallest = Math.max(...bins.map((bin) => bin.mass / bin.width));
  return svg("g", null,
    svg("text", { x: 2, y: top + 14, fill: colours.ink }, svg("tspan", { "font-weight": 600 }, name), summary(quantiles, width < WIDE ? null : n, missing)),
    svg("path", { d: `M0 ${base}H${width}`, stroke: colours.muted, "stroke-opacity": 0.6, fill: "none" }),
    quantiles.length > 0 && bins.map((bin) => {
      const tall = Math.max(1.5, (bin.mass / bin.width / tallest) * (HEIGHT - 4));
      return svg("rect", { x: f(bin.x), y: f(base - tall), width: f(bin.width), height: f(tall), fill: colour, "fill-opacity": 0.75 });
    }),
    quantiles.length > 0 && svg("path", { d: `M${f(place(quantiles[4]))} ${base - HEIGHT + 2}V${base}`, stroke: colours.ink, "stroke-width": 1.5, fill: "none" }));
}

function summary(quantiles, n, missing) {
  const parts = quantiles.length ? [`${number(quantiles[1])} to ${number(quantiles[7])}`, `median ${number(quantiles[4])}`] : ["no number"];
  return `  ${[...parts, missing > 0 && `${percent(missing)} missing`, n !== null && `n = ${count(n)}`].filter(Boolean).join(" · ")}`;
}

function valuesLabel({ title, sides }) {
  return `${title}: ${sides.map(([name, one]) => `${name}${summary(one.quantiles, one.n, one.missing)}`).join("; ")}.`;
}

function valuesTable({ sides }) {
  return {
    columns: ["share of values below", ...sides.map(([name]) => name)],
    rows: [...SHARES.map((share, k) => [share, ...sides.map(([, one]) => one.quantiles[k] ?? null)]), ["missing", ...sides.map(([, one]) => one.missing)], ["n", ...sides.map(([, one]) => one.n)]],
  };
}

/** Return a chart of the most frequent words before and now; null where a feature has none. */
function valuesOfWords({ title, before, after }) {
  const all = [...new Set([...Object.keys(before.words), ...Object.keys(after.words)])];
  if (!all.length) return null;
  const size = (word) => Math.max(before.words[word] ?? 0, after.words[word] ?? 0);
  const shown = all.sort((a, b) => size(b) - size(a)).slice(0, MOST_WORDS);
  const row = (name, was, is) => ({ name, value: 100 * is, before: 100 * was, note: percent(is), beforeNote: percent(was) });
  return bars({
    title, unit: "% of values", sides: ["now", "before"],
    rows: [...shown.map((word) => row(word, before.words[word] ?? 0, after.words[word] ?? 0)), ...(before.missing || after.missing ? [row("missing", before.missing, after.missing)] : [])],
  });
}

const SCALES = {
  relative: "0 is the same function, 1 as far apart as two observed targets",
  absolute: "in the unit of its distance",
};

/** Return what is folded away; null where there is nothing. */
function evidence(event) {
  const { explanation: told } = event;
  const panels = told ? Object.entries(told.importances).map(([name, one]) => compared(name, one, event.model_id)) : [];
  const findings = event.evidence.length > 0 && fold(`Evidence (${count(event.evidence.length)})`, findingsTable(event.evidence));
  const reference = told && fold("Compared with the model before", [facts(told), losses(told), panels.map((one) => one.element)]);
  if (!findings && !reference) return null;
  return { element: h("div", { class: "incident-evidence" }, findings, reference), close() { for (const one of panels) one.close(); } };
}

function fold(title, content) {
  return h("details", { class: "card fold" }, h("summary", null, title), h("div", { class: "fold-body" }, content));
}

function findingsTable(rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Evidence, a table" }, h("table", { class: "plain" },
    h("thead", null, h("tr", null, ["watch", "found", "at observation", ""].map((text) => (text ? h("th", { scope: "col", class: text === "found" ? "text" : null }, text) : h("td"))))),
    h("tbody", null, rows.map((one) => h("tr", null, h("th", { scope: "row" }, one.watch), h("td", null, one.said.replaceAll("_", " ")),
      h("td", { class: "number" }, thin(count(one.observation))), h("td", null, one.is_open ? "open" : "closed"))))));
}

function facts(told) {
  const rows = [discrepancy(told), chance(told), window(told), onset(told)].filter(Boolean);
  return h("dl", { class: "believe" }, rows.map(([name, value, help, picture]) => h("div", null,
    h("dt", null, name), h("dd", null, h("span", { class: "value" }, thin(value)), picture, help && h("span", { class: "help" }, thin(help))))));
}

function discrepancy(told) {
  if (told.discrepancy === null) return null;
  return [
    "Discrepancy",
    `${number(told.discrepancy)} ${told.discrepancy > told.threshold ? ">" : "≤"} ${number(told.threshold)}`,
    `over n = ${count(told.n_discrepancy)}; above ${number(told.threshold)} it counts as another model.${SCALES[told.scale] ? ` It compares each ${told.distance}: ${SCALES[told.scale]}.` : ""}`,
    meter(told.discrepancy, told.threshold),
  ];
}

/** Draw a value beside its threshold. */
function meter(value, threshold) {
  const most = Math.max(value, threshold, 1e-12) * 1.25;
  const at = (one) => (100 * one) / most;
  return svg("svg", { class: `meter ${value > threshold ? "over" : ""}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", x: 0, y: 3, width: 100, height: 4 }),
    svg("rect", { class: "filled", x: 0, y: 3, width: at(value), height: 4 }),
    svg("line", { class: "threshold", x1: at(threshold), x2: at(threshold), y1: 0, y2: 10 }));
}

function chance({ importances, route }) {
  const all = Object.values(Object.values(importances)[0]?.features ?? {});
  if (!all.length) return null;
  return ["Beyond noise", `${count(all.filter((one) => one.significant).length)} of ${count(all.length)} features`,
    route === "version" ? "that changed by more than the configured margin of the total importance." : "p at most 0.05, adjusted for there being several features (Holm)."];
}

function window(told) {
  const by = told.detector ? `${told.detector.name} on ${told.detector.signal}` : told.route;
  return ["Rests on", `${count(told.window)} observations`, `after ${count(told.detected_at)}, raised by ${by}; the reference is of ${count(told.reference_at)}.`];
}

function onset({ onset: found }) {
  if (!found) return null;
  return ["Its onset", `observation ${count(found.observation)}`, found.low === null ? `at the latest ${count(found.high)}.` : `95 % interval ${count(found.low)} to ${count(found.high)}.`];
}

function losses({ losses: all, route, model_version, model_version_before: before }) {
  if (!all) return null;
  const isVersion = route === "version";
  const word = isScore(all.loss) ? "score" : "loss";
  const row = (name, help, one, tone) => one && { name, help, value: one.loss, low: one.low, high: one.high, n: one.n, tone };
  const rows = [
    row("Reference then", "the model before, just after it was taken", all.reference_then, "muted"),
    row(isVersion ? "Old version" : "Reference now", isVersion ? before : "the same model on recent observations", all.reference_now, "before"),
    row(isVersion ? "New version" : "Model now", isVersion ? model_version : "on the same recent observations", all.model_now, "after"),
  ].filter(Boolean);
  return [
    intervals({ title: `Mean ${word} with its 95 % interval`, unit: lossUnit({ name: all.loss, unit: all.loss_unit }), rows }),
    h("ul", { class: "differences" }, [["Reference, now − then", all.worsened], [isVersion ? "Old − new version" : "Reference − model, now", all.gain]]
      .filter(([, one]) => one && one.loss !== null).map(([name, one]) => h("li", null, `${name}: `, h("b", null, estimate(one.loss, one.low === null || one.high === null ? null : (one.high - one.low) / 2))))),
  ];
}

const Z = 1.96;
const NAMES = { pfi: "PFI", sage: "SAGE" };
const MOST_COMPARED = 20;

/**
 * Return the panel of one kind of importance.
 * @param {string} name pfi or sage
 * @param {Object} one As `ImportanceComparison` of the topic.
 * @param {string} modelId
 */
function compared(name, one, modelId) {
  const all = Object.entries(one.features).map(([feature, change]) => ({ feature, ...change }));
  const loud = all.filter((row) => row.significant);
  const quiet = all.filter((row) => !row.significant);
  const title = `${NAMES[name] ?? name} before → after`;
  const unit = lossUnit({ name: one.loss, unit: one.loss_unit });
  const drawn = (rows, of) => dots({ title: of, unit, rows: rows.slice(0, MOST_COMPARED).map(rowOf) });
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
      loud.length > MOST_COMPARED && h("p", { class: "hint" }, `${count(loud.length - MOST_COMPARED)} more changed beyond noise; the table has all.`),
      second && h("details", { class: "noise", open: !loud.length },
        h("summary", null, `within noise (${count(quiet.length)})`),
        second.element,
        quiet.length > MOST_COMPARED && h("p", { class: "hint" }, `${count(quiet.length - MOST_COMPARED)} others changed less still; the table has all.`)),
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

const PICTURE_WIDTH = 100;
const ROW_HEIGHT = 22;

/**
 * @param {{title: string, unit?: string, rows: {name: string, help?: string, value: number|null, low: number|null,
 *   high: number|null, n?: number, tone?: string}[], isFrom0?: boolean}} given
 * @returns {HTMLElement}
 */
function intervals({ title, unit, rows, isFrom0 = false }) {
  const known = rows.flatMap((row) => [row.value, row.low, row.high]).filter(Number.isFinite);
  const scale = scaleOf(isFrom0 ? [0, ...known] : known);
  const hasN = rows.some((row) => Number.isFinite(row.n));
  return h("div", { class: "intervals" },
    h("table", null,
      h("caption", null, title, unit && h("span", { class: "unit" }, ` ${unit}`)),
      h("thead", { class: "unseen" }, h("tr", null, ["of", "interval", "value", hasN && "observations"].filter(Boolean).map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, rows.map((row) => intervalRow(row, scale, hasN)))));
}

function intervalRow(row, scale, hasN) {
  const half = Number.isFinite(row.low) && Number.isFinite(row.high) ? (row.high - row.low) / 2 : null;
  return h("tr", null,
    h("th", { scope: "row" }, row.name, row.help && h("span", { class: "help" }, row.help)),
    h("td", { class: "picture", "aria-hidden": "true" }, Number.isFinite(row.value) && picture(row, scale)),
    h("td", { class: "number" }, Number.isFinite(row.value) ? estimate(row.value, half) : number(row.value)),
    hasN && h("td", { class: "number muted" }, Number.isFinite(row.n) ? `n = ${count(row.n)}` : ""));
}

function picture(row, scale) {
  const [low, high] = [row.low ?? row.value, row.high ?? row.value].map(scale);
  const at = scale(row.value);
  return svg("svg", { viewBox: `0 0 ${PICTURE_WIDTH} ${ROW_HEIGHT}`, preserveAspectRatio: "none", class: `tone-${row.tone ?? "plain"}` },
    svg("line", { x1: scale(0), x2: scale(0), y1: 0, y2: ROW_HEIGHT, class: "zero" }),
    svg("line", { x1: low, x2: high, y1: ROW_HEIGHT / 2, y2: ROW_HEIGHT / 2, class: "whisker" }),
    [low, high].map((x) => svg("line", { x1: x, x2: x, y1: ROW_HEIGHT / 2 - 4, y2: ROW_HEIGHT / 2 + 4, class: "whisker" })),
    svg("line", { x1: at, x2: at, y1: ROW_HEIGHT / 2, y2: ROW_HEIGHT / 2, class: "point" }));
}

/** Return where a value stands in the picture, in its own units. */
function scaleOf(values) {
  const [least, most] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  return (value) => ((value - least + room) / (most - least + 2 * room)) * PICTURE_WIDTH;
}
