// Differences of two versions, permissions first.

import { h } from "./dom.js";

const KINDS = { "+": "added", "-": "removed", "@": "place" };

/** Return the sections of a difference: names with lines that begin with `+`, `-`, `@` or a space. */
export function differenceSections(sections) {
  const names = Object.keys(sections);
  if (!names.length) return h("p", { class: "quiet" }, "The two versions are identical.");
  return names.map((name) => {
    const lines = sections[name].map((line) => h("span", { class: KINDS[line[0]] ?? null }, `${line}\n`));
    const open = name !== "source" || lines.length < 60;
    return h("details", { open }, h("summary", {}, `${name} (${lines.length} lines)`), h("pre", { class: "difference" }, lines));
  });
}
