// Writes the ticks of axes: numbers with the digits that tell them apart, times with their day where it changes.

import { count, number } from "page/format.js";

const DAY = 86400e3;
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Return the texts of numbers on an axis. */
export function numbers(values) {
  const shown = values.filter((value) => value !== null);
  const step = shown.length > 1 ? Math.abs(shown[1] - shown[0]) : Math.abs(shown[0] ?? 1);
  const largest = Math.max(...shown.map(Math.abs), 0);
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) {
    return values.map((value) => (value === null ? "" : number(Math.abs(value) < step * 1e-6 ? 0 : value)));
  }
  let places = 0;
  while (places < 8 && Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-6 * step * 10 ** places) places += 1;
  return values.map((value) => {
    if (value === null) return "";
    const [whole, rest] = Math.abs(value).toFixed(places).split(".");
    const sign = value < 0 && Number(value.toFixed(places)) !== 0 ? "-" : "";
    return `${sign}${count(Number(whole))}${rest ? `.${rest}` : ""}`;
  });
}

/** Return the texts of moments on an axis: a second line has the day where it is another one than before. */
export function moments(values) {
  const step = values.length > 1 ? values[1] - values[0] : DAY;
  let before = "";
  return values.map((value) => {
    const moment = new Date(value);
    const date = day.format(moment);
    if (step >= DAY) return date;
    // Ticks that are closer than a second would all be the same otherwise.
    const part = step < 1000 ? `.${String(moment.getMilliseconds()).padStart(3, "0").slice(0, step % 100 === 0 ? 1 : 3)}` : "";
    const text = `${(step < 60e3 ? seconds : clock).format(moment)}${part}`;
    const isNew = date !== before;
    before = date;
    return isNew ? `${text}\n${date}` : text;
  });
}
