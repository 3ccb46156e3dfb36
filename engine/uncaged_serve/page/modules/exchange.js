// One request of a conversation, from the records about it.

import { answerForm } from "./actions.js";
import { actionButton, h, say } from "./dom.js";
import { duration, shownStatus } from "./format.js";
import { textBlock } from "./text_block.js";

const BY = { verb: "a verb", grammar: "a pattern", construction: "a learned sentence", model: "a model", call: "a call" };

/** State of a request after its records; `add(record)` takes the next one. */
export class Exchange {
  constructor(record) {
    this.request = record.request;
    this.id = record.request.id;
    this.started = record.timestamp;
    this.question = null;
    this.reading = null;
    this.threads = [];
    this.result = null;
    this.cancelled = false;
  }

  add(record) {
    if (record.reading) this.reading = record.reading;
    if (record.thread) this.threads.push(record.thread);
    if (record.question) this.question = { ...record.question, seq: record.seq };
    if (record.answer) this.question = null;
    if (record.cancel) this.cancelled = true;
    if (record.result) {
      this.result = record.result;
      this.question = null;
      this.took = record.timestamp - this.started;
    }
  }
}

export function spelledCall(call) {
  const params = Object.entries(call.params ?? {}).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return [call.flow, ...params].join(" ");
}

/** Return the node of an exchange. ask(method, params) calls the server for this conversation. */
export function exchangeNode(exchange, ask) {
  const { request, reading, result } = exchange;
  return h("article", { class: "exchange", "data-request": exchange.id },
    h("p", { class: "said" }, request.text || spelledCall(request.call ?? {})),
    reading ? understood(reading) : null,
    exchange.threads.map((one) => h("p", { class: "quiet" }, "thread ", h("a", { href: `#/threads/${one.threadId}` }, one.threadId), ` of ${one.flow}`)),
    exchange.question ? question(exchange, ask) : null,
    result ? ended(exchange, ask) : exchange.question ? null : running(exchange, ask));
}

function understood(reading) {
  const calls = reading.calls ?? [];
  return h("p", { class: "quiet" }, `read by ${BY[reading.by] ?? reading.by}${reading.rule ? ` “${reading.rule}”` : ""}: `,
    calls.map((call, at) => [at ? ", then " : "", h("code", {}, spelledCall(call))]));
}

function running(exchange, ask) {
  return h("p", { class: "row" }, h("span", { class: "badge", "data-status": "running" }, exchange.cancelled ? "cancelling" : "running"),
    h("span", { class: "acts" }, actionButton("Cancel", () => ask("cancel", { request: exchange.id }))));
}

function ended(exchange, ask) {
  const { result } = exchange;
  const shown = shownStatus(result.status, result.success);
  const good = shown === "completed";
  const text = result.display || result.message || (good ? "done" : shown);
  return h("div", { class: "result" },
    h("p", { class: good ? "answer" : "answer error" }, text),
    result.data && !result.display ? h("details", {}, h("summary", {}, "data"), textBlock(JSON.stringify(result.data, null, 2))) : null,
    (result.problems ?? []).map((one) => h("p", { class: "error" }, typeof one === "string" ? one : JSON.stringify(one))),
    h("div", { class: "row acts" }, (result.choices ?? []).map((one) =>
      actionButton(one.label, () => ask("choose", { request: exchange.id, choice: one.id })))),
    h("p", { class: "quiet" }, shown, exchange.took === undefined ? "" : ` after ${duration(exchange.took)}`));
}

function question(exchange, ask) {
  const asked = exchange.question;
  const at = { request: exchange.id, question: asked.seq };
  if (asked.kind === "thread" && !asked.choices) {
    return answerForm(asked, { send: ({ value }) => ask("answer", { ...at, value: { value } }), say });
  }
  const body = [h("p", {}, h("strong", {}, asked.question))];
  if (asked.problem) body.push(h("p", { class: "error" }, asked.problem));
  if (asked.kind === "confirm") {
    body.push(asked.calls.map((call) => h("p", {}, h("code", {}, spelledCall(call)))),
      buttons(actionButton("No", () => ask("answer", { ...at, value: { run: false } })),
        actionButton("Run", () => ask("answer", { ...at, value: { run: true } }), { class: "primary" })));
  } else if (asked.kind === "thread") {
    body.push(buttons(...asked.choices.map((one) => actionButton(one.label, () => ask("answer", { ...at, value: { choice: one.id } })))));
  } else {
    const remember = h("input", { type: "checkbox" });
    body.push(asked.choices.map((one) => h("p", {}, actionButton(one.label, () =>
      ask("choose", { ...at, choice: one.id, remember: remember.checked })),
      " ", h("span", { class: "quiet" }, (one.calls ?? []).map(spelledCall).join(", then ")))));
    if (asked.kind === "collision") body.push(h("label", {}, remember, " Remember this choice"));
  }
  return h("section", { class: "card question acts", "aria-label": "Question" }, body);
}

function buttons(...inside) {
  return h("div", { class: "buttons" }, inside);
}
