// The page: its images, its results, and what happens when a control moves.

import * as api from "/api.js";
import { testChart } from "/chart.js";
import { Controls } from "/controls.js";
import { $, bytes, change, choices, h, mebibytes, milliseconds, toast, uniqueName } from "/dom.js";
import { Editing } from "/editing.js";
import { forms, title } from "/handover.js";
import { started } from "/lists.js";
import { Contract, excludedBy, label, replaced, valueAt } from "/model.js";
import { Outlines, keptPart, outlined } from "/outlines.js";
import { Cards } from "/results.js";
import { Runner } from "/runner.js";
import { Stage, decoded, difference } from "/stage.js";
import { address, addressed, keep, kept } from "/state.js";
import { showMemory, showTiming } from "/timing.js";
import { Uploads } from "/uploads.js";

/** Sides of the image on which a crop is drawn. */
const sourceSide = 1600;
const letters = "ABCDEFGHIJKLMNOP";
const modes = [
  { value: "compare", label: "Compare", title: "Before and after, with a divider (C)" },
  { value: "side", label: "Side by side", title: "All results (S)" },
  { value: "difference", label: "Difference", title: "What compression changes (D)" },
  { value: "result", label: "Result", title: "The result alone (R)" },
  { value: "original", label: "Original", title: "The image, with the faces that were found and the part that is kept (O)" },
];
/** What is edited on the image, as buttons have it. */
const tools = {
  crop: { text: "Crop", title: "Draw the part of the image that is used" },
  focus_point: { text: "Focus", title: "Choose the point that stays in view when the image is cropped to fill its bounds" },
  regions: { text: "Regions", title: "Hide parts of the image: draw, move and resize them" },
  overlays: { text: "Overlays", title: "Put texts and images on the result, and drag them" },
};
/** The similarity at which formats are compared, unless the chosen result has one: "very high quality". */
const comparedSimilarity = 80;

/** The gain map of an image, as inspected. */
const gainMapText = ({ kind, width, height, headroom }) =>
  `gain map (${kind.replace("_", " ")}) ${width}×${height}${headroom ? `, up to ${headroom.toFixed(1)} times as bright` : ""}`;

class Playground {
  constructor(contract) {
    this.contract = contract;
    this.images = [];
    /** A name for the views of this page, of which the worker continues the newest request alone. */
    this.page = uniqueName();
    this.image = undefined;
    this.variants = [];
    this.gain = 8;
    this.latencies = [];
    this.references = new Map();
    const rect = contract.fields.find((field) => contract.shape(field) === "rect");
    const units = rect ? contract.fieldsOf(rect.typeName).find((field) => field.type === "enum") : undefined;
    this.unit = units && contract.enums[units.typeName].find((choice) => choice.word === "fractions")?.name;
    this.restoreState(addressed());
    this.uploads = new Uploads($("uploads"));
    this.stage = new Stage($("stage"), { onzoom: () => this.showZoom() });
    this.cards = new Cards($("cards"), {
      onselect: (variant) => this.select(variant), onremove: (variant) => this.remove(variant),
      titleOf: (variant) => `${variant.letter} · ${title(contract, variant)}`,
    });
    this.editor = new Editing(this, { upload: (file) => api.upload(file, { page: this.page }) });
    this.outlines = new Outlines();
    this.controls = new Controls($("fields"), this);
    this.bind();
    this.update();
    api.stay(this.page);
  }

  // MARK: State, as the controls see it

  get overrides() { return this.variant.overrides; }
  get preset() { return this.contract.preset(this.variant.preset); }
  get effective() { return this.effectiveOf(this.variant); }
  effectiveOf({ preset, overrides }) { return this.contract.merged(this.contract.preset(preset), overrides); }

  /** Sets a field of the chosen result, or removes it. A list replaces that of the preset as a whole. */
  set([name, ...rest], value) {
    const isInList = rest.length > 0 && this.contract.fieldAt([name]).isRepeated;
    const path = isInList ? [name] : [name, ...rest];
    let whole = isInList ? replaced(this.effective[name] ?? [], rest, value) : value;
    // The areas of faces are found.
    if (value === "REGION_SHAPE_FACES") whole = replaced(whole, [rest[0], "area"], undefined);
    if (isInList && value !== undefined) {
      for (const other of excludedBy(name, rest.slice(1))) whole = replaced(whole, [rest[0], ...other], undefined);
    }
    this.change({ overrides: replaced(this.overrides, path, whole) });
  }

