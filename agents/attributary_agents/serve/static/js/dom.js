// Makes elements. Text from outside becomes text nodes only: nothing here parses HTML, and no character of a name turns
// the words around it.

const SVG = "http://www.w3.org/2000/svg";
const SAID = new Set(["title", "aria-label", "aria-description", "aria-valuetext", "alt", "placeholder"]);

/**
 * Return an HTML element.
 * @param {string} tag
 * @param {Object<string, any>|null} props `class`, `style` (an object), `dataset` (an object), `onclick` and other
 *   listeners, and attributes; true is an empty attribute, null, undefined and false are none.
 * @param {...any} children Nodes, texts, numbers, or lists of these; null, undefined and false are none.
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Return an SVG element; as `h`. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Return a text without characters that show nothing, or that turn the direction of what is around them. */
export function plain(text) {
  return String(text).replace(/[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu, "\ufffd");
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value !== null && value !== undefined && value !== false) set(element, name, value);
  }
  element.append(...nodes(children));
  return element;
}

function set(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") setStyles(element, value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else element.setAttribute(name, value === true ? "" : SAID.has(name) ? plain(value) : String(value));
}

function setStyles(element, styles) {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(plain(child))));
}

/** Put children in the place of all that an element has. */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** Write a text into an element, if it is another one: what is unchanged is neither drawn nor announced again. */
export function write(element, text) {
  const said = plain(text);
  if (element.textContent !== said) element.textContent = said;
}

/** Return a text that only a screen reader reads. */
export function unseen(text) {
  return h("span", { class: "unseen" }, text);
}

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
