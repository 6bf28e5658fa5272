// Lets the keyboard read a chart: by points, by marks, and closer or farther.

import { weightiest } from "page/chart/lines/marks.js";
import { nearest } from "page/chart/lines/reading.js";

/**
 * Listen to the keys of a chart.
 * @param {HTMLElement} box
 * @param {{data, index, moveTo, leave}} chart data: what is drawn now. index: where the cursor is, or null.
 * @returns {{isInside: () => boolean, zoom: (factor: number) => void}} isInside: whether the cursor was moved by a key
 *   and the chart still has the focus.
 */
export function onKeys(box, { data, index, moveTo, leave }) {
  let isInside = false;

  function hop(step) {
    const { x, marks } = data();
    const places = [...new Set(marks.map((mark) => nearest(x, mark.at)))].sort((a, b) => a - b);
    const at = index() ?? (step > 0 ? -1 : x.length);
    const next = step > 0 ? places.find((place) => place > at) : places.findLast((place) => place < at);
    if (next !== undefined) moveTo(next);
  }

  function zoom(factor) {
    const { x, window, onZoom } = data();
    if (!onZoom || !x.length) return;
    const [from, to] = window ?? [x[0], x.at(-1)];
    const middle = x[index() ?? x.length - 1];
    onZoom(Math.floor(middle - (middle - from) * factor), Math.ceil(middle + (to - middle) * factor));
  }

  function open() {
    const { x, marks, onChoose } = data();
    const mark = weightiest(marks.filter((one) => one.href && nearest(x, one.at) === index()));
    if (mark) onChoose?.(mark);
  }

  const step = (n) => moveTo((index() ?? (n > 0 ? -1 : data().x.length)) + n);
  const actions = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    Home: () => moveTo(0),
    End: () => moveTo(data().x.length - 1),
    PageUp: () => hop(-1),
    PageDown: () => hop(1),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    Enter: open,
    Escape: () => {
      leave();
      isInside = false;
      if (data().window) data().onZoom?.(null, null);
    },
  };

  box.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || event.target !== box || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    isInside = true;
    action();
  });
  box.addEventListener("blur", () => {
    if (isInside) leave();
    isInside = false;
  });
  return { isInside: () => isInside, zoom };
}
