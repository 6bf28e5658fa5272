// Finds models by their name, from any view.

import { h, replace } from "page/dom.js";
import { follow, link } from "page/state.js";

const WAIT_MS = 150;
const MOST = 8;

/**
 * @param {{source: Object, state: function(): Object}} context
 * @returns {{element: HTMLElement, focus: function(): void}}
 */
export function createSearch({ source, state }) {
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
