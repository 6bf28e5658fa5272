// What stands over every view: name, whether the page is alive, window, search, theme, keys; and the strips.

import { h, replace, unseen, write } from "page/dom.js";
import { ago, time } from "page/format.js";
import { showKeys } from "page/keys.js";
import { follow, link, write as addressOf } from "page/state.js";

const WINDOW_WORDS = { "1h": "1 h", "24h": "24 h", "7d": "7 d", all: "all" };
const WINDOW_SAID = { "1h": "the last hour", "24h": "the last 24 hours", "7d": "the last 7 days", all: "all there is" };
const THEMES = ["auto", "light", "dark"];
const THEME_SIGNS = { auto: "◐", light: "☀", dark: "☾" };
const CONNECTIONS = { live: "live", reconnecting: "reconnecting…", file: "file" };

/**
 * @param {HTMLElement} element The page's `header`.
 * @param {HTMLElement} strips Where strips are shown.
 * @param {{source: Object, now: function(): number}} context
 * @returns {{state: function(Object), connection: function(string), heard: function(number|null),
 *   broker: function({answers: boolean, since_ms: number|null}), strip: function(string, Node|null, string=)}}
 */
export function createHead(element, strips, { source, now }) {
  let current = null;
  let heardAt = null;
  let connection = source.kind === "file" ? "file" : "reconnecting";
  const home = h("a", { class: "brand", href: "/" }, sign(), h("span", null, "Attributary"));
  const word = h("span", { class: "live-word" });
  const age = h("span", { class: "live-age" });
  const alive = h("p", { class: "live", "data-state": connection }, h("span", { class: "dot", "aria-hidden": "true" }), word, age);
  const windows = choices("Window", Object.keys(WINDOW_WORDS), (key) => [WINDOW_WORDS[key], unseen(`: ${WINDOW_SAID[key]}`)]);
  const axes = choices("Axis", ["time", "observation"], (key) => (key === "time" ? "time" : "observations"));
  const search = createSearch({ source, state: () => current });
  const theme = themeButton();
  const keys = h("button", { type: "button", class: "icon", onclick: showKeys, title: "Keys (?)" }, h("span", { "aria-hidden": "true" }, "?"), unseen("Show the keys"));
  replace(element, h("div", { class: "head-row" }, home, alive, h("div", { class: "head-controls" }, source.axis === "observation" ? null : [windows.element, axes.element], search.element, theme, keys)));

  function drawAlive() {
    alive.dataset.state = connection;
    write(word, CONNECTIONS[connection]);
    write(age, ageWords());
  }

  function ageWords() {
    if (heardAt === null) return connection === "file" ? "" : "no event yet";
    return connection === "file" ? `as of ${time(heardAt)}` : `last event ${ago(heardAt, now())}`;
  }

  setInterval(() => { if (!document.hidden) drawAlive(); }, 1000);
  drawAlive();
  return {
    search,
    state(state) {
      current = state;
      home.href = link(state, { view: "fleet" });
      windows.draw(state.window, (key) => addressOf({ ...state, window: key, from: null, to: null }));
      axes.draw(state.by, (key) => addressOf({ ...state, by: key, from: null, to: null }));
    },
    connection(state) { connection = state; drawAlive(); },
    heard(at) { if (at !== null && (heardAt === null || at > heardAt)) { heardAt = at; drawAlive(); } },
    broker({ answers, since_ms }) {
      this.strip("broker", answers ? null : `Kafka has not answered since ${time(since_ms, { now: now() })}; shown is what was read until then.`);
    },
    strip: (key, content, kind = "warn") => showStrip(strips, key, content, kind),
  };
}

function showStrip(strips, key, content, kind) {
  const old = strips.querySelector(`[data-key="${key}"]`);
  if (content === null) return old?.remove();
  const parts = [content].flat();
  const said = parts.map((one) => one.textContent ?? one).join("");
  if (old?.textContent === said) return undefined;
  const strip = h("div", { class: `strip ${kind}`, role: kind === "warn" ? "status" : null, dataset: { key } }, parts);
  return old ? old.replaceWith(strip) : strips.append(strip);
}

/** Return links of which one is current: a choice that is a part of the address. */
function choices(label, keys, words) {
  const links = new Map(keys.map((key) => [key, h("a", null, words(key))]));
  return {
    element: h("nav", { class: "choices", "aria-label": label }, [...links.values()]),
    draw(chosen, address) {
      for (const [key, one] of links) {
        one.setAttribute("href", address(key));
        if (key === chosen) one.setAttribute("aria-current", "true");
        else one.removeAttribute("aria-current");
      }
    },
  };
}

