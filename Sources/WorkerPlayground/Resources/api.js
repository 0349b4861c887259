// The requests to the worker.

/** An error of the worker: code, reason and field are those of the contract. */
export class WorkerError extends Error {
  constructor({ code = "", message = "", reason = "", field = "" }, status = 200) {
    super(message);
    Object.assign(this, { code, reason, field, status });
  }
}

/** Waits for the worker; what fails on the way to it is an error with the code "unreachable". */
async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new WorkerError({ code: "unreachable", message: "The worker cannot be reached." });
  }
}

async function checked(request) {
  const response = await reached(request);
  if (response.ok) return response;
  let body = { message: `the worker answers ${response.status}` };
  try { body = await response.json(); } catch { /* Not from the worker. */ }
  throw new WorkerError(body, response.status);
}

export const get = async (path) => (await checked(fetch(path))).json();

/** Sends an image, which the worker keeps while this page is open. */
export async function upload(file) {
  const options = { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } };
  return (await checked(fetch("/api/images", options))).json();
}

const json = (value) => ({ body: JSON.stringify(value), headers: { "Content-Type": "application/json" } });

/** Keeps images longer; returns those that still exist. */
export const keep = async (ids) =>
  (await checked(fetch("/api/images/keep", { method: "POST", ...json(ids) }))).json();

export const remove = (id) => fetch(`/api/images/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});

/**
 * Processes an image. Handlers are called as the parts arrive: `preview` and `result` with
 * {header, report, blob, at}, where `at` is the time of the last byte; `spans` with the spans of the worker.
 */
export async function process({ image, view, side, request, signal }, handlers) {
  const query = new URLSearchParams({ image, view, side });
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