  change(values) {
    Object.assign(this.variant, values);
    this.update();
    this.variant.runner.run(performance.now());
  }

  /** Begins with results from elsewhere; without any, with one of the preset that was chosen last. */
  restoreState(state) {
    const { contract } = this;
    const known = (name) => contract.presets.find((preset) => preset.name === name)?.name ?? contract.presets[0].name;
    const last = known(kept("preset"));
    const results = state?.results ?? [{ preset: last, overrides: contract.starting(last) }];
    for (const variant of this.variants.splice(0)) variant.runner.stop();
    for (const result of results.slice(0, letters.length)) {
      this.addVariant({ preset: known(result?.preset), overrides: contract.checked(result?.overrides) });
    }
    this.variant = this.variants[state?.chosen] ?? this.variants[0];
    this.mode = (modes.find(({ value }) => value === state?.mode) ?? modes[0]).value;
    /** The result that is left of the divider; undefined for the image before. */
    this.left = undefined;
  }

  /** What a reload keeps. */
  get state() {
    const results = this.variants.map(({ preset, overrides }) => ({ preset, overrides }));
    return { results, chosen: this.variants.indexOf(this.variant), mode: this.mode };
  }

  addVariant({ preset, overrides }) {
    const letter = [...letters].find((known) => !this.variants.some((variant) => variant.letter === known)) ?? "Z";
    const variant = { id: uniqueName(), letter, preset, overrides };
    variant.runner = new Runner(this, variant);
    this.variants.push(variant);
    return variant;
  }

  select(variant) {
    this.variant = variant;
    this.update();
    this.refreshReference();
  }

  remove(variant) {
    variant.runner.stop();
    this.variants.splice(this.variants.indexOf(variant), 1);
    if (variant === this.variant) this.variant = this.variants[0];
    this.update();
    $("cards").querySelector("[aria-checked=true]").focus();
  }

  // MARK: Images

  add(files) {
    return Promise.all(files.map((file) => this.addOne(file)));
  }

  /** Sends an image, and shows it unless it is for overlays. Returns it; undefined without success. */
  async addOne(file, isShown = true) {
    const limit = this.contract.limits.message;
    // The worker refuses it as well, but a browser reports that only when all of the file is on its way.
    if (file.size > limit) {
      toast(`${file.name}: the image has ${bytes(file.size)}, above max_message_bytes of ${bytes(limit)}`);
      return undefined;
    }
    try {
      const sent = await this.uploads.send(file, this.page);
      if (!sent) return undefined;
      const image = {
        id: sent.id, file, name: file.name || "image", bytes: file.size, info: sent.image.info, facts: sent.image,
      };
      this.images.push(image);
      this.editor.sizes.forget();
      if (isShown) this.choose(image);
      this.thumbnail(image);
      return image;
    } catch (error) { toast(`${file.name || "The image"}: ${error.message}`); }
    return undefined;
  }

  /** The names by which overlays refer to the images of this page. */
  get overlayNames() { return [...new Set(this.images.filter((image) => image !== this.image).map(({ name }) => stem(name)))]; }

  /** Adds an image for overlays. Returns its name; undefined without success. */
  async addOverlayImage(file) {
    const image = await this.addOne(file, false);
    return image && stem(image.name);
  }

  choose(image) {
    if (this.image !== image) this.stage.setZoom("fit");
    this.image = image;
    this.source = undefined;
    for (const variant of this.variants) Object.assign(variant, { result: undefined, preview: undefined, error: undefined, spans: undefined });
    document.body.classList.toggle("is-empty", !image);
    if (!image && this.editing) return this.edit(undefined);
    this.update();
    if (image) for (const variant of this.variants) variant.runner.run(performance.now());
    this.refreshSource();
  }

  forget(image) {
    api.remove(image.id);
    this.images.splice(this.images.indexOf(image), 1);
    this.editor.sizes.forget();
    if (image === this.image) this.choose(this.images[0]);
    this.showShelf();
    (this.images.length > 0 ? $("shelf").querySelector("[aria-pressed=true]") : $("choose")).focus();
  }

