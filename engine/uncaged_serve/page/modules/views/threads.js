// The list of threads.

import { h } from "../dom.js";
import { duration, statusBadge, time } from "../format.js";
import { getJson, query } from "../http.js";

export async function show(root, route) {
  const { threads } = await getJson(`/api/threads${query({ limit: route.query.get("limit") })}`);
  root.append(
    h("h1", {}, "Threads"),
    threads.length ? table(threads) : h("p", { class: "quiet" }, "No threads yet."),
  );
}

function table(threads) {
  const heads = ["Status", "Flow", "Started", "Duration", "Steps", "Message"];
  return h("table", { class: "list" },
    h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, threads.map(row)));
}

function row(thread) {
  return h("tr", {},
    h("td", {}, statusBadge(thread.status, thread.success)),
    h("td", {}, h("a", { href: `#/threads/${thread.threadId}` }, thread.flow || thread.threadId)),
    h("td", {}, time(thread.startedMs)),
    h("td", {}, duration(thread.updatedMs - thread.startedMs)),
    h("td", { class: "number" }, String(thread.steps)),
    h("td", { class: "text" }, thread.problem || thread.message || ""));
}
