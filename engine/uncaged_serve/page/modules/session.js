// The token of this tab, and what the server says of itself.
//
// `serve --open` gives the token behind `#token=`: that part of an address is sent to no server and
// is in no referrer. It is removed from the address at once. A new tab asks the others of this page.

const KEY = "uncaged-token";
const channel = new BroadcastChannel("uncaged-session");
const ASK_MS = 400;

channel.onmessage = ({ data }) => {
  const token = sessionStorage.getItem(KEY);
  if (data?.kind === "ask" && token) channel.postMessage({ kind: "token", token });
};

/** Return the token; null if no tab has it. */
export async function findToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", `${location.pathname}#/threads`);
  }
  return sessionStorage.getItem(KEY) ?? (await fromOtherTab());
}

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(text) {
  sessionStorage.setItem(KEY, text.trim());
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

function fromOtherTab() {
  return new Promise((resolve) => {
    const asked = new BroadcastChannel("uncaged-session");
    const end = (found) => {
      clearTimeout(timer);
      asked.close();
      if (found) sessionStorage.setItem(KEY, found);
      resolve(found);
    };
    const timer = setTimeout(() => end(null), ASK_MS);
    asked.onmessage = ({ data }) => data?.kind === "token" && end(data.token);
    asked.postMessage({ kind: "ask" });
  });
}
