// The same request in other forms. Each gives the same bytes.

import { label } from "/model.js";

/** The forms in the order of their tabs: `write` is called with {contract, preset, overrides, effective, file, format}, and
 * `overlays`, the files of images of this page by the names that overlays have for them. */
export const forms = [
  { name: "grpcurl", write: grpcurl, note: "Needs grpcurl and jq." },
  { name: "Preset", write: yaml, note: "For image-worker serve --presets presets.yaml; requests then name it.",
    overlayNote: "Its overlays are files in the directory of --overlays, or auxiliary_images of requests." },
  { name: "Command", write: command, note: "Without a server. A preset of your own needs --presets with its file." },
  { name: "Python", write: python, note: "Needs the package image-worker-client: pip install ./clients/python" },
  { name: "Swift", write: swift, note: "The main.swift of a program with the product ImageWorkerClient of this package." },
];

const quoted = (text) => (/^[\w./,:=%@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const extension = (format) => ({ jpeg: "jpg" }[format] ?? format ?? "bin");
const result = ({ format }) => `result.${extension(format)}`;

/** The value of a field with short names for choices; `visit` writes scalars and lists. */
function short(contract, field, value) {
  const one = (element) => {
    if (field.type === "enum") return contract.word(field.typeName, element);
    if (field.type !== "message") return element;
    const inner = contract.fieldsOf(field.typeName);
    return Object.fromEntries(inner.filter(({ name }) => element[name] !== undefined)
      .map((known) => [known.name, short(contract, known, element[known.name])])
      .filter(([, part]) => !(part !== null && typeof part === "object" && Object.keys(part).length === 0)));
  };
  return field.isRepeated ? value.map(one) : one(value);
}

/** The set fields of a configuration in the contract's order: [field, value with short names]. */
function entries(contract, configuration) {
  return contract.fields.filter(({ name }) => configuration[name] !== undefined)
    .map((field) => [field, short(contract, field, configuration[field.name])]);
}

// MARK: grpcurl

function grpcurl({ contract, preset, overrides, file, format, overlays }) {
  const { address, isSecure } = contract.worker;
  const configuration = Object.keys(overrides).length > 0 ? `, configuration: ${JSON.stringify(overrides)}` : "";
  const flags = isSecure ? "-max-msg-sz 67108864" : "-plaintext -max-msg-sz 67108864";
  const named = Object.entries(overlays);
  const files = named.map(([, overlay], index) => ` --rawfile overlay${index + 1} <(base64 -w0 ${quoted(overlay)})`).join("");
  const images = named.map(([name], index) => `{name: ${JSON.stringify(name)}, image: $overlay${index + 1}}`);
  const program = `{image: ., preset: ${JSON.stringify(preset)}${configuration}${images.length > 0 ? `, auxiliary_images: [${images.join(", ")}]` : ""}}`;
  return [
    `base64 -w0 ${quoted(file)} |`,
    `  jq -R${files} '${program.replaceAll("'", "'\\''")}' |`,
    `  grpcurl ${flags} -d @ ${quoted(address)} imageworker.v1.ImageWorkerService/ProcessImage |`,
    `  jq -r '.chunk // empty' | base64 -d > ${result({ format })}`,
  ].join("\n");
}

// MARK: YAML

/** A value in YAML's flow style; words of the contract need no quotes, except those that YAML takes for others. */
function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([name, part]) => `${name}: ${flow(part)}`).join(", ")}}`;
  }
  const isPlain = typeof value !== "string" || /^[a-z_][\w-]*$/.test(value) && !/^(true|false|yes|no|on|off|null|y|n)$/.test(value);
  return isPlain ? String(value) : JSON.stringify(value);
}

function yaml({ contract, effective }) {
  const lines = entries(contract, effective).flatMap(([field, value]) => field.isRepeated
    ? [`    ${field.name}:`, ...value.map((element) => `      - ${flow(element)}`)]
    : [`    ${field.name}: ${flow(value)}`]);
  return ["presets:", "  tuned:", "    description: Tuned in the playground.", ...lines].join("\n");
}

// MARK: The command line

const fraction = (number) => (Number.isInteger(number) ? `${number}.0` : String(number));

/** The text of an element of a list. */
function elementText(contract, field, element) {
  if (contract.shape(field) === "filters") {
    const { name, intensity = 0, parameters = {} } = element;
    return [`${name}=${intensity}`, ...Object.entries(parameters).map(([key, number]) => `${key}=${number}`)].join(",");
  }
  const inner = (message) => contract.fieldsOf(message.typeName).filter(({ name }) => element[name] !== undefined);
  return contract.rectOf(field) ? regionText(contract, inner(field), element) : overlayText(contract, inner(field), element);
}

/** A region: a rectangle or "faces", and what is shown instead. */
function regionText(contract, fields, { shape, effect, ...element }) {
  const texts = fields.filter(({ name }) => element[name] !== undefined)
    .map((field) => optionText(contract, field, element[field.name]));
  return [shape === "faces" && shape, ...texts.slice(0, 1), shape === "ellipse" && shape, effect, ...texts.slice(1)].filter(Boolean).join(",");
}

/** An overlay: the name of its image, or its text, and further fields. */
function overlayText(contract, fields, element) {
  const pairs = (known, message) => known.filter(({ name }) => message[name] !== undefined)
    .map((field) => `${field.name.replaceAll("_", "-")}=${optionText(contract, field, message[field.name])}`);
  const others = pairs(fields.filter(({ name }) => name !== "image" && name !== "text"), element);
  const text = fields.find(({ name }) => name === "text");
  if (!text) return [element.image ?? "", ...others].join(",");
  const escaped = (part) => part.replace(/[\\,]/g, "\\$&").replaceAll("\n", "\\n");
  return [...pairs(contract.fieldsOf(text.typeName), element.text), ...others].map(escaped).join(",");
}

/** The text of an option, by the shape of its field. */
function optionText(contract, field, value) {
  switch (contract.shape(field)) {
    case "point": return `${value.x ?? 0},${value.y ?? 0}`;
    case "rect": {
      const spelled = value.unit === "fractions" ? fraction : String;
      const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => spelled(value[name] ?? 0));
      return `${x},${y},${width}x${height}`;
    }
    case "color":
      return `#${["red", "green", "blue"].map((name) => (value[name] ?? 0).toString(16).padStart(2, "0")).join("")}`;
    case "enum": return value.replaceAll("_", "-");
    default: return String(value);
  }
}