function sign() {
  const mark = h("span", { class: "mark", "aria-hidden": "true" });
  for (const height of [45, 100, 70]) mark.append(h("span", { style: { height: `${height}%` } }));
  return mark;
}

let chosenTheme = null;

/** Take the theme that was chosen: on this page, by the address, or before. */
export function applyTheme(named = null) {
  const theme = chosenTheme ?? named ?? kept() ?? "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}

function kept() {
  try {
    return localStorage.getItem("attributary-theme");
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    localStorage.setItem("attributary-theme", theme);
  } catch {
    // A file, or a browser that keeps nothing: the choice holds as long as the page is open.
  }
}

function themeButton() {
  const icon = h("span", { "aria-hidden": "true" });
  const said = unseen("");
  const button = h("button", { type: "button", class: "icon theme" }, icon, said);
  const draw = () => {
    const theme = document.documentElement.dataset.theme ?? "auto";
    write(icon, THEME_SIGNS[theme]);
    write(said, `Theme: ${theme}; change it`);
    button.title = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    chosenTheme = next;
    keep(next);
    applyTheme();
    draw();
  });
  draw();
  return button;
}

const WAIT_MS = 150;
const MOST = 8;

/**
 * @param {{source: Object, state: function(): Object}} context
 * @returns {{element: HTMLElement, focus: function(): void}}
 */
function createSearch({ source, state }) {
  const input = h("input", {
    type: "search", id: "search", placeholder: "Find a model", autocomplete: "off", spellcheck: "false", role: "combobox",
    "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", "aria-label": "Find a model",
  });
  const list = h("ul", { id: "found", role: "listbox", "aria-label": "Models", hidden: true });
  const said = h("span", { class: "unseen", role: "status" });
  const element = h("search", { class: "search" }, input, h("kbd", { "aria-hidden": "true" }, "/"), list, said);
  let options = [];
  let chosen = -1;
  let timer = null;
  let asked = 0;

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, WAIT_MS);
  });
  input.addEventListener("keydown", onKey);
  element.addEventListener("focusout", (event) => { if (!element.contains(event.relatedTarget)) close(); });

  async function look() {
    const q = input.value.trim();
    const mine = (asked += 1);
    if (!q) return close();
    const found = await offers(q);
    if (mine === asked) open(found);
    return undefined;
  }

  async function offers(q) {
    try {
      const { models, n_found } = await source.fleet({ q, limit: MOST, window: state().window });
      if (!n_found) return await likeIt(q);
      const named = models.map((row) => ({ text: row.model_id, address: toModel(row.model_id) }));
      return n_found > models.length ? [...named, { text: `All ${n_found} that match`, address: link(state(), { view: "fleet", q }) }] : named;
    } catch {
      return [];
    }
  }

  async function likeIt(q) {
    try {
      await source.model(q, {});
      return [{ text: q, address: toModel(q) }];
    } catch (problem) {
      const like = problem.suggestion;
      return like ? [{ text: `Did you mean ${like}?`, address: toModel(like) }] : [];
    }
  }

  const toModel = (id) => link(state(), { view: "model", model: id });

  function open(found) {
    options = found;
    chosen = -1;
    replace(list, found.length ? found.map(option) : h("li", { role: "option", "aria-disabled": "true", class: "none" }, "No model of this name"));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    said.textContent = found.length ? `${found.length} found` : "No model of this name";
    choose(found.length === 1 ? 0 : -1);
  }

  function option({ text, address }, place) {
    return h("li", { role: "option", id: `found-${place}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); take(address); } }, text);
  }

  function choose(place) {
    chosen = place;
    [...list.children].forEach((one, i) => one.setAttribute("aria-selected", String(i === place)));
    if (place < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `found-${place}`);
  }

  async function onKey(event) {
    if (event.key === "Escape") { close(); input.blur(); }
    if (event.key === "ArrowDown" && options.length) { event.preventDefault(); choose((chosen + 1) % options.length); }
    if (event.key === "ArrowUp" && options.length) { event.preventDefault(); choose((chosen + options.length - (chosen < 0 ? 0 : 1)) % options.length); }
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (list.hidden || chosen < 0) await look();
      const wanted = options[Math.max(chosen, 0)];
      if (wanted) take(wanted.address);
    }
  }

  function take(address) {
    input.value = "";
    close();
    input.blur();
    follow(address);
  }

  function close() {
    asked += 1;
    options = [];
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  return { element, focus: () => { input.focus(); input.select(); } };
}
