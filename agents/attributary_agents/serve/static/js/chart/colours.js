// Colours of series, read from the theme's tokens, and the dashes that stand beside them.

import { svg } from "page/dom.js";

const N_COLOURS = 10;

/** Dash of each series, in pixels: no two of ten share both a dash and a neighbouring colour. */
export const DASHES = [[], [8, 3], [2, 3], [10, 3, 2, 3], [5, 5], [], [14, 4], [3, 3, 8, 3], [1, 4], [6, 2, 2, 2, 2, 2]];

/** Return the dash of a series. */
export function dashOf(one) {
  return one.dash ?? (one.isReference ? [4, 4] : DASHES[(one.colour ?? 0) % DASHES.length]);
}

const NAMES = ["ink", "paper", "card", "muted", "line", "accent", "good", "bad", "warn"];
const watchers = new Set();
let known = null;

/** Return the theme's colours: by name, and `series`, a list of ten. */
export function ink() {
  if (known) return known;
  const styles = getComputedStyle(document.documentElement);
  const token = (name) => styles.getPropertyValue(`--${name}`).trim();
  known = Object.fromEntries(NAMES.map((name) => [name, token(name) || "#888888"]));
  known.series = Array.from({ length: N_COLOURS }, (_, i) => token(`s${i + 1}`) || known.ink);
  known.font = getComputedStyle(document.body).fontFamily || "sans-serif";
  return known;
}

/** Call a function whenever the theme changes; return what ends that. */
export function onTheme(redraw) {
  watchers.add(redraw);
  return () => watchers.delete(redraw);
}

function changed() {
  known = null;
  for (const redraw of watchers) redraw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
new MutationObserver(changed).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

/** Gives each name a colour and keeps it while the name is shown, so that no line changes colour as others move. */
export function colouring() {
  let given = new Map();
  return (names) => {
    const kept = new Map(names.filter((name) => given.has(name)).map((name) => [name, given.get(name)]));
    const used = new Set(kept.values());
    let next = 0;
    for (const name of names) {
      if (kept.has(name)) continue;
      while (used.has(next)) next += 1;
      kept.set(name, next);
      used.add(next);
    }
    given = kept;
    return names.map((name) => given.get(name));
  };
}

/** Return a piece of a line as it is drawn. */
export function swatch(one) {
  return svg("svg", { class: `swatch s${(one.colour ?? 0) + 1}`, width: 26, height: 12, "aria-hidden": "true" },
    svg("path", { d: "M1 6H25", stroke: "currentColor", "stroke-width": 3, "stroke-dasharray": dashOf(one).join(" ") || null }));
}
