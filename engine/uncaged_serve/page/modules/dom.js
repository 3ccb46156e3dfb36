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
  const button = h("button", { type: "button", ...props, onclick: run }, label);
  async function run() {
    button.disabled = true;
    try {
      await action();
    } catch (error) {
      say(error.message, "error");
    } finally {
      button.disabled = false;
    }
  }
  return button;
}

/** Ask yes or no in a dialog; resolves to whether it was accepted. */
export function confirmed(title, lines, accept) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-label": title, onclose: () => { resolve(dialog.returnValue === "yes"); dialog.remove(); } },
      h("form", { method: "dialog" },
        h("h2", {}, title),
        lines.map((line) => h("p", {}, line)),
        h("div", { class: "buttons" },
          h("button", { value: "no", formmethod: "dialog" }, "Cancel"),
          h("button", { value: "yes", class: "primary", formmethod: "dialog" }, accept))),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