function options(contract, path, field, value) {
  if (contract.shape(field) === "options") {
    return contract.fieldsOf(field.typeName).filter(({ name }) => value[name] !== undefined)
      .flatMap((inner) => options(contract, [...path, inner.name], inner, value[inner.name]));
  }
  const option = contract.option(path);
  if (!option) return [];
  if (option.kind === "flag") return [`--${value ? "" : "no-"}${option.name}`];
  if (option.kind === "list") return value.map((element) => `--${option.name} ${quoted(elementText(contract, field, element))}`);
  return [`--${option.name} ${quoted(optionText(contract, field, value))}`];
}

function command({ contract, preset, overrides, effective, file, overlays }) {
  // The command line has a default of its own for the quality.
  const exact = preset === "default" ? { compression_quality: effective.compression_quality ?? 1, ...overrides } : overrides;
  // An overlay names its file.
  const listed = exact.overlays?.map((overlay) => (overlay.image ? { ...overlay, image: overlays[overlay.image] ?? overlay.image } : overlay));
  const all = entries(contract, listed ? { ...exact, overlays: listed } : exact).flatMap(([field, value]) => options(contract, [field.name], field, value));
  return [`image-worker process ${quoted(file)} --preset ${quoted(preset)}`, ...all, "--out results"].join(" \\\n  ");
}

// MARK: Python

