// Images on their way to the worker, each with its progress where it was dropped.

import * as api from "/api.js";
import { bytes, h } from "/dom.js";

export class Uploads {
  constructor(element) {
    this.element = element;
    this.last = Promise.resolve();
  }

  /** Sends a file after those before it. Returns what the worker answers; undefined if a person stops it. */
  send(file, page) {
    const controller = new AbortController();
    const progress = h("progress", { max: 1, value: 0, "aria-label": `Upload of ${file.name}` });
    const text = h("span", { class: "upload-text", text: "waiting" });
    const stop = h("button", { type: "button", class: "why", text: "×", "aria-label": `Stop ${file.name}`, onclick: () => controller.abort() });
    const chip = h("div", { class: "upload" }, h("span", { class: "upload-name", text: file.name }), text, progress, stop);
    this.element.append(chip);
    const show = (share) => {
      progress.value = share;
      text.textContent = share < 1 ? `${Math.floor(share * 100)} % of ${bytes(file.size)}` : "reading …";
    };
    const sent = this.last.then(async () => {
      if (controller.signal.aborted) return undefined;
      show(0);
      try {
        return await api.upload(file, { page, onprogress: show, signal: controller.signal });
      } catch (error) {
        if (error.name === "AbortError") return undefined;
        throw error;
      }
    }).finally(() => chip.remove());
    this.last = sent.catch(() => {});
    return sent;
  }
}