  /** Processes an image. Images that the worker has forgotten, for example while the machine slept, are sent again. */
  async process(image, call, handlers) {
    const others = this.overlayImages(call.request);
    const request = { ...call.request, auxiliary_images: others.map(({ name }) => ({ name: stem(name) })) };
    const send = () => api.process({ ...call, image: image.id, auxiliary: others.map(({ id }) => id), request }, handlers);
    try {
      await send();
    } catch (error) {
      if (error.status !== 410) throw error;
      const sent = new Map([image, ...others].map((one) => [one, one.id]));
      const present = await api.keep([...sent.values()]);
      // Another call may have sent one again meanwhile.
      const missing = [...sent].filter(([one, id]) => one.id === id && !present.includes(id));
      await Promise.all(missing.map(([gone]) => {
        gone.restored ??= this.restore(gone).finally(() => { gone.restored = undefined; });
        return gone.restored;
      }));
      await send();
    }
  }

  /** The images of this page that the overlays of a request name. */
  overlayImages({ preset, configuration }) {
    const overlays = configuration?.overlays ?? this.contract.preset(preset).overlays ?? [];
    const names = new Set(overlays.map(({ image }) => image));
    return this.images.filter(({ name }) => names.delete(stem(name)));
  }

  async restore(image) {
    image.id = (await api.upload(image.file, { page: this.page })).id;
    // It may be a worker that has started since then, at another address.
    this.contract.worker = (await api.get("/api/contract")).worker;
  }

  async thumbnail(image) {
    const request = { configuration: { max_width: 96, max_height: 96, preferred_format: "OUTPUT_FORMAT_JPEG", compression_quality: 0.8 } };
    try {
      await this.process(image, { view: `${this.page}-shelf-${image.id}`, side: 96, request }, {
        result: async ({ blob, header }) => { image.thumbnail = await decoded(blob, header); },
      });
    } catch { /* The name alone is shown. */ }
    this.showShelf();
  }

  // MARK: What results are compared with

  /** The image in the geometry of the chosen result, without loss. */
  get reference() { return this.references.get(this.referenceKey); }
  get referenceKey() {
    return this.image && JSON.stringify([this.image.id, this.referenceConfiguration]);
  }

  /** Before: without filters. For differences with them, so that what remains is due to compression. */
  get referenceConfiguration() {
    const { contract, effective } = this;
    const filters = contract.fields.find((field) => contract.shape(field) === "filters")?.name;
    const kept = this.mode === "difference" && effective[filters] ? { [filters]: effective[filters] } : {};
    return { ...contract.geometry(effective), ...kept };
  }

  async refreshReference() {
    const key = this.referenceKey;
    if (!this.image || this.contract.takesOnlyPresets || this.references.has(key)) return;
    if (!["compare", "difference", "side"].includes(this.mode)) return;
    const request = {
      configuration: { ...this.referenceConfiguration, preferred_format: "OUTPUT_FORMAT_PNG", png: { compression_level: 1 } },
    };
    try {
      await this.process(this.image, { view: `${this.page}-reference`, side: 64, request }, {
        result: async ({ blob, report }) => {
          const canvas = await decoded(blob, report.output);
          // The newest few: each is as large as a result.
          if (this.references.size >= 3) this.references.delete(this.references.keys().next().value);
          this.references.set(key, canvas);
        },
      });
    } catch { return; }
    this.show();
  }

  /** The image that a crop is drawn on: turned and mirrored as requested, and nothing else. */
  async refreshSource() {
    if (this.editing ? this.editor.isOnResult : this.mode !== "original") return;
    const kept = Object.entries(this.effective).filter(([name]) => /rotat|flip|^tolerate/.test(name));
    const key = JSON.stringify([this.image?.id, kept]);
    if (!this.image || this.source?.key === key) return;
    const configuration = {
      ...Object.fromEntries(kept), max_width: sourceSide, max_height: sourceSide, preferred_format: "OUTPUT_FORMAT_JPEG",
      compression_quality: 0.9,
    };
    try {
      await this.process(this.image, { view: `${this.page}-source`, side: 64, request: { configuration } }, {
        result: async ({ blob, header }) => { this.source = { key, canvas: await decoded(blob, header) }; },
      });
    } catch (error) {
      // What the result has failed with is shown already.
      if (error.message !== this.variant.error?.message) toast(error.message);
    }
    this.show();
  }

