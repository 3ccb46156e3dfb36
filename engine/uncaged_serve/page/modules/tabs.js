// Tabs with the keys that people expect: arrows, Home and End.

import { h } from "./dom.js";

let made = 0;

/** Return tabs. entries: [name, function that returns the panel's content], the first is shown. */
export function tabs(entries, label) {
  made += 1;
  const name = `tabs-${made}`;
  const panel = h("div", { class: "tab-panel", role: "tabpanel", id: `${name}-panel` });
  const buttons = entries.map(([title], at) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `${name}-${at}`,
        "aria-controls": `${name}-panel`,
        "data-at": String(at),
      },
      title,
    ),
  );
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label }, ...buttons);
  const show = (at) => {
    buttons.forEach((button, other) => {
      button.setAttribute("aria-selected", String(other === at));
      button.tabIndex = other === at ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `${name}-${at}`);
    panel.replaceChildren(entries[at][1]());
    panel.scrollTop = 0;
  };
  list.addEventListener("click", (event) => {
    const at = event.target.closest("[data-at]")?.dataset.at;
    if (at !== undefined) show(Number(at));
  });
  list.addEventListener("keydown", (event) => {
    const now = buttons.indexOf(document.activeElement);
    const count = buttons.length;
    const places = { ArrowRight: now + 1, ArrowLeft: now - 1 + count, Home: 0, End: count - 1 };
    if (now < 0 || !(event.key in places)) return;
    event.preventDefault();
    const at = places[event.key] % count;
    show(at);
    buttons[at].focus();
  });
  if (buttons.length) show(0);
  return h("div", { class: "tabbed" }, list, panel);
}
