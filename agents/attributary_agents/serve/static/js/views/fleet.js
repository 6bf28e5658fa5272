// Shows all models: whether anything is wrong, with which one, since when.

import { h } from "page/dom.js";

export async function show({ source, state }) {
  const fleet = await source.fleet({ window: state.window, q: state.q, offset: state.offset });
  const element = h("div", null, h("h1", null, fleet.sentence));
  return { title: fleet.is_wrong ? "▲ Fleet" : "Fleet", element, update() {}, close() {} };
}