  // MARK: Editing on the image

  /** The name of the field that is edited on the image, and what it is edited with. */
  get editing() { return this.editor.name; }
  get overlay() { return this.editor.overlay; }

  /** Begins or ends to edit a place on the image. */
  edit(path) { this.editor.toggle(path); }
  started(field) { return started(this, field); }
  fromFractions(value, kind) { return this.editor.fromFractions(value, kind); }

  changeUnit(path, unit) {
    const value = valueAt(this.effective, path);
    const fractions = this.image && this.editor.toFractions(value, "rect");
    this.unit = unit;
    if (fractions) this.set(path, this.fromFractions(fractions, "rect"));
  }

  // MARK: Show

  update() {
    const { contract, variant } = this;
    // The result that is chosen now may lack what is edited.
    if (this.editor.show()) return;
    address(this.state);
    $("preset").value = variant.preset;
    $("preset-note").textContent = contract.presets.find((preset) => preset.name === variant.preset)?.description ?? "";
    $("reset").disabled = isSame(variant.overrides, contract.starting(variant.preset));
    $("duplicate").disabled = $("formats").disabled = this.variants.length >= letters.length;
    this.controls.update();
    this.showShelf();
    this.showHandover();
    this.show();
  }

  /** Shows images and figures of the present results. */
  show() {
    this.showStage();
    this.cards.update(this.variants, this.variant, this.image);
    this.controls.showError(this.variant.error);
    showTiming($("timing"), $("timing-note"), {
      spans: this.variant.spans, report: this.variant.result?.report, page: this.variant.times,
    });
    showMemory($("memory"), { report: this.variant.result?.report, limits: this.contract.limits, state: this.worker });
  }

  /** What stands for a result at the moment: the preview while the result is on its way. */
  shownOf(variant) {
    const { preview, result, isBusy } = variant;
    if (!(preview && (isBusy || !result))) return result && { canvas: result.canvas, layer: result.layer, size: result.report.output, isPreview: false };
    const known = result?.report.output ?? this.image.facts.output;
    const scale = Math.max(known.width, known.height) / Math.max(preview.canvas.width, preview.canvas.height);
    const size = { width: preview.canvas.width * scale, height: preview.canvas.height * scale };
    return { canvas: preview.canvas, layer: preview.canvas, size, isPreview: true };
  }

  /** An error in words, with the field that shows what there is of the image. */
  explained(error) {
    const field = error && { TRUNCATED_IMAGE: "tolerate_truncation", CORRUPT_IMAGE: "tolerate_damage" }[error.reason];
    return field && !this.effective[field] ? `${error.message}. “${label(field)}” shows what there is of it.` : error?.message;
  }

  showStage() {
    $("stage-note").hidden = $("sides").hidden = $("weight").hidden = $("outlines").hidden = true;
    this.outlines.element.remove();
    if (!this.image) return this.stage.arrange(0, false);
    const { editing } = this;
    $("modes").classList.toggle("is-away", Boolean(editing));
    $("editing").classList.toggle("is-away", !editing);
    const shown = this.shownOf(this.variant);
    const isSourceShown = editing ? !this.editor.isOnResult : this.mode === "original";
    const isMissing = isSourceShown ? !this.source : !shown;
    $("stage-note").firstChild.textContent = this.explained(this.variant.error) ?? (isSourceShown ? "Loading the image …" : "Working …");
    $("stage-note").hidden = !isMissing;
    this.difference = undefined;
    if (editing) return this.showEditing();
    this.showWeight();
    if (this.mode === "original") return this.showOriginal();
    if (this.mode === "side") return this.showSideBySide();
    const { reference } = this;
    if (this.mode === "difference" && reference && shown && !shown.isPreview) {
      const [pane] = this.stage.arrange(1, false);
      this.difference = difference(reference, shown.canvas, this.gain);
      pane.show([this.difference.canvas], shown.size, `difference ×${this.gain}`);
    } else {
      const other = this.variants.find(({ id }) => id === this.left);
      const before = other ? this.shownOf(other)?.layer : reference;
      const isDivided = this.mode === "compare" && before && shown;
      if (isDivided) this.showSides(other);
      const [pane] = this.stage.arrange(1, Boolean(isDivided));
      const badge = this.mode === "difference" ? "comparing …" : shown?.isPreview ? "preview" : "";
      pane.show(shown ? [shown.layer, isDivided ? before : undefined] : [], shown?.size, shown ? badge : "");
    }
    this.stage.place();
    this.showCaption();
  }

