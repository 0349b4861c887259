// The requests to the worker.

import { readable } from "/dom.js";

/** An error of the worker: code, reason and field are those of the contract. */
export class WorkerError extends Error {
  constructor({ code = "", message = "", reason = "", field = "" }, status = 200) {
    super(readable(message));
    Object.assign(this, { code, reason, field, status });
  }
}

const unreachable = () => new WorkerError({ code: "unreachable", message: "The worker cannot be reached." });

/** Waits for the worker; what fails on the way to it is an error with the code "unreachable". */
async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw unreachable();
  }
}

/** The error of a response without success. */
function refusal(status, text) {
  let body = { message: `the worker answers ${status}` };
  try { body = JSON.parse(text); } catch { /* Not from the worker. */ }
  return new WorkerError(body, status);
}

async function checked(request) {
  const response = await reached(request);
  if (response.ok) return response;
  throw refusal(response.status, await response.text());
}

export const get = async (path) => (await checked(fetch(path))).json();

/** Sends an image, which the worker keeps while the page is open. `onprogress` is called with the share that was sent. */
export function upload(file, { page, onprogress, signal } = {}) {
  return new Promise((resolve, reject) => {
    // fetch does not report progress.
    const request = new XMLHttpRequest();
    request.open("POST", `/api/images?${new URLSearchParams({ page })}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", ({ loaded }) => onprogress?.(file.size > 0 ? loaded / file.size : 1));
    request.addEventListener("load", () => {
      if (request.status === 200) resolve(JSON.parse(request.responseText));
      else reject(refusal(request.status, request.responseText));
    });
    request.addEventListener("error", () => reject(unreachable()));
    request.addEventListener("abort", () => reject(new DOMException("The upload was stopped.", "AbortError")));
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** Milliseconds after which a page in the background gives its connection back, of which a browser has six for all pages. */
const hiddenPatience = 30_000;

/**
 * Stays connected while the page is seen: the worker gives back the places of its images when the connection ends. A page
 * that is seen again sends its images again when it needs them.
 */
export async function stay(page) {
  for (let pause = 1000; ; pause = Math.min(pause * 2, 60_000)) {
    const controller = new AbortController();
    let timer;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => controller.abort(), hiddenPatience);
    }, { signal: controller.signal });
    try {
      const reader = (await checked(fetch(`/api/pages/${page}`, { signal: controller.signal }))).body.getReader();
      while (!(await reader.read()).done) pause = 1000;
    } catch { /* Tried again. */ }
    controller.abort();
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    while (document.hidden) await new Promise((resolve) => { document.addEventListener("visibilitychange", resolve, { once: true }); });
  }
}

const json = (value) => ({ body: JSON.stringify(value), headers: { "Content-Type": "application/json" } });

/** Keeps images longer; returns those that still exist. */
export const keep = async (ids) =>
  (await checked(fetch("/api/images/keep", { method: "POST", ...json(ids) }))).json();

export const remove = (id) => fetch(`/api/images/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});

/**
 * Processes an image. `auxiliary` are the images of the request's auxiliary_images. Handlers are called as the parts arrive: `preview` and `result` with
 * {header, report, blob, at}, where `at` is the time of the last byte; `spans` with the spans of the worker.
 */
export async function process({ image, auxiliary, view, side, request, signal }, handlers) {
  const query = new URLSearchParams({ image, view, side, ...(auxiliary.length > 0 ? { auxiliary } : {}) });
  const response = await checked(
    fetch(`/api/results?${query}`, { method: "POST", signal, ...json(request) }));
  const parts = { preview: { chunks: [] }, result: { chunks: [] } };
  let error;
  for await (const [kind, contents] of frames(response.body.getReader())) {
    const letter = String.fromCharCode(kind);
    const part = letter === letter.toLowerCase() ? "preview" : "result";
    const target = parts[part];
    switch (letter.toUpperCase()) {
      case "H": target.header = parsed(contents); break;
      case "C": target.chunks.push(contents); break;
      case "R":
        target.report = parsed(contents);
        target.blob = new Blob(target.chunks, { type: `image/${target.header.format}` });
        target.at = performance.now();
        await handlers[part]?.(target);
        break;
      case "E": error = new WorkerError(parsed(contents)); break;
      case "S": handlers.spans?.(parsed(contents)); break;
    }
  }
  if (error) throw error;
}

const parsed = (contents) => JSON.parse(new TextDecoder().decode(contents));

/** The frames of a stream: the kind, and the contents that a length of four bytes announces. */
async function* frames(reader) {
  let buffer = new Uint8Array(0);
  while (true) {
    const { value, done } = await reached(reader.read());
    if (done) return;
    buffer = joined(buffer, value);
    let start = 0;
    while (buffer.length - start >= 5) {
      const length = new DataView(buffer.buffer, buffer.byteOffset + start).getUint32(1);
      if (buffer.length - start < 5 + length) break;
      yield [buffer[start], buffer.slice(start + 5, start + 5 + length)];
      start += 5 + length;
    }
    buffer = buffer.slice(start);
  }
}

function joined(first, second) {
  if (first.length === 0) return second;
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
