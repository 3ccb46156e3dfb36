// Views by the part of the address behind `#`.

import { h, replace } from "./dom.js";

/**
 * Route: `{name, parts, query}`. `#/threads/ID/steps/3?tab=trace` has the parts
 * ["threads", "ID", "steps", "3"] and a URLSearchParams.
 */
export function parsedRoute(hash) {
  const [where, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const parts = where.split("/").filter(Boolean).map((one) => {
    try {
      return decodeURIComponent(one);
    } catch {
      return one;
    }
  });
  return { parts, query: new URLSearchParams(query) };
}

/**
 * Show the view of each address, one at a time. views(parts): a function that loads a view's module.
 * The function that a view returns ends it; its `update(route)`, if any, returns whether the view
 * shows another address itself.
 */
export function route(main, views) {
  let dispose = () => {};
  let turn = 0;
  async function show() {
    const mine = ++turn;
    const found = parsedRoute(location.hash || "#/threads");
    if (dispose.update?.(found)) return;
    const load = views(found.parts);
    dispose();
    dispose = () => {};
    document.title = "uncaged-workflow";
    for (const link of document.querySelectorAll("nav a")) {
      const here = link.getAttribute("href") === `#/${found.parts[0]}`;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!load) {
      replace(main, h("h1", {}, "No such page"), h("p", {}, h("a", { href: "#/threads" }, "Threads")));
      return;
    }
    replace(main, h("p", { class: "quiet" }, "Loading …"));
    try {
      const view = await load();
      if (mine !== turn) return;
      const place = h("div"); // its own: a view that ends while it loads fills nothing that is shown
      main.replaceChildren(place);
      const end = await view.show(place, found);
      if (mine === turn) dispose = end ?? (() => {});
      else end?.();
    } catch (error) {
      if (mine !== turn) return;
      replace(main, h("h1", {}, "This cannot be shown"), h("p", { class: "error", role: "alert" }, error.message));
    }
  }
  addEventListener("hashchange", show);
  return show();
}
