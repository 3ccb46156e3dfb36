// Differences of two versions, permissions first.

import { h } from "./dom.js";
import { patchBlock } from "./text_block.js";

/** Return the sections of a difference: names with lines that begin with `+`, `-`, `@` or a space. */
export function differenceSections(sections) {
  const names = Object.keys(sections);
  if (!names.length) return h("p", { class: "quiet" }, "The two versions are identical.");
  return names.map((name) => {
    const lines = sections[name];
    const open = name !== "source" || lines.length < 60;
    return h("details", { open }, h("summary", {}, `${name} (${lines.length} lines)`), patchBlock(lines.join("\n")));
  });
}
