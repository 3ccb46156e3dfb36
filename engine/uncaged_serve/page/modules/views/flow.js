// One flow: graph, permissions, run form, past threads, versions, proposals.

import { bars } from "../chart.js";
import { confirmed } from "../dialog.js";
import { differenceSections } from "../difference.js";
import { actionButton, h, replace, say } from "../dom.js";
import { duration, money, shownStatus, time } from "../format.js";
import { graphDrawing } from "../graph.js";
import { getJson, path, postJson, query } from "../http.js";
import { schemaField } from "../schema_form.js";

const RUNNING_MS = 3000;
const QUIET_MS = 15_000;

export async function show(root, route) {
  const name = route.parts[1];
  const where = path`/api/flows/${name}`;
  const [flow, { proposals }] = await Promise.all([getJson(where), getJson(`/api/proposals${query({ flow: name })}`)]);
  const drawn = h("div", { class: "graph-place" });
  root.append(
    head(flow, where),
    h("p", {}, flow.description),
    ...proposals.map((one) => h("p", { class: "card" }, h("a", { href: `#/proposals/${one.proposalId}` }, `A version is proposed by ${one.by}`))),
    h("div", { class: "columns" },
      h("div", {}, permissions(flow), drawn, roles(flow)),
      h("div", {}, runForm(flow), past(flow), sentences(flow), versions(flow))),
  );
  return drawLive(drawn, `${where}/graph`, flow);
}

/** Draw the graph, and light the roles that are asked now, as long as the view is open: often while a thread runs. */
async function drawLive(place, where, flow) {
  let shown = "";
  let ended = false;
  let timer = 0;
  async function draw() {
    const graph = await getJson(where);
    const text = JSON.stringify(graph);
    const words = { declared: "", inferred: "Inferred: the moderator was run over the statuses of its roles; it may take other edges, too.", taken: "The edges that past threads took." };
    if (!ended && text !== shown && graph.drawing.nodes.length) {
      replace(place, h("h2", {}, "Graph"), graphDrawing(graph.drawing, { title: `Graph of ${flow.flow ?? flow.hash}`, live: graph.live }),
        words[graph.origin] ? h("p", { class: "quiet" }, words[graph.origin]) : null);
    }
    shown = text;
    return graph.running;
  }
  async function repeat() {
    const running = document.hidden ? false : await draw().catch(() => false);
    if (!ended) timer = setTimeout(repeat, running ? RUNNING_MS : QUIET_MS);
  }
  await repeat();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

function head(flow, where) {
  const enabled = flow.enabled !== false;
  return h("div", { class: "row" },
    h("h1", { class: "grow" }, flow.flow ?? flow.hash, " ", h("span", { class: "quiet mono" }, flow.hash), enabled ? null : h("span", { class: "badge" }, "disabled")),
    h("a", { href: `#/threads${query({ flow: flow.flow ?? flow.hash })}` }, "Threads"),
    flow.flow === null ? null : h("span", { class: "acts" }, actionButton(enabled ? "Disable" : "Enable", async () => {
      await postJson(`${where}/${enabled ? "disable" : "enable"}`);
      dispatchEvent(new Event("hashchange"));
    })));
}

function permissions(flow) {
  return h("section", {}, h("h2", {}, "It may"),
    h("ul", {}, flow.mayDo.map((one) => h("li", {}, one))),
    flow.trusted ? h("p", { class: "error" }, "It is trusted: it runs without a sandbox, with your rights.") : null);
}

function roles(flow) {
  const names = Object.entries(flow.roles);
  return names.length ? h("section", {}, h("h2", {}, "Roles"), h("dl", {}, names.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]))) : null;
}