  /** What each side of the divider shows: either any result, or left the image before. */
  showSides(other) {
    const listed = this.variants.map(({ id }) => id).join();
    // New options would close a list that is open.
    if ($("sides").dataset.listed !== listed) {
      const options = this.variants.map(({ id, letter }) => h("option", { value: id, text: letter }));
      $("left").replaceChildren(h("option", { value: "", text: "before" }), ...options);
      $("right").replaceChildren(...options.map((option) => option.cloneNode(true)));
      $("sides").dataset.listed = listed;
    }
    $("left").value = other?.id ?? "";
    $("right").value = this.variant.id;
    $("sides").hidden = false;
  }

  /** The bytes of the result, on the image: a phone shows little else while a slider moves. */
  showWeight() {
    const { result, error, isBusy } = this.variant;
    $("weight").hidden = !result || Boolean(error) || (this.mode === "side" && !this.editing);
    $("weight").classList.toggle("is-busy", Boolean(isBusy));
    if (result) $("weight").textContent = `${bytes(result.blob.size)}  ${change(this.image.bytes, result.blob.size)}`;
  }

  showSideBySide() {
    const sources = [{ letter: "before", canvas: this.reference }, ...this.variants.map((variant) => ({ ...variant, ...this.shownOf(variant) }))]
      .filter(({ canvas }) => canvas);
    const panes = this.stage.arrange(Math.max(sources.length, 1), false);
    sources.forEach((source, index) => {
      const weight = source.result && !source.isBusy ? ` · ${source.result.report.output.format} ${bytes(source.result.blob.size)}` : "";
      panes[index].show([source.canvas], source.size ?? source.canvas, `${source.letter}${weight}`);
    });
    this.stage.place();
    this.showCaption();
  }

  showEditing() {
    const { editor, overlay } = this;
    const shown = this.shownOf(this.variant);
    const badge = this.variant.error ? "no result" : shown?.isPreview ? "preview" : shown ? "result" : "";
    const panes = this.stage.arrange(editor.isOnResult ? 1 : 2, false);
    const [pane] = panes;
    if (editor.isOnResult) {
      pane.show(shown ? [shown.layer] : [], shown?.size, editor.hint);
    } else {
      pane.show(this.source ? [this.source.canvas] : [], this.source?.canvas, this.source ? editor.hint : "");
      panes[1].show(shown ? [shown.layer] : [], shown?.size, badge);
      this.showOutlines(pane);
    }
    // An overlay may lie where the weight is.
    if (!editor.isOnResult) this.showWeight();
    $("remove").disabled = !editor.canRemove;
    // There is nothing to drag on yet.
    overlay.element.classList.toggle("is-waiting", pane.layers.length === 0);
    if (overlay.element.parentElement !== pane.sheet) pane.sheet.append(overlay.element);
    this.stage.place();
    this.editor.place();
    this.showCaption();
  }

  /** The image with what was found in it. */
  showOriginal() {
    const [pane] = this.stage.arrange(1, false);
    pane.show(this.source ? [this.source.canvas] : [], this.source?.canvas);
    this.showOutlines(pane);
    this.stage.place();
    this.showCaption();
  }

  /** The parts of the image that the newest result reports: {faces, hidden, kept, sides}; undefined without one. */
  get findings() {
    const { effective, contract, editor, variant: { result, error } } = this;
    if (!result || error) return undefined;
    const { report } = result;
    const { sides } = editor;
    const gravity = contract.fields.find(({ name }) => name === "gravity");
    const crop = effective.crop && editor.inPixels(effective.crop);
    const kept = keptPart({ report, effective, sides, crop, word: contract.word(gravity.typeName, effective.gravity ?? "") });
    return { faces: report.faces ?? [], hidden: report.hidden_regions ?? [], kept, sides };
  }

