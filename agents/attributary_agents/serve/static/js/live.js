// Brings what happens as it happens, and says whether it does: at most four times a second, and never to a hidden tab.

const KINDS = ["importance", "incident", "status", "dead_letter_counts", "gone"];
const LEAST_MS = 250;
const MOST_HELD = 1000;
const LOOK_MS = 15_000;

/**
 * Return an EventTarget that dispatches CustomEvents with the payload as `detail`: those of the stream
 * (`importance`, `incident`, `status`, `dead_letter_counts`, `gone`), and
 * `batch` {} after each group of them: the moment to draw;
 * `reload` {}: what was missed is not repeated, all has to be fetched anew;
 * `broker` {answers, since_ms}; `connection` {state: live | reconnecting | file}; `build` {build}; `heard` {at_ms}.
 * @param {{kind: string, stream: string|null, now: function(): number, health: function(): Promise<Object>}} source
 */
export function createLive(source) {
  return source.stream === null ? new EventTarget() : new Live(source);
}

class Live extends EventTarget {
  #source;
  #events = null;
  #held = [];
  #timer = null;
  #wait = 1000;
  #again = null;
  #wasLost = false;
  #overflown = false;
  #heardAt = 0;
  #model = null;

  constructor(source) {
    super();
    this.#source = source;
    this.state = "reconnecting";
    document.addEventListener("visibilitychange", () => this.#seen());
    addEventListener("offline", () => this.#lost());
    addEventListener("online", () => { this.#wait = 1000; this.open(); });
    addEventListener("pagehide", () => this.#events?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) { this.#wasLost = true; this.open(); } });
    setInterval(() => this.#look(), LOOK_MS);
  }

  /** Open the stream, or open it anew; of one model only where it is named. */
  open(model = this.#model) {
    clearTimeout(this.#again);
    this.#events?.close();
    this.#model = model;
    const events = new EventSource(this.#source.stream + (model ? `?model=${encodeURIComponent(model)}` : ""));
    this.#events = events;
    events.addEventListener("hello", (event) => this.#hello(JSON.parse(event.data)));
    events.addEventListener("reload", () => this.#reload());
    events.addEventListener("broker", (event) => this.#say("broker", JSON.parse(event.data)));
    for (const kind of KINDS) events.addEventListener(kind, (event) => this.#hold(kind, event.data));
    events.onerror = () => this.#failed(events);
  }

  /** Look whether the server is there: an answer has failed to come. */
  suspect() {
    this.#heardAt = 0;
    this.#look();
  }

  #hello({ build }) {
    this.#wait = 1000;
    this.#say("build", { build });
    this.#become("live");
    if (this.#wasLost) this.#reload();
    this.#wasLost = false;
  }

  #failed(events) {
    this.#lost();
    if (events.readyState !== EventSource.CLOSED || events !== this.#events) return;
    clearTimeout(this.#again);
    this.#again = setTimeout(() => this.open(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, 30_000);
  }

  #lost() {
    this.#wasLost = true;
    this.#become("reconnecting");
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.#say("connection", { state });
  }

  #say(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  #hold(kind, text) {
    this.#heardAt = this.#source.now();
    this.#say("heard", { at_ms: this.#heardAt });
    if (this.#held.length >= MOST_HELD) this.#overflown = true;
    if (!this.#overflown) this.#held.push([kind, JSON.parse(text)]);
    this.#schedule();
  }

  #schedule() {
    if (this.#timer !== null || document.hidden) return;
    this.#timer = setTimeout(() => requestAnimationFrame(() => this.#flush()), LEAST_MS);
  }

  #flush() {
    this.#timer = null;
    const held = this.#held;
    this.#held = [];
    if (this.#overflown) return this.#reload();
    for (const [kind, detail] of latest(held)) this.#say(kind, detail);
    this.#say("batch", {});
  }

  #reload() {
    this.#held = [];
    this.#overflown = false;
    this.#say("reload", {});
  }

  #seen() {
    if (document.hidden) return;
    this.#look();
    if (this.#held.length || this.#overflown) this.#schedule();
  }

  /** Ask for the server's health where nothing has been heard for a while: a line that is cut says nothing. */
  async #look() {
    if (document.hidden || this.#source.now() - this.#heardAt < LOOK_MS) return;
    try {
      const health = await this.#source.health();
      this.#say("health", health);
      if (this.state === "reconnecting" && this.#events?.readyState !== EventSource.OPEN) this.open();
    } catch (problem) {
      if (problem.status === 0) this.#lost();
    }
  }
}

/** Keep of statuses the last one of each model; all else as it came. */
function latest(held) {
  const last = new Map();
  held.forEach(([kind, detail], place) => { if (kind === "status") last.set(detail.model_id, place); });
  return held.filter(([kind, detail], place) => kind !== "status" || last.get(detail.model_id) === place);
}
