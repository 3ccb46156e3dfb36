// A conversation: sentences, how they are read, questions, results.

import { completionList } from "../completion_list.js";
import { ConversationClient } from "../conversation.js";
import { actionButton, h, replace, say } from "../dom.js";
import { Exchange, exchangeNode, spelledCall } from "../exchange.js";

export function show(root, route) {
  if (document.body.classList.contains("reads-only")) {
    root.append(h("h1", {}, "Ask"), h("p", {}, "This server only reads: it was started with --read-only."));
    return () => {};
  }
  if (document.body.classList.contains("no-dispatcher")) {
    root.append(h("h1", {}, "Ask"), h("p", {}, "This server has no route of conversations."));
    return () => {};
  }
  const log = h("div", { class: "conversation", role: "log", "aria-live": "polite", "aria-label": "Conversation" });
  const field = h("input", { type: "text", id: "sentence", autocomplete: "off", "aria-label": "Sentence", placeholder: "list the pdf files in downloads", maxlength: 10000 });
  const explained = h("div", { class: "explained", "aria-live": "polite" });
  const chosen = h("select", { "aria-label": "Conversation" });
  const problem = h("p", { class: "error", role: "alert" });
  const exchanges = new Map();
  const nodes = new Map();
  let conversation = route.query.get("conversation");
  let after = 0;
  let early = []; // records that come before those of the log are shown; null after that

  const client = new ConversationClient({
    onNotice(method, params) {
      if (params.conversation !== conversation) return;
      if (method === "record") early ? early.push(params.record) : take(params.record);
      if (method === "lost") problem.textContent = params.message;
    },
    onState(state) {
      problem.textContent = state === "live" ? "" : "The connection to the server is lost; it is made again …";
      if (state === "live") guarded(start);
      else early = [];
    },
  });

  async function guarded(work) {
    try {
      problem.textContent = "";
      await work();
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  async function start() {
    await list();
    await follow();
  }

  async function list() {
    let { conversations } = await client.call("conversations");
    if (!conversations.length) {
      await client.call("new");
      ({ conversations } = await client.call("conversations"));
    }
    conversation ??= (conversations.find((one) => one.current) ?? conversations[0]).conversation;
    replace(chosen, conversations.map((one) => h("option", { value: one.conversation }, `${one.name}${one.open ? ` (${one.open} open)` : ""}`)));
    chosen.value = conversation;
  }

  async function follow() {
    const mine = conversation;
    const meanwhile = (early = []);
    for (;;) {
      const page = await client.call("log", { conversation: mine, after, follow: true });
      if (meanwhile !== early) return; // another conversation was chosen, or the connection made again
      page.records.forEach(take);
      if (!page.more) break;
    }
    early = null;
    meanwhile.forEach(take);
  }

  function take(record) {
    if (record.seq <= after) return;
    after = record.seq;
    const id = record.request?.id ?? record.of;
    if (record.request) exchanges.set(id, new Exchange(record));
    const exchange = exchanges.get(id);
    if (!exchange) return;
    if (!record.request) exchange.add(record);
    draw(exchange);
  }

  function draw(exchange) {
    const node = exchangeNode(exchange, ask);
    const old = nodes.get(exchange.id);
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    if (old) old.replaceWith(node);
    else log.append(node);
    nodes.set(exchange.id, node);
    if (atEnd || !old) node.scrollIntoView({ block: "nearest" });
  }

  async function ask(method, params) {
    await client.call(method, { conversation, ...params });
  }

  async function send() {
    const text = field.value.trim();
    if (!text) return;
    completions.close();
    field.value = "";
    const reply = await client.call("submit", { conversation, text }).catch((error) => {
      field.value ||= text;
      throw error;
    });
    if (!reply.ok) {
      field.value ||= text;
      const words = { queue_full: `the queue is full (${reply.maximum} requests)`, server_stopping: "the server is stopping", duplicate_id: "it was sent already" };
      throw new Error(words[reply.error] ?? reply.error);
    }
    replace(explained);
  }

  async function explain() {
    const text = field.value.trim();
    if (!text) return say("write a sentence first");
    const found = await client.call("explain", { text });
    replace(explained, h("section", { class: "card" },
      h("h2", {}, { calls: "It would run this", question: "It would ask which one is meant", miss: "No pattern reads it; a model would be asked" }[found.result]),
      found.readings.length ? h("ol", {}, found.readings.map((one) => h("li", {},
        one.calls.map((call) => h("code", {}, spelledCall(call))), " ",
        h("span", { class: "quiet" }, [`by “${one.rule}”`, one.pack && `pack ${one.pack}`, one.refused, one.disabled && "disabled", one.away && "not here"].filter(Boolean).join(", "))))) : null));
  }

  async function change() {
    const former = conversation;
    conversation = chosen.value;
    if (former !== conversation) client.call("unfollow", { conversation: former }).catch(() => {}); // it may be deleted
    after = 0;
    exchanges.clear();
    nodes.clear();
    replace(log);
    await follow();
  }

  chosen.addEventListener("change", () => guarded(change));
  const completions = completionList(field, (text) => client.call("complete", { text }));
  root.append(
    h("div", { class: "row" }, h("h1", { class: "grow" }, "Ask"), chosen,
      h("span", { class: "acts" }, actionButton("New conversation", async () => {
        const made = (await client.call("new")).conversation;
        await list();
        chosen.value = made;
        await change();
      }))),
    log, problem, explained,
    h("form", { class: "sentence acts", onsubmit: (event) => { event.preventDefault(); guarded(send); } },
      h("div", { class: "grow completed" }, field, completions.element),
      actionButton("Explain", explain), h("button", { class: "primary" }, "Send")));
  field.focus();
  return () => {
    completions.close();
    client.close();
  };
}
