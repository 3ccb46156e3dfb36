// Pass-through between a browser session of uncaged-workflow and this browser. It performs the calls
// of CALLS that it receives, and reports the events of EVENTS. It decides nothing else.
"use strict";

const PROTOCOL = 1;
const DEFAULT_PORT = 8811;
const KEEP_ALIVE_MS = 20_000;
const RECONNECT_MS = 5_000;
const HANDSHAKE_MS = 10_000;
const REPLY_MS = 10_000;
const AWAY = "Not connected to uncaged-workflow. `uncaged-workflow browser external on` prints a code for the settings.";
const CALLS = {
  "action.setBadgeText": call => chrome.action.setBadgeText(...call),
  "action.setTitle": call => chrome.action.setTitle(...call),
  "debugger.attach": call => chrome.debugger.attach(...call),
  "debugger.detach": call => chrome.debugger.detach(...call),
  "debugger.sendCommand": call => chrome.debugger.sendCommand(...call),
  "runtime.openOptionsPage": () => chrome.runtime.openOptionsPage(),
  "tabs.create": call => chrome.tabs.create(...call),
  "tabs.get": call => chrome.tabs.get(...call),
  "tabs.query": call => chrome.tabs.query(...call),
  "tabs.reload": call => chrome.tabs.reload(...call),
  "tabs.remove": call => chrome.tabs.remove(...call),
  "tabs.update": call => chrome.tabs.update(...call),
};
const EVENTS = {
  "debugger.onDetach": chrome.debugger.onDetach,
  "debugger.onEvent": chrome.debugger.onEvent,
  "tabs.onCreated": chrome.tabs.onCreated,
  "tabs.onRemoved": chrome.tabs.onRemoved,
};

let socket = null; // the connection, from its first moment
let accepted = false; // both sides have proved that they know the token
let answered = true; // the last keep-alive has its reply
let retry = null;
let calls = 0; // of the channel agentService
const pending = new Map(); // what takes the reply of each such call, by its number
let replaced = false; // another browser with the same identity took this one's place

function send(message) {
  if (accepted && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

async function perform(message) {
  const call = CALLS[message.method];
  if (!Object.hasOwn(CALLS, message.method)) {
    send({id: message.id, unknown: true, error: "unknown method"});
    return;
  }
  try {
    send({id: message.id, result: (await call(message.params)) ?? null});
  } catch (error) {
    send({id: message.id, error: String(error?.message ?? error)});
  }
}

async function proof(key, ...parts) {
  const bytes = text => new TextEncoder().encode(text);
  const algorithm = {name: "HMAC", hash: "SHA-256"};
  const imported = await crypto.subtle.importKey("raw", bytes(key), algorithm, false, ["sign"]);
  const digest = await crypto.subtle.sign("HMAC", imported, bytes(parts.join("\n")));
  return Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, "0")).join("");
}

async function identity() {
  const {client = crypto.randomUUID()} = await chrome.storage.local.get("client");
  const {browser = crypto.randomUUID()} = await chrome.storage.session.get("browser");
  await chrome.storage.local.set({client});
  await chrome.storage.session.set({browser});
  return {client, browser};
}

// The listener proves that it knows the code or token, as this side does: another program on the
// port gets no control.
async function handshake(opened, next, key, kind) {
  const {welcome} = JSON.parse(await next());
  if (welcome?.protocol !== PROTOCOL) throw new Error("the engine has another version");
  const {client, browser} = await identity();
  const nonce = crypto.randomUUID();
  opened.send(JSON.stringify({hello: {
    protocol: PROTOCOL, client, browser, kind, nonce, userAgent: navigator.userAgent,
    proof: await proof(key, "extension", welcome.nonce, nonce, client),
  }}));
  const reply = JSON.parse(await next());
  if (reply.accepted?.proof !== await proof(key, "engine", nonce, welcome.nonce, client))
    throw new Error("another program listens on the port");
  if (kind === "code") await chrome.storage.local.set({token: reply.accepted.token});
}

function connect(port, key, kind) {
  return new Promise((resolve, reject) => {
    const opened = new WebSocket(`ws://127.0.0.1:${port}/extension`);
    const early = [];
    let waiting = null;
    socket?.close();
    socket = opened;
    accepted = false;
    const next = () => early.length ? early.shift() : new Promise(done => { waiting = done; });
    const limit = setTimeout(() => opened.close(), HANDSHAKE_MS);
    opened.onmessage = event => {
      if (accepted) {
        receive(event.data);
      } else if (waiting) {
        waiting(event.data);
        waiting = null;
      } else {
        early.push(event.data);
      }
    };
    opened.onopen = () => handshake(opened, next, key, kind).then(() => {
      clearTimeout(limit);
      if (socket !== opened) throw new Error("replaced by a newer connection");
      accepted = answered = true;
      early.forEach(receive);
      resolve();
    }).catch(error => {
      reject(error);
      opened.close();
    });
    opened.onclose = event => {
      clearTimeout(limit);
      reject(new Error(event.reason || `nothing listens on port ${port}`));
      if (socket !== opened) return;
      socket = null;
      accepted = false;
      chrome.action.setBadgeText({text: ""});
      replaced = event.reason === "duplicate";
      if (!replaced) later();
    };
  });
}

function receive(text) {
  const message = JSON.parse(text);
  if (message.channel === "browserControl") {
    perform(message);
  } else {
    answered = true;
    pending.get(message.id)?.(message);
  }
}

function ask(method) {
  if (!accepted) return Promise.resolve({text: AWAY});
  const id = ++calls;
  return new Promise(resolve => {
    const end = message => {
      pending.delete(id);
      resolve(message.result ?? {text: message.error});
    };
    pending.set(id, end);
    setTimeout(end, REPLY_MS, {error: "The engine did not answer."});
    send({channel: "agentService", id, method, params: []});
  });
}

function later() {
  clearTimeout(retry);
  retry = setTimeout(ensure, RECONNECT_MS);
  chrome.runtime.getPlatformInfo(); // a call keeps the service worker awake until then
}

async function ensure() {
  if (socket || replaced) return;
  const {token, port = DEFAULT_PORT} = await chrome.storage.local.get(["token", "port"]);
  if (token && !socket) await connect(port, token, "token").catch(() => {});
}

async function pair({code, port}) {
  await chrome.storage.local.set({port});
  await connect(port, code, "code");
}

setInterval(() => {
  if (!accepted) return;
  if (!answered) {
    socket.close();
    return;
  }
  answered = false;
  send({channel: "agentService", id: 0, method: "ping", params: []});
}, KEEP_ALIVE_MS);

for (const [event, source] of Object.entries(EVENTS))
  source.addListener((...params) => send({channel: "agentService", event, params}));

chrome.runtime.onMessage.addListener((message, sender, reply) => {
  if (sender.id !== chrome.runtime.id) return false;
  if (message.pair) {
    pair(message.pair).then(() => reply({paired: true}), error => reply({error: error.message}));
    return true;
  }
  if (message.panel) {
    ask("panel").then(reply);
    return true;
  }
  reply({connected: accepted});
  return false;
});
chrome.sidePanel.setPanelBehavior({openPanelOnActionClick: true});
chrome.runtime.onStartup.addListener(ensure);
chrome.runtime.onInstalled.addListener(ensure);
chrome.alarms.onAlarm.addListener(ensure);
chrome.alarms.create("reconnect", {periodInMinutes: 0.5});
ensure();
