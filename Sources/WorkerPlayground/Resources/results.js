// The cards of the results: what each weighs, and how it compares.

import { bytes, change, h, milliseconds } from "/dom.js";

const thumbnailSide = 132;

export class Cards {
  constructor(element, { onselect, onremove, titleOf }) {
    Object.assign(this, { element, onselect, onremove, titleOf });
    this.cards = new Map();
    element.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const buttons = [...element.querySelectorAll(".card-main")];
      const index = buttons.indexOf(document.activeElement);
      if (!step || index < 0) return;
      event.preventDefault();
      const next = buttons[(index + step + buttons.length) % buttons.length];
      next.focus();
      next.click();
    });
  }

  /** Shows the variants; `original` is the image that they are results of. */
  update(variants, chosen, original) {
    for (const [id, card] of this.cards) {
      if (variants.some((variant) => variant.id === id)) continue;
      card.element.remove();
      this.cards.delete(id);
    }
    for (const variant of variants) {
      if (!this.cards.has(variant.id)) this.cards.set(variant.id, this.card(variant));
      const card = this.cards.get(variant.id);
      this.element.append(card.element);
      this.fill(card, variant, variant === chosen, original, variants.length > 1);
    }
  }

  card(variant) {
    const thumbnail = h("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const parts = Object.fromEntries(["name", "weight", "facts", "state"].map((name) => [name, h("span", { class: `card-${name}` })]));
    const share = h("div", { class: "share", "aria-hidden": "true" }, h("i"));
    const main = h("button", { type: "button", class: "card-main", role: "radio", onclick: () => this.onselect(variant) },
      h("span", { class: "card-image" }, thumbnail), h("span", { class: "card-text" }, ...Object.values(parts)));
    const save = h("a", { class: "primary", text: "Save", hidden: true });
    const remove = h("button", { type: "button", class: "plain", text: "Remove", onclick: () => this.onremove(variant) });
    const element = h("div", { class: "card" }, main, share, h("div", { class: "card-actions" }, save, remove));
    return { element, main, parts, share, thumbnail, save, remove };
  }

  fill(card, variant, isChosen, original, canRemove) {
    const { parts, main } = card;
    const { result, error } = variant;
    main.setAttribute("aria-checked", isChosen);
    main.tabIndex = isChosen ? 0 : -1;
    card.remove.hidden = !canRemove;
    parts.name.textContent = this.titleOf(variant);
    card.element.classList.toggle("is-busy", Boolean(variant.isBusy));
    card.element.classList.toggle("is-failed", Boolean(error));
    const shown = variant.preview && variant.isBusy ? variant.preview : result ?? variant.preview;
    if (shown && card.drawn !== shown.canvas) this.draw(card, shown);
    card.save.hidden = !result || Boolean(error);
    if (error) {
      parts.weight.textContent = "no result";
      parts.facts.textContent = error.reason || error.code;
      parts.state.textContent = error.message;
      card.share.firstChild.style.width = "0";
      return;
    }
    if (!result || !original) {
      parts.weight.textContent = "…";
      parts.facts.textContent = parts.state.textContent = "";
      return;
    }
    const { report } = result;
    const weight = result.blob.size;
    parts.weight.replaceChildren(bytes(weight), " ", h("em", {
      class: weight <= original.bytes ? "good" : "bad", text: change(original.bytes, weight),
      title: `The image has ${original.bytes.toLocaleString("en")} bytes, the result ${weight.toLocaleString("en")}.`,
    }));
    parts.facts.textContent = [
      `${report.output.format} ${report.output.width}×${report.output.height}`,
      report.compression_quality !== undefined && `quality ${Number(report.compression_quality.toFixed(3))}`,
      report.similarity !== undefined && `similarity ${Number(report.similarity).toFixed(2)}`,
      milliseconds(Number.parseFloat(report.timings?.total ?? "0") * 1000),
    ].filter(Boolean).join(" · ");
    const saved = original.bytes - weight;
    parts.state.textContent = [
      saved > 0 && `saves ${bytes(saved)}`, report.gain_map_bytes > 0 && `with a gain map of ${bytes(report.gain_map_bytes)}`,
      report.passthrough && "passed through", report.cache_hit && "from the cache",
      report.faces?.length > 0 && `${report.faces.length} ${report.faces.length === 1 ? "face" : "faces"} found, which the view Original shows`,
      ...(report.warnings ?? []),
    ].filter(Boolean).join(" · ");
    card.share.firstChild.style.width = `${Math.min(weight / original.bytes, 1) * 100}%`;
    if (card.saved !== result.blob) {
      URL.revokeObjectURL(card.save.href);
      card.saved = result.blob;
      card.save.href = URL.createObjectURL(result.blob);
      card.save.download = `${original.name.replace(/\.[^.]*$/, "")}-${variant.letter}.${report.output.format === "jpeg" ? "jpg" : report.output.format}`;
      card.save.setAttribute("aria-label", `Save result ${variant.letter}`);
    }
  }

  draw(card, { canvas }) {
    card.drawn = canvas;
    const ratio = window.devicePixelRatio || 1;
    const scale = Math.min(thumbnailSide / canvas.width, thumbnailSide / canvas.height) * ratio;
    card.thumbnail.width = Math.max(1, Math.round(canvas.width * scale));
    card.thumbnail.height = Math.max(1, Math.round(canvas.height * scale));
    const context = card.thumbnail.getContext("2d");
    context.imageSmoothingQuality = "medium";
    context.drawImage(canvas, 0, 0, card.thumbnail.width, card.thumbnail.height);
  }
}
