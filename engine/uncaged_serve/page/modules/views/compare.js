// Two threads side by side: the steps that are equal, and those after which they part.

import { getJson, query } from "../http.js";
import { h } from "../dom.js";
import { sides } from "../sides.js";

/** Show `#/compare?a=ID&b=ID`. */
export async function show(root, route) {
  const [a, b] = ["a", "b"].map((name) => route.query.get(name) ?? "");
  document.title = "Comparison of threads";
  const found = await getJson(`/api/compare${query({ a, b })}`);
  root.append(h("h1", {}, "Where two threads part"), sides(found));
}
