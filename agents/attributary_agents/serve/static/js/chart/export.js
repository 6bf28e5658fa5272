// Saves a chart: its numbers as CSV, and what is drawn as SVG or PNG, with title, unit and the theme's background.

import { h, svg } from "page/dom.js";
import { ink } from "page/chart/colours.js";
import { wrap } from "page/chart/text.js";

const EDGE = 20;
const TYPES = { csv: "text/csv;charset=utf-8", svg: "image/svg+xml;charset=utf-8" };

/** Return a table as CSV (RFC 4180): numbers with all their digits, nothing where one is unknown. */
export function csvOf({ columns, rows }) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Return a picture that stands alone, as an SVG element: a title, its unit, and the theme's background. */
export function framed(picture, title, note) {
  const colours = ink();
  const inner = Number(picture.getAttribute("width"));
  const [heads, notes] = [wrap(title, inner, colours.font, 3), note ? wrap(note, inner * 1.05, colours.font, 4) : []];
  const top = EDGE + heads.length * 20 + notes.length * 17 + 10;
  const [width, height] = [inner + 2 * EDGE, Number(picture.getAttribute("height")) + top + EDGE];
  const placed = svg("g", { transform: `translate(${EDGE} ${top})`, "font-family": picture.getAttribute("font-family"), "font-size": picture.getAttribute("font-size") }, [...picture.childNodes]);
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    svg("title", null, title),
    svg("rect", { width, height, fill: colours.card }),
    heads.map((text, i) => svg("text", { x: EDGE, y: EDGE + 14 + i * 20, "font-family": colours.font, "font-size": 15, "font-weight": 600, fill: colours.ink }, text)),
    notes.map((text, i) => svg("text", { x: EDGE, y: EDGE + heads.length * 20 + 12 + i * 17, "font-family": colours.font, "font-size": 12.5, fill: colours.muted }, text)),
    placed);
}

/** Return the text of an SVG file. */
export function svgText(element) {
  return new XMLSerializer().serializeToString(element);
}

/** Return a PNG of an SVG element, at twice its size. */
export async function pngOf(element) {
  const url = URL.createObjectURL(new Blob([svgText(element)], { type: TYPES.svg }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Return a name of a file that is one on every system. */
export function fileName(parts, moment, ending) {
  const plain = (text) => text.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 60);
  const stamp = new Date(moment).toISOString().replace(/[-:]|\.\d+/g, "");
  return `${[...parts.map(plain).filter(Boolean), stamp].join("_")}.${ending}`;
}

/** Let the browser save a file. */
function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const makers = {
  CSV: async (chart) => new Blob([csvOf(chart.table())], { type: TYPES.csv }),
  SVG: async (chart, title, note) => new Blob([svgText(framed(await chart.picture(), title, note))], { type: TYPES.svg }),
  PNG: async (chart, title, note) => pngOf(framed(await chart.picture(), title, note)),
};

/**
 * Save a chart as a file.
 * @param {{table, picture}} chart
 * @param {"CSV"|"SVG"|"PNG"} kind
 * @param {{title: string, note: string, owner: string}} words owner: the model, or what else the file is named after.
 */
export async function save(chart, kind, { title, note, owner }) {
  download(await makers[kind](chart, `${owner}: ${title}`, note), fileName([owner, title], Date.now(), kind.toLowerCase()));
}
