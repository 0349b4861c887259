internal import ImagePipeline
internal import WorkerProtocol

extension JPEGOptions {
  init(_ wire: Imageworker_V1_JPEGOptions) throws(PipelineError) {
    self.init(
      isProgressive: wire.hasProgressive ? wire.progressive : nil,
      optimizesHuffman: wire.hasOptimizeHuffman ? wire.optimizeHuffman : nil,
      restartRows: wire.hasRestartRows ? Int(wire.restartRows) : nil)
    guard wire.hasChromaSubsampling else { return }
    switch wire.chromaSubsampling {
    case .unspecified: break
    case .chromaSubsampling444: chromaSubsampling = .full
    case .chromaSubsampling422: chromaSubsampling = .half
    case .chromaSubsampling420: chromaSubsampling = .quarter
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "jpeg.chroma_subsampling")
    }
  }
}

extension PNGOptions {
  init(_ wire: Imageworker_V1_PNGOptions) throws(PipelineError) {
    self.init(
      compressionLevel: wire.hasCompressionLevel ? Int(wire.compressionLevel) : nil,
      isInterlaced: wire.hasInterlaced ? wire.interlaced : nil,
      paletteColors: wire.hasPaletteColors ? Int(wire.paletteColors) : nil)
    guard wire.hasFilter else { return }
    switch wire.filter {
    case .unspecified: break
    case .adaptive: filter = .adaptive
    case .none: filter = .unfiltered
    case .sub: filter = .sub
    case .up: filter = .up
    case .average: filter = .average
    case .paeth: filter = .paeth
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "png.filter")
    }
  }
}

extension WebPOptions {
  init(_ wire: Imageworker_V1_WebPOptions) {
    self.init(
      isLossless: wire.hasLossless ? wire.lossless : nil,
      nearLossless: wire.hasNearLossless ? Int(wire.nearLossless) : nil,
      method: wire.hasMethod ? Int(wire.method) : nil)
  }
}

extension Imageworker_V1_JPEGOptions {
  init(_ options: JPEGOptions) {
    self.init()
    if let isProgressive = options.isProgressive { progressive = isProgressive }
    if let optimizes = options.optimizesHuffman { optimizeHuffman = optimizes }
    if let rows = options.restartRows { restartRows = UInt32(rows) }
    switch options.chromaSubsampling {
    case nil: break
    case .full: chromaSubsampling = .chromaSubsampling444
    case .half: chromaSubsampling = .chromaSubsampling422
    case .quarter: chromaSubsampling = .chromaSubsampling420
    }
  }
}

extension Imageworker_V1_PNGOptions {
  init(_ options: PNGOptions) {
    self.init()
    if let level = options.compressionLevel { compressionLevel = UInt32(level) }
    if let isInterlaced = options.isInterlaced { interlaced = isInterlaced }
    if let colors = options.paletteColors { paletteColors = UInt32(colors) }
    switch options.filter {
    case nil: break
    case .adaptive: filter = .adaptive
    case .unfiltered: filter = .none
    case .sub: filter = .sub
    case .up: filter = .up
    case .average: filter = .average
    case .paeth: filter = .paeth
    }
  }
}

extension Imageworker_V1_WebPOptions {
  init(_ options: WebPOptions) {
    self.init()
    if let isLossless = options.isLossless { lossless = isLossless }
    if let level = options.nearLossless { nearLossless = UInt32(level) }
    if let method = options.method { self.method = UInt32(method) }
  }
}
