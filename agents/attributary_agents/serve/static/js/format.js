// Writes numbers, times and names: one format everywhere, that of `attributary_explainers.wording`.

const SMALL = 1e-4;
const NO_WORD = 1e15;
const LARGE = [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]];
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/**
 * Return a number as sentences show it: three digits, all of the whole ones below a million, words beyond that.
 * @param {number|null|undefined} value
 * @param {{signed?: boolean}} options signed: whether a plus stands before a number above 0.
 */
export function number(value, { signed = false } = {}) {
  if (value === null || value === undefined || Number.isNaN(value)) return "unknown";
  const sign = value < 0 ? "-" : signed && value > 0 ? "+" : "";
  const size = Math.abs(value);
  if (size === Infinity) return `${sign}infinite`;
  const { mantissa, exponent } = rounding(size, 3);
  const rounded = Number(`${mantissa}e${exponent}`);
  if (rounded === 0 || (rounded >= SMALL && rounded < 1000)) return sign + digits(rounded, size);
  if (rounded >= 1000 && rounded < 1e6) return sign + count(halfEven(size, 0));
  for (const [scale, word] of LARGE) {
    if (rounded >= scale && rounded < NO_WORD) return `${sign}${digits(rounded / scale, size / scale)} ${word}`;
  }
  return `${sign}${digits(Number(mantissa), 0)} ${power(exponent)}`;
}

/**
 * Return a number with the half-width of its interval, rounded to the digits of the half-width that count.
 * @param {number|null} value
 * @param {number|null} halfWidth Where it is null, 0 or not finite, the number is returned as `number` shows it.
 */
export function estimate(value, halfWidth) {
  if (!Number.isFinite(halfWidth) || halfWidth <= 0 || !Number.isFinite(value)) return number(value);
  const largest = Math.max(Math.abs(value), halfWidth);
  if (halfWidth < SMALL * largest || (halfWidth < SMALL && SMALL <= largest) || largest < 1e-300) {
    return `${number(value)} ± ${number(halfWidth)}`;
  }
  if (largest < SMALL || largest >= NO_WORD) {
    const exponent = Math.floor(Math.log10(largest));
    const scale = 10 ** exponent;
    return `(${pair(value / scale, halfWidth / scale)}) ${power(exponent)}`;
  }
  for (const [scale, word] of LARGE) {
    if (largest >= scale) return `${pair(value / scale, halfWidth / scale)} ${word}`;
  }
  return pair(value, halfWidth);
}

/** Return a whole number with all its digits, in groups of three. */
export function count(n) {
  if (n === null || n === undefined) return "unknown";
  return grouped(String(Math.round(n)));
}

/** Return a share of 1 in per cent, with a digit behind the point where it is below 10 %. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "unknown";
  const size = Math.abs(share) * 100;
  if (size > 0 && size < 0.1) return "< 0.1 %";
  const shown = size < 9.95 ? size.toFixed(1).replace(/\.0$/, "") : grouped(size.toFixed(0));
  return `${share < 0 && Number(shown) > 0 ? "-" : ""}${shown} %`;
}

function digits(rounded, value) {
  const { text } = rounding(rounded, 3);
  return rounded === value && text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Round to significant digits as Python does: a number that lies exactly between two becomes the even one. */
function rounding(size, significant) {
  if (size === 0) return { text: (0).toFixed(significant - 1), mantissa: "0", exponent: 0 };
  let [mantissa, exponent] = size.toExponential(significant - 1).split("e");
  if (isTie(size.toExponential(100), significant - 1) && Number(mantissa.at(-1)) % 2 === 1) {
    mantissa = (Number(mantissa) - 10 ** (1 - significant)).toFixed(significant - 1);
  }
  const places = significant - 1 - Number(exponent);
  const text = Number(`${mantissa}e${exponent}`).toFixed(Math.min(100, Math.max(0, places)));
  return { text, mantissa, exponent: Number(exponent) };
}

/** Return a number rounded to places behind the point (before it where negative), as Python rounds. */
function halfEven(size, places) {
  if (size === 0) return 0;
  const exact = size.toExponential(100);
  const kept = places + Number(exact.split("e")[1]);
  if (kept < 0) {
    const half = 0.5 * 10 ** -places;
    return size > half ? 10 ** -places : 0;
  }
  const { mantissa, exponent } = rounding(size, kept + 1);
  return Number(`${mantissa}e${exponent}`);
}