  /** Draws what was found and kept over the image before. */
  showOutlines(pane) {
    const { findings } = this;
    $("outlines").hidden = !findings || !this.source;
    const place = this.editing ? $("editing") : $("stage");
    if ($("outlines").parentElement !== place) place.append($("outlines"));
    if (!findings || !this.source || !this.showsOutlines) return;
    // What is being drawn needs no outline.
    const crop = this.editing === "crop" && this.effective.crop && this.editor.inPixels(this.effective.crop);
    this.outlines.show({
      ...findings, kept: isSamePart(findings.kept, crop) ? undefined : findings.kept,
      hidden: this.editing?.startsWith("regions") ? [] : findings.hidden,
    });
    pane.sheet.insertBefore(this.outlines.element, pane.sheet.querySelector(".overlay"));
  }

  showCaption() {
    this.showZoom();
    const { image, variant, difference: delta } = this;
    const { result } = variant;
    const parts = [`${image.name}: ${image.info.format} ${image.info.width}×${image.info.height}, ${bytes(image.bytes)}`];
    if (image.info.gain_map) parts.push(gainMapText(image.info.gain_map));
    if (result && !variant.error) parts.push(`result: ${result.report.output.format} ${result.report.output.width}×${result.report.output.height}, ${bytes(result.blob.size)}`);
    if (delta) {
      parts.push(`mean difference ${delta.mean.toFixed(2)} of 255, largest ${delta.largest}, ${(delta.share * 100).toFixed(1)} % of pixels`);
    }
    const { findings } = this;
    if (findings && (this.editing || this.mode === "original")) parts.push(...outlined(findings));
    if (this.latencies.length > 0) parts.push(`preview after ${milliseconds(this.latencies.at(-1))}`);
    this.gainControl ??= this.makeGain();
    $("caption").replaceChildren(...parts.map((text) => h("span", { text })));
    this.gainControl.hidden = this.mode !== "difference" || Boolean(this.editing);
    if (!this.gainControl.isConnected) $("caption").after(this.gainControl);
  }

  /** How much differences are amplified. */
  makeGain() {
    const slider = h("input", {
      id: "gain", type: "range", min: 1, max: 32, value: this.gain,
      oninput: () => {
        this.gain = Number(slider.value);
        fill();
        this.showStage();
      },
    });
    const fill = () => slider.style.setProperty("--share", (this.gain - 1) / 31);
    fill();
    return h("div", { class: "gain" }, h("label", { for: "gain", text: "Amplify the difference" }), slider);
  }

  showZoom() {
    const zoom = this.stage.zoom === "fit" ? "fit" : this.stage.scale;
    for (const button of $("zooms").children) {
      if (button.dataset.zoom) button.setAttribute("aria-pressed", String(button.dataset.zoom === String(zoom)));
    }
    $("zoom-value").textContent = this.stage.panes[0]?.layers.length > 0 ? `${Math.round(this.stage.scale * 100)}\u00a0%` : "";
  }

  showShelf() {
    const focused = [...$("shelf").querySelectorAll("button")].indexOf(document.activeElement);
    $("shelf").replaceChildren(...this.images.map((image) => {
      const button = h("button", {
        type: "button", class: "chip", "aria-pressed": String(image === this.image), title: image.name, onclick: () => this.choose(image),
      }, h("span", { text: image.name }));
      if (image.thumbnail) button.prepend(image.thumbnail);
      const close = h("button", { type: "button", class: "why", text: "×", "aria-label": `Close ${image.name}`, onclick: () => this.forget(image) });
      return h("span", { class: "chip-pair" }, button, close);
    }), h("button", { type: "button", class: "plain add", text: this.images.length > 0 ? "+" : "Add images", "aria-label": "Add images", onclick: () => $("files").click() }));
    // The buttons are new ones.
    if (focused >= 0) $("shelf").querySelectorAll("button")[focused]?.focus();
  }

  showHandover() {
    const { contract, variant } = this;
    this.form ??= forms[0];
    const { preset, overrides } = variant;
    const named = this.overlayImages({ preset, configuration: overrides });
    const given = {
      contract, preset, overrides, effective: this.effective, overlays: Object.fromEntries(named.map(({ name }) => [stem(name), name])),
      file: this.image?.name ?? "photo.jpg", format: variant.result?.report.output.format ?? this.image?.info.format ?? "jpeg",
    };
    $("code").firstChild.textContent = this.form.write(given);
    $("code-note").textContent = [this.form.note, named.length > 0 && this.form.overlayNote].filter(Boolean).join(" ");
    this.showForms?.(this.form.name);
  }

