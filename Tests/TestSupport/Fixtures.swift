internal import Foundation
internal import ImageCodecs

/// A test image and the properties that an independent decoder (Pillow) reports for it.
package struct Fixture: Decodable, Sendable {
  /// Width in pixels after orientation is applied.
  package var width: Int
  /// Height in pixels after orientation is applied.
  package var height: Int
  package var alpha: Bool
  package var orientation: Int
  /// Mean red, green and blue over a white background.
  package var mean: [Double]
  /// The same as displayed with the gamma that a PNG states; `nil` for a gamma like that of sRGB, and without one.
  package var displayed: [Double]?
  /// Red, green and blue two pixels inside each corner: top left, top right, bottom left, bottom right.
  package var corners: [[Int]]?

  private struct File: Decodable {
    var files: [String: Fixture]
  }

  /// Every fixture that is a complete image, by file name.
  package static let all: [String: Fixture] = {
    guard let data = try? Data(contentsOf: url("expectations.json")),
      let file = try? JSONDecoder().decode(File.self, from: data)
    else { preconditionFailure("the fixtures' expectations can't be read") }
    return file.files
  }()

  /// Names of the fixtures whose format this build decodes.
  package static let names: [String] = all.keys.filter { name in
    let optional: [String: ImageFormat] = ["tiff": .tiff, "avif": .avif, "heic": .heic, "jxl": .jxl]
    return name.split(separator: ".").last.flatMap { optional[String($0)] }?.isDecodable ?? true
  }.sorted()

  package static func named(_ name: String) -> Fixture {
    guard let fixture = all[name] else { preconditionFailure("no fixture \(name)") }
    return fixture
  }

  package static func bytes(_ name: String) -> [UInt8] {
    guard let data = try? Data(contentsOf: url(name)) else { preconditionFailure("no fixture \(name)") }
    return [UInt8](data)
  }

  private static func url(_ name: String) -> URL {
    Bundle.module.bundleURL.appendingPathComponent("Fixtures").appendingPathComponent(name)
  }
}

/// The shared collection of test images, if this checkout has it next to it.
package enum Corpus {
  /// The expected result for one file.
  package struct Expectation: Decodable, Sendable {
    package var want: String
    package var width: Int?
    package var height: Int?
    /// Mean red, green and blue after libvips' conversion to sRGB; `nil` without a profile.
    package var convertedMean: [Double]?

    private enum CodingKeys: String, CodingKey {
      case want, width, height
      case convertedMean = "mean_srgb_after_icc"
    }
  }

  private struct File: Decodable {
    var files: [String: Expectation]
  }

  private static let root = repository.deletingLastPathComponent().appendingPathComponent("shared/corpus")

  /// The expected results by file name; empty if there is no collection.
  package static let expectations: [String: Expectation] = {
    guard let data = try? Data(contentsOf: root.appendingPathComponent("expect.json")),
      let file = try? JSONDecoder().decode(File.self, from: data)
    else { return [:] }
    return file.files
  }()

  package static var isPresent: Bool { !expectations.isEmpty }

  /// The reason for skipping its tests, which the test run prints.
  package static let absence = "there is no collection of images at ../shared/corpus"

  package static func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: root.appendingPathComponent(name)))
  }
}

private let repository = URL(fileURLWithPath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

/// Inputs that once had defects, which fuzzers begin with.
package enum Crasher {
  private static let root = repository.appendingPathComponent("Tests/Fuzz/crashers")

  /// The names of all files whose format this build decodes, with their folders.
  package static let names: [String] = {
    let paths = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
    return paths.filter { (try? bytes($0)).flatMap { ImageFormat.sniff($0.span.bytes) }?.isDecodable ?? false }.sorted()
  }()

  package static func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: root.appendingPathComponent(name)))
  }
}

/// Returns the text of a document of this repository.
package func document(_ path: String) throws -> String {
  try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
}
