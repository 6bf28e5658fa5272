// Gets answers of `serve/answers`: from the server, or from the object that a single file carries (page/file.js).

import { WINDOWS } from "page/state.js";

/**
 * @typedef {{status: number, title: string, detail: string, suggestion: string|null}} Problem As RFC 9457 has it;
 *   status 0: there was no answer.
 */

/** Return the source of all answers: that of the file where the page carries its data, otherwise the server. */
export async function createSource() {
  const data = document.getElementById("data");
  if (data === null) return restSource(served().root);
  const { fileSource } = await import("page/file.js");
  return fileSource(JSON.parse(data.textContent));
}

/** Return what stands before the paths of the server, and which build of the page this is. */
export function served() {
  const base = document.documentElement.dataset.base ?? "";
  const [root, build = ""] = base.split("/static/");
  return { root, build };
}

/**
 * Return the answers of the server at `root`.
 * @param {string} root
 * @param {typeof fetch} ask
 */
export function restSource(root, ask = fetch.bind(globalThis)) {
  const api = `${root}/api/v1`;
  let ahead = 0;
  const get = (path, query = {}) => answer(ask, `${api}${path}${queryOf(query)}`);
  const of = (id) => `/models/${encodeURIComponent(id)}`;
  return {
    kind: "server",
    stream: `${api}/stream`,
    address: (path, query) => `${api}${path}${queryOf(query)}`,
    now: () => Date.now() + ahead,
    async fleet({ window, q, offset, limit } = {}) {
      const fleet = await get("/models", { window, q: q || null, offset: offset || null, limit });
      ahead = fleet.now_ms - Date.now();
      return fleet;
    },
    model: (id, { window } = {}) => get(of(id), { window }),
    series: (id, asked = {}) => get(`${of(id)}/importances`, windowed(asked, Date.now() + ahead)),
    incidents: (id, { from, to } = {}) => get(`${of(id)}/incidents`, { from, to }),
    incident: (id) => get(`/incidents/${encodeURIComponent(id)}`),
    compare: (a, b, explainer) => get("/compare", { a, b, explainer }),
    deadLetters: (id) => get(`${of(id)}/dead-letters`),
    dependences: (id) => get(`${of(id)}/dependences`),
    health: () => get("/health"),
  };
}

/** A window of time becomes the moment at which it begins. */
function windowed({ window, features, ...asked }, now) {
  const span = WINDOWS[window] ?? null;
  const from = asked.from ?? (span === null || asked.by === "observation" ? null : Math.round(now - span));
  return { ...asked, from, features: features?.length ? features : null };
}

function queryOf(query) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined) params.append(key, one);
    }
  }
  return params.size ? `?${params}` : "";
}

async function answer(ask, address) {
  let response;
  try {
    response = await ask(address, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  } catch {
    throw problem(0, { title: "The server does not answer", detail: "" });
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw problem(response.ok ? 502 : response.status, body ?? { title: "What came is no answer of Attributary", detail: `status ${response.status}` });
}

/** Return what a failed answer is told as. */
export function problem(status, { title, detail, suggestion }) {
  return Object.assign(new Error(title ?? "problem"), { status, title: title ?? "", detail: detail ?? "", suggestion: suggestion ?? null });
}
