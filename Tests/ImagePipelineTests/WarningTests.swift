import ImagePipeline
import Testing

@Suite("Warning")
struct WarningTests {
  private static let (small, large) = (PixelSize(width: 3, height: 4), PixelSize(width: 50, height: 60))

  @Test("dropped frames name what keeps them, as the format may be why there is one")
  func droppedFrames() {
    let message = Warning.droppedFrames(2, isMinimum: false).message
    #expect(message.contains("set max_frames, and preferred_format to one of png, webp, gif"), "\(message)")
  }

  /// Warnings with values, of which each differs from the others.
  private static let warnings: [(Warning, Warning.Code, [String: String])] = [
    (.damaged(row: 7, height: 90), .damaged, ["row": "7", "height": "90"]),
    (.ignoredTargetSimilarity(small), .targetSimilarityIgnored, ["width": "3", "height": "4"]),
    (
      .missedTargetSimilarity(0.25, becauseOf: "max_bytes"), .targetSimilarityMissed,
      ["similarity": "0.25", "field": "max_bytes"]
    ),
    (
      .reducedSize(small, planned: large), .sizeReduced,
      ["width": "3", "height": "4", "planned_width": "50", "planned_height": "60"]
    ),
    (
      .reducedQuality(0.5, requested: 0.75, imageByteCount: 9), .qualityReduced,
      ["quality": "0.5", "requested_quality": "0.75", "image_bytes": "9"]
    ),
    (
      .reducedQuality(0.5, requested: nil, imageByteCount: 9), .qualityReduced,
      ["quality": "0.5", "requested_quality": "lossless", "image_bytes": "9"]
    ),
    (
      .largerThanImage(byteCount: 20, imageByteCount: 9, note: ""), .largerThanImage,
      ["bytes": "20", "image_bytes": "9"]
    ),
    (.droppedFrames(11, isMinimum: true), .framesDropped, ["frames": "11"]),
    (.missingFaces(field: "gravity"), .facesNotFound, ["field": "gravity"]),
    (.missingFaces(field: "regions"), .facesNotFound, ["field": "regions"]),
    (.cutFaces(7, kept: 2), .facesCut, ["faces": "7", "kept": "2"]),
    (
      .changedColorSpace(requested: .keep, because: .gray), .colorSpaceChanged,
      ["color_space": "keep", "cause": "gray"]
    ),
    (.reducedBitDepth(because: .filters), .bitDepthReduced, ["cause": "filters"]),
    (.removedGainMap(because: .damage), .gainMapRemoved, ["cause": "damage"]),
    (.changedFormat("webp", planned: "avif"), .formatChanged, ["format": "webp", "planned_format": "avif"]),
  ]

  @Test("the values of a message are its parameters")
  func parameters() {
    for (warning, code, parameters) in Self.warnings {
      #expect(warning.code == code && warning.parameters == parameters, "\(warning)")
      for value in parameters.values { #expect(warning.message.contains(value), "\(warning)") }
    }
  }

  @Test("each code has a warning of its own")
  func codes() {
    let plain: [Warning] = [
      .brokenEXIF, .firstImageOnly, .repairedDamage, .damagedWithoutLoss, .lateOrientation, .missingEnd, .truncated,
      .unusableProfile, .ignoredScaleFactor, .uncheckedDamage, .ignoredNeverLarger, .removedCredentials,
      .ignoredTrim,
    ]
    #expect(plain.allSatisfy { $0.parameters.isEmpty && !$0.message.isEmpty })
    let codes = plain.compactMap(\.code) + Self.warnings.map(\.1)
    #expect(Set(codes) == Set(Warning.Code.allCases) && Set(plain.map(\.message)).count == plain.count)
  }
}
