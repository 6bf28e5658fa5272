// Lists the incidents of all models, those first that need attention: in a line what happened, since when, and whether it is over.

import { h, replace, write } from "page/dom.js";
import { count, middle, thin, time } from "page/format.js";
import { link } from "page/state.js";
import { courseOf, standingOf } from "page/views/incident/words.js";

const MOST = 6;

/** @param {{state: Object, now: function(): number}} context */
export function createIncidents({ state, now }) {
  const list = h("ol", { class: "incidents" });
  const more = h("button", { type: "button", class: "quiet", onclick: () => { isWhole = true; draw(); } });
  const element = h("section", { class: "card", "aria-labelledby": "incidents-title" }, h("h2", { id: "incidents-title" }, "Incidents"), list, more);
  let lines = [];
  let fresh = null;
  let isWhole = false;
  let times = [];

  function draw() {
    const n_open = lines.filter((line) => line.standing !== "over").length;
    const shown = isWhole ? lines : lines.slice(0, Math.max(MOST, n_open));
    times = [];
    element.hidden = !lines.length;
    more.hidden = shown.length === lines.length;
    write(more, `Show ${count(lines.length - shown.length)} more`);
    replace(list, shown.map(item));
    tick();
  }

  function item(line) {
    const [first] = line.incidents;
    const worst = line.incidents.find((one) => one.standing === line.standing && one.severity === "critical") ?? line.incidents.find((one) => one.standing === line.standing) ?? first;
    const { sign, tone } = standingOf(worst);
    const course = h("span", { class: "course" });
    times.push([course, line.n === 1 ? first : { ...worst, since: first.since }]);
    const isNew = line.incidents.some((one) => one.id === fresh);
    return h("li", { class: `tone-${tone}${isNew ? " new" : ""}` },
      h("p", { class: "what" }, h("span", { class: "sign", "aria-hidden": "true" }, `${sign} `),
        line.n === 1 ? linkTo(first, thin(first.headline)) : h("b", null, together(line))),
      h("p", { class: "meta" }, course,
        line.n === 1 && [" · ", h("a", { href: link(state, { view: "model", model: first.model_id }), title: first.model_id }, middle(first.model_id, 32))]),
      line.n > 1 && h("details", { class: "members" },
        h("summary", null, line.n > line.incidents.length ? `The first ${count(line.incidents.length)} of ${count(line.n)}` : "Show them"),
        h("ul", null, line.incidents.map((one) => h("li", null, linkTo(one, one.model_id), one.standing !== line.standing && ` ${standingOf(one).word}`)))));
  }

  function linkTo(row, text) {
    return h("a", { href: link(state, { view: "incident", incident: row.id }), title: row.sentence }, text);
  }

  function together({ headline, feature, incidents: [{ since }] }) {
    return thin(`${headline} at ${since.time_ms === null ? `observation ${count(since.observation)}` : time(since.time_ms, { now: now() })}${feature === null ? "" : `: ${feature}`}`);
  }

  function tick() {
    for (const [element, row] of times) write(element, thin(courseOf(row, now())));
  }

  return {
    element,
    set(given) { lines = given; draw(); },
    /** Put the newest revision of an incident in its place; a new one stands first. */
    take(row) {
      const line = { headline: row.headline, feature: null, standing: row.standing, n: 1, incidents: [row] };
      const place = lines.findIndex((one) => one.incidents.some(({ id }) => id === row.id));
      if (place < 0) lines = [line, ...lines];
      else if (lines[place].n === 1) lines = lines.with(place, line);
      fresh = row.id;
      draw();
    },
    tick,
  };
}
