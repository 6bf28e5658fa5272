// A button that copies the address of what is looked at.

import { h, write } from "page/dom.js";

const BACK_MS = 2000;

/** Return the button; it says for two seconds that the address was copied, or that it could not be. */
export function copyLink(text = "Copy link") {
  const said = h("span", { role: "status" }, text);
  const button = h("button", { type: "button", class: "button quiet" }, said);
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    write(said, done ? "Link copied" : "Copy the address above");
    setTimeout(() => write(said, text), BACK_MS);
  });
  return button;
}
