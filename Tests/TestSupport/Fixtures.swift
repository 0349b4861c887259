internal import Foundation

/// The pictures that the tests bring along, with what an independent decoder (Pillow) makes of them.
public struct Fixture: Decodable, Sendable {
  /// After orientation.
  public var width: Int
  /// After orientation.
  public var height: Int
  public var alpha: Bool
  public var orientation: Int
  /// Mean red, green and blue, flattened on white.
  public var mean: [Double]
  /// Red, green and blue two pixels inside each corner: top left, top right, bottom left, bottom right.
  public var corners: [[Int]]?

  private struct File: Decodable {
    var files: [String: Fixture]
  }

  /// Every fixture that is a whole picture, by file name.
  public static let all: [String: Fixture] = {
    guard let data = try? Data(contentsOf: url("expectations.json")),
      let file = try? JSONDecoder().decode(File.self, from: data)
    else { preconditionFailure("the fixtures' expectations can't be read") }
    return file.files
  }()

  public static let names: [String] = all.keys.sorted()

  public static func named(_ name: String) -> Fixture {
    guard let fixture = all[name] else { preconditionFailure("no fixture \(name)") }
    return fixture
  }

  public static func bytes(_ name: String) -> [UInt8] {
    guard let data = try? Data(contentsOf: url(name)) else { preconditionFailure("no fixture \(name)") }
    return [UInt8](data)
  }

  private static func url(_ name: String) -> URL {
    Bundle.module.bundleURL.appendingPathComponent("Fixtures").appendingPathComponent(name)
  }
}

/// The shared collection of test pictures, where this checkout has it beside it.
public enum Corpus {
  /// What is expected of one file.
  public struct Expectation: Decodable, Sendable {
    public var want: String
    public var width: Int?
    public var height: Int?
    public var mean_rgb: [Double]?
  }

  private struct File: Decodable {
    var files: [String: Expectation]
  }

  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("shared/corpus")

  /// Empty where there is no collection.
  public static let expectations: [String: Expectation] = {
    guard let data = try? Data(contentsOf: root.appendingPathComponent("expect.json")),
      let file = try? JSONDecoder().decode(File.self, from: data)
    else { return [:] }
    return file.files
  }()

  public static func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: root.appendingPathComponent(name)))
  }
}
