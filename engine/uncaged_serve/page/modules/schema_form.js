// Form fields for a value that a JSON Schema describes. What it does not cover is edited as JSON.
// The server checks every value again.

import { h } from "./dom.js";

const MAX_DEPTH = 4;
let made = 0;

/**
 * Return {element, read, focus} for a value.
 *
 * read() returns the value; it throws an Error with a message for the person. An optional field
 * that is left empty is undefined.
 */
export function schemaField(schema, { title, required = true, depth = 0, initial } = {}) {
  const found = typeof schema === "object" && schema !== null ? schema : {};
  const name = title ?? found.title ?? "Answer";
  const start = initial ?? found.default;
  if (Array.isArray(found.enum) && found.enum.length) return choice(found, name, required, start);
  if (found.const !== undefined) return choice({ ...found, enum: [found.const] }, name, required, found.const);
  switch (found.type) {
    case "string":
      return line(found, name, required, start);
    case "integer":
    case "number":
      return number(found, name, required, start);
    case "boolean":
      return choice({ ...found, enum: [true, false] }, name, required, start);
    case "object":
      if (depth < MAX_DEPTH && typeof found.properties === "object") {
        return fields(found, name, required, depth, start);
      }
      return json(found, name, required, start);
    case undefined:
      return Object.keys(found).length ? json(found, name, required, start) : line(found, name, required, start);
    default:
      if (found.type === "array" && found.items?.type === "string" && !found.items.enum) {
        return list(found, name, required, start);
      }
      return json(found, name, required, start);
  }
}

function labelled(schema, name, required, control) {
  made += 1;
  control.id = `field-${made}`;
  const hint = typeof schema.description === "string" ? schema.description : "";
  if (hint) control.setAttribute("aria-describedby", `hint-${made}`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: `field-${made}` }, required ? name : `${name} (optional)`),
    hint ? h("p", { class: "hint", id: `hint-${made}` }, hint) : null,
    control,
  );
}

function choice(schema, name, required, start) {
  const empty = h("option", { value: "" }, required ? "choose …" : "—");
  const options = schema.enum.map((value, at) =>
    h("option", { value: String(at) }, typeof value === "string" ? value : JSON.stringify(value)),
  );
  const control = h("select", {}, empty, ...options);
  const at = schema.enum.findIndex((value) => JSON.stringify(value) === JSON.stringify(start));
  if (at >= 0) control.value = String(at);
  return {
    element: labelled(schema, name, required, control),
    focus: () => control.focus(),
    read: () => {
      if (control.value !== "") return schema.enum[Number(control.value)];
      if (required) throw new Error(`${name}: choose one`);
      return undefined;
    },
  };
}

function line(schema, name, required, start) {
  const control = h("textarea", { rows: "2", spellcheck: "true" });
  if (typeof start === "string") control.value = start;
  return {
    element: labelled(schema, name, required, control),
    focus: () => control.focus(),
    read: () => {
      if (control.value === "" && !required) return undefined;
      if (schema.minLength > control.value.length) {
        throw new Error(`${name}: at least ${schema.minLength} characters`);
      }
      return control.value;
    },
  };
}

function number(schema, name, required, start) {
  const step = schema.type === "integer" ? "1" : "any";
  const control = h("input", { type: "number", step, min: schema.minimum, max: schema.maximum });
  if (typeof start === "number") control.value = String(start);
  return {
    element: labelled(schema, name, required, control),
    focus: () => control.focus(),
    read: () => {
      if (control.value.trim() === "" && !required && !control.validity.badInput) return undefined;
      const value = Number(control.value);
      if (control.value.trim() === "" || !Number.isFinite(value)) throw new Error(`${name}: write a number`);
      if (schema.type === "integer" && !Number.isInteger(value)) throw new Error(`${name}: write a whole number`);
      return value;
    },
  };
}

function list(schema, name, required, start) {
  const control = h("textarea", { rows: "3" });
  if (Array.isArray(start)) control.value = start.join("\n");
  return {
    element: labelled({ ...schema, description: schema.description ?? "One entry a line." }, name, required, control),
    focus: () => control.focus(),
    read: () => {
      const entries = control.value.split("\n").map((text) => text.trim()).filter(Boolean);
      return entries.length || required ? entries : undefined;
    },
  };
}

function json(schema, name, required, start) {
  const control = h("textarea", { rows: "4", class: "json", spellcheck: "false" });
  if (start !== undefined) control.value = JSON.stringify(start, null, 2);
  return {
    element: labelled(schema, `${name} (JSON)`, required, control),
    focus: () => control.focus(),
    read: () => {
      if (control.value.trim() === "" && !required) return undefined;
      try {
        return JSON.parse(control.value);
      } catch {
        throw new Error(`${name}: this is not JSON`);
      }
    },
  };
}

function fields(schema, name, required, depth, start) {
  const needed = new Set(Array.isArray(schema.required) ? schema.required : []);
  const inner = Object.entries(schema.properties).map(([key, value]) => [
    key,
    schemaField(value, { title: key, required: needed.has(key), depth: depth + 1, initial: start?.[key] }),
  ]);
  const hint = typeof schema.description === "string" ? h("p", { class: "hint" }, schema.description) : null;
  return {
    element: h("fieldset", { class: "fields" }, h("legend", {}, name), hint, ...inner.map(([, field]) => field.element)),
    focus: () => inner[0]?.[1].focus(),
    read: () => {
      const value = {};
      for (const [key, field] of inner) {
        const part = field.read();
        if (part !== undefined) Object.defineProperty(value, key, { value: part, enumerable: true });
      }
      return Object.keys(value).length || required ? value : undefined;
    },
  };
}
