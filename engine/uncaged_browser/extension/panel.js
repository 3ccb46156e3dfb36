// Side panel: the page whose address the engine gives, or its text.
"use strict";

const EVERY_MS = 3_000;
const element = id => document.getElementById(id);

async function show() {
  const {address = "", text = ""} = await chrome.runtime.sendMessage({panel: true});
  element("status").textContent = text;
  element("status").hidden = !text;
  element("page").hidden = !address;
  if (element("page").dataset.address === address) return;
  element("page").dataset.address = address;
  element("page").src = address || "about:blank";
}

element("settings").addEventListener("click", () => chrome.runtime.openOptionsPage());
setInterval(show, EVERY_MS);
show();
