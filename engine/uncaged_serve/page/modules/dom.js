// Nodes made from text. Nothing here takes HTML: texts of agents, pages and journals are shown as text.

/**
 * Return an element. Keys of props: `class`, `on…` handlers, `data-…`, attributes, and the
 * properties `value`, `checked`, `disabled`, `hidden`. Children: nodes, texts, lists; null is skipped.
 */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (["value", "checked", "disabled", "hidden"].includes(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : safe(name, String(value)));
  }
  add(node, children);
  return node;
}

/** An address from data may be one of ours, or one of the web that is opened apart. */
function safe(name, value) {
  if (name !== "href" && name !== "src") return value;
  return /^(#|\/(?!\/)|blob:|https?:\/\/)/.test(value) ? value : "#";
}

export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : readable(String(child)));
  }
  return node;
}

/** Show control and direction characters of data as what they are. */
export function readable(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function replace(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

/** Tell a screen reader, and show for some seconds. */
export function say(text, kind = "info") {
  const place = document.getElementById("status");
  place.dataset.kind = kind;
  place.textContent = readable(text);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (place.textContent = ""), kind === "error" ? 12000 : 4000);
}

/** Return a button that runs an action once at a time and shows its error. */
export function actionButton(label, action, props = {}) {
  const run = () => whileDisabled(button, action).catch((error) => say(error.message, "error"));
  const button = h("button", { type: "button", ...props, onclick: run }, label);
  return button;
}

/** Disable a button while `work` runs. It has the focus again if it had it, also if it was drawn anew. */
export async function whileDisabled(button, work) {
  const hadFocus = document.activeElement === button;
  button.disabled = true;
  try {
    return await work();
  } finally {
    button.disabled = false;
    if (hadFocus && document.activeElement === document.body) refocus(button, document.getElementById("main"));
  }
}

/** Give the focus to `former`, or to what has its text at `root` if that was drawn anew. */
export function refocus(former, root) {
  if (former.isConnected) return former.focus({ preventScroll: true });
  const same = (one) => one.textContent === former.textContent;
  const found = [...root.querySelectorAll(former.tagName)].find(same) ?? root.querySelector("button");
  found?.focus({ preventScroll: true });
}