/** Say whether only a 5 comes behind `kept` digits after the first one of a number that is written exactly. */
function isTie(exact, kept) {
  return /^50*$/.test(exact.split("e")[0].replace(".", "").slice(kept + 1));
}

function pair(value, halfWidth) {
  const two = rounding(halfWidth, 2);
  const shown = two.mantissa[0] === "1" ? two : rounding(halfWidth, 1);
  const behind = shown.mantissa.replace(".", "").length - 1 - shown.exponent;
  const places = Math.max(behind, 0);
  const write = (one) => {
    const rounded = halfEven(Math.abs(one), behind);
    return (one < 0 && rounded !== 0 ? "-" : "") + grouped(rounded.toFixed(places));
  };
  return `${write(value)} ± ${write(Number(`${shown.mantissa}e${shown.exponent}`))}`;
}

function grouped(text) {
  const [whole, rest] = text.split(".");
  return whole.replace(/\B(?=(\d{3})+(?!\d))/g, " ") + (rest === undefined ? "" : `.${rest}`);
}

function power(exponent) {
  return `× 10${[...String(exponent)].map((digit) => SUPERSCRIPTS[digit]).join("")}`;
}

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** Put narrow spaces that do not break between the digits of a number, for texts that break into lines. */
export function thin(text) {
  return text.replace(/(\d) (?=\d{3}(?!\d))/g, "$1\u202f").replaceAll(" ± ", "\u00a0±\u00a0").replaceAll(" -> ", " → ");
}

/** Return how long a number of milliseconds is, in its largest unit: "12 min". */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "unknown";
  const seconds = Math.max(0, ms / 1000);
  for (const [size, unit] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return "0 s";
}

/** Return how long ago a moment was: "12 min ago"; what lies less than a second back or ahead is "now". */
export function ago(ms, now) {
  if (ms === null || ms === undefined) return "unknown";
  return now - ms < 1000 ? "now" : `${duration(now - ms)} ago`;
}

const part = (options) => new Intl.DateTimeFormat("en-GB", options);
const CLOCK = part({ hour: "2-digit", minute: "2-digit" });
const SECONDS = part({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = part({ day: "numeric", month: "short" });
const YEAR = part({ day: "numeric", month: "short", year: "numeric" });

/**
 * Return a moment in the time zone of whoever looks: "26 Nov 2026, 10:41".
 * @param {number|null} ms
 * @param {{now?: number, seconds?: boolean}} options now: of its day the date is left out, of its year the year.
 */
export function time(ms, { now, seconds = false } = {}) {
  if (ms === null || ms === undefined) return "unknown";
  const moment = new Date(ms);
  const clock = (seconds ? SECONDS : CLOCK).format(moment);
  const today = new Date(now);
  if (now !== undefined && moment.toDateString() === today.toDateString()) return clock;
  const isThisYear = now !== undefined && moment.getFullYear() === today.getFullYear();
  return `${(isThisYear ? DAY : YEAR).format(moment)}, ${clock}`;
}

/** Return a name with its middle cut where it has more than `most` characters. */
export function middle(name, most = 40) {
  const characters = [...name];
  if (characters.length <= most) return name;
  const front = Math.ceil((most - 1) / 2);
  return `${characters.slice(0, front).join("")}…${characters.slice(characters.length - (most - 1 - front)).join("")}`;
}

/** Say whether the loss of that name is the score of an anomaly detector, of which none is better than another. */
export function isScore(name) {
  return name === "score" || name === "neg_score";
}

/** Return what a feature does to a score where its importance is above 0, and below 0. */
export function scoreVerbs(name) {
  return name === "score" ? ["lowers", "raises"] : ["raises", "lowers"];
}

/**
 * Return a loss with its unit; of a squared loss its root, which has the unit of the label.
 * @param {number|null} value
 * @param {{name: string, unit: string}|null} loss
 * @returns {{value: number|null, unit: string, isRoot: boolean, text: string}} text: "√loss 6.20 counts"
 */
export function lossOf(value, loss) {
  const unit = loss?.unit ?? "";
  const squared = /^\(?(.*?)\)?(²|, squared)$/.exec(unit);
  const isRoot = (squared !== null || loss?.name === "squared") && Number.isFinite(value) && value >= 0;
  const shown = isRoot ? Math.sqrt(value) : value;
  const of = isRoot && squared ? squared[1] : unit;
  return { value: shown, unit: of, isRoot, text: `${isRoot ? "√loss " : ""}${number(shown)}${of ? ` ${of}` : ""}` };
}
