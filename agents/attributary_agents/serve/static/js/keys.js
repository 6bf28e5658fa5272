// Knows which key does what, and shows it.

import { h } from "page/dom.js";

/** @type {{keys: string[], text: string, run: function(KeyboardEvent): (boolean|void)}[]} */
let bound = [];

/**
 * Bind keys until the returned function is called. A key does nothing while a text is being written.
 * @param {{keys: string[], text: string, run: function(KeyboardEvent): (boolean|void)}[]} list keys: as
 *   `KeyboardEvent.key`. run: false leaves the key to the browser.
 * @returns {function(): void}
 */
export function bind(list) {
  bound = [...bound, ...list];
  return () => { bound = bound.filter((one) => !list.includes(one)); };
}

/** Listen to the keyboard. */
export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const found = bound.findLast((one) => one.keys.includes(event.key));
    if (found && found.run(event) !== false) event.preventDefault();
  });
}

function isWriting(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

const SHOWN = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

/** Show all keys that do something now. */
export function showKeys() {
  const close = h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close");
  const rows = bound.filter((one) => one.text).map((one) => [
    h("dt", null, one.keys.map((key) => h("kbd", null, SHOWN[key] ?? key))), h("dd", null, one.text),
  ]);
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title" },
    h("div", { class: "keys-head" }, h("h2", { id: "keys-title" }, "Keys"), close),
    h("dl", null, rows),
    h("p", { class: "hint" }, "In a chart the arrows move the cursor, + and − zoom, 0 shows all."));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}
