import Foundation
import ImagePipeline

/// A detector whose "faces" are dark squares in the middle of bright ones of twice their size, and images of them.
///
/// The worker's own detector is data that is not part of the repository.
package enum SquareFaces {
  /// The file of the detector, which the fuzzer starts from, too.
  package static let path = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "../Fuzz/seeds/squares.cascade"
  ).path

  /// The text of that file.
  package static let cascade: String = {
    do { return try String(contentsOfFile: path, encoding: .utf8) } catch {
      preconditionFailure("\(path) cannot be read: \(error)")
    }
  }()

  /// Makes this the detector of the process, which all tests that find faces use.
  package static func use() { _ = used }

  private static let used: Void = {
    do { try FaceDetection.use(path: path) } catch { preconditionFailure("no detector for tests: \(error)") }
  }()

  /// The samples of a gray background with faces.
  /// - `faces`: The left and top edges and the side of each.
  package static func samples(width: Int, height: Int, _ faces: [(x: Int, y: Int, side: Int)]) -> [UInt8] {
    var samples = [UInt8](repeating: 128, count: 3 * width * height)
    for face in faces {
      let inner = face.side / 4..<face.side - face.side / 4
      for row in 0..<face.side {
        for column in 0..<face.side {
          let first = 3 * ((face.y + row) * width + face.x + column)
          let level: UInt8 = inner.contains(row) && inner.contains(column) ? 30 : 200
          for channel in 0..<3 { samples[first + channel] = level }
        }
      }
    }
    return samples
  }
}
