// Keeps what is looked at in the address: reads it, writes it, and goes to another one.

/**
 * @typedef {Object} State
 * @property {"fleet"|"model"|"incident"|"compare"|"missing"} view
 * @property {string|null} model
 * @property {string|null} incident
 * @property {string|null} a One side of a comparison: ID, ID@time or ID@#observation.
 * @property {string|null} b
 * @property {"1h"|"24h"|"7d"|"all"} window
 * @property {number|null} from Milliseconds, or an observation where `by` is observation.
 * @property {number|null} to
 * @property {"time"|"observation"} by
 * @property {number|null} top How many features are drawn.
 * @property {string|null} x The feature that is chosen.
 * @property {string|null} row The model that is chosen in the fleet.
 * @property {string|null} order Column of a table; with a minus before it the largest first.
 * @property {string|null} explainer
 * @property {"importance"|"share"|"rank"} measure
 * @property {string} q What is searched for.
 * @property {number} offset
 * @property {"light"|"dark"|null} theme
 */

export const WINDOWS = { "1h": 3600e3, "24h": 86400e3, "7d": 7 * 86400e3, all: null };

const settings = { inHash: false, root: "", window: "24h", by: "time" };

/**
 * Say once how addresses are written.
 * @param {{inHash?: boolean, root?: string, window?: string, by?: string}} given inHash: behind a #, as in a file. root:
 *   what stands before the path. window, by: those that are looked at where the address names none.
 */
export function configure(given) {
  Object.assign(settings, given);
}

const choice = (...values) => (text) => (values.includes(text) ? text : null);
const name = (text) => text || null;
const whole = (text) => (/^\d+$/.test(text) ? Number(text) : null);
const moment = (text) => whole(text) ?? (Number.isNaN(Date.parse(text)) ? null : Date.parse(text));

const READERS = {
  a: name,
  b: name,
  window: choice(...Object.keys(WINDOWS)),
  from: moment,
  to: moment,
  by: choice("time", "observation"),
  top: whole,
  x: name,
  row: name,
  order: name,
  explainer: name,
  measure: choice("importance", "share", "rank"),
  q: name,
  offset: whole,
  theme: choice("light", "dark"),
};

function defaults() {
  const none = Object.fromEntries(Object.keys(READERS).map((key) => [key, null]));
  return { ...none, model: null, incident: null, window: settings.window, by: settings.by, measure: "importance", q: "", offset: 0 };
}

/**
 * Read what is looked at.
 * @param {{pathname: string, search: string, hash: string}} location
 * @returns {State}
 */
export function read(location) {
  const written = settings.inHash ? location.hash.replace(/^#/, "") || "/" : location.pathname + location.search;
  const [path, query = ""] = split(written, "?");
  const below = path.startsWith(settings.root) ? path.slice(settings.root.length) : path;
  const state = { ...defaults(), ...route(below) };
  const params = new URLSearchParams(query.split("#")[0]);
  for (const [key, reader] of Object.entries(READERS)) {
    const value = params.has(key) ? reader(params.get(key)) : null;
    if (value !== null) state[key] = value;
  }
  return state;
}

function split(text, at) {
  const place = text.indexOf(at);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}

function route(path) {
  const [first, ...rest] = path.replace(/^\/+|\/+$/g, "").split("/");
  const id = decoded(rest.join("/"));
  if (!first || first === "index.html") return { view: "fleet" };
  if (first === "models" && !id) return { view: "fleet" };
  if (first === "models") return { view: "model", model: id };
  if (first === "incidents" && id) return { view: "incident", incident: id };
  if (first === "compare") return { view: "compare" };
  return { view: "missing" };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Return the address of what is looked at, without what is the default.
 * @param {Partial<State>} state
 * @returns {string}
 */
export function write(state) {
  const usual = defaults();
  const params = new URLSearchParams();
  for (const key of Object.keys(READERS)) {
    const value = state[key];
    if (value !== undefined && value !== null && value !== usual[key]) params.set(key, String(value));
  }
  const query = params.toString().replaceAll("%40", "@").replaceAll("%3A", ":");
  return `${settings.inHash ? "#" : settings.root}${pathOf(state)}${query ? `?${query}` : ""}`;
}

function pathOf(state) {
  if (state.view === "model" || (!state.view && state.model)) return `/models/${encodeURIComponent(state.model)}`;
  if (state.view === "incident" || (!state.view && state.incident)) return `/incidents/${encodeURIComponent(state.incident)}`;
  return state.view === "compare" ? "/compare" : "/";
}

/**
 * Return the address of another view that keeps what holds for all of them: window, axis and theme.
 * @param {State} state What is looked at now.
 * @param {Partial<State>} other View, and what belongs to it.
 */
export function link(state, other) {
  return write({ window: state.window, by: state.by, theme: state.theme, ...other });
}

/**
 * Go to what a state names; whoever listens to `popstate` draws it.
 * @param {Partial<State>} state
 * @param {{replace?: boolean}} options replace: no step for the back key is left behind.
 */
export function go(state, { replace = false } = {}) {
  follow(write(state), { replace });
}

/** Go to an address that `write` has made. */
export function follow(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}
