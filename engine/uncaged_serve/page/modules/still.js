// The page of a thread as one file: all that it shows is in the file, and it loads nothing.

import { h } from "./dom.js";
import { stepPanel } from "./step.js";
import { threadEnding, threadFacts, threadInputs, threadRelatives, threadTitle } from "./thread_head.js";
import { TimelineList } from "./timeline.js";

const { thread, rows, steps, pictures, note } = JSON.parse(document.getElementById("thread").textContent);
const main = document.getElementById("main");
const drawer = h("aside", { class: "drawer", "aria-label": "Step", hidden: true });
const timeline = new TimelineList({ onOpen: (row) => open(row.seq) });
const frame = h("div", { class: "thread-main" }, timeline.element, drawer);

function open(place) {
  const step = place === null ? null : steps[place] ?? new Error(`step ${place} is not in this file`);
  drawer.hidden = step === null;
  frame.classList.toggle("with-drawer", step !== null);
  if (step === null) {
    drawer.replaceChildren();
    timeline.element.focus({ preventScroll: true });
    return;
  }
  timeline.select(place);
  stepPanel(drawer, step, { place, picture, openPart: open, close: () => open(null) });
}

async function picture(hash) {
  if (pictures[hash] === undefined) throw new Error("it is not in this file");
  return pictures[hash];
}

const parts = [
  threadTitle(thread),
  threadFacts(thread),
  note ? h("p", { class: "quiet" }, note) : null,
  threadEnding(thread),
  threadRelatives(thread, ({ threadId, flow }) => h("span", { class: "mono" }, `${flow ?? ""} ${threadId}`)),
  threadInputs(thread),
];
main.append(h("div", { class: "thread-page" }, h("div", { class: "thread-head" }, parts), frame));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !drawer.hidden) open(null);
});
timeline.add(rows);
