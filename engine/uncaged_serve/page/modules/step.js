// One step in full, in tabs: what was asked, what came of it, and its lines of the journal.

import { h } from "./dom.js";
import { bytes, clock, duration, usage } from "./format.js";
import { tabs } from "./tabs.js";
import { patchBlock, textBlock } from "./text_block.js";

/**
 * Show a step in a panel.
 *
 * found: the API's document, or the Error instead of it. close(): hides the panel. actions: buttons
 * for the step. The rest is as for `stepDetails`.
 */
export function stepPanel(panel, found, { place, picture, openPart, close, actions = [] }) {
  const isStep = !(found instanceof Error);
  const heading = h("h2", { tabindex: "-1" }, isStep ? `${place}  ${found.label}` : `Step ${place}`);
  const button = h("button", { type: "button", class: "close", "aria-label": "Close the step", onclick: close }, "✕");
  const content = isStep
    ? stepDetails(found, { picture, openPart })
    : h("p", { class: "error", role: "alert" }, found.message);
  panel.replaceChildren(h("header", {}, heading, ...(isStep ? actions : []), button), content);
  heading.focus({ preventScroll: true });
}

/**
 * Return the details of a step.
 *
 * step: the API's document. picture(hash): a promise of the address of a picture. openPart(place):
 * shows another step.
 */
export function stepDetails(step, { picture, openPart }) {
  const facts = [
    step.by && `by ${step.by}`,
    step.startedMs && `started ${clock(step.startedMs)}`,
    step.tookMs !== null && `took ${duration(step.tookMs)}`,
    usage(step.usage),
  ].filter(Boolean);
  return h(
    "div",
    { class: "step" },
    h("p", { class: "quiet" }, facts.join(" · ")),
    cutNote(step.cut),
    tabs(entriesOf(step, { picture, openPart }), "Parts of the step"),
  );
}

function entriesOf(step, { picture, openPart }) {
  const entries = [];
  const add = (title, content) => entries.push([title, () => h("div", {}, ...[content()].flat())]);
  if (step.error !== null) add("Error", () => errorBlocks(step.error));
  if (step.kind === "http" || step.kind === "fetch") add("HTTP", () => exchange(step));
  if (step.kind === "script") add("Script", () => script(step));
  if (step.answer !== null) add("Answer", () => textBlock(step.answer));
  if (step.pictures.length) add("Pictures", () => step.pictures.map((one) => image(one, step, picture)));
  if (step.trace !== null) add("Tool calls", () => calls(step.trace));
  if (step.changes !== null) add("Changes", () => changes(step.changes));
  if (step.prompts.length) add("Prompt", () => step.prompts.map(prompt));
  if (step.data !== null) add("Data", () => textBlock(step.data, { kind: "data" }));
  if (step.parts.length) add("Parts", () => parts(step.parts, openPart));
  if (step.attempts.length + step.voids.length) {
    add("Attempts", () => [...step.attempts, ...step.voids].map((one) => textBlock(one, { kind: "data" })));
  }
  if (step.usage !== null) add("Usage", () => pairs(step.usage));
  if (step.effect !== null) add("Effect", () => textBlock(step.effect, { kind: "data" }));
  if (Object.keys(step.more ?? {}).length) add("More", () => textBlock(step.more, { kind: "data" }));
  add("Journal", () => journal(step));
  return entries;
}

function cutNote(cut) {
  if (!cut.length) return null;
  const words = cut.slice(0, 3).map(({ path, characters, items }) => {
    const size = characters === undefined ? `${items} items` : `${characters} characters`;
    return `${path} (${size})`;
  });
  const more = cut.length > 3 ? ` and ${cut.length - 3} more` : "";
  return h("p", { class: "quiet" }, `Shown in part: ${words.join(", ")}${more}.`);
}

function errorBlocks(error) {
  if (typeof error === "string") return [textBlock(error)];
  return [
    h("p", { class: "error" }, [error.kind, error.message].filter(Boolean).join(": ")),
    textBlock(error, { kind: "data" }),
  ];
}

function prompt({ title, text }) {
  return h("section", {}, h("h4", {}, title), textBlock(text));
}

