// What the worker has found and kept, as outlines on the image.

import { h } from "/dom.js";

const sidesOf = ({ x = 0, y = 0, width = 0, height = 0 }) => ({ x, y, width, height });

/** The largest part of a rectangle with the aspect ratio of a size; `start` returns its place in the room that is left. */
function cover(rect, size, start) {
  const scale = Math.min(rect.width / size.width, rect.height / size.height);
  const [width, height] = [size.width * scale, size.height * scale];
  return { x: start("x", rect.x, rect.width - width, width), y: start("y", rect.y, rect.height - height, height), width, height };
}

/**
 * The part of the displayed image that a result shows, in pixels. `crop` is that of the configuration in pixels, `word` that of its
 * gravity, and `sides` are those of the image.
 */
export function keptPart({ report, effective, crop, word, sides: [width, height] }) {
  const base = sidesOf(report.crop ?? crop ?? { width, height });
  const isFilled = /FILL/.test(effective.resize_mode ?? "") && effective.max_width && effective.max_height;
  const isRaised = !/STRETCH/.test(effective.resize_mode ?? "") && (effective.min_width || effective.min_height);
  const isPadded = effective.pad || effective.extend_aspect_ratio;
  if (!isFilled && !(isRaised && !isPadded)) return base;
  const { output } = report;
  // Without enlarging, what is kept of a side is no longer than the side.
  const side = (name) => (effective.allow_upscale ? output[name] : Math.min(output[name], Math.round(base[name])));
  const focus = effective.focus_point;
  const share = {
    x: /west/.test(word) ? 0 : /east/.test(word) ? 1 : 0.5, y: /north/.test(word) ? 0 : /south/.test(word) ? 1 : 0.5,
  };
  return cover(base, { width: side("width"), height: side("height") }, (axis, first, free, length) => {
    if (!focus) return first + free * share[axis];
    const center = (focus[axis] ?? 0) * (axis === "x" ? width : height);
    return Math.min(Math.max(center - length / 2, first), first + free);
  });
}

const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

/** A list of what the outlines show, in words. */
export function outlined({ faces, hidden, kept, sides: [width, height] }) {
  const isWhole = kept && kept.width > width - 1 && kept.height > height - 1;
  return [
    kept && (isWhole ? "all of the image is kept"
      : `kept ${Math.round(kept.width)}×${Math.round(kept.height)} at ${Math.round(kept.x)}, ${Math.round(kept.y)}`),
    faces.length > 0 && count(faces.length, "face"), hidden.length > 0 && `${count(hidden.length, "region")} hidden`,
  ].filter(Boolean);
}

/** The outlines, on the sheet of a pane. */
export class Outlines {
  constructor() {
    this.element = h("div", { class: "outlines", role: "img" });
  }

  /** Shows rectangles in pixels of an image with these sides. */
  show({ faces, hidden, kept, sides }) {
    const [width, height] = sides;
    const rect = (kind, name, given) => {
      const { x, y, width: across, height: down } = sidesOf(given);
      const element = h("div", { class: `outline outline-${kind}`, dataset: { name } });
      const { style } = element;
      [style.left, style.top] = [`${x / width * 100}%`, `${y / height * 100}%`];
      [style.width, style.height] = [`${across / width * 100}%`, `${down / height * 100}%`];
      return element;
    };
    this.element.setAttribute("aria-label", outlined({ faces, hidden, kept, sides }).join("; "));
    this.element.replaceChildren(
      ...kept ? [rect("kept", "kept", kept)] : [],
      ...hidden.map((one) => rect("hidden", "hidden", one)),
      ...faces.map((one, index) => rect("face", faces.length > 1 ? `face ${index + 1}` : "face", one)));
  }
}
