// Where overlays lie on a result: their sizes, which the worker alone knows, and their places as gravity and offsets.

import { h } from "/dom.js";
import { decoded } from "/stage.js";

/** The color of the image on which overlays are measured; one with it has another next to it. */
const ground = "#ff00ff";
const groundSamples = 0xffff00ff;

/** Milliseconds after which a size is requested again that the worker did not report. */
const patience = 2000;

const compass = { 0: ["north_west", "north", "north_east"], 0.5: ["west", "center", "east"], 1: ["south_west", "south", "south_east"] };

/** The share of the free room that a word of a gravity leaves before an overlay, across and down. */
const shares = (word) => [
  word.includes("west") ? 0 : word.includes("east") ? 1 : 0.5, word.startsWith("north") ? 0 : word.startsWith("south") ? 1 : 0.5,
];

const usesFractions = ({ unit }) => /FRACTIONS/.test(unit ?? "");

/** The box of an overlay in fractions of the result. `word` is that of its gravity. */
export function boxOf(overlay, word, size, result) {
  const start = (share, offset, length, whole) => {
    const distance = usesFractions(overlay) ? offset * whole : offset;
    return Math.round((whole - length) * share + (share === 1 ? -distance : distance)) / whole;
  };
  const [across, down] = shares(word);
  return {
    x: start(across, overlay.x ?? 0, size.width, result.width), y: start(down, overlay.y ?? 0, size.height, result.height),
    width: size.width / result.width, height: size.height / result.height,
  };
}

/**
 * The place of a box as {word, x, y}: the gravity is the third of the result in which its center lies, and the offsets are those
 * from there, in the overlay's unit. Near a side or the center, the overlay lies there exactly.
 */
export function placeOf(overlay, box, result, near = 0) {
  const axis = (start, length, whole) => {
    const center = start + length / 2;
    const share = center < 1 / 3 ? 0 : center > 2 / 3 ? 1 : 0.5;
    const distance = (share === 1 ? 1 - length - start : start - (1 - length) * share) * whole;
    const offset = Math.abs(distance) <= near ? 0 : distance;
    return [share, usesFractions(overlay) ? Number(Math.min(Math.max(offset / whole, -1), 1).toFixed(4)) : Math.round(offset)];
  };
  const [[across, x], [down, y]] = [axis(box.x, box.width, result.width), axis(box.y, box.height, result.height)];
  return { word: compass[down][across * 2], x, y };
}

/** The corner of what is not the ground: {x, y} of its first column and row; undefined if there is nothing. */
function corner(canvas) {
  const { width, height } = canvas;
  const samples = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
  let [x, y] = [width, -1];
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      if (samples[row * width + column] === groundSamples) continue;
      if (y < 0) y = row;
      if (column < x) x = column;
      break;
    }
  }
  return y < 0 ? undefined : { x, y };
}

/**
 * The sizes of overlays on results. The worker draws an overlay on an image of one color, in the first and in the last corner; how far
 * it moves is the room that it leaves.
 */
export class OverlaySizes {
  /** `process` is that of the page with the name `page`; `upload` sends a file, `changed` is called when a size is known. */
  constructor({ page, process, upload, changed }) {
    Object.assign(this, { page, process, upload, changed });
    this.known = new Map();
    this.count = 0;
  }

  /** The size of an overlay in pixels of a result; undefined while it is not known. */
  size(overlay, result) {
    const { opacity, gravity, unit, x, y, blend, tile, ...drawing } = overlay;
    const key = JSON.stringify([drawing, result.width, result.height]);
    if (!this.known.has(key)) {
      if (this.known.size >= 64) this.known.delete(this.known.keys().next().value);
      this.known.set(key, undefined);
      this.measure(drawing, result).then((size) => {
        this.known.set(key, size);
        if (size) this.changed();
        // What has failed is tried again, but not with every step of a slider.
      }, () => setTimeout(() => this.known.delete(key), patience));
    }
    return this.known.get(key);
  }

  /** Forgets all sizes: another image may have a name now. */
  forget() { this.known.clear(); }

  async measure(drawing, { width, height }) {
    this.image ??= this.ground();
    const image = await this.image;
    const corners = [];
    const view = `${this.page}-overlay-${this.count += 1}`;
    for (const gravity of ["GRAVITY_NORTH_WEST", "GRAVITY_SOUTH_EAST"]) {
      const configuration = {
        max_width: width, max_height: height, resize_mode: "RESIZE_MODE_STRETCH", allow_upscale: true,
        preferred_format: "OUTPUT_FORMAT_PNG", png: { compression_level: 1 }, overlays: [{ ...drawing, gravity }],
      };
      let canvas;
      await this.process(image, { view, side: 64, request: { configuration } }, {
        result: async ({ blob, header }) => { canvas = await decoded(blob, header); },
      });
      corners.push({ ...corner(canvas), scale: width / canvas.width });
    }
    const [first, last] = corners;
    if (first.x === undefined || last.x === undefined) return undefined;
    return {
      width: Math.max(1, Math.round(width - (last.x - first.x) * first.scale)),
      height: Math.max(1, Math.round(height - (last.y - first.y) * first.scale)),
    };
  }

  /** An image of one color, which the worker keeps. */
  async ground() {
    const canvas = h("canvas", { width: 8, height: 8 });
    const context = canvas.getContext("2d");
    context.fillStyle = ground;
    context.fillRect(0, 0, 8, 8);
    const file = new File([await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); })], "ground.png");
    try { return { id: (await this.upload(file)).id, file }; } catch (error) {
      this.image = undefined;
      throw error;
    }
  }
}
