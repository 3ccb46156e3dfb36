// Page on which a person types the pairing code.
"use strict";

const field = id => document.getElementById(id);
const show = text => { field("status").textContent = text; };

async function start() {
  const {token, port = 8811} = await chrome.storage.local.get(["token", "port"]);
  field("port").value = port;
  const {connected} = await chrome.runtime.sendMessage({status: true});
  show(connected ? "Connected." : token ? "Paired; waiting for the engine." : "Not paired.");
}

document.querySelector("form").addEventListener("submit", async event => {
  event.preventDefault();
  show("Pairing …");
  const code = field("code").value.toUpperCase().replace(/[^0-9A-Z]/g, "");
  const reply = await chrome.runtime.sendMessage({pair: {code, port: Number(field("port").value)}});
  show(reply.paired ? "Connected." : `Not paired: ${reply.error}.`);
});

start();
