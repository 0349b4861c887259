// The viewer: images in panes that share one zoom and position, a divider between before and after, and differences.

import { h } from "/dom.js";

const maxZoom = 16;

/** The most pixels that are kept of an image; larger ones are shown at a smaller size. */
const maxPixels = 40_000_000;

/** An image in memory. `info` has its sides. */
export async function decoded(blob, { width, height }) {
  const shrink = Math.min(1, Math.sqrt(maxPixels / (width * height)));
  const sides = shrink < 1
    ? { resizeWidth: Math.round(width * shrink), resizeHeight: Math.round(height * shrink), resizeQuality: "medium" } : {};
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none", ...sides }).catch(() => {
    throw new Error("This browser does not show images of this format. The command below makes the file.");
  });
  const canvas = h("canvas", { width: bitmap.width, height: bitmap.height });
  canvas.getContext("2d", { willReadFrequently: true }).drawImage(bitmap, 0, 0);
  bitmap.close();
  return canvas;
}

/** An element that plays an animation; its pixels are read from the canvas of its first frame. */
export function playing(blob) {
  const address = URL.createObjectURL(blob);
  return h("img", { src: address, alt: "", draggable: "false", onload: () => URL.revokeObjectURL(address) });
}

/** One image area. Its layers lie on top of each other; the one in front may be cut off at the divider. */
class Pane {
  constructor(stage) {
    this.stage = stage;
    this.sheet = h("div", { class: "sheet" });
    this.badge = h("div", { class: "badge", hidden: true });
    this.element = h("div", { class: "pane" }, this.sheet, this.badge);
    this.element.addEventListener("pointerdown", (event) => stage.pan(event, this));
    this.element.addEventListener("wheel", (event) => stage.wheel(event, this), { passive: false });
    this.layers = [];
    this.size = { width: 1, height: 1 };
  }

  /** Shows layers, from back to front; `size` is what 1:1 refers to. */
  show(layers, size, badge = "") {
    this.layers = layers.filter(Boolean);
    if (size) this.size = size;
    const shown = [...this.sheet.querySelectorAll(":scope > canvas, :scope > img")];
    if (shown.length !== this.layers.length || shown.some((layer, index) => layer !== this.layers[index])) {
      for (const layer of shown) layer.remove();
      this.sheet.prepend(...this.layers);
    }
    this.badge.textContent = badge;
    this.badge.hidden = badge === "";
    this.place();
  }

  /** Puts the sheet where zoom and center of the stage say. */
  place() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const fit = Math.min(width / this.size.width, height / this.size.height, 1 / ratio * 4);
    const scale = this.stage.zoom === "fit" ? fit : this.stage.zoom / ratio;
    const [sheetWidth, sheetHeight] = [this.size.width * scale, this.size.height * scale];
    const free = (room, length, center) =>
      length <= room ? (room - length) / 2 : Math.min(0, Math.max(room - length, room / 2 - center * length));
    this.box = {
      left: free(width, sheetWidth, this.stage.center.x), top: free(height, sheetHeight, this.stage.center.y),
      width: sheetWidth, height: sheetHeight, scale,
    };
    const { style } = this.sheet;
    style.width = `${sheetWidth}px`;
    style.height = `${sheetHeight}px`;
    style.transform = `translate(${this.box.left}px, ${this.box.top}px)`;
    this.sheet.classList.toggle("is-coarse", scale * ratio >= 2);
  }
}

export class Stage {
  constructor(element, { onzoom }) {
    this.element = element;
    this.onzoom = onzoom;
    this.zoom = "fit";
    this.center = { x: 0.5, y: 0.5 };
    this.division = 0.5;
    this.panes = [];
    this.handle = h("div", {
      class: "divider", role: "slider", tabindex: 0, "aria-label": "Divider between before and after",
      "aria-valuemin": 0, "aria-valuemax": 100, hidden: true,
      onpointerdown: (event) => this.dragDivider(event),
      onkeydown: (event) => {
        const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
        if (step) this.divide(this.division + step, event);
      },
    }, h("i"));
    element.append(this.handle);
    new ResizeObserver(() => this.place()).observe(element);
  }

  /** Makes as many panes as are needed, and returns them. */
  arrange(count, hasDivider) {
    while (this.panes.length > count) this.panes.pop().element.remove();
    while (this.panes.length < count) {
      const pane = new Pane(this);
      this.panes.push(pane);
      this.element.append(pane.element);
    }
    this.hasDivider = hasDivider;
    this.handle.hidden = !hasDivider;
    return this.panes;
  }

