import Foundation

/// A small network that takes bright spots for faces, and images of them.
///
/// `Tests/Fuzz/network_seed.py` made the file, and printed what TensorFlow Lite finds with it. The networks that are trained
/// for faces are not part of the repository.
package enum SpotFaces {
  /// The file of the network, which the fuzzer starts from, too.
  package static let path = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "../Fuzz/seeds/spots.network"
  ).path

  /// The bytes of that file.
  package static let network: [UInt8] = {
    do { return try [UInt8](Data(contentsOf: URL(filePath: path))) } catch {
      preconditionFailure("\(path) cannot be read: \(error)")
    }
  }()

  /// The samples of a dark background with bright squares.
  package static func samples(width: Int, height: Int, _ spots: [(x: Int, y: Int, side: Int)]) -> [UInt8] {
    var samples = [UInt8](repeating: 60, count: 3 * width * height)
    for spot in spots {
      for row in spot.y..<spot.y + spot.side {
        for column in spot.x..<spot.x + spot.side {
          let first = 3 * (row * width + column)
          samples.replaceSubrange(first..<first + 3, with: [250, 240, 230])
        }
      }
    }
    return samples
  }
}
