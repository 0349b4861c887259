import Foundation
import ImageCodecs
import ImageKernels
import Testing

/// Photographs and their scores by the reference implementation, as `similarity.py` writes them.
enum ScoredImages {
  static let scores: [(name: String, score: Double)] = {
    guard let text = try? String(contentsOf: url("scores.txt"), encoding: .utf8) else { return [] }
    return text.split(separator: "\n").compactMap { line in
      let fields = line.split(separator: " ")
      return Double(fields[1]).map { (String(fields[0]), $0) }
    }
  }()

  private static func url(_ name: String) -> URL {
    Bundle.module.bundleURL.appendingPathComponent("Similarity").appendingPathComponent(name)
  }

  /// Returns the rows of an image as RGB; its file contains the red, the green and the blue plane, one above the other,
  /// so that every decoder returns the same samples.
  static func rows(_ name: String) throws -> RowBuffer {
    let planes = try planes(name)
    let (width, height) = (planes.rowByteCount, planes.rowCount / 3)
    let rows = try RowBuffer(rowByteCount: width * 3, rowCount: height, budget: ImageBudget(limit: 1 << 24))
    for (index, row) in planes.rows(count: planes.rowCount).contents.enumerated() {
      rows.withMutableRow(index % height) { span in
        for x in row.indices { span[3 * x + index / height] = row[x] }
      }
    }
    return rows
  }

  private static func planes(_ name: String) throws -> RowBuffer {
    let budget = ImageBudget(limit: 1 << 26)
    let bytes = [UInt8](try Data(contentsOf: url(name + ".jpg")))
    let limits = CodecLimits(maxPixels: 1 << 20, maxBufferedPixels: 1 << 20, maxScans: 10)
    var decoder = try Decoder(format: .jpeg, limits: limits, budget: budget)
    var offset = try decoder.readHeader(bytes.span.bytes, isLast: true).consumedByteCount
    let layout = try decoder.start(scale: 8)
    #expect(layout.format == .gray8)
    let rows = try RowBuffer(
      rowByteCount: layout.planes[0].width, rowCount: layout.planes[0].height, budget: budget)
    var rowCount = 0
    while rowCount < rows.rowCount {
      let progress = try decoder.read(bytes.span.bytes.extracting(droppingFirst: offset), isLast: true)
      offset += progress.consumedByteCount
      guard progress.value == .stripReady else { break }
      decoder.withStrip { strip in
        rows.write(strip.plane(0), at: rowCount)
        rowCount += strip.plane(0).rowCount
      }
    }
    #expect(rowCount == rows.rowCount)
    return rows
  }
}

@Suite("Image similarity")
struct ImageSimilarityTests {
  @Test("the score is that of the reference implementation within 0.1", arguments: ScoredImages.scores.map(\.name))
  func agrees(name: String) throws {
    let expected = try #require(ScoredImages.scores.first { $0.name == name }).score
    let reference = try ScoredImages.rows(String(name.prefix { $0 != "-" }))
    let result = try ScoredImages.rows(name)
    let similarity = try ImageSimilarity(
      width: reference.rowByteCount / 3, height: reference.rowCount, format: .rgb8,
      budget: ImageBudget(limit: 1 << 24))
    similarity.push(
      reference: reference.rows(count: reference.rowCount), result: result.rows(count: result.rowCount))
    #expect(abs(similarity.score - expected) < 0.1)
  }

  @Test("there are twelve scores of three photographs")
  func isComplete() {
    #expect(ScoredImages.scores.count == 12)
  }

  @Test("an image with alpha is compared over both backgrounds, and all memory is charged")
  func charges() throws {
    let budget = ImageBudget(limit: 1 << 24)
    let similarity = try ImageSimilarity(width: 16, height: 16, format: .rgba8, budget: budget)
    let estimate = ImageSimilarity.estimatedByteCount(width: 16, height: 16, format: .rgba8)
    #expect(budget.used >= estimate && budget.used < estimate + 1024)
    // Black that becomes transparent is invisible over a dark background only.
    let black = try buffer([[UInt8]](repeating: (0..<64).map { $0 % 4 == 3 ? 255 : 0 }, count: 16))
    let clear = try buffer([[UInt8]](repeating: [UInt8](repeating: 0, count: 64), count: 16))
    similarity.push(reference: black.rows(count: 16), result: clear.rows(count: 16))
    #expect(similarity.score < 90)
  }

  @Test("a result in another pixel format is compared as the image it shows")
  func formats() throws {
    func score(_ format: PixelFormat, _ reference: [UInt8], _ other: PixelFormat, _ result: [UInt8]) throws -> Double {
      let similarity = try ImageSimilarity(
        width: 9, height: 9, format: format, resultFormat: other, budget: ImageBudget(limit: 1 << 24))
      func rows(_ pixel: [UInt8]) throws -> RowBuffer {
        try buffer([[UInt8]](repeating: (0..<9).flatMap { _ in pixel }, count: 9))
      }
      let buffers = (try rows(reference), try rows(result))
      withExtendedLifetime(buffers) {
        similarity.push(reference: buffers.0.rows(count: 9), result: buffers.1.rows(count: 9))
      }
      return similarity.score
    }
    #expect(try score(.rgba8, [10, 20, 30, 255], .rgb8, [10, 20, 30]) == 100)
    #expect(try score(.rgba8, [20, 20, 20, 255], .gray8, [20]) == 100)
    #expect(try score(.rgb8, [10, 20, 30], .rgba8, [10, 20, 30, 7]) == 100)
    #expect(try score(.gray8, [50], .rgb8, [50, 50, 50]) == 100)
    #expect(try score(.rgba8, [10, 20, 30, 255], .rgb8, [200, 20, 30]) < 90)
    #expect(throws: CodecError.self) { try score(.ycc8, [1], .ycc8, [1]) }
  }

  @Test("small images and exhausted budgets are refused")
  func refuses() {
    #expect(throws: CodecError.self) {
      try ImageSimilarity(width: 7, height: 16, format: .rgb8, budget: ImageBudget(limit: 1 << 24))
    }
    #expect(throws: CodecError.self) {
      try ImageSimilarity(width: 800, height: 16, format: .rgb8, budget: ImageBudget(limit: 1 << 10))
    }
    #expect(ImageSimilarity.estimatedByteCount(width: 7, height: 16, format: .rgb8) == 0)
  }
}
