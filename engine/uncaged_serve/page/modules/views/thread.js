// The page of one thread: its head, its actions, its timeline, which follows it live, and a step in
// full beside it.

import { actionBar, answerForm, forkDialog } from "../actions.js";
import { h, refocus, say } from "../dom.js";
import { events, getJson, objectUrl, path, postJson, query } from "../http.js";
import { progressText } from "../progress.js";
import { stepPanel } from "../step.js";
import { threadEnding, threadFacts, threadInputs, threadRelatives, threadTitle } from "../thread_head.js";
import { TimelineList } from "../timeline.js";

const PAGE_ROWS = 1000;

/** Show `#/threads/ID` or `#/threads/ID/steps/PLACE`. */
export async function show(root, route) {
  const page = new ThreadPage(root, route.parts[1]);
  try {
    await page.begin(route.parts[3] ?? null);
  } catch (error) {
    page.dispose();
    throw error;
  }
  const dispose = () => page.dispose();
  dispose.update = (next) => {
    const isSame = next.parts[0] === "threads" && page.isNamed(next.parts[1]);
    if (isSame) page.showStep(next.parts[3] ?? null);
    return isSame;
  };
  return dispose;
}

class ThreadPage {
  constructor(root, name) {
    this.name = name;
    this.api = path`/api/threads/${name}`;
    this.thread = null;
    this.end = 0;
    this.place = null;
    this.addresses = new Map();
    this.stop = () => {};
    this.isGone = false;
    this.loads = 0;
    this.loaded = 0;
    this.head = h("div", { class: "thread-head" });
    this.question = h("div", { class: "acts" });
    this.notice = h("p", { class: "error", role: "alert" });
    this.drawer = h("aside", { class: "drawer", "aria-label": "Step", hidden: true });
    this.timeline = new TimelineList({ onOpen: (row) => this.go(row.seq) });
    this.main = h("div", { class: "thread-main" }, this.timeline.element, this.drawer);
    root.append(h("div", { class: "thread-page" }, this.head, this.notice, this.question, this.main));
    this.onKey = (event) => {
      const isFree = this.place !== null && document.querySelector("dialog[open]") === null;
      if (event.key === "Escape" && isFree) this.go(null);
    };
    document.addEventListener("keydown", this.onKey);
  }

  isNamed(text) {
    return text === this.name || text === this.thread?.threadId;
  }

  async begin(place) {
    await this.load();
    if (this.thread.readable) await this.loadRows();
    if (this.isGone || !this.thread.readable) return;
    if (this.thread.status === "running") this.timeline.follows = true;
    this.stop = events(`${this.api}/events${query({ after: this.end })}`, {
      onEvent: (kind, data) => this.heard(kind, data),
      onState: (state, error) => {
        if (state === "ended" && error) this.notice.textContent = error.message;
      },
    });
    if (place !== null) this.showStep(place);
  }

  dispose() {
    this.isGone = true;
    this.stop();
    this.timeline.dispose();
    document.removeEventListener("keydown", this.onKey);
    for (const address of this.addresses.values()) address.then(URL.revokeObjectURL, () => {});
  }

  /** isQuiet: the message that is shown stays, also if the status has changed. */
  async load(isQuiet = false) {
    const turn = ++this.loads;
    const thread = await getJson(this.api);
    if (this.isGone || turn < this.loaded) return; // a later state is shown already
    this.loaded = turn;
    const asked = this.thread?.question?.at;
    if (!isQuiet && this.thread !== null && this.thread.status !== thread.status) say(`the thread is ${thread.status}`);
    this.thread = thread;
    this.api = path`/api/threads/${thread.threadId}`;
    document.title = `${thread.flow || "thread"} · ${thread.status}`;
    this.drawHead();
    this.timeline.setOpen(thread.status === "running" ? thread.open : null);
    if (thread.question?.at !== asked || thread.question === null) this.drawQuestion();
  }

  async loadRows() {
    for (;;) {
      const after = this.timeline.rows.length;
      const found = await getJson(`${this.api}/rows${query({ after, limit: PAGE_ROWS })}`);
      if (this.isGone) return;
      this.addRows(found.rows);
      if (this.timeline.rows.length >= found.total || !found.rows.length) {
        this.end = found.place;
        return;
      }
    }
  }

