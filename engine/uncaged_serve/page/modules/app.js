// Start of the page: the token, the server's session, the views.

import { h, replace } from "./dom.js";
import { getJson } from "./http.js";
import { route } from "./router.js";
import { findToken, setToken } from "./session.js";

const main = document.getElementById("main");

function views(parts) {
  const [first, second, third] = parts;
  if (first === "threads" && !second) return () => import("./views/threads.js");
  if (first === "compare") return () => import("./views/compare.js");
  if (first === "threads" && (!third || third === "steps")) return () => import("./views/thread.js");
  if (first === "flows") return second ? () => import("./views/flow.js") : () => import("./views/flows.js");
  if (first === "machine") return () => import("./views/machine.js");
  if (first === "ask") return () => import("./views/ask.js");
  if (first === "proposals" && second) return () => import("./views/proposal.js");
  return null;
}

function askForToken() {
  if (document.getElementById("token")) return; // asked already; a view may still poll
  const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const form = h(
    "form",
    { class: "card", onsubmit: (event) => { event.preventDefault(); setToken(field.value); location.reload(); } },
    h("h1", {}, "The token is missing"),
    h("p", {}, "Open this page with ", h("code", {}, "uncaged-workflow serve --open"),
      ", or paste the content of the file that ", h("code", {}, "serve"), " names."),
    h("label", { for: "token" }, "Token"), field,
    h("button", { class: "primary" }, "Continue"),
  );
  replace(main, form);
  field.focus();
}

async function start() {
  if (!(await findToken())) {
    askForToken();
    return;
  }
  try {
    const session = await getJson("/api/session");
    document.getElementById("read-only").hidden = !session.readOnly;
    document.body.classList.toggle("reads-only", session.readOnly);
    document.body.classList.toggle("no-dispatcher", !session.routes.includes("dispatcher"));
  } catch (error) {
    if (error.status !== 401) replace(main, h("p", { class: "error", role: "alert" }, error.message));
    return;
  }
  await route(main, views);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // an address behind `#` is a view
  main.focus();
});
addEventListener("uncaged-no-token", askForToken);
start();
