internal import Fields
internal import FoundationEssentials
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

extension InferenceRequest {
  /// Reads the inputs and the requested outputs of a call.
  /// - Throws: `invalidField` naming the first field that is not one of an image model.
  init(_ wire: Inference_ModelInferRequest) throws(PipelineError) {
    try Self.checkParameters(wire.parameters, "parameters")
    guard wire.inputs.count == 1 else {
      throw Self.invalid("inputs", "has \(wire.inputs.count) tensors; send one, \"\(InferenceModel.input)\"")
    }
    let input = wire.inputs[0]
    try Self.checkParameters(input.parameters, "inputs[0].parameters")
    for (field, value, expected) in [
      ("name", input.name, InferenceModel.input), ("datatype", input.datatype, "BYTES"),
    ] where value != expected {
      throw Self.invalid("inputs[0].\(field)", "is \"\(value.beginning)\"; it must be \"\(expected)\"")
    }
    let count = try Self.imageCount(input.shape)
    guard wire.id.utf8.count <= Self.maxIDByteCount else {
      throw Self.invalid("id", "has \(wire.id.utf8.count) bytes; at most \(Self.maxIDByteCount) are accepted")
    }
    id = wire.id
    outputs = try Self.outputs(wire.outputs)
    images = try Self.images(wire, count: count)
  }

  private static func invalid(_ field: String, _ problem: String) -> PipelineError {
    PipelineError(.invalidField, "\(field) \(problem)", field: field, of: .message)
  }

  private static func checkParameters(_ parameters: [String: Inference_InferParameter], _ field: String)
    throws(PipelineError)
  {
    guard let name = parameters.keys.min() else { return }
    throw invalid(field, "has \"\(name.beginning)\"; parameters are not supported, leave them unset")
  }

  /// Returns the number of images from the shape of the input.
  private static func imageCount(_ shape: [Int64]) throws(PipelineError) -> Int {
    let isVector = shape.count == 1 || shape.count == 2 && shape[1] == 1
    guard isVector, let count = shape.first, (1...Int64(maxImageCount)).contains(count) else {
      throw invalid(
        "inputs[0].shape",
        "is \(Array(shape.prefix(8))); it must be [N] or [N, 1] for 1 to \(maxImageCount) images")
    }
    return Int(count)
  }

  /// Returns the requested outputs; the tensor, if there are none.
  private static func outputs(
    _ outputs: [Inference_ModelInferRequest.InferRequestedOutputTensor]
  ) throws(PipelineError) -> Set<InferenceOutput> {
    var found: Set<InferenceOutput> = []
    for (index, output) in outputs.enumerated() {
      let field = "outputs[\(index)]"
      try checkParameters(output.parameters, "\(field).parameters")
      guard let named = InferenceOutput(rawValue: output.name) else {
        let names = InferenceOutput.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        throw invalid("\(field).name", "is \"\(output.name.beginning)\"; it must be one of \(names)")
      }
      guard found.insert(named).inserted else {
        throw invalid("\(field).name", "is \"\(output.name)\", which another output has, too")
      }
    }
    return found.isEmpty ? [.tensor] : found
  }

  // MARK: Images

  private static func images(_ wire: Inference_ModelInferRequest, count: Int) throws(PipelineError) -> [Data] {
    let input = wire.inputs[0]
    guard !input.hasContents else {
      guard wire.rawInputContents.isEmpty else {
        throw invalid("inputs[0].contents", "cannot be combined with raw_input_contents; leave one of them unset")
      }
      return try checked(input.contents.bytesContents, count, field: "inputs[0].contents.bytes_contents")
    }
    guard wire.rawInputContents.count == 1 else {
      throw invalid(
        "raw_input_contents",
        "has \(wire.rawInputContents.count) elements; it must have one, with all images, unless they are in "
          + "inputs[0].contents.bytes_contents")
    }
    return try checked(elements(of: wire.rawInputContents[0], count), count, field: "raw_input_contents[0]")
  }

  private static func checked(_ images: [Data], _ count: Int, field: String) throws(PipelineError) -> [Data] {
    guard images.count == count else {
      throw invalid(field, "has \(images.count) images; the shape of the input has \(count)")
    }
    return images
  }

  /// Returns the elements of a serialized tensor, each of which follows its number of bytes; one more than `maxCount` if
  /// there are too many.
  private static func elements(of contents: Data, _ maxCount: Int) throws(PipelineError) -> [Data] {
    var (rest, elements) = (contents, [Data]())
    while !rest.isEmpty, elements.count <= maxCount {
      let prefix = rest.prefix(4)
      let byteCount = prefix.reversed().reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard prefix.count == 4, byteCount <= rest.count else {
        let problem = prefix.count < 4 ? "in its length" : "where \(rest.count) of \(byteCount) bytes are left"
        throw invalid("raw_input_contents[0]", "ends within image \(elements.count), \(problem)")
      }
      elements.append(rest.prefix(byteCount))
      rest = rest.dropFirst(byteCount)
    }
    return elements
  }
}

extension Inference_ModelMetadataResponse {
  init(_ model: InferenceModel) {
    self.init()
    name = model.name
    versions = [InferenceModel.version]
    platform = "image_worker_preset"
    if !model.description.isEmpty { properties = ["description": model.description] }
    let shape = TensorShape(model.configuration)
    inputs = [Self.tensor(InferenceModel.input, "BYTES", [-1])]
    outputs = InferenceOutput.allCases.map { output in
      let type = output.type(shape)
      return Self.tensor(output.rawValue, type.datatype, [-1] + type.shape)
    }
  }

  private static func tensor(_ name: String, _ datatype: String, _ shape: [Int64]) -> TensorMetadata {
    .with { ($0.name, $0.datatype, $0.shape) = (name, datatype, shape) }
  }
}