function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value === true) return "True";
  if (value === false) return "False";
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${literal(part)}`).join(", ")}}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function python({ contract, preset, overrides, file, format, overlays }) {
  const { address, isSecure } = contract.worker;
  const fields = entries(contract, overrides).map(([field, value]) => `        ${field.name}=${literal(value)},`);
  return [
    "from image_worker import Client",
    "",
    `with Client(${JSON.stringify(address)}${isSecure ? ", tls=True" : ""}) as client:`,
    "    result = client.process(",
    `        ${JSON.stringify(file)}, preset=${JSON.stringify(preset)},`,
    ...(Object.keys(overlays).length > 0 ? [`        auxiliary_images=${literal(overlays)},`] : []),
    ...fields,
    "    )",
    `    result.save(${JSON.stringify(result({ format }))})`,
  ].join("\n");
}

// MARK: Swift

/** The name of a field as Swift's generated code spells it. */
export const swiftName = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** The name of a choice; the name of its enum is left out, except before a digit. */
export const swiftChoice = (field, word) =>
  (/^\d/.test(word) ? field.typeName.replace(/^./, (letter) => letter.toLowerCase()) + swiftName(word) : swiftName(word));

/** A text as a literal of Swift, whose escapes for control characters differ from those of JSON. */
function swiftText(text) {
  const escaped = text.replace(/[\\"]/g, "\\$&")
    .replace(/[\0-\x1f\x7f\u2028\u2029]/g, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
  return `"${escaped}"`;
}

function swiftLiteral(contract, field, value) {
  if (field.isRepeated) {
    const elements = value.map((element) => swiftLiteral(contract, { ...field, isRepeated: false }, element));
    return `[\n${elements.map((element) => `      ${element},\n`).join("")}    ]`;
  }
  switch (field.type) {
    case "enum": return `.${swiftChoice(field, value)}`;
    case "string": return swiftText(value);
    case "map": return `[${Object.entries(value).map(([name, part]) => `${swiftText(name)}: ${part}`).join(", ")}]`;
    case "message":
      return `.with { ${swiftFields(contract, field, value).map(([path, part]) => `$0.${path} = ${part}`).join("; ")} }`;
    default: return String(value);
  }
}

/** The set fields of a message: [name, literal]. */
function swiftFields(contract, field, value) {
  return contract.fieldsOf(field.typeName).filter(({ name }) => value[name] !== undefined)
    .map((inner) => [swiftName(inner.name), swiftLiteral(contract, inner, value[inner.name])]);
}

/** The statements that set a field; those of a message set its fields one by one. */
function assignments(contract, field, value) {
  const name = `    fields.${swiftName(field.name)}`;
  if (field.type !== "message" || field.isRepeated) return [`${name} = ${swiftLiteral(contract, field, value)}`];
  const parts = swiftFields(contract, field, value);
  return parts.length > 0 ? parts.map(([part, literal]) => `${name}.${part} = ${literal}`) : [`${name} = .init()`];
}

function swift({ contract, preset, overrides, file, format, overlays }) {
  const { address, isSecure } = contract.worker;
  const fields = entries(contract, overrides).flatMap(([field, value]) => assignments(contract, field, value));
  const named = Object.entries(overlays).map(([name, overlay]) => `${swiftText(name)}: [UInt8](Data(contentsOf: URL(fileURLWithPath: ${swiftText(overlay)})))`);
  const images = named.length > 0 ? `, auxiliaryImages: [${named.join(", ")}]` : "";
  const call = `  let result = try await client.process(.file(${swiftText(file)}), preset: ${swiftText(preset)}${images})`;
  return [
    ...(images ? ["import Foundation"] : []),
    "import ImageWorkerClient",
    "",
    `try await withClient(${swiftText(address)}${isSecure ? ", tls: TLS()" : ""}) { client in`,
    ...(fields.length > 0 ? [`${call} { fields in`, ...fields, "  }"] : [call]),
    `  try await result.save(to: ${swiftText(result({ format }))})`,
    "}",
  ].join("\n");
}

/** A name for a result by what sets it apart. */
export function title(contract, { preset, overrides }) {
  const all = entries(contract, overrides);
  const words = all.filter(([field]) => field.type === "enum").map(([, value]) => value);
  const others = all.filter(([field]) => field.type !== "enum").map(([field]) => label(field.name).toLowerCase());
  const names = [...words.slice(0, 2), others.length > 1 ? `${others.length} fields` : others[0]].filter(Boolean);
  return [preset, ...names].join(" + ");
}
