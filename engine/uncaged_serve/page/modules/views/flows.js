// The list of flows, with the proposals that wait for a decision.

import { h } from "../dom.js";
import { time } from "../format.js";
import { getJson } from "../http.js";

export async function show(root) {
  const [{ flows, problems }, { proposals }] = await Promise.all([getJson("/api/flows"), getJson("/api/proposals")]);
  root.append(
    h("h1", {}, "Flows"),
    ...problems.map((one) => h("p", { class: "error", role: "alert" }, one)),
    proposals.length ? waiting(proposals) : "",
    h("table", { class: "list flows" },
      h("thead", {}, h("tr", {}, ["Flow", "Version", "Since", "Versions", "Source", ""].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, flows.map(row))),
  );
}

function waiting(proposals) {
  return h("section", { class: "card" },
    h("h2", {}, `${proposals.length} proposed version${proposals.length === 1 ? "" : "s"}`),
    h("ul", {}, proposals.map((one) =>
      h("li", {}, h("a", { href: `#/proposals/${one.proposalId}` }, `${one.flow}: ${one.from} → ${one.to}`), h("span", { class: "quiet" }, ` by ${one.by}`)))));
}

function row(flow) {
  return h("tr", {},
    h("td", {}, h("a", { href: `#/flows/${encodeURIComponent(flow.flow)}` }, flow.flow)),
    h("td", { class: "mono" }, flow.hash),
    h("td", {}, time(flow.sinceMs)),
    h("td", { class: "number" }, String(flow.versions)),
    h("td", {}, flow.source),
    h("td", {}, flow.enabled ? "" : h("span", { class: "badge" }, "disabled"), flow.unsupported ? h("span", { class: "badge" }, "unsupported") : ""));
}