  async refreshState() {
    try { this.worker = await api.get("/api/state"); } catch { return; }
    const { memoryUsed, memoryBuffered, memoryLimit } = this.worker;
    const used = memoryUsed + memoryBuffered;
    const [bar, text] = $("gauge").children;
    bar.style.setProperty("--share", Math.min(used / memoryLimit, 1));
    text.textContent = `${mebibytes(used)} of ${mebibytes(memoryLimit)}`;
    $("gauge").setAttribute("aria-label", `Memory of the worker: ${text.textContent}`);
    showMemory($("memory"), { report: this.variant.result?.report, limits: this.contract.limits, state: this.worker });
  }

  // MARK: Buttons

  bind() {
    const { contract } = this;
    $("preset").replaceChildren(...contract.presets.map(({ name }) => h("option", { value: name, text: name })));
    $("preset").addEventListener("change", () => this.choosePreset($("preset").value));
    $("reset").addEventListener("click", () => this.change({ overrides: contract.starting(this.variant.preset) }));
    $("left").addEventListener("change", () => {
      this.left = $("left").value || undefined;
      this.show();
    });
    $("right").addEventListener("change", () => this.select(this.variants.find(({ id }) => id === $("right").value)));
    addEventListener("hashchange", () => {
      this.restoreState(addressed());
      this.setMode(this.mode);
      this.choose(this.image);
    });
    $("duplicate").addEventListener("click", () => {
      const variant = this.addVariant(this.variant);
      if (this.image) variant.runner.run(performance.now());
      this.select(variant);
    });
    $("formats").addEventListener("click", () => this.compareFormats());
    const showMode = choices($("modes"), modes, (mode) => {
      this.mode = mode;
      showMode(mode);
      address(this.state);
      this.show();
      this.refreshReference();
      this.refreshSource();
    });
    showMode(this.mode);
    this.setMode = (mode) => {
      if (this.editing) this.edit(undefined);
      $("modes").querySelector(`[data-value=${mode}]`).click();
    };
    const order = [...Object.keys(tools), ...contract.fields.map(({ name }) => name)];
    const edited = contract.fields.filter((field) => contract.isEdited(field))
      .sort((first, second) => order.indexOf(first.name) - order.indexOf(second.name));
    $("tools").replaceChildren(...edited.map((field) => h("button", {
      type: "button", text: tools[field.name]?.text ?? label(field.name), title: tools[field.name]?.title ?? `Choose ${field.name} on the image`,
      "aria-pressed": "false", onclick: () => (field.isRepeated ? this.editor.toggleList(field) : this.edit([field.name])), dataset: { path: field.name },
    })));
    $("done").addEventListener("click", () => this.edit(undefined));
    $("remove").addEventListener("click", () => this.editor.remove());
    const outline = (isShown) => {
      this.showsOutlines = isShown;
      $("outlines").setAttribute("aria-checked", isShown);
    };
    outline(kept("outlines") !== "hidden");
    $("outlines").addEventListener("click", () => {
      outline(!this.showsOutlines);
      keep("outlines", this.showsOutlines ? "shown" : "hidden");
      this.show();
    });
    this.bindZoom();
    this.showForms = choices($("languages"), forms.map(({ name }) => ({ value: name, label: name })), (name) => {
      this.form = forms.find((form) => form.name === name);
      this.showHandover();
    }, "tab");
    $("copy").addEventListener("click", async () => {
      const text = $("code").textContent;
      try {
        await navigator.clipboard.writeText(text);
        toast("Copied.");
      } catch {
        getSelection().selectAllChildren($("code"));
        toast("The browser does not allow copying here. The text is selected.");
      }
    });
    this.bindFiles();
    const update = this.update.bind(this);
    this.update = () => {
      update();
      for (const button of $("tools").children) button.setAttribute("aria-pressed", String(this.editing?.split(".")[0] === button.dataset.path));
    };
  }

