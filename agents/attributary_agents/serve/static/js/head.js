// Draws what stands over every view: name, whether the page is alive, window, search, theme, keys; and the strips.

import { h, replace, unseen, write } from "page/dom.js";
import { ago, time } from "page/format.js";
import { showKeys } from "page/keys.js";
import { createSearch } from "page/search.js";
import { link, write as addressOf } from "page/state.js";

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