function runForm(flow) {
  if (flow.flow === null) return null;
  const text = (title, description) => schemaField({ type: "string", description }, { title, required: false });
  const prompt = text("Prompt", "The task, in your words.");
  const fields = Object.keys(flow.parameters.properties ?? {}).length ? schemaField({ type: "object", ...flow.parameters }, { title: "Parameters" }) : null;
  const agent = text("Agent", "Who answers for the roles; empty: the default agent.");
  const workspace = text("Workspace", "A git repository on this machine, for flows that change files.");
  const hasRoles = Object.keys(flow.roles).length > 0;
  const problem = h("p", { class: "error", role: "alert" });
  const button = h("button", { class: "primary", disabled: flow.enabled === false }, "Run");
  const form = h("form", { class: "card acts", onsubmit: run },
    h("h2", {}, "Run"), prompt.element, fields?.element, hasRoles ? [agent.element, workspace.element] : null,
    problem, h("div", { class: "buttons" }, h("span", { class: "quiet grow" }, estimated(flow.estimate)), button));
  async function run(event) {
    event.preventDefault();
    problem.textContent = "";
    button.disabled = true;
    try {
      const started = await postJson("/api/threads", {
        flow: flow.flow,
        prompt: prompt.read() ?? "",
        params: fields?.read() ?? {},
        ...(agent.read() ? { agents: { "": agent.read() } } : {}),
        ...(workspace.read() ? { workspace: workspace.read() } : {}),
      });
      location.hash = `#/threads/${started.threadId}`;
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  }
  return form;
}

function estimated(estimate) {
  if (!estimate.threads) return "";
  const parts = [`${estimate.threads} past thread${estimate.threads === 1 ? "" : "s"}`];
  if (estimate.seconds) parts.push(`usually ${duration(estimate.seconds.median * 1000)}`);
  if (estimate.cost?.worst) parts.push(`${money(estimate.cost.median)}, at most ${money(estimate.cost.worst)}`);
  return parts.join("; ");
}

function past(flow) {
  if (!flow.past.length) return null;
  const points = (value, text) => flow.past.toReversed().map((one) => ({
    value: value(one), text: `${text(one)}, ${shownStatus(one.status, one.success)}`, href: `#/threads/${one.threadId}`, good: shownStatus(one.status, one.success) === "completed",
  }));
  const cost = flow.past.some((one) => one.cost > 0);
  return h("section", {}, h("h2", {}, "Past threads"),
    h("h3", {}, "Duration"), bars(points((one) => one.durationMs, (one) => duration(one.durationMs)), { title: "Durations of past threads" }),
    cost ? [h("h3", {}, "Cost"), bars(points((one) => one.cost, (one) => money(one.cost)), { title: "Costs of past threads" })] : null);
}

function sentences(flow) {
  if (!flow.patterns.length && !flow.examples.length) return null;
  return h("section", {}, h("h2", {}, "Sentences"),
    h("ul", {}, flow.patterns.map((one) => h("li", { class: "mono" }, one)),
      flow.examples.map((one) => h("li", {}, typeof one === "string" ? one : `${one.sentence} ${one.params ? JSON.stringify(one.params) : ""}`))));
}

function versions(flow) {
  if (!flow.versions.length) return null;
  const shown = h("div", {});
  const pick = (label, at) => h("select", { "aria-label": label, onchange: compare }, flow.versions.map((one, index) => h("option", { value: one.hash, selected: index === at }, `${one.hash}${index ? "" : " (head)"}`)));
  const older = pick("Older version", Math.min(1, flow.versions.length - 1));
  const newer = pick("Newer version", 0);
  async function compare() {
    try {
      const found = await getJson(`/api/difference${query({ old: older.value, new: newer.value })}`);
      replace(shown, differenceSections(found.sections));
    } catch (error) {
      replace(shown, h("p", { class: "error" }, error.message));
    }
  }
  return h("section", {}, h("h2", {}, "Versions"),
    h("table", { class: "list" }, h("tbody", {}, flow.versions.map((one, index) => h("tr", {},
      h("td", { class: "mono" }, one.hash), h("td", {}, time(one.sinceMs)),
      h("td", {}, index ? h("span", { class: "acts" }, actionButton("Roll back to it", () => rollback(flow, one.hash))) : h("span", { class: "badge" }, "head")))))),
    flow.versions.length > 1 ? h("div", { class: "row" }, older, "→", newer, actionButton("Compare", compare)) : null,
    shown);
}

async function rollback(flow, hash) {
  const found = await getJson(`/api/difference${query({ old: flow.hash, new: hash })}`);
  const policy = (found.sections.policy ?? []).map((line) => line.replace(/^\+/, "It may again:").replace(/^-/, "No longer:"));
  const lines = [`${flow.flow} becomes ${hash} again.`, ...(policy.length ? policy : ["Its permissions stay the same."])];
  if (!(await confirmed(`Roll back ${flow.flow}?`, lines, "Roll back"))) return;
  await postJson(path`/api/flows/${flow.flow}/rollback`, { hash });
  say(`${flow.flow} is ${hash} again`);
  dispatchEvent(new Event("hashchange"));
}
