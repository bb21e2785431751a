// Small diagram of a protocol: one column per phase, with a circle for each parallel call.

import { svg } from "./dom.js";

const [WIDE, HIGH, MAX_CIRCLES] = [132, 56, 5];

export function protocolDiagram(phases) {
  const shown = (phases || []).slice(0, 6);
  const step = WIDE / (shown.length + 1);
  const columns = shown.map((phase, n) => ({ x: step * (n + 1), ys: heights(phase), phase }));
  return svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "picture", "aria-hidden": "true" },
    columns.slice(1).flatMap((column, n) => columns[n].ys.flatMap((from) => column.ys.map((to) => svg("path", { d: `M${columns[n].x} ${from} L${column.x} ${to}` })))),
    columns.flatMap(({ x, ys, phase }) => [
      !phase.parallel && phase.calls > 1 && svg("path", { d: `M${x} ${ys[0]} L${x} ${ys.at(-1)}`, class: "relay" }),
      ys.map((y) => svg("circle", { cx: x, cy: y, r: phase.calls === 1 ? 5 : 4, class: phase.calls === 1 ? "alone" : null })),
    ]));
}

function heights({ calls }) {
  const n = Math.max(1, Math.min(MAX_CIRCLES, calls));
  const gap = Math.min(15, (HIGH - 12) / Math.max(1, n - 1));
  return Array.from({ length: n }, (_, at) => HIGH / 2 + (at - (n - 1) / 2) * gap);
}
