// A proposed version of a flow: what it asks for first, then evidence and difference.

import { confirmed } from "../dialog.js";
import { differenceSections } from "../difference.js";
import { actionButton, h, say } from "../dom.js";
import { time } from "../format.js";
import { getJson, path, postJson } from "../http.js";

export async function show(root, route) {
  const where = path`/api/proposals/${route.parts[1]}`;
  const found = await getJson(where);
  root.append(
    h("h1", {}, h("a", { href: `#/flows/${encodeURIComponent(found.flow)}` }, found.flow), `: ${found.from} → ${found.to}`),
    h("p", { class: "quiet" }, `${found.state}, proposed by ${found.by}, `, time(found.createdMs)),
    found.contradictions.length
      ? h("section", { class: "card" }, h("h2", {}, "It is not proved: past threads speak against it"), h("ul", {}, found.contradictions.map((one) => h("li", {}, one))))
      : "",
    found.widened.length
      ? h("section", { class: "card" }, h("h2", {}, "It asks to be allowed more"), h("ul", {}, found.widened.map((one) => h("li", {}, one))))
      : h("p", {}, "It asks for no further permission."),
    h("h2", {}, "Evidence"), evidence(found.evidence),
    ...(found.threads ?? []).map((one) => h("p", {}, "Thread ", h("a", { href: `#/threads/${one}` }, one))),
    h("h2", {}, "Difference"), ...[differenceSections(found.sections)].flat(),
    found.state === "open" ? decide(found, where) : "",
  );
}

function evidence(value) {
  if (Array.isArray(value)) return h("ul", {}, value.map((one) => h("li", {}, evidence(one))));
  if (value && typeof value === "object") return h("dl", {}, Object.entries(value).map(([name, one]) => [h("dt", {}, name), h("dd", {}, evidence(one))]));
  return h("span", {}, String(value));
}

function decide(found, where) {
  return h("div", { class: "buttons acts" },
    actionButton("Reject", async () => {
      await postJson(`${where}/reject`);
      say("rejected");
      dispatchEvent(new Event("hashchange"));
    }, { class: "danger" }),
    actionButton("Accept", async () => {
      const against = found.contradictions.length ? ["It is not proved:", ...found.contradictions] : [];
      const lines = [...against, ...(found.widened.length ? ["It may then:", ...found.widened] : ["It asks for no further permission."])];
      if (!(await confirmed(`Make it the current version of ${found.flow}?`, lines, "Accept"))) return;
      await postJson(`${where}/accept`, { granted: found.widened, contradicted: against.length > 0 });
      say(`${found.flow} is ${found.to} now`);
      location.hash = `#/flows/${encodeURIComponent(found.flow)}`;
    }, { class: "primary" }));
}
