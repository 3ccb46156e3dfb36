// Texts for times, costs and statuses.

import { h } from "./dom.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 100) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / 1000)} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

export function ago(ms, now = Date.now()) {
  const past = now - ms;
  if (past < MINUTE) return "just now";
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ago`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h ago`;
  return new Date(ms).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

export function time(ms) {
  return h("time", { datetime: new Date(ms).toISOString(), title: new Date(ms).toLocaleString() }, ago(ms));
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

export function money(usd) {
  if (usd === null || usd === undefined) return "";
  return usd > 0 && usd < 0.01 ? "< $0.01" : `$${usd.toFixed(2)}`;
}

/** Return the local date and time to the second. */
export function clock(ms) {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Return tokens and money of a `used` or `usage` of the API; "" if there was none. */
export function usage(used) {
  const tokens = (used?.inputTokens ?? 0) + (used?.outputTokens ?? 0);
  const parts = [
    tokens && `${tokens.toLocaleString()} tokens`,
    used?.cost && money(used.cost),
    used?.unpriced && "price unknown",
  ];
  return parts.filter(Boolean).join(", ");
}

/** Return the status that a person reads; status and success as the API has them. */
export function shownStatus(status, success = null) {
  return success === false && status === "completed" ? "unsuccessful" : status;
}

/** Return a badge; status and success as the API has them. */
export function statusBadge(status, success = null) {
  const shown = shownStatus(status, success);
  return h("span", { class: "badge", "data-status": shown }, shown);
}
