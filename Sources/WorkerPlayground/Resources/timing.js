// Where time and memory went: only what the worker and this page have measured.

import { h, mebibytes, milliseconds } from "/dom.js";

const known = { playground: "the call", queue: "wait" };

/** Rows of bars on one axis of time, of the spans that the worker recorded. */
export function showTiming(element, note, { spans = [], report, page }) {
  const call = spans.find((span) => span.name === "playground");
  if (!call) return element.replaceChildren(h("p", { class: "note", text: "Appears with the first result." }));
  const length = Math.max(call.end - call.start, 1);
  const rows = spans.filter((span) => span !== call)
    .map((span) => ({ ...span, isPreview: span.attributes["imageworker.is_preview"] === "true" }))
    .sort((first, second) => first.start - second.start || first.end - second.end);
  note.textContent = `${milliseconds(length / 1e6)} in the worker`
    + (report?.cache_hit ? ", from its cache" : report?.passthrough ? ", passed through without decoding" : "")
    + (page?.result ? `; on this page ${page.preview ? `the preview after ${milliseconds(page.preview)}, ` : ""}the result after ${milliseconds(page.result)}` : "");
  const axis = h("div", { class: "axis", "aria-hidden": "true" },
    ...[0, 0.25, 0.5, 0.75, 1].map((share) => h("span", { text: milliseconds(length * share / 1e6) })));
  element.replaceChildren(h("div", { class: "waterfall", role: "table", "aria-label": "Stages" },
    ...rows.map((span) => row(span, call, length)), rows.length > 0 ? axis : ""));
}

function row(span, call, length) {
  const busy = Number(span.attributes["imageworker.busy_ns"] ?? span.end - span.start);
  const bar = h("div", { class: "bar-track", role: "cell" }, h("i", { class: `bar-span stage-${span.name}` }, h("b")));
  const [line] = bar.children;
  line.style.left = `${(span.start - call.start) / length * 100}%`;
  line.style.width = `${Math.max((span.end - span.start) / length * 100, 0.4)}%`;
  line.firstChild.style.width = `${Math.min(busy / Math.max(span.end - span.start, 1), 1) * 100}%`;
  const details = Object.entries(span.attributes)
    .map(([name, value]) => `${name.replace("imageworker.", "")}: ${value}`).sort().join("\n");
  return h("div", { class: `waterfall-row${span.isPreview ? " is-preview" : ""}`, role: "row", title: details },
    h("div", { class: "bar-name", role: "rowheader", text: `${span.isPreview ? "preview: " : ""}${known[span.name] ?? span.name}` }),
    bar, h("div", { class: "bar-value", role: "cell", text: milliseconds(busy / 1e6) }));
}

/** Bars of the memory that was used, of what could have been. */
export function showMemory(element, { report, limits, state }) {
  const rows = [];
  if (report?.peak_memory_bytes) rows.push(["This image, at most", report.peak_memory_bytes, limits.imageMemory, "limit of an image"]);
  if (state) {
    rows.push(["All images, at most", state.memoryPeak, limits.memory, "budget of the worker"]);
    rows.push(["Uploads of open pages", state.uploadBytes, limits.uploads, "part of the budget for uploads"]);
  }
  element.replaceChildren(...rows.map(([name, used, limit, what]) => {
    const bar = h("div", { class: "bar-track" }, h("i", { class: "bar-span stage-memory" }, h("b")));
    bar.firstChild.style.width = `${Math.max(Math.min(used / limit, 1) * 100, 0.4)}%`;
    return h("div", { class: "waterfall-row is-wide" }, h("div", { class: "bar-name", text: name }), bar,
      h("div", { class: "bar-value", text: `${mebibytes(used)} of ${mebibytes(limit)}`, title: `${what}: ${mebibytes(limit)}` }));
  }));
}
