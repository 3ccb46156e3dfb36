// Requests to the API, and its server-sent events.

import { forgetToken, token } from "./session.js";

const RETRY_MS = [500, 1000, 2000, 5000];

/** Error of the API. kind: as in the OpenAPI document; document: its other keys. */
export class ApiError extends Error {
  constructor(status, document) {
    super(document?.message ?? `the server answered ${status}`);
    this.status = status;
    this.kind = document?.kind ?? "";
    this.document = document ?? {};
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      headers: { ...options.headers, Authorization: `Bearer ${token()}` },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { kind: "unreachable", message: "the server cannot be reached: is `uncaged-workflow serve` running?" });
  }
  if (response.ok) return response;
  if (response.status === 401) {
    forgetToken();
    dispatchEvent(new Event("uncaged-no-token"));
    throw new ApiError(401, { kind: "token", message: "the token is missing or wrong" });
  }
  throw new ApiError(response.status, await response.json().then((body) => body.error, () => null));
}

/** Return the path with its values encoded: path`/api/threads/${id}`. */
export function path(parts, ...values) {
  return parts.map((part, at) => part + (at < values.length ? encodeURIComponent(values[at]) : "")).join("");
}

/** Return `?a=b` for the values that are set; a list is repeated. */
export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") found.append(name, one);
    }
  }
  const text = found.toString();
  return text && `?${text}`;
}

export async function getJson(where, { signal } = {}) {
  return (await ask(where, { signal })).json();
}

export async function postJson(where, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(where, { method: "POST", body: JSON.stringify(body), headers })).json();
}

/** Return the address of bytes that need the token; revoke it when it is not shown any more. */
export async function objectUrl(where) {
  return URL.createObjectURL(await (await ask(where)).blob());
}

/**
 * Follow server-sent events until the returned function is called. After a lost connection they go
 * on after the last id.
 *
 * onEvent(kind, data), onState("live" | "waiting" | "ended", error?)
 */
export function events(where, { onEvent, onState = () => {} }) {
  const stop = new AbortController();
  let last = "";
  let tries = 0;
  (async () => {
    while (!stop.signal.aborted) {
      try {
        const headers = last ? { "Last-Event-ID": last } : {};
        const response = await ask(where, { headers, signal: stop.signal });
        onState("live");
        for await (const event of parsed(response.body)) {
          tries = 0;
          if (event.id) last = event.id;
          if (event.kind === "end") {
            onState("ended");
            return;
          }
          onEvent(event.kind, event.data);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof ApiError && error.status >= 400 && error.status < 500) {
          onState("ended", error);
          return;
        }
      }
      if (stop.signal.aborted) return;
      onState("waiting");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]));
    }
  })();
  return () => stop.abort();
}

async function* parsed(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let event = { kind: "message", data: [], id: "" };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) {
      if (!line) {
        if (event.data.length) yield { ...event, data: JSON.parse(event.data.join("\n")) };
        event = { kind: "message", data: [], id: "" };
      } else if (line.startsWith("event: ")) event.kind = line.slice(7);
      else if (line.startsWith("data: ")) event.data.push(line.slice(6));
      else if (line.startsWith("id: ")) event.id = line.slice(4);
    }
  }
}
