// Dialogs: a form whose answer can be refused, and a question.

import { h, refocus, say } from "./dom.js";

/**
 * Show a form as a dialog.
 *
 * send(button, value): returns whether the dialog closes; its error is shown. closed(): called at
 * the end, whether or not it was sent. word: on the button that sends.
 */
export function dialog({ title, field = null, notes = [] }, word, send, closed = () => {}) {
  const opener = document.activeElement;
  const problem = h("p", { class: "error", role: "alert" });
  const submit = h("button", { type: "submit", class: "primary" }, word);
  const cancel = h("button", { type: "button" }, "Cancel");
  const form = h(
    "form",
    { class: "dialog-form" },
    h("h2", {}, title),
    ...notes.map((text) => h("p", {}, text)),
    field?.element,
    problem,
    h("div", { class: "buttons" }, cancel, submit),
  );
  const element = h("dialog", { "aria-label": title }, form);
  cancel.addEventListener("click", () => element.close());
  element.addEventListener("close", () => {
    element.remove();
    closed();
    // the browser gives the focus back, unless the button was drawn anew meanwhile
    if (opener && !opener.isConnected) refocus(opener, document.getElementById("main"));
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      if (await send(submit, field === null ? {} : field.read())) element.close();
    } catch (error) {
      if (element.open) problem.textContent = error.message;
      else say(error.message, "error"); // it was closed while it was sent
    }
  });
  document.body.append(element);
  element.showModal();
  (field ?? { focus: () => submit.focus() }).focus();
}

/** Ask yes or no in a dialog; resolves to whether it was accepted. */
export function confirmed(title, lines, accept) {
  let answer = false;
  const yes = () => (answer = true);
  return new Promise((resolve) => dialog({ title, notes: lines }, accept, yes, () => resolve(answer)));
}
