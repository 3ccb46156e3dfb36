// Head of a thread's page: flow, status, what it was asked, its relatives and its end.

import { h } from "./dom.js";
import { clock, duration, statusBadge, usage } from "./format.js";
import { textBlock } from "./text_block.js";

/** Return flow, status, id and version. */
export function threadTitle(thread) {
  return h(
    "header",
    {},
    h("h1", { class: "row" }, thread.flow || "thread", statusBadge(thread.status, thread.success)),
    h("p", { class: "mono quiet" }, thread.threadId, " of ", thread.hash),
    thread.description ? h("p", { class: "quiet" }, thread.description) : null,
  );
}

/** Return the line of facts below a thread's title. */
export function threadFacts(thread) {
  const facts = [
    `${thread.steps} ${thread.steps === 1 ? "step" : "steps"}`,
    `started ${clock(thread.startedMs)}`,
    `took ${duration(thread.updatedMs - thread.startedMs)}`,
    usage(thread.used),
    thread.sandbox && `sandbox ${thread.sandbox}`,
    thread.imported && "imported",
  ];
  return h("p", { class: "quiet" }, facts.filter(Boolean).join(" · "));
}

/** Return prompt, parameters, limits, agents and workspace, folded. */
export function threadInputs(thread) {
  const parts = [];
  const add = (title, value, open = false) => {
    parts.push(h("details", { open }, h("summary", {}, title), textBlock(value, { kind: typeof value === "string" ? "text" : "data" })));
  };
  if (thread.prompt) add("Prompt", thread.prompt, thread.prompt.length < 600);
  if (Object.keys(thread.params ?? {}).length) add("Parameters", thread.params);
  if (Object.keys(thread.limits ?? {}).length) add("Limits", thread.limits);
  if (Object.keys(thread.agents ?? {}).length) add("Agents", thread.agents);
  if (thread.workspace) add("Workspace", thread.workspace);
  return h("div", { class: "thread-inputs" }, ...parts);
}

/** Return how the thread ended, or why it stands still; null while it runs. */
export function threadEnding(thread) {
  const isSilent = !thread.ending && !thread.message && !thread.problem && !thread.result;
  if (thread.status === "running" || isSilent) return null;
  const more = thread.details?.length ? textBlock(thread.details.join("\n")) : null;
  const result = thread.result === null || thread.result === undefined
    ? null
    : h("details", {}, h("summary", {}, "Result"), textBlock(thread.result, { kind: "data" }));
  return h(
    "section",
    { class: "card ending", "data-word": thread.word },
    h("p", {}, thread.ending || thread.message),
    thread.problem ? h("p", { class: "error" }, `problem: ${thread.problem}`) : null,
    more,
    result,
  );
}

/** Return links to parent, source, children and forks; null without any. link(relative) -> node. */
export function threadRelatives(thread, link) {
  const rows = [];
  if (thread.parent) rows.push(["started by", [link({ ...thread.parent, flow: `step ${thread.parent.seq}` })]]);
  if (thread.source) rows.push(["fork of", [link({ ...thread.source, flow: `step ${thread.source.seq}` })]]);
  if (thread.children.length) rows.push(["started", thread.children.map(link)]);
  if (thread.forks.length) rows.push(["forks", thread.forks.map(link)]);
  if (!rows.length) return null;
  return h(
    "dl",
    { class: "relatives" },
    ...rows.flatMap(([title, links]) => [h("dt", {}, title), ...links.map((one) => h("dd", {}, one))]),
  );
}
