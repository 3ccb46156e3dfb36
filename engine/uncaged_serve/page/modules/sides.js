// Table of two threads' steps by number.

import { h } from "./dom.js";
import { statusBadge } from "./format.js";

const FIRST_PAIRS = 200;
const NEAR_PAIRS = 3;

/** Return the comparison of two threads. found: the API's document. */
export function sides(found) {
  const { together, threads, pairs } = found;
  const body = h("tbody", {});
  const add = (from, to) => {
    body.append(...pairs.slice(from, to).map((pair, at) => pairRow(pair, threads, from + at < together)));
  };
  const steps = `${together} ${together === 1 ? "step is" : "steps are"} alike`;
  const parted = pairs.length > together ? `; they part at step ${together + 1}` : "; neither has another step";
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Step"), ...threads.map(column)));
  const table = h("table", { class: "list sides" }, head, body);
  const page = h("div", { class: "sides-frame" }, h("p", { class: "sides-summary" }, `${steps}${parted}.`), table);
  let first = Math.max(0, together - NEAR_PAIRS);
  let shown = Math.min(pairs.length, first + FIRST_PAIRS);
  add(first, shown);
  if (first > 0) {
    const label = () => `Show equal steps before (${first})`;
    const more = h("button", { type: "button", class: "show-more" }, label());
    more.addEventListener("click", () => {
      const from = Math.max(0, first - FIRST_PAIRS);
      body.prepend(...pairs.slice(from, first).map((pair) => pairRow(pair, threads, true)));
      first = from;
      more.textContent = label();
      if (first === 0) more.remove();
    });
    page.insertBefore(more, table);
  }
  if (shown < pairs.length) {
    const more = h("button", { type: "button", class: "show-more" }, `Show more of ${pairs.length} steps`);
    more.addEventListener("click", () => {
      add(shown, shown + FIRST_PAIRS);
      shown += FIRST_PAIRS;
      if (shown >= pairs.length) more.remove();
    });
    page.append(more);
  }
  return page;
}

function column(thread) {
  return h(
    "th",
    { scope: "col" },
    h("a", { href: `#/threads/${thread.threadId}` }, thread.flow || "thread"),
    " ",
    statusBadge(thread.status),
    h("div", { class: "quiet" }, thread.threadId),
    thread.message ? h("div", { class: "quiet" }, thread.message) : null,
  );
}

function pairRow(pair, threads, isEqual) {
  const seq = pair.find((row) => row !== null).seq;
  const cells = pair.map((row, at) => {
    if (row === null) return h("td", { class: "absent" }, "–");
    const { threadId } = threads[at];
    return h(
      "td",
      { class: `step-${row.mark}` },
      h("a", { href: `#/threads/${threadId}/steps/${row.seq}` }, row.label),
      " ",
      h("span", { class: "quiet" }, row.detail),
    );
  });
  return h("tr", { class: isEqual ? "equal" : "different" }, h("th", { scope: "row" }, seq), ...cells);
}