function exchange(step) {
  const { effect, data } = step;
  const asked = typeof effect === "object" && effect !== null ? effect : {};
  const { headers, ...body } = asked;
  delete body.method;
  delete body.url;
  const parts = [
    h("h4", {}, "Request"),
    h("p", { class: "http-line" }, `${asked.method ?? "GET"} ${asked.url ?? ""}`),
  ];
  if (headers) parts.push(pairs(headers));
  if (Object.keys(body).length) parts.push(textBlock(body, { kind: "data" }));
  if (data !== null && typeof data === "object") {
    const { status, headers: answered, ...rest } = data;
    parts.push(h("h4", {}, "Response"), h("p", { class: "http-line" }, String(status ?? "")));
    if (answered) parts.push(pairs(answered));
    const text = rest.text ?? rest.body;
    parts.push(textBlock(typeof text === "string" ? text : rest, { kind: "data" }));
  }
  return parts;
}

function script(step) {
  const data = step.data ?? step.error ?? {};
  const parts = [];
  if (data.exitCode !== undefined) {
    const notes = [data.timedOut && "timed out", data.truncated && "output cut"].filter(Boolean);
    parts.push(h("p", {}, [`exit code ${data.exitCode}`, ...notes].join(", ")));
  }
  for (const [name, title] of [["stdout", "Standard output"], ["stderr", "Standard error"]]) {
    if (data[name]) parts.push(h("h4", {}, title), textBlock(data[name]));
  }
  const source = step.effect?.script ?? step.effect?.command;
  if (typeof source === "string") parts.push(h("h4", {}, "Script"), textBlock(source));
  return parts.length ? parts : [h("p", {}, "The script printed nothing.")];
}

function image({ hash, problem }, step, picture) {
  if (hash === null) return h("p", { class: "quiet" }, `no picture: ${problem}`);
  const shown = h("img", { class: "picture", alt: `Page after: ${step.label}` });
  const frame = h("div", { class: "picture-frame" }, shown);
  picture(hash).then(
    (address) => { shown.src = address; },
    (error) => frame.replaceChildren(h("p", { class: "quiet" }, `no picture: ${error.message}`)),
  );
  return frame;
}

function calls(trace) {
  if (trace.problem) return [h("p", { class: "quiet" }, trace.problem)];
  const items = trace.calls.map((call) => {
    const took = call.durationMs === undefined ? "" : ` · ${duration(call.durationMs)}`;
    const result = call.result;
    const more = result && result.characters > result.head.length
      ? h("p", { class: "quiet" }, `${result.characters} characters; the beginning was kept`)
      : null;
    return h(
      "details",
      { class: call.failed ? "call call-failed" : "call" },
      h("summary", {}, `${call.number}  ${call.tool}${call.failed ? " · failed" : ""}${took}`),
      textBlock(call.arguments, { kind: "data" }),
      result ? textBlock(result.head) : null,
      more,
    );
  });
  if (trace.leftOut) items.push(h("p", { class: "quiet" }, `and ${trace.leftOut} more calls, which were not kept`));
  return items;
}

function changes(found) {
  if (found.problem) return [h("p", { class: "quiet" }, found.problem)];
  if (!found.files.length) return [h("p", {}, "No file was changed.")];
  const rows = found.files.map(({ path, added, removed }) => {
    const numbers = added === null ? "binary" : `+${added} −${removed}`;
    return h("tr", {}, h("td", {}, path), h("td", { class: "number" }, numbers));
  });
  return [h("table", { class: "files" }, h("tbody", {}, ...rows)), patchBlock(found.patch)];
}

function parts(rows, openPart) {
  return rows.map((row) => {
    const button = h("button", { type: "button", class: "link" }, `${row.seq}  ${row.label}`);
    button.addEventListener("click", () => openPart(row.seq));
    return h("p", { class: `part part-${row.mark}` }, button, ` ${row.detail}`);
  });
}

function pairs(mapping) {
  const rows = Object.entries(mapping).map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, typeof value === "string" ? value : JSON.stringify(value))),
  );
  return h("table", { class: "pairs" }, h("tbody", {}, ...rows));
}

function journal(step) {
  const rows = step.lines.map(({ number, text, follows }) =>
    h(
      "details",
      { class: follows ? "line" : "line line-broken", open: step.lines.length < 4 },
      h("summary", {}, `line ${number} · ${follows ? "follows the chain" : "does not follow the line before it"}`),
      textBlock(text),
    ),
  );
  const blobs = step.blobs.map(({ field, hash, bytes: size }) =>
    h("p", { class: "quiet" }, `${field} is in the blob ${hash} (${bytes(size)})`),
  );
  return [...rows, ...blobs];
}