  /** Shares the room among the panes, so that their shorter sides are as long as possible. */
  tile() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const count = Math.max(this.panes.length, 1);
    const side = (columns) => Math.min(width / columns, height / Math.ceil(count / columns));
    let best = 1;
    for (let columns = 2; columns <= count; columns += 1) if (side(columns) > side(best)) best = columns;
    this.element.style.setProperty("--columns", best);
  }

  place() {
    this.tile();
    for (const pane of this.panes) pane.place();
    this.divide(this.division);
    for (const pane of this.panes) pane.overlay?.place(pane.box);
  }

  setZoom(zoom, center = this.center) {
    this.zoom = zoom === "fit" ? "fit" : Math.min(Math.max(zoom, 1 / 32), maxZoom);
    this.center = { x: Math.min(Math.max(center.x, 0), 1), y: Math.min(Math.max(center.y, 0), 1) };
    if (zoom === "fit") this.center = { x: 0.5, y: 0.5 };
    this.place();
    this.onzoom(this.zoom);
  }

  /** Device pixels that a pixel of the first image covers now. */
  get scale() { return (this.panes[0]?.box?.scale ?? 1) * (window.devicePixelRatio || 1); }

  step(factor) { this.setZoom(this.scale * factor); }

  wheel(event, pane) {
    if (!pane.box) return;
    event.preventDefault();
    const bounds = pane.element.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const point = { x: (x - pane.box.left) / pane.box.width, y: (y - pane.box.top) / pane.box.height };
    const scale = Math.min(Math.max(this.scale * 1.0015 ** -event.deltaY, 1 / 32), maxZoom);
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [pane.size.width * scale / ratio, pane.size.height * scale / ratio];
    // The point under the pointer stays there.
    this.setZoom(scale, {
      x: (bounds.width / 2 - x) / width + point.x, y: (bounds.height / 2 - y) / height + point.y,
    });
  }

  pan(event, pane) {
    if (event.button !== 0 || event.target.closest(".overlay") || !pane.box) return;
    const [startX, startY, from] = [event.clientX, event.clientY, { ...this.center }];
    const { width, height } = pane.box;
    pane.element.setPointerCapture(event.pointerId);
    pane.element.classList.add("is-panned");
    const follow = (moved) => {
      this.center = {
        x: Math.min(Math.max(from.x - (moved.clientX - startX) / width, 0), 1),
        y: Math.min(Math.max(from.y - (moved.clientY - startY) / height, 0), 1),
      };
      this.place();
    };
    const end = () => {
      pane.element.removeEventListener("pointermove", follow);
      pane.element.classList.remove("is-panned");
    };
    pane.element.addEventListener("pointermove", follow);
    pane.element.addEventListener("pointerup", end, { once: true });
    pane.element.addEventListener("pointercancel", end, { once: true });
  }

  dragDivider(event) {
    event.preventDefault();
    event.stopPropagation();
    this.handle.focus();
    this.handle.setPointerCapture(event.pointerId);
    const bounds = this.element.getBoundingClientRect();
    const follow = (moved) => this.divide((moved.clientX - bounds.left) / bounds.width);
    this.handle.addEventListener("pointermove", follow);
    const end = () => this.handle.removeEventListener("pointermove", follow);
    this.handle.addEventListener("pointerup", end, { once: true });
    this.handle.addEventListener("pointercancel", end, { once: true });
  }

  /** Moves the divider to a fraction of the stage's width. */
  divide(fraction, event) {
    event?.preventDefault();
    this.division = Math.min(Math.max(fraction, 0), 1);
    this.handle.style.left = `${this.division * 100}%`;
    this.handle.setAttribute("aria-valuenow", Math.round(this.division * 100));
    const [pane] = this.panes;
    for (const layer of pane?.layers ?? []) layer.style.clipPath = "";
    if (!this.hasDivider || pane.layers.length < 2 || !pane.box) return;
    const edge = this.division * pane.element.clientWidth - pane.box.left;
    pane.layers.at(-1).style.clipPath = `inset(0 ${Math.max(0, pane.box.width - edge)}px 0 0)`;
  }
}

/** The most pixels that differences are shown of; larger images are compared at a smaller size. */
const maxDifferencePixels = 16_000_000;

/**
 * The absolute difference of two images, multiplied by `gain`, and its figures: the mean and the largest difference of
 * a sample of 255, and the share of the pixels that differ.
 */
export function difference(before, after, gain) {
  const shrink = Math.min(1, Math.sqrt(maxDifferencePixels / (after.width * after.height)));
  const [width, height] = [Math.round(after.width * shrink), Math.round(after.height * shrink)];
  const samples = (canvas) => {
    if (canvas.width === width && canvas.height === height) return canvas.getContext("2d").getImageData(0, 0, width, height);
    const scaled = h("canvas", { width, height }).getContext("2d");
    scaled.drawImage(canvas, 0, 0, width, height);
    return scaled.getImageData(0, 0, width, height);
  };
  const [first, second] = [samples(before).data, samples(after).data];
  const canvas = h("canvas", { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const { data } = image;
  let [sum, largest, changed] = [0, 0, 0];
  for (let index = 0; index < data.length; index += 4) {
    const red = Math.abs(first[index] - second[index]);
    const green = Math.abs(first[index + 1] - second[index + 1]);
    const blue = Math.abs(first[index + 2] - second[index + 2]);
    const most = Math.max(red, green, blue);
    sum += red + green + blue;
    if (most > largest) largest = most;
    if (most > 0) changed += 1;
    data[index] = red * gain;
    data[index + 1] = green * gain;
    data[index + 2] = blue * gain;
    data[index + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return { canvas, mean: sum / (3 * width * height), largest, share: changed / (width * height) };
}
