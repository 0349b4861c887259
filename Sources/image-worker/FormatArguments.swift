internal import ArgumentParser
internal import ImagePipeline

/// The options of single formats that the local command takes.
struct FormatArguments: ParsableArguments {
  @Flag(help: "JPEG: make it progressive.")
  var progressive = false
  @Option(help: "JPEG: size of chroma planes, 444, 422 or 420. Default: by the quality.")
  var chroma: ChromaSubsampling?
  @Flag(help: "JPEG: make Huffman tables for the picture.")
  var optimizeHuffman = false
  @Option(help: "JPEG: rows of MCUs between restart markers, 0 for none.")
  var restartRows: Int?
  @Option(help: "PNG: 0 (fastest) to 9 (smallest). Default: 3.")
  var compressionLevel: Int?
  @Option(help: "PNG: how rows are told by their neighbours: adaptive, none, sub, up, average or paeth.")
  var pngFilter: PNGFilter?
  @Flag(help: "PNG: interlace it.")
  var interlaced = false
  @Option(help: "PNG: most colours of a palette, 2 to 256; 0 for none.")
  var paletteColors: Int?
  @Flag(help: "WebP: make it lossless.")
  var lossless = false
  @Option(help: "WebP: lossless, but so near only: 0 (smallest) to 100 (the picture itself).")
  var nearLossless: Int?
  @Option(help: "WebP: 0 (fastest) to 6 (smallest). Default: 4.")
  var webpMethod: Int?

  var jpeg: JPEGOptions {
    JPEGOptions(
      isProgressive: progressive ? true : nil, chromaSubsampling: chroma,
      optimizesHuffman: optimizeHuffman ? true : nil, restartRows: restartRows)
  }

  var png: PNGOptions {
    PNGOptions(
      compressionLevel: compressionLevel, isInterlaced: interlaced ? true : nil, paletteColors: paletteColors,
      filter: pngFilter)
  }

  var webp: WebPOptions {
    WebPOptions(isLossless: lossless ? true : nil, nearLossless: nearLossless, method: webpMethod)
  }
}

extension ChromaSubsampling: ExpressibleByArgument {}
extension PNGFilter: ExpressibleByArgument {}
