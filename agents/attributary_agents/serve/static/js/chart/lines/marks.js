// Puts changes, shifts and versions above a chart, as links; those that would lie upon each other are put together.

import { h } from "page/dom.js";

const ROOM = 26;

/** Sign, and class, of each kind of mark; the first of a cluster is the kind that counts most. */
export const KINDS = {
  change: ["▲", "warn"],
  alarm: ["△", "warn"],
  shift: ["⇅", "accent"],
  loss: ["▲", "bad"],
  recovered: ["✓", "good"],
  released: ["✓", "good"],
  not_confirmed: ["△", "muted"],
  version: ["▽", "muted"],
};
const ORDER = Object.keys(KINDS);

/** Return the mark that counts most of several. */
export function weightiest(marks) {
  return marks.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))[0];
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
    const key = JSON.stringify(groups.map((group) => [Math.round(group.left), group.marks.map((mark) => mark.text)]));
    if (key === written) return;
    written = key;
    const had = element.contains(document.activeElement) ? [...element.children].indexOf(document.activeElement) : -1;
    element.replaceChildren(...groups.map((group) => flag(group)));
    if (had >= 0) element.children[Math.min(had, element.children.length - 1)]?.focus();
  }

  function flag({ left, marks }) {
    const first = weightiest(marks);
    const [sign, tone] = KINDS[first.kind] ?? ["▲", "muted"];
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
  const placed = marks.map((mark) => ({ mark, left: plot.valToPos(mark.at, "x") })).filter(({ left }) => left >= -1 && left <= right + 1);
  for (const { mark, left } of placed.sort((a, b) => a.left - b.left)) {
    const last = found.at(-1);
    if (last && left - last.left < ROOM) last.marks.push(mark);
    else found.push({ left, marks: [mark] });
  }
  return found;
}