  bindZoom() {
    const zoom = (value, label, title) => h("button", { type: "button", text: label, title, dataset: { zoom: value }, "aria-pressed": "false", onclick: () => this.stage.setZoom(value) });
    $("zooms").replaceChildren(
      zoom("fit", "Fit", "The whole image (0)"), zoom(1, "1:1", "One pixel for one (1)"), zoom(8, "8:1", "Eight times (8)"),
      h("button", { type: "button", text: "−", "aria-label": "Zoom out", onclick: () => this.stage.step(0.5) }),
      h("output", { id: "zoom-value", "aria-label": "Zoom" }),
      h("button", { type: "button", text: "+", "aria-label": "Zoom in", onclick: () => this.stage.step(2) }));
    this.showZoom();
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=range]), select, textarea")) return;
      const act = {
        0: () => this.stage.setZoom("fit"), 1: () => this.stage.setZoom(1), 8: () => this.stage.setZoom(8),
        c: () => this.setMode("compare"), s: () => this.setMode("side"), d: () => this.setMode("difference"), r: () => this.setMode("result"), o: () => this.setMode("original"),
        Escape: () => this.editing && this.edit(undefined),
      }[event.key];
      if (act && this.image) act();
    });
  }

  bindFiles() {
    $("choose").addEventListener("click", () => $("files").click());
    $("files").addEventListener("change", () => {
      this.add([...$("files").files]);
      $("files").value = "";
    });
    $("sample").addEventListener("click", async () => this.add([await testChart()]));
    for (const name of ["dragenter", "dragover"]) {
      document.addEventListener(name, (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        document.body.classList.add("is-dropping");
      });
    }
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) document.body.classList.remove("is-dropping");
    });
    document.addEventListener("drop", (event) => {
      document.body.classList.remove("is-dropping");
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
    document.addEventListener("paste", (event) => {
      if (event.clipboardData?.files.length) this.add([...event.clipboardData.files]);
    });
    setInterval(() => this.images.length > 0 && api.keep(this.images.map(({ id }) => id)).catch(() => {}), 60_000);
  }

  choosePreset(preset) {
    const { contract, variant } = this;
    const isUntouched = isSame(variant.overrides, contract.starting(variant.preset));
    keep("preset", preset);
    this.change({ preset, overrides: isUntouched ? contract.starting(preset) : variant.overrides });
  }

  /** Adds a result for each lossy format that looks the same, as equal qualities do not; all else as in the chosen one. */
  compareFormats() {
    const field = this.contract.fields.find(({ name }) => name === "preferred_format");
    const similarity = this.effective.target_similarity ?? comparedSimilarity;
    const { preset, overrides } = this.variant;
    for (const word of ["jpeg", "webp", "avif"]) {
      const format = this.contract.enums[field.typeName].find((choice) => choice.word === word)?.name;
      // No quality above this one is tried.
      const wanted = { ...overrides, preferred_format: format, target_similarity: similarity, compression_quality: 1 };
      const isThere = this.variants.some((variant) => variant.preset === preset && isSame(variant.overrides, wanted));
      if (!format || isThere || this.variants.length >= letters.length) continue;
      this.addVariant({ preset, overrides: wanted }).runner.run(performance.now());
    }
    this.update();
    this.setMode("side");
  }
}

/** The name of a file without its extension. */
const stem = (name) => name.replace(/\.[^.]*$/, "");

/** Whether two rectangles are equal up to rounding. */
const isSamePart = (first, second) =>
  Boolean(first && second) && ["x", "y", "width", "height"].every((name) => Math.abs(first[name] - second[name]) < 1);

/** Whether two records say the same, in whatever order. */
function isSame(first, second) {
  const sorted = (value) => (value !== null && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort().map(([name, part]) => [name, sorted(part)])) : value);
  return JSON.stringify(sorted(first)) === JSON.stringify(sorted(second));
}

function bindTheme() {
  const names = { "": "as the system", light: "light", dark: "dark" };
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    $("theme").setAttribute("aria-label", `Color scheme: ${names[theme]}`);
    $("theme").title = `Color scheme: ${names[theme]}`;
  };
  const order = Object.keys(names);
  const theme = kept("theme");
  show(order.includes(theme) ? theme : "");
  $("theme").addEventListener("click", () => {
    const next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % order.length];
    show(next);
    keep("theme", next);
  });
}

bindTheme();
try {
  const [description, { presets }] = await Promise.all([api.get("/api/contract"), api.get("/api/presets")]);
  globalThis.playground = new Playground(new Contract(description, presets));
  globalThis.playground.refreshState();
} catch (error) { toast(`The worker does not answer: ${error.message}`); }
