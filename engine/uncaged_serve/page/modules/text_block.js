// Blocks of text: long ones are shown in part until a person asks for the rest.

import { h, readable } from "./dom.js";

const FIRST_CHARACTERS = 20000;
const FIRST_LINES = 400;

/** Return a block with a text of any length, or with JSON data. */
export function textBlock(value, { kind = "text" } = {}) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const block = h("pre", { class: `block block-${kind}`, tabindex: "0" }, text.slice(0, FIRST_CHARACTERS));
  if (text.length <= FIRST_CHARACTERS) return block;
  return withMore(block, `Show all ${text.length.toLocaleString("en")} characters`, () => {
    block.textContent = readable(text);
  });
}

/** Return a block with a patch in git's form, its lines coloured. */
export function patchBlock(patch) {
  const lines = patch.split("\n");
  const block = h("pre", { class: "block block-patch", tabindex: "0" });
  block.append(...lines.slice(0, FIRST_LINES).map(patchLine));
  if (lines.length <= FIRST_LINES) return block;
  let shown = FIRST_LINES;
  const more = () => {
    block.append(...lines.slice(shown, shown + FIRST_LINES).map(patchLine));
    shown += FIRST_LINES;
    return shown < lines.length;
  };
  return withMore(block, `Show more of ${lines.length.toLocaleString("en")} lines`, more);
}

function withMore(block, label, more) {
  const button = h("button", { type: "button", class: "show-more" }, label);
  button.addEventListener("click", () => {
    if (!more()) button.remove();
  });
  return h("div", { class: "block-frame" }, block, button);
}

function patchLine(line) {
  return h("span", { class: `patch-${patchKind(line)}` }, `${line}\n`);
}

function patchKind(line) {
  if (/^(diff --git|index|---|\+\+\+|new file|deleted file|similarity|rename|old mode)/.test(line)) {
    return "head";
  }
  return { "+": "added", "-": "removed", "@": "place" }[line[0]] ?? "same";
}
