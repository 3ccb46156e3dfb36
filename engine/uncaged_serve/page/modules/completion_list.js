// Words that can come next, below a text field: a listbox that the keyboard moves through.

import { h } from "./dom.js";

const WAIT_MS = 80;
const MOST = 12;

/**
 * Offer completions of a field. complete(text) resolves to `{groups}` of the dispatcher. Tab takes
 * the marked one, the arrows move, Escape closes. Returns `{element, close}`.
 */
export function completionList(field, complete) {
  const list = h("ul", { class: "completions", role: "listbox", id: "completions", hidden: true });
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-controls", "completions");
  field.setAttribute("aria-autocomplete", "list");
  let offered = [];
  let marked = -1;
  let timer = 0;
  let turn = 0;

  function draw() {
    list.replaceChildren(...offered.map((one, at) =>
      h("li", { role: "option", id: `completion-${at}`, "aria-selected": String(at === marked), onmousedown: (event) => { event.preventDefault(); take(at); } }, one.word)));
    list.hidden = !offered.length;
    field.setAttribute("aria-expanded", String(offered.length > 0));
    if (marked >= 0) field.setAttribute("aria-activedescendant", `completion-${marked}`);
    else field.removeAttribute("aria-activedescendant");
  }

  function close() {
    clearTimeout(timer);
    turn += 1;
    offered = [];
    marked = -1;
    draw();
  }

  function take(at) {
    const { word, matched, separate } = offered[at];
    const kept = field.value.slice(0, matched);
    field.value = kept + (separate && kept && !kept.endsWith(" ") ? " " : "") + word;
    close();
    field.focus();
    later();
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MS);
  }

  async function ask() {
    const mine = ++turn;
    const text = field.value;
    if (!text.trim()) return close();
    let found;
    try {
      found = await complete(text);
    } catch {
      return;
    }
    if (mine !== turn || field.value !== text) return;
    offered = found.groups.flatMap((group) => {
      const begun = text.slice(group.matchedPrefixLength).trimStart().toLowerCase();
      return group.completions
        .filter((word) => word.toLowerCase().startsWith(begun))
        .map((word) => ({ word, matched: group.matchedPrefixLength, separate: !["none", "optional"].includes(group.separatorMode) }));
    }).slice(0, MOST);
    marked = -1;
    draw();
  }

  field.addEventListener("input", later);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (!offered.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      marked = (marked + (event.key === "ArrowDown" ? 1 : offered.length) + (marked < 0 && event.key === "ArrowUp" ? 1 : 0)) % offered.length;
      draw();
    } else if (event.key === "Tab" && !event.shiftKey) take(Math.max(0, marked));
    else if (event.key === "Enter" && marked >= 0) take(marked);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  });
  return { element: list, close };
}
