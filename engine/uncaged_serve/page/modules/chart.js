// Small bar charts of past threads.

import { readable } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

/** Return bars of values, the oldest on the left. points: `[{value, text, href, good}]`. */
export function bars(points, { title, height = 56 }) {
  const root = document.createElementNS(SVG, "svg");
  const width = Math.max(120, points.length * 9);
  for (const [name, value] of Object.entries({ class: "chart", role: "img", viewBox: `0 0 ${width} ${height}`, width, height })) root.setAttribute(name, value);
  const head = document.createElementNS(SVG, "title");
  head.textContent = title;
  root.append(head);
  const most = Math.max(...points.map((one) => one.value), 0) || 1;
  points.forEach((one, at) => {
    const tall = Math.max(2, (one.value / most) * (height - 4));
    const link = document.createElementNS(SVG, "a");
    link.setAttribute("href", one.href);
    const bar = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ x: at * 9, y: height - tall, width: 7, height: tall, rx: 1.5, class: one.good ? "bar" : "bar bad" })) bar.setAttribute(name, value);
    const text = document.createElementNS(SVG, "title");
    text.textContent = readable(one.text);
    bar.append(text);
    link.append(bar);
    root.append(link);
  });
  return root;
}
