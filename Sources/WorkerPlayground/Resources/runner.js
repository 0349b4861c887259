// The requests of one result, in step with the controls.

import { toast } from "/dom.js";
import { decoded, playing } from "/stage.js";

/** Sides of previews: an eighth of a photograph of 12 megapixels, which a JPEG is decoded to at once. */
const previewSide = 504;
/** Milliseconds after which a preview that has not arrived makes room for a newer one. */
const previewPatience = 250;

/** The requests of one result: a preview at once, then the result; the newest replaces the one before. */
export class Runner {
  constructor(app, variant) {
    Object.assign(this, { app, variant, phase: "idle", next: undefined });
  }

  /** Requests the result of the present fields. `moved` is the time at which a control moved. */
  run(moved) {
    if (!this.app.image) return;
    const isWaiting = this.phase === "preview" && this.image === this.app.image
      && performance.now() - this.began < previewPatience;
    // A preview that is about to come is worth more than one that begins.
    if (isWaiting) this.next = moved;
    else this.start(moved);
  }

  stop() {
    this.controller?.abort();
    this.phase = "idle";
  }

  async start(moved) {
    const { app, variant } = this;
    this.controller?.abort();
    const controller = this.controller = new AbortController();
    const image = this.image = app.image;
    [this.phase, this.began, this.next] = ["preview", performance.now(), undefined];
    const isCurrent = () => this.controller === controller && app.image === image;
    const isPreviewed = variant === app.variant;
    variant.isBusy = true;
    const times = {};
    const request = { preset: variant.preset, configuration: variant.overrides, preview: isPreviewed };
    try {
      await app.process(image, { view: `${app.page}-${variant.id}`, side: previewSide, request, signal: controller.signal }, {
        preview: async ({ blob, header: size }) => {
          const canvas = await decoded(blob, size);
          if (!isCurrent()) return;
          variant.preview = { canvas };
          variant.error = undefined;
          this.phase = "result";
          app.show();
          if (await painted()) {
            times.preview = performance.now() - moved;
            app.latencies.push(times.preview);
          }
          if (this.next !== undefined) this.start(this.next);
        },
        result: async ({ blob, report, header }) => {
          const canvas = await decoded(blob, report.output);
          if (!isCurrent()) return;
          times.result = performance.now() - moved;
          const layer = report.output.frame_count > 1 ? playing(blob) : canvas;
          Object.assign(variant, { result: { canvas, layer, blob, report, header }, isBusy: false, error: undefined, times });
        },
        spans: (spans) => { if (isCurrent()) variant.spans = spans; },
      });
    } catch (error) {
      if (!isCurrent() || error.name === "AbortError") return;
      Object.assign(variant, { error, isBusy: false, preview: undefined });
      if (error.code === "unreachable") toast(error.message);
    }
    if (!isCurrent()) return;
    this.phase = "idle";
    if (this.next !== undefined) return this.start(this.next);
    app.show();
    app.showHandover();
    app.refreshState();
    if (variant === app.variant) {
      app.refreshReference();
      app.refreshSource();
    }
  }
}

/** Waits until what was drawn is on the screen. Returns false if it is not, as on a page in the background. */
const painted = () => new Promise((resolve) => {
  requestAnimationFrame(() => { setTimeout(resolve, 0, true); });
  setTimeout(resolve, 500, false);
});
