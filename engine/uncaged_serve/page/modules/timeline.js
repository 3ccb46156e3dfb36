// Timeline of a thread as a virtual list: of any number of rows, only those in view (and a few
// around them) are elements of the document.

import { h } from "./dom.js";
import { clock, duration } from "./format.js";

const AROUND = 10;
const MARKS = {
  done: ["✓", "done"],
  failed: ["✕", "failed"],
  void: ["○", "not performed"],
  attempt: ["↻", "attempt"],
  control: ["•", "event"],
  open: ["▸", "in progress"],
};

export class TimelineList {
  /** onOpen(row): called for the row that a person opens. */
  constructor({ onOpen }) {
    this.rows = [];
    this.open = null;
    this.progress = "";
    this.selected = 0;
    this.follows = false;
    this._onOpen = onOpen;
    this._shown = new Map();
    this._height = 32;
    this._isPlanned = false;
    this._space = h("div", { class: "timeline-space", role: "presentation" });
    this.element = h(
      "div",
      { class: "timeline", role: "listbox", tabindex: "0", "aria-label": "Timeline" },
      this._space,
    );
    this.element.addEventListener("scroll", () => this._scrolled(), { passive: true });
    this.element.addEventListener("keydown", (event) => this._pressed(event));
    this.element.addEventListener("click", (event) => this._clicked(event));
    this._observer = new ResizeObserver(() => this._measure());
    this._observer.observe(this.element);
    this._clock = setInterval(() => this._tick(), 1000);
  }

  /** Append rows in the order of the journal. */
  add(rows) {
    if (rows.length) this._forget(this.rows.length); // the open effect stood there
    for (const row of rows) this.rows.push(row);
    this.plan();
  }

  /** Show the effect that is being performed; null for none. */
  setOpen(step) {
    if (step === null || step.seq !== this.open?.seq) this.progress = "";
    this.open = step;
    this._forget(this.rows.length);
    this.plan();
  }

  /** Show what the open effect reports. */
  setProgress(text) {
    this.progress = text;
    this._forget(this.rows.length);
    this.plan();
  }

  /** Select a row by its place ("3" or "3.1"); return whether it is there. */
  select(place) {
    let at = this.rows.length - 1;
    while (at >= 0 && !(this.rows[at].seq === place && this.rows[at].mark !== "attempt")) at -= 1;
    if (at < 0 && this.open?.seq === place) at = this.rows.length;
    if (at >= 0) this._move(at);
    return at >= 0;
  }

  /** Draw before the next frame. */
  plan() {
    if (this._isPlanned) return;
    this._isPlanned = true;
    requestAnimationFrame(() => {
      this._isPlanned = false;
      this._draw();
    });
  }

  dispose() {
    this._observer.disconnect();
    clearInterval(this._clock);
  }

  get count() {
    return this.rows.length + (this.open === null ? 0 : 1);
  }

  _measure() {
    const height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row-height"));
    if (height > 0 && height !== this._height) {
      this._height = height;
      this._forgetAll();
    }
    this.plan();
  }

  _scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    this.follows = scrollTop + clientHeight >= scrollHeight - this._height;
    this.plan();
  }

  _draw() {
    const height = `${this.count * this._height}px`;
    if (this._space.style.height !== height) {
      this._space.style.height = height;
      if (this.follows) this.element.scrollTop = this.count * this._height;
    }
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / this._height) - AROUND);
    const view = Math.ceil(this.element.clientHeight / this._height);
    const last = Math.min(this.count, first + view + 2 * AROUND);
    for (const [at, element] of this._shown) {
      if (at < first || at >= last) {
        element.remove();
        this._shown.delete(at);
      }
    }
    const fresh = document.createDocumentFragment();
    for (let at = first; at < last; at += 1) {
      if (this._shown.has(at)) continue;
      const element = this._row(at);
      this._shown.set(at, element);
      fresh.append(element);
    }
    this._space.append(fresh);
    for (const [at, element] of this._shown) {
      element.setAttribute("aria-selected", String(at === this.selected));
      element.setAttribute("aria-setsize", String(this.count));
    }
    if (this._shown.has(this.selected)) {
      this.element.setAttribute("aria-activedescendant", `row-${this.selected}`);
    }
  }

  _row(at) {
    const row = this.rows[at] ?? this._openRow();
    const [sign, meaning] = MARKS[row.mark] ?? MARKS.control;
    const took = duration(row.tookMs);
    const by = row.by ? h("span", { class: "step-by" }, row.by) : null;
    const element = h(
      "div",
      {
        class: `step-row step-${row.mark}${row.seq.includes(".") ? " step-part" : ""}`,
        role: "option",
        id: `row-${at}`,
        "data-at": String(at),
        "aria-posinset": String(at + 1),
        title: row.timestamp ? clock(row.timestamp) : "",
      },
      h("span", { class: "step-seq" }, row.seq),
      h("span", { class: "step-mark", role: "img", "aria-label": meaning }, sign),
      h("span", { class: "step-label" }, row.label, by),
      h("span", { class: "step-detail" }, row.detail),
      h("span", { class: "step-took" }, took),
    );
    element.style.transform = `translateY(${at * this._height}px)`;
    return element;
  }

  _openRow() {
    const { seq, kind, label, startedMs, attempt } = this.open;
    const again = attempt > 1 ? `attempt ${attempt}; ` : "";
    const tookMs = startedMs ? Date.now() - startedMs : null;
    const detail = `${again}${this.progress || "in progress"}`;
    return { seq, kind, label, mark: "open", by: "", detail, tookMs, timestamp: startedMs };
  }

  _tick() {
    if (this.open === null || !this._shown.has(this.rows.length)) return;
    this._forget(this.rows.length);
    this.plan();
  }

  _forget(at) {
    this._shown.get(at)?.remove();
    this._shown.delete(at);
  }

  _forgetAll() {
    for (const at of [...this._shown.keys()]) this._forget(at);
  }

  _move(at) {
    this.selected = Math.max(0, Math.min(this.count - 1, at));
    const top = this.selected * this._height;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this._height > scrollTop + clientHeight) {
      this.element.scrollTop = top + this._height - clientHeight;
    }
    this.plan();
  }

  _clicked(event) {
    const row = event.target.closest("[data-at]");
    if (row === null) return;
    this._move(Number(row.dataset.at));
    this._openSelected();
  }

  _pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this._height) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.count,
      End: this.count,
    };
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) this._move(this.selected + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this._openSelected();
    else return;
    event.preventDefault();
  }

  _openSelected() {
    const row = this.rows[this.selected] ?? this.open;
    if (row?.seq) this._onOpen(row);
  }
}