  addRows(rows) {
    const known = this.timeline.rows.length;
    this.timeline.add(rows.filter((row) => row.number > known));
  }

  heard(kind, data) {
    if (kind === "rows") {
      this.addRows(data.rows);
      this.timeline.setOpen(data.open);
      if (this.thread.status !== "running") this.refresh();
    } else if (kind === "progress") {
      this.timeline.setProgress(progressText(data));
    } else if (kind === "status") {
      this.timeline.setOpen(null);
      this.refresh();
    } else if (kind === "gone" || kind === "error") {
      this.notice.textContent = data.message;
      this.timeline.setOpen(null);
    }
  }

  refresh(isQuiet = false) {
    this.load(isQuiet).catch(
      (error) => {
        this.notice.textContent = error.message;
      },
    );
  }

  drawHead() {
    const { thread } = this;
    const link = ({ threadId, flow, status }) =>
      h("a", { href: `#/threads/${threadId}` }, [flow || "thread", status, `…${threadId.slice(-6)}`].filter(Boolean).join(" "));
    const actions = actionBar(thread, {
      ...this.acting(),
      compare: (other) => {
        location.hash = `#/compare${query({ a: thread.threadId, b: other })}`;
      },
    });
    const focused = this.head.contains(document.activeElement) ? document.activeElement : null;
    this.head.replaceChildren();
    this.head.append(
      ...[
        threadTitle(thread),
        threadFacts(thread),
        actions,
        threadEnding(thread),
        threadRelatives(thread, link),
        threadInputs(thread),
      ].filter(Boolean),
    );
    if (focused !== null) refocus(focused, this.head);
  }

  acting() {
    return {
      post: (action, body) => postJson(`${this.api}/${action}`, body),
      done: (action, answer) => this.acted(action, answer),
      say,
    };
  }

  forkButton(place) {
    const at = Number(place.split(".")[0]);
    const fork = () => forkDialog(this.thread, at, this.acting());
    return h("button", { type: "button", class: "acts", onclick: fork }, "Fork from here …");
  }

  drawQuestion() {
    const { question } = this.thread;
    this.question.replaceChildren();
    if (question === null) return;
    this.question.append(answerForm(question, { send: (body) => this.answer(body), say }));
  }

  async answer(body) {
    let isLate = false;
    try {
      await postJson(`${this.api}/answer`, body);
      say("answered");
    } catch (error) {
      if (error.status !== 409) throw error;
      isLate = true;
      const counts = error.document.answer;
      const words = counts ? `; the answer that counts: ${JSON.stringify(counts.value)}` : "";
      say(`${error.message}${words}`, "error");
    }
    this.refresh(isLate);
  }

  acted(action, answer) {
    if (action === "fork") {
      location.hash = `#/threads/${answer.threadId}`;
      return;
    }
    if (action === "verify") {
      const word = answer.ok ? "proved" : "not proved";
      const more = answer.message ? `: ${answer.message}` : "";
      say(`${word}, ${answer.steps} steps, sandbox ${answer.sandbox}${more}`, answer.ok ? "info" : "error");
      return;
    }
    say({ pause: "it pauses before its next effect", resume: "resumed", kill: "killed" }[action]);
    this.refresh();
  }

  go(place) {
    location.hash = `#/threads/${this.thread.threadId}${place === null ? "" : `/steps/${place}`}`;
  }

  async showStep(place) {
    this.place = place;
    this.drawer.hidden = place === null;
    this.main.classList.toggle("with-drawer", place !== null);
    if (place === null) {
      this.drawer.replaceChildren();
      this.timeline.element.focus({ preventScroll: true });
      return;
    }
    this.timeline.select(place);
    const found = await getJson(`${this.api}/steps/${encodeURIComponent(place)}`).catch((error) => error);
    if (this.place !== place || this.isGone) return;
    stepPanel(this.drawer, found, {
      place,
      picture: (hash) => this.picture(hash),
      openPart: (part) => this.go(part),
      close: () => this.go(null),
      actions: [this.forkButton(place)],
    });
  }

  picture(hash) {
    if (!this.addresses.has(hash)) {
      this.addresses.set(hash, objectUrl(`${this.api}/blobs/${encodeURIComponent(hash)}`));
    }
    return this.addresses.get(hash);
  }
}
