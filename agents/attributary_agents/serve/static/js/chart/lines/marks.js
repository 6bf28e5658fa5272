// Puts incidents and versions above a chart, as links; those that would lie upon each other are put together.

import { h } from "page/dom.js";

const ROOM = 26;
const VERSION = ["▽", "muted"];

/** Sign, and class, of an incident by how it stands; the first of a cluster is the kind that counts most. */
export const STANDINGS = {
  bad: ["▲", "bad"],
  suspected: ["△", "warn"],
  open: ["▲", "accent"],
  over: ["▲", "muted"],
};
const ORDER = Object.keys(STANDINGS);

/** Return sign and class of a mark. */
export function lookOf({ standing }) {
  return STANDINGS[standing] ?? VERSION;
}

/** Return from where to where, in pixels, the band of an incident goes within a plot; null of what has none, or lies beside. */
export function bandOf({ at, end }, toPixel, left, right) {
  if (end === null || end === undefined) return null;
  const [from, to] = [Math.max(left, toPixel(at)), Number.isFinite(end) ? Math.min(right, toPixel(end)) : right];
  return to < left || from > right ? null : [from, Math.max(to, from + 1)];
}

/** Return the mark that counts most of several. */
export function weightiest(marks) {
  const rank = ({ standing }) => (standing ? ORDER.indexOf(standing) : ORDER.length);
  return marks.toSorted((a, b) => rank(a) - rank(b))[0];
}

/** Return the layer with the marks of a chart: `place(plot, marks)` puts them where they belong. */
export function markLayer({ isMain, open, zoom }) {
  const element = h("div", { class: "marks" });
  let written = "";

  function place(plot, marks) {
    if (!isMain) return;
    const { left, top, width } = plot.bbox;
    for (const [side, length] of Object.entries({ left, top, width })) element.style[side] = `${length / devicePixelRatio}px`;
    const groups = grouped(plot, marks);
    const key = JSON.stringify(groups.map((group) => [Math.round(group.left), group.marks.map((mark) => [mark.text, mark.standing])]));
    if (key === written) return;
    written = key;
    const had = element.contains(document.activeElement) ? [...element.children].indexOf(document.activeElement) : -1;
    element.replaceChildren(...groups.map((group) => flag(group)));
    if (had >= 0) element.children[Math.min(had, element.children.length - 1)]?.focus();
  }

  function flag({ left, marks }) {
    const first = weightiest(marks);
    const [sign, tone] = lookOf(first);
    const text = marks.map((mark) => mark.text).join("\n");
    const props = { class: `flag is-${tone}`, style: { left: `${left}px` }, title: text, "aria-label": text };
    const shown = [h("span", { "aria-hidden": "true" }, sign), marks.length > 1 && h("sup", { "aria-hidden": "true" }, String(marks.length))];
    const ends = [Math.min(...marks.map((mark) => mark.at)), Math.max(...marks.map((mark) => mark.at))];
    const isWide = marks.length > 1 && ends[1] > ends[0];
    const act = (event) => {
      if (event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (isWide) zoom(Math.floor(ends[0] - (ends[1] - ends[0]) * 0.3), Math.ceil(ends[1] + (ends[1] - ends[0]) * 0.3));
      else open(first);
    };
    if (!isWide && !first.href) return h("span", { ...props, role: "img" }, shown);
    if (isWide || !first.href) return h("button", { ...props, type: "button", onclick: act }, shown);
    return h("a", { ...props, href: first.href, onclick: act }, shown);
  }

  return { element, place };
}

function grouped(plot, marks) {
  const found = [];
  const right = plot.over.clientWidth;
  for (const { mark, left } of marks.map((mark) => ({ mark, left: leftOf(plot, mark, right) })).filter(({ left }) => left !== null).sort((a, b) => a.left - b.left)) {
    const last = found.at(-1);
    if (last && left - last.left < ROOM) last.marks.push(mark);
    else found.push({ left, marks: [mark] });
  }
  return found;
}

/** Return where the flag of a mark stands; that of an incident which began before the chart does, at its edge. */
function leftOf(plot, mark, right) {
  const toPixel = (value) => plot.valToPos(value, "x");
  const left = toPixel(mark.at);
  if (left >= -1 && left <= right + 1) return left;
  return bandOf(mark, toPixel, 0, right)?.[0] ?? null;
}
