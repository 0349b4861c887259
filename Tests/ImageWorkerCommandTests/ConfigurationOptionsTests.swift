import ArgumentParser
import Fields
import ImageCodecs
import ImagePipeline
import SwiftProtobuf
import Testing
import WorkerProtocol

@testable import image_worker

@Suite("Configuration options")
struct ConfigurationOptionsTests {
  private static func configuration(_ arguments: String...) throws -> ProcessingConfiguration {
    try ConfigurationOptions.parse(arguments).configuration
  }

  /// Returns the paths of the contract's fields that have a value of their own.
  private static func paths(of type: String, _ path: [String] = []) throws -> [[String]] {
    let files = try Google_Protobuf_FileDescriptorSet(serializedBytes: DescriptorSet.serialized).file
    let message = files.flatMap { file in file.messageType.map { (".\(file.package).\($0.name)", $0) } }
      .first { $0.0 == type }?.1
    return try #require(message, "\(type)").field.flatMap { field in
      field.typeName.hasSuffix("Options") || field.typeName.hasSuffix(".Trim")
        ? try paths(of: field.typeName, path + [field.name]) : [path + [field.name]]
    }
  }

  @Test("there is an option for each field of the contract")
  func contract() throws {
    let fields = try Self.paths(of: ".imageworker.v1.ProcessingConfiguration")
    #expect(fields.count >= 32)
    let options = ConfigurationTable.fields.map(\.path)
    #expect(Set(options) == Set(fields), "without an option: \(Set(fields).subtracting(options))")
    #expect(options.count == fields.count && Set(ConfigurationTable.fields.map(\.name)).count == fields.count)
  }

  @Test("each option has help in --help of process, batch and inspect")
  func help() {
    for help in [
      image_worker.Process.helpMessage(columns: 200), Batch.helpMessage(columns: 200),
      Inspect.helpMessage(columns: 200),
    ] {
      for field in ConfigurationTable.fields { #expect(help.contains("--\(field.name)"), "\(field.name)") }
      #expect(help.contains("10,20,300x200") && help.contains("between 1 and 65500"))
    }
  }

  @Test("sizes, positions, colors and formats have the expected spelling")
  func values() throws {
    let read = try Self.configuration(
      "--max-width", "300", "--max-height", "200", "--quality", "0.5", "--scale-factor", "2", "--format", "webp",
      "--resize-mode", "fill", "--gravity", "top-left", "--focus-point", "0.3,0.7", "--crop", "10,20,300x200",
      "--background", "#0a80ff", "--max-bytes", "1000", "--target-similarity", "82.5", "--metadata",
      "keep-copyright", "--rotation", "90", "--frame-index=-2", "--max-frames", "0")
    let expected = ProcessingConfiguration(
      maxWidth: 300, maxHeight: 200, compressionQuality: 0.5, scaleFactor: 2, preferredFormat: .webp, resizeMode: .fill,
      gravity: .northWest, focusPoint: Point(x: 0.3, y: 0.7), crop: Crop(x: 10, y: 20, width: 300, height: 200),
      rotation: 90, background: Color(red: 10, green: 128, blue: 255), maxBytes: 1000, metadata: .keepCopyright,
      targetSimilarity: 82.5, frameIndex: FrameIndex(-2), maxFrames: 0)
    #expect(read == expected)
    #expect(
      try Self.configuration("--crop", "0.1,0.1,0.5x0.5").crop
        == Crop(unit: .fractions, x: 0.1, y: 0.1, width: 0.5, height: 0.5))
    #expect(try Self.configuration("--background", "#fff").background == .white)
    for (text, gravity) in [("center", Gravity.center), ("north-east", .northEast), ("bottom", .south)] {
      #expect(try Self.configuration("--gravity", text).gravity == gravity)
    }
    #expect(try Self.configuration() == ProcessingConfiguration())
  }

  @Test("regions are areas with a shape, an effect and a color, and each option of trim turns it on")
  func regions() throws {
    let read = try Self.configuration(
      "--region", "10,20,300x200", "--region", "0.1,0.2,0.5x0.25,blur,ellipse", "--region", "1,2,3x4,#0a80ff",
      "--region", "faces,pixelate",
      "--trim-threshold", "20", "--trim-color", "#fff", "--trim-equal-vertical")
    let expected = ProcessingConfiguration(
      trim: Trim(threshold: 20, color: .white, isEqualVertically: true),
      regions: [
        Region(area: Crop(x: 10, y: 20, width: 300, height: 200)),
        Region(
          shape: .ellipse, area: Crop(unit: .fractions, x: 0.1, y: 0.2, width: 0.5, height: 0.25), effect: .blur),
        Region(area: Crop(x: 1, y: 2, width: 3, height: 4), color: Color(red: 10, green: 128, blue: 255)),
        Region(shape: .faces, area: nil, effect: .pixelate),
      ])
    #expect(read == expected)
    for text in ["10,20", "1,2,0x4", "1,2,3x4,round", "1,2,3x4,", "1,2,3x4,faces", "faces,ellipse", "faces,1,2,3x4"] {
      #expect(throws: (any Error).self) { try Self.configuration("--region", text) }
    }
    #expect(throws: (any Error).self) { try Self.configuration("--trim-threshold", "256") }
  }

  @Test("flags are set, cleared or absent")
  func flags() throws {
    let read = try Self.configuration(
      "--pad", "--no-allow-upscale", "--flip-horizontal", "--flip-vertical", "--always-encode", "--allow-smaller",
      "--tolerate-truncation", "--tolerate-damage", "--progressive", "--no-interlaced")
    let expected = ProcessingConfiguration(
      allowUpscale: false, pad: true, flipHorizontal: true, flipVertical: true, tolerateTruncation: true,
      alwaysEncode: true, tolerateDamage: true, allowSmallerDimensions: true, jpeg: JPEGOptions(isProgressive: true),
      png: PNGOptions(isInterlaced: false))
    #expect(read == expected)
  }

  @Test("format options and filters are parsed")
  func formats() throws {
    let read = try Self.configuration(
      "--chroma", "422", "--optimize-huffman", "--restart-rows", "3", "--compression-level", "9", "--png-filter",
      "none",
      "--near-lossless", "60", "--webp-method", "0", "--lossless", "--filter", "sepia=0.5", "--filter",
      "blur=1,radius=4")
    let expected = ProcessingConfiguration(
      filters: [Filter(name: "sepia", intensity: 0.5), Filter(name: "blur", parameters: ["radius": 4])],
      jpeg: JPEGOptions(chromaSubsampling: .half, optimizesHuffman: true, restartRows: 3),
      png: PNGOptions(compressionLevel: 9, filter: .unfiltered),
      webp: WebPOptions(isLossless: true, nearLossless: 60, method: 0))
    #expect(read == expected)
  }

  @Test(
    "an error names the option, the value and the accepted values",
    arguments: [
      (["--max-width", "0"], ["--max-width is 0", "between 1 and 65500"]),
      (["--max-width", "wide"], ["--max-width is \"wide\"", "a whole number"]),
      (["--quality", "1.5"], ["--quality is 1.5", "between 0 and 1"]),
      (["--crop", "10,20"], ["--crop is \"10,20\"", "10,20,300x200", "0.1,0.1,0.5x0.5"]),
      (["--crop", "0.5,0.5,0.6x0.5"], ["exceed the image"]),
      (["--crop", "1,2,0x4"], ["--crop.width is 0", "above 0"]),
      (["--focus-point", "2,0"], ["--focus-point.x is 2", "between 0 and 1"]),
      (["--focus-point", "0.5"], ["--focus-point is \"0.5\"", "0.3,0.7"]),
      (["--background", "white"], ["--background is \"white\"", "#rrggbb"]),
      (["--background", "#12345g"], ["--background", "#rrggbb"]),
      (["--gravity", "up"], ["--gravity is \"up\"", "top-left"]),
      (["--format", "bmp"], ["--format is \"bmp\"", "original, jpeg, png, webp, avif, gif, jxl, auto"]),
      (["--resize-mode", "crop"], ["--resize-mode is \"crop\"", "fit, fill or stretch"]),
      (["--rotation", "45"], ["--rotation is 45", "0, 90, 180 or 270"]),
      (["--metadata", "all"], ["--metadata is \"all\"", "strip, keep-copyright, keep-all or selected"]),
      (["--compression-level", "10"], ["--compression-level is 10", "between 0 and 9"]),
      (["--filter", "sepias"], ["--filter \"sepias\"", "grayscale"]),
      (["--filter", "blur=1,radius"], ["--filter", "radius=4"]),
      (["--max-widht", "4"], ["--max-widht"]),
    ] as [([String], [String])])
  func errors(arguments: [String], parts: [String]) {
    do {
      _ = try ConfigurationOptions.parse(arguments)
      Issue.record("\(arguments) is accepted")
    } catch {
      let message = ConfigurationOptions.message(for: error)
      for part in parts { #expect(message.contains(part), "\(message)") }
    }
  }

  @Test("an error of the whole configuration spells fields as options")
  func wholeConfiguration() throws {
    let options = try ResultOptions.parse(["--resize-mode", "fill", "--max-width", "9"])
    let error = #expect(throws: PipelineError.self) { try options.requested }
    #expect(error?.message == "--resize-mode fill needs both --max-width and --max-height; set both")
  }

  @Test("a rendition has a name and options, which override the command's")
  func renditions() throws {
    let options = try ResultOptions.parse([
      "--preset", "thumbnail", "--format", "png", "--rendition", "small: --max-width 300 --crop 1,2,3x4", "--rendition",
      "other:--preset favicon --format webp --metadata-title \u{301}e",
    ])
    let requested = try options.requested
    #expect(requested.results.map(\.id) == ["small", "other"] && requested.suffixes == ["-small", "-other"])
    let (small, other) = (requested.results[0].configuration, requested.results[1].configuration)
    #expect(small.maxWidth == 300 && small.maxHeight == 720 && small.preferredFormat == .png && small.crop?.height == 4)
    #expect(other.maxWidth == 64 && other.preferredFormat == .webp && other.crop == nil)
    #expect(other.metadataTitle == "\u{301}e")
  }

  static let seventeen: [String] = (0..<17).flatMap { ["--rendition", "\($0):"] }

  @Test(
    "a rendition that cannot be read is named",
    arguments: [
      (["--rendition", "small"], "name, a colon and options"),
      (["--rendition", ": --max-width 3"], "between 1 and 64"),
      (["--rendition", "a/b: --max-width 3"], "no slash"), (["--rendition", "a/\u{301}: --max-width 3"], "no slash"),
      (["--rendition", "a: --max-width 0"], "--max-width is 0"),
      (["--rendition", "a: --max-widht 1"], "--rendition \"a\""), (["--rendition", "a: b"], "--rendition \"a\""),
      (["--rendition", "a:", "--rendition", "a: --pad"], "twice"),
      (["--rendition", "a:", "--preview"], "request a small rendition instead"),
      (["--rendition", "a: --resize-mode fill"], "--resize-mode fill needs both --max-width and --max-height"),
      (seventeen, "at most 16"),
      (["--preset", "nothing"], "compressedThumbnail"),
    ] as [([String], String)])
  func badRenditions(arguments: [String], part: String) throws {
    do {
      _ = try ResultOptions.parse(arguments).requested
      Issue.record("\(arguments) is accepted")
    } catch {
      let message = (error as? PipelineError)?.message ?? ResultOptions.message(for: error)
      #expect(message.contains(part), "\(message)")
    }
  }
}
