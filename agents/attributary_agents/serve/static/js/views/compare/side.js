// Reads and writes one side of a comparison: ID@now, ID@TIME, ID@#OBSERVATION.

/**
 * @param {string} text
 * @returns {{model: string, kind: "now"|"time"|"observation", at: string}}
 */
export function parse(text) {
  const place = text.lastIndexOf("@");
  if (place < 0) return { model: text, kind: "now", at: "" };
  const [model, at] = [text.slice(0, place), text.slice(place + 1)];
  if (at === "now" || at === "") return { model, kind: "now", at: "" };
  if (at.startsWith("#")) return { model, kind: "observation", at: at.slice(1) };
  const ms = /^\d+$/.test(at) ? Number(at) : Date.parse(at);
  return { model, kind: "time", at: Number.isNaN(ms) ? "" : local(ms) };
}

/** Return a side as addresses and the server have it. */
export function text({ model, kind, at }) {
  if (kind === "observation" && /^\d+$/.test(at)) return `${model}@#${at}`;
  const ms = kind === "time" ? Date.parse(at) : Number.NaN;
  return `${model}@${Number.isNaN(ms) ? "now" : new Date(ms).toISOString().replace(/(:00)?\.000Z$/, "Z")}`;
}

/** Return a moment as `input type=datetime-local` has it, in the time zone of whoever looks. */
export function local(ms) {
  const moment = new Date(ms);
  return new Date(ms - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}
