// Measures texts, and breaks names into lines, so that charts cut none that has room.

import { middle } from "page/format.js";

const context = document.createElement("canvas").getContext("2d");
const SIZE = 13;

/** Return the width of a text in pixels. */
export function width(text, font, size = SIZE) {
  context.font = `${size}px ${font}`;
  return context.measureText(text).width;
}

/**
 * Return a name in lines that are no wider than `most` pixels, broken behind its separators where it has them; of one
 * that needs more than `lines` the middle is cut.
 */
export function wrap(name, most, font, lines = 3) {
  const fits = Math.max(4, Math.floor((most / Math.max(1, width(name, font))) * name.length));
  const cut = middle(name, Math.max(6, fits * lines - lines * 2));
  const found = [""];
  for (const part of cut.split(/(?<=[_\-./:,;\s])/u)) {
    for (let rest = part; rest; ) {
      const room = found.at(-1) + rest;
      if (width(room, font) <= most) {
        found[found.length - 1] = room;
        break;
      }
      if (found.at(-1) !== "") found.push("");
      if (width(rest, font) <= most) continue;
      const head = [...rest].slice(0, fits).join("");
      found[found.length - 1] = head;
      rest = rest.slice(head.length);
      if (rest) found.push("");
    }
  }
  return found.filter((line) => line !== "");
}
