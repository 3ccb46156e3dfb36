// The machine: what runs, what it costs, and the checks of `doctor`.

import { actionButton, h, replace } from "../dom.js";
import { bytes, duration, money, time } from "../format.js";
import { getJson } from "../http.js";

const LIVE_MS = 3000;
const LEVELS = { ok: "completed", note: "waiting", problem: "failed" };

export async function show(root) {
  const live = h("div", {});
  const costs = h("section", {}, h("h2", {}, "Costs of the last 30 days"), h("p", { class: "quiet" }, "Loading …"));
  const doctor = h("section", {}, h("h2", {}, "Checks"), h("p", { class: "quiet" }, "Checking …"));
  root.append(h("h1", {}, "Machine"), live, h("div", { class: "columns" }, costs, doctor));
  let shown = "";
  let checksTitle = "Checks";
  const draw = async () => {
    const machine = await getJson("/api/machine");
    if (machine.shared) checksTitle = "Checks of this server's machine";
    const text = JSON.stringify({ ...machine, freeBytes: bytes(machine.freeBytes) });
    if (text !== shown) replace(live, ...state(machine));
    shown = text;
  };
  await draw();
  const stop = new AbortController();
  const fill = (place, title, load) => load().then(
    (nodes) => stop.signal.aborted || replace(place, h("h2", {}, title), nodes),
    (error) => stop.signal.aborted || replace(place, h("h2", {}, title), h("p", { class: "error" }, error.message)));
  fill(costs, "Costs of the last 30 days", async () => tables(await getJson("/api/machine/costs", stop)));
  const check = () => fill(doctor, checksTitle, async () => [checks((await getJson("/api/machine/doctor", stop)).checks), actionButton("Check again", check)]);
  check();
  const timer = setInterval(() => document.hidden || draw().catch(() => {}), LIVE_MS);
  return () => {
    clearInterval(timer);
    stop.abort();
  };
}

function state(machine) {
  const limits = machine.limits;
  if (machine.shared) return [
    h("dl", { class: "card" },
      pair("Store", machine.store),
      pair("This server", `${machine.version}, Python ${machine.python}, ${machine.system}; ${bytes(machine.freeBytes)} of ${bytes(machine.totalBytes)} free for copies`)),
    ...sharedWorkers(machine.sharedWorkers, machine.workers),
  ];
  return [
    h("dl", { class: "card" },
      pair("Version", `${machine.version}, Python ${machine.python}, ${machine.system}`),
      pair("Store", `${machine.store}, ${bytes(machine.freeBytes)} of ${bytes(machine.totalBytes)} free`),
      pair("Sandbox", machine.sandbox),
      pair("Agents", `${machine.agents.join(", ") || "the default one"}; at most ${limits.agents} at once${machine.queued ? `, ${machine.queued} wait` : ""}`),
      pair("Limits of a thread", [`${limits.max_rounds} rounds`, `${limits.max_steps} steps`, limits.max_cost && money(limits.max_cost), limits.max_tokens && `${limits.max_tokens} tokens`, limits.max_seconds && duration(limits.max_seconds * 1000)].filter(Boolean).join(", "))),
    h("h2", {}, `Workers (${machine.workers.length})`),
    machine.workers.length
      ? h("table", { class: "list" }, h("thead", {}, h("tr", {}, ["Flow", "Thread", "Process", "Doing"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, machine.workers.map((one) => h("tr", {},
          h("td", {}, one.flow), h("td", {}, h("a", { href: `#/threads/${one.threadId}` }, one.threadId)),
          h("td", { class: "number" }, String(one.pid)), h("td", {}, one.doing ?? "", one.queued ? ` (${one.queued} wait)` : "")))))
      : h("p", { class: "quiet" }, "No thread is running."),
  ];
}

/** Return the living workers of a shared store, and the threads that they have or that wait for one. */
function sharedWorkers(workers, threads) {
  const rows = threads.toSorted((a, b) => !a.worker - !b.worker || a.worker.localeCompare(b.worker));
  return [
    h("h2", {}, `Workers (${workers.length})`),
    workers.length
      ? table(["Worker", "Threads", "Takes", "Offers", "Since"], workers.map((one) => [
        [h("span", { class: "mono" }, one.worker), one.drains ? h("span", { class: "badge" }, "drains") : ""],
        `${one.threads} of ${one.slots}`, one.flows?.join(", ") ?? "all flows", one.offers.join(", "), time(one.sinceMs)]))
      : h("p", { class: "quiet" }, "No worker runs: threads wait for one. ", h("code", {}, "uncaged-workflow work"), " makes a machine one."),
    h("h2", {}, `Threads of workers (${rows.length})`),
    rows.length
      ? table(["Worker", "Flow", "Thread", "Doing"], rows.map((one) => [
        h("span", { class: one.worker ? "mono" : "quiet" }, one.worker || "none"), one.flow,
        h("a", { href: `#/threads/${one.threadId}` }, one.threadId), one.doing ?? ""]))
      : h("p", { class: "quiet" }, "No thread is running."),
  ];
}

function table(heads, rows) {
  return h("table", { class: "list" }, h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((one) => h("td", {}, one))))));
}

function pair(name, text) {
  return [h("dt", {}, name), h("dd", {}, text)];
}

function tables(costs) {
  if (!costs.days.length && costs.complete) return h("p", { class: "quiet" }, "No thread used a model.");
  const notes = [
    costs.complete ? "" : "Not all threads of these days are in the sums yet.",
    costs.modelsComplete ? "" : "The models are those of the newest threads.",
  ].filter(Boolean).join(" ");
  return [notes ? h("p", { class: "quiet" }, notes) : null, ...[["Day", costs.days], ["Flow", costs.flows], ["Model", costs.models]].map(([title, rows]) =>
    h("table", { class: "list" },
      h("thead", {}, h("tr", {}, [title, "Uses", "Tokens", "Cost"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.slice(0, 20).map((one) => h("tr", {}, h("td", {}, one.name), h("td", { class: "number" }, String(one.threads)),
        h("td", { class: "number" }, one.tokens.toLocaleString()), h("td", { class: "number" }, money(one.cost), one.unpriced ? " + unpriced" : ""))))))];
}

function checks(found) {
  return h("ul", { class: "checks" }, found.map((one) => h("li", {},
    h("span", { class: "badge", "data-status": LEVELS[one.level] }, one.level), " ", h("strong", {}, one.name), ` ${one.text}`,
    one.remedy ? h("p", { class: "quiet" }, `→ ${one.remedy}`) : null)));
}
