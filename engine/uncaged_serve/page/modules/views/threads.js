// The list of threads: live, filtered by links, acted on together.

import { confirmed } from "../dialog.js";
import { actionButton, h, replace, say } from "../dom.js";
import { ago, duration, money, statusBadge, time } from "../format.js";
import { events, getJson, path, postJson, query } from "../http.js";
import { FILTERS, fits, linkTo } from "../list_filter.js";

const PAGE = 50;
const MOST_ROWS = 2000;
const TICK_MS = 1000;
const COUNT_MS = 2000;
const STATUSES = ["running", "waiting", "paused", "interrupted", "unknown", "completed", "unsuccessful", "failed", "killed", "limit", "corrupt"];
const HEADS = ["", "Status", "Flow", "Now", "Agents", "Cost", "Duration", "Started"];

export async function show(root, route) {
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, route.query.getAll(name)]).filter(([, all]) => all.length));
  const list = new ThreadList(root, wanted, route.query.get("before"));
  await list.begin();
  return () => list.end();
}

class ThreadList {
  constructor(root, wanted, before) {
    this.wanted = wanted;
    this.before = before;
    this.rows = new Map(); // by thread id: {thread, node, checkbox, parts}
    this.selected = new Set();
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Filters" });
    this.state = h("span", { class: "quiet", role: "status" });
    this.body = h("tbody", { onkeydown: (event) => this.key(event) });
    this.bulk = h("div", { class: "bulk acts", hidden: true, role: "group", "aria-label": "Actions for the selected threads" });
    this.more = h("div", { class: "more" });
    this.all = h("input", { type: "checkbox", class: "acts", "aria-label": "Select all shown threads", onchange: () => this.selectAll(this.all.checked) });
    const heads = HEADS.map((one, at) => h("th", { scope: "col" }, at ? one : this.all));
    root.append(
      h("div", { class: "row" }, h("h1", { class: "grow" }, "Threads"), this.state),
      this.search(), this.chips, this.bulk,
      h("table", { class: "list threads" }, h("thead", {}, h("tr", {}, heads)), this.body),
      this.more,
      h("p", { class: "quiet keys" }, "Keys in the list: ", h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " move, ", h("kbd", {}, "x"), " select, ", h("kbd", {}, "Enter"), " open"),
    );
    this.observer = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.nextPage(), { rootMargin: "600px" });
    this.observer.observe(this.more);
  }

  async begin() {
    await this.load();
    this.stop = events("/api/events", {
      onEvent: (kind, data) => this.take(kind, data),
      onState: (state, error) => {
        if (state !== "live") this.lost = true;
        replace(this.state, { live: "live", waiting: "connecting again …", ended: error?.message ?? "not live" }[state]);
      },
    });
    this.ticking = setInterval(() => this.tick(), TICK_MS);
    this.count();
  }

  end() {
    this.stop?.();
    clearInterval(this.ticking);
    clearTimeout(this.counting);
    this.observer.disconnect();
    this.isOver = true;
  }

  // Pages

  async load() {
    this.turn = (this.turn ?? 0) + 1;
    this.next = this.before;
    this.isLast = false;
    this.loading = false;
    this.rows.clear();
    this.body.replaceChildren();
    this.select();
    await this.nextPage();
  }

  async nextPage() {
    if (this.loading || this.isLast || this.isOver) return;
    if (this.rows.size >= MOST_ROWS) {
      replace(this.more, h("a", { href: linkTo({ ...this.wanted, before: [this.next] }) }, "Older threads"));
      return;
    }
    this.loading = true;
    const mine = this.turn;
    replace(this.more, "Loading …");
    try {
      const found = await getJson(`/api/threads${query({ ...this.wanted, before: this.next, limit: PAGE })}`);
      if (mine !== this.turn || this.isOver) return;
      this.loading = false;
      for (const thread of found.threads) if (!this.rows.has(thread.threadId)) this.body.append(this.add(thread).node);
      this.next = found.before;
      this.isLast = found.before === null;
      replace(this.more, this.isLast ? (this.rows.size ? "" : this.nothing()) : h("button", { type: "button", onclick: () => this.nextPage() }, "Show more"));
      if (!this.isLast && this.more.getBoundingClientRect().top < innerHeight + 600) await this.nextPage();
    } catch (error) {
      if (mine !== this.turn) return;
      this.loading = false;
      replace(this.more, h("p", { class: "error", role: "alert" }, error.message), h("button", { type: "button", onclick: () => this.nextPage() }, "Try again"));
    }
  }

  nothing() {
    return Object.keys(this.wanted).length
      ? ["No thread fits. ", h("a", { href: "#/threads" }, "Show all")]
      : ["No threads yet. ", h("a", { href: "#/flows" }, "Start one from a flow")];
  }

  // Rows

  add(thread) {
    const id = thread.threadId;
    const checkbox = h("input", { type: "checkbox", class: "acts", "aria-label": `Select thread ${id}`, onchange: () => this.toggle(id, checkbox.checked) });
    const link = h("a", { href: path`#/threads/${id}`, class: "open" });
    const cells = HEADS.map((head) => h("td", { class: `c-${head.toLowerCase() || "pick"}` }));
    cells[0].append(checkbox);
    cells[2].append(link, h("span", { class: "quiet mono id" }, id.slice(0, 10)));
    const row = { thread: null, checkbox, link, cells, node: h("tr", { "data-thread": id }, cells) };
    this.rows.set(id, row);
    this.fill(row, thread);
    return row;
  }

  fill(row, thread) {
    const before = row.thread;
    row.thread = thread;
    const [, status, , now, agents, cost, , started] = row.cells;
    if (before?.status !== thread.status || before?.success !== thread.success) replace(status, statusBadge(thread.status, thread.success));
    if (before?.flow !== thread.flow) replace(row.link, thread.flow || "(no name)", thread.imported ? " (imported)" : "");
    replace(now, h("div", {}, this.now(thread)));
    if (!before) {
      replace(agents, thread.agents.map((name) => h("a", { href: linkTo({ ...this.wanted, agent: [name] }), class: "tag" }, name)));
      replace(started, time(thread.startedMs));
    }
    replace(cost, money(thread.used.cost), thread.used.unpriced ? " +?" : "");
    this.time(row);
  }

  now(thread) {
    if (thread.status !== "running") return [thread.problem || thread.message || ""];
    const doing = thread.doing;
    if (!doing) return [h("span", { class: "quiet" }, `after step ${thread.steps}`)];
    return [
      h("strong", {}, doing.label), doing.agent ? ` by ${doing.agent}` : "", doing.queued ? ", queued" : "",
      doing.progress ? h("span", { class: "quiet" }, ` ${doing.progress}`) : "",
    ];
  }

  time(row) {
    const { startedMs, updatedMs, status } = row.thread;
    row.cells[6].textContent = duration(Math.max(0, (status === "running" ? Date.now() : updatedMs) - startedMs));
  }

  tick() {
    for (const row of this.rows.values()) {
      if (row.thread.status === "running") this.time(row);
      row.cells[7].firstChild.textContent = ago(row.thread.startedMs);
    }
  }

  // Live changes

  take(kind, data) {
    if (kind === "ready") {
      if (this.lost) this.load();
      this.lost = false;
    } else if (kind === "reload") this.load();
    else if (kind === "dropped") this.lost = true;
    else if (kind === "gone") this.remove(data.threadId);
    else if (kind === "thread") {
      const known = this.rows.get(data.threadId)?.thread;
      this.change(data);
      if (known && known.status === data.status && known.success === data.success) return;
    }
    this.countSoon();
  }

  change(thread) {
    const row = this.rows.get(thread.threadId);
    if (row && fits(thread, this.wanted)) this.fill(row, thread);
    else if (row) this.remove(thread.threadId);
    else if (!this.before && fits(thread, this.wanted)) this.insert(thread);
  }

  insert(thread) {
    const next = [...this.rows.values()].map((one) => one.thread).filter((one) => one.startedMs < thread.startedMs);
    const newest = next.reduce((best, one) => (!best || one.startedMs > best.startedMs ? one : best), null);
    if (!newest && !this.isLast) return; // it is on a page that is not shown yet
    this.body.insertBefore(this.add(thread).node, newest ? this.rows.get(newest.threadId).node : null);
    if (this.isLast) replace(this.more);
  }

  remove(id) {
    this.rows.get(id)?.node.remove();
    this.rows.delete(id);
    this.toggle(id, false);
  }

  // Selection and actions

  toggle(id, isSelected) {
    if (isSelected) this.selected.add(id);
    else this.selected.delete(id);
    this.select();
  }

  selectAll(isSelected) {
    this.selected = new Set(isSelected ? this.rows.keys() : []);
    this.select();
  }

  select() {
    for (const id of this.selected) if (!this.rows.has(id)) this.selected.delete(id);
    for (const [id, row] of this.rows) {
      row.checkbox.checked = this.selected.has(id);
      row.node.classList.toggle("selected", row.checkbox.checked);
    }
    const count = this.selected.size;
    this.all.checked = count > 0 && count === this.rows.size;
    this.all.indeterminate = count > 0 && count < this.rows.size;
    const wasHidden = this.bulk.hidden;
    this.bulk.hidden = !count;
    if (!count) return;
    if (wasHidden || !this.chosen) {
      this.chosen = h("span", { "aria-live": "polite" });
      replace(this.bulk, this.chosen,
        actionButton("Pause", () => this.act("pause")), actionButton("Resume", () => this.act("resume")),
        actionButton("Kill", () => this.act("kill"), { class: "danger" }),
        h("button", { type: "button", onclick: () => this.selectAll(false) }, "Clear"));
    }
    this.chosen.textContent = count === 1 ? "1 thread selected" : `${count} threads selected`;
  }

  async act(action) {
    const threads = [...this.selected];
    const words = threads.length === 1 ? "1 thread" : `${threads.length} threads`;
    if (action === "kill" && !(await confirmed(`Kill ${words}?`, ["What they do now is cancelled. A killed thread can be resumed."], "Kill"))) return;
    const results = [];
    for (let at = 0; at < threads.length; at += 200) {
      results.push(...(await postJson("/api/threads/actions", { action, threads: threads.slice(at, at + 200) })).results);
    }
    const failed = results.filter((one) => !one.done);
    this.selected = new Set(failed.map((one) => one.threadId));
    this.select();
    if (failed.length) say(`${failed.length} of ${words} refused: ${failed[0].error.message}`, "error");
    else say(`${{ pause: "Paused", resume: "Resumed", kill: "Killed" }[action]} ${words}`);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...this.body.children];
    const here = rows.indexOf(event.target.closest("tr"));
    const to = { j: here + 1, ArrowDown: here + 1, k: here - 1, ArrowUp: here - 1 }[event.key];
    if (to !== undefined) rows[Math.max(0, Math.min(rows.length - 1, to))]?.querySelector("a.open").focus();
    else if (event.key === "x" && here >= 0) {
      const id = rows[here].dataset.thread;
      if (!document.body.classList.contains("reads-only")) this.toggle(id, !this.selected.has(id));
    } else return;
    event.preventDefault();
  }

  // Filters

  search() {
    const field = h("input", { type: "search", "aria-label": "Search flow, message or id", placeholder: "Flow, message or id", value: this.wanted.text?.[0] ?? "" });
    const submit = (event) => {
      event.preventDefault();
      location.hash = linkTo({ ...this.wanted, text: field.value.trim() ? [field.value.trim()] : undefined });
    };
    return h("form", { role: "search", class: "search", onsubmit: submit }, field, h("button", {}, "Search"));
  }

  countSoon() {
    if (!this.counting) this.counting = setTimeout(() => this.count(), COUNT_MS);
  }

  async count() {
    const numbers = await getJson("/api/threads/counts").catch(() => ({ statuses: {} }));
    this.counting = undefined;
    if (this.isOver) return;
    const without = (name) => ({ ...this.wanted, [name]: undefined });
    const chip = (text, name, value, count) => {
      const isOn = value === undefined ? !this.wanted[name] : this.wanted[name]?.includes(value);
      const filters = isOn && value !== undefined ? without(name) : { ...this.wanted, [name]: value === undefined ? undefined : [value] };
      return h("a", { class: "chip", href: linkTo(filters), "aria-current": isOn ? "true" : null }, text, count === undefined ? null : h("span", { class: "count" }, String(count)));
    };
    const total = Object.values(numbers.statuses).reduce((sum, one) => sum + one, 0) + (numbers.unread ?? 0);
    const groups = [
      [chip("all", "status", undefined, total), ...STATUSES.filter((one) => numbers.statuses[one] || this.wanted.status?.includes(one)).map((one) => chip(one, "status", one, numbers.statuses[one] ?? 0))],
      [chip("> 1 min", "longerThan", "60"), chip("> 10 min", "longerThan", "600"), chip("> 1 h", "longerThan", "3600"),
        chip("≥ $0.10", "minCost", "0.1"), chip("≥ $1", "minCost", "1"), chip("≥ $5", "minCost", "5")],
      ["flow", "agent", "text"].filter((name) => this.wanted[name]).map((name) => h("a", { class: "chip", href: linkTo(without(name)), "aria-current": "true", title: "Remove this filter" }, `${name}: ${this.wanted[name][0]} ×`)),
    ];
    const flow = this.wanted.flow ? null : this.flows();
    const text = groups.flat().map((one) => one.textContent).join() + (flow?.textContent ?? "");
    if (text === this.counted) return; // an opened filter stays open, and keeps the focus
    this.counted = text;
    if (flow) flow.open = this.chips.querySelector("details")?.open ?? false;
    replace(this.chips, groups.filter((one) => one.length).map((one) => h("span", { class: "group" }, one)), flow);
  }

  flows() {
    const names = [...new Set([...this.rows.values()].map((one) => one.thread.flow).filter(Boolean))].sort().slice(0, 12);
    if (names.length < 2) return null;
    return h("details", {}, h("summary", {}, "Flows"), h("span", { class: "group" }, names.map((name) => h("a", { class: "chip", href: linkTo({ ...this.wanted, flow: [name] }) }, name))));
  }
}
