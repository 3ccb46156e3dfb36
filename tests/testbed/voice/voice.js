"use strict";

const spoken = [];
chrome.ttsEngine.onSpeak.addListener((text, options, send) => {
  spoken.push(`${options.voiceName}: ${text}`);
  send({type: "start", charIndex: 0});
});
chrome.ttsEngine.onStop.addListener(() => { spoken.push("stop"); });
