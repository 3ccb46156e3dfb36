// Filters of the list of threads, as they are in the address and in the API.

import { shownStatus } from "./format.js";
import { query } from "./http.js";

export const FILTERS = ["status", "flow", "agent", "minCost", "longerThan", "text"];

/** Return the address of the list with these filters. */
export function linkTo(wanted) {
  return `#/threads${query(wanted)}`;
}

/** Whether the list shows a thread that has just changed; the server decides at the next load. */
export function fits(thread, wanted, now = Date.now()) {
  const [first] = [wanted.text?.[0]?.toLowerCase()];
  const until = thread.status === "running" ? now : thread.updatedMs;
  const shown = shownStatus(thread.status, thread.success);
  return (
    (!wanted.status || wanted.status.includes(thread.status) || wanted.status.includes(shown)) &&
    (!wanted.flow || wanted.flow.includes(thread.flow) || wanted.flow.includes(thread.hash)) &&
    (!wanted.agent || wanted.agent.some((one) => thread.agents.includes(one))) &&
    (!wanted.minCost || (thread.used.cost ?? 0) >= Number(wanted.minCost[0])) &&
    (!wanted.longerThan || until - thread.startedMs >= Number(wanted.longerThan[0]) * 1000) &&
    (!first || thread.threadId.toLowerCase().startsWith(first) || thread.flow.toLowerCase().includes(first) || thread.message.toLowerCase().includes(first))
  );
}
