// What a person can do with a thread: pause, resume, kill, fork, answer and verify it.

import { dialog } from "./dialog.js";
import { h, whileDisabled } from "./dom.js";
import { schemaField } from "./schema_form.js";
import { textBlock } from "./text_block.js";

const LIMITS = {
  maxRounds: ["Rounds", "integer"],
  maxSteps: ["Steps", "integer"],
  maxCost: ["Cost in US dollars", "number"],
  maxTokens: ["Tokens", "integer"],
  maxSeconds: ["Seconds", "number"],
};

/**
 * Return the buttons for a thread.
 *
 * post(action, body): a promise of the answer. done(action, answer): called after one that worked.
 * say(text, kind): shows a message. compare(other): shows a comparison.
 */
export function actionBar(thread, { post, done, say, compare }) {
  const bar = h("div", { class: "actions acts", role: "group", "aria-label": "Actions" });
  const add = (label, act, kind = null) => {
    const button = h("button", { type: "button", class: kind, onclick: () => act(button) }, label);
    bar.append(button);
  };
  const perform = performing({ post, done });
  const run = (action) => (button) => perform(button, action, {}).catch((error) => say(error.message, "error"));
  const ask = (form, word, action) => () => dialog(form, word, (button, body) => perform(button, action, body));
  const can = (event) => thread.can.includes(event);
  if (can("pause")) add("Pause", run("pause"));
  if (can("resume")) add("Resume …", ask(resumeForm(thread), "Resume", "resume"), "primary");
  if (can("kill")) add("Kill …", ask(killForm(), "Kill", "kill"), "danger");
  if (can("fork")) add("Fork …", () => forkDialog(thread, null, { post, done }));
  add("Verify", run("verify"));
  add("Compare …", () => dialog(compareForm(thread), "Compare", (_, { other }) => {
    compare(other);
    return true;
  }));
  return bar;
}

/** Ask after which step a fork begins, and start it. */
export function forkDialog(thread, at, { post, done }) {
  const perform = performing({ post, done });
  dialog(forkForm(thread, at), "Fork", (button, body) => perform(button, "fork", body));
}

function performing({ post, done }) {
  return (button, action, body) => whileDisabled(button, async () => {
    try {
      done(action, await post(action, body));
      return true;
    } catch (error) {
      error.message = [error.message, ...(error.document?.accept ?? [])].join("\n");
      throw error;
    }
  });
}

/**
 * Return the form that answers a thread's question.
 *
 * send(body): a promise; it is rejected with what the person must correct.
 */
export function answerForm(question, { send, say }) {
  const schema = question.fields ?? question.schema ?? { type: "string" };
  const field = schemaField(schema, { title: "Answer" });
  const button = h("button", { type: "submit", class: "primary" }, "Answer");
  const form = h(
    "form",
    { class: "question", "aria-label": "Question" },
    h("h2", {}, "This thread asks"),
    h("p", { class: "question-text" }, question.question ?? "What is the answer?"),
    question.problem ? h("p", { class: "error" }, String(question.problem)) : null,
    question.worktree ? h("p", { class: "quiet" }, `Files: ${question.worktree}`) : null,
    question.prompt ? h("details", {}, h("summary", {}, "Prompt"), textBlock(question.prompt)) : null,
    field.element,
    h("div", { class: "buttons" }, button),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await send({ value: field.read(), question: question.at });
    } catch (error) {
      say(error.message, "error");
    } finally {
      button.disabled = false;
    }
  });
  return form;
}

function resumeForm(thread) {
  const properties = Object.fromEntries(
    Object.entries(LIMITS).map(([name, [title, type]]) => {
      const now = thread.limits[name];
      return [name, { type, minimum: 0, description: `${title}: now ${now ?? "no limit"}` }];
    }),
  );
  properties.note = { type: "string", description: "A note for the next agent" };
  const required = [];
  const notes = [];
  if (thread.undecided.length) {
    notes.push(`This may have been performed, and its outcome is not known: ${thread.undecided.join(", ")}`);
    properties.decision = { enum: ["redo", "skip"], description: "redo performs it again; skip goes on without it" };
    required.push("decision");
  }
  if (thread.imported) {
    properties.accept = { type: "boolean", description: "Accept what this imported thread would use here" };
  }
  return { title: "Resume this thread", notes, field: grouped({ type: "object", properties, required }) };
}

function killForm() {
  return {
    title: "Kill this thread?",
    notes: ["Its effect in flight is cancelled, and its processes are ended. It can be resumed."],
  };
}

function forkForm(thread, at) {
  const properties = {
    at: { type: "integer", minimum: 0, maximum: thread.steps, description: `How many of its ${thread.steps} steps the fork keeps` },
    on: { type: "string", description: "Another version: a hash, a flow's name, or head" },
  };
  if (thread.imported) {
    properties.accept = { type: "boolean", description: "Accept what this imported thread would use here" };
  }
  return {
    title: "Fork this thread",
    notes: ["A new thread begins with the first steps of this one, which is not changed."],
    field: grouped({ type: "object", properties, required: ["at"] }, { at: at ?? Math.max(0, thread.steps - 1) }),
  };
}

function compareForm(thread) {
  const related = [...thread.forks, ...(thread.source ? [thread.source] : [])].map((one) => one.threadId);
  const description = "The id of the other thread, the beginning of one, or latest";
  return {
    title: "Compare with another thread",
    field: grouped({ type: "object", properties: { other: { type: "string", description } }, required: ["other"] }, { other: related[0] }),
  };
}

function grouped(schema, initial) {
  return schemaField(schema, { title: "Options", initial });
}
