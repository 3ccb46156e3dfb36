// A role graph as SVG, from the places that the server computed.

import { readable } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

function s(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = readable(text);
  return node;
}

/** Return the drawing. live: names of roles that are asked now. */
export function graphDrawing(drawing, { title, live = [] }) {
  const root = s("svg", { class: "graph", role: "img", viewBox: `0 0 ${drawing.width} ${drawing.height}`, width: drawing.width, height: drawing.height });
  root.append(s("title", {}, title));
  const marker = s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" });
  marker.append(s("path", { d: "M0 0L8 4L0 8z", class: "graph-arrow" }));
  const defs = s("defs", {});
  defs.append(marker);
  root.append(defs);
  for (const line of drawing.lines) {
    const points = line.points.map((point) => point.join(",")).join(" ");
    root.append(s("polyline", { class: line.taken ? "graph-line taken" : "graph-line", points, "marker-end": "url(#arrow)" }));
  }
  for (const line of drawing.lines) {
    const words = [line.statuses.join(", "), line.taken ? `${line.taken}×` : ""].filter(Boolean).join(" ");
    if (words) root.append(s("text", { class: "graph-label", x: line.labelAt[0], y: line.labelAt[1] }, words));
  }
  for (const node of drawing.nodes) {
    const kind = live.includes(node.name) ? "graph-node live" : "graph-node";
    root.append(
      s("rect", { class: kind, x: node.x - node.width / 2, y: node.y - node.height / 2, width: node.width, height: node.height, rx: 8 }),
      s("text", { class: "graph-text", x: node.x, y: node.y }, node.text),
    );
  }
  return root;
}
