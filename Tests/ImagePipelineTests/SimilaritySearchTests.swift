import Foundation
import ImageCodecs
import Testing

@testable import ImagePipeline

/// Searches with scores by a formula instead of images.
@Suite("The search for a similarity")
struct SimilaritySearchTests {
  private let scale = QualityScale(curve: .libjpeg, isFine: true)

  /// Returns the score of a photograph that has 78 at quality 75, and of which chroma makes a part of the distance to 100.
  private func score(_ step: Int, slope: Double, chroma: Double = 1) -> Double {
    100 - chroma * 22 * exp(slope * (scale.coarseness(step) - scale.coarseness(scale.step(75))))
  }

  /// Returns the number of trials, and the lowest quality that reaches a target, with the score it has.
  private func search(
    _ target: Double, from first: Int, hasFullChroma: Bool = false, score: (Int, Bool) -> Double
  ) -> (trialCount: Int, step: Int, hasFullChroma: Bool, score: Double) {
    var search = SimilaritySearch(
      scale: scale, target: SimilarityTarget(score: target, maxQuality: 100, choosesChroma: true), limit: .max,
      floor: scale.step(1), hasFullChroma: hasFullChroma, isPredicted: true)
    var (trialCount, found) = (0, (step: Int.max, hasFullChroma: false, score: 0.0))
    var next: Int? = first
    while let step = next {
      trialCount += 1
      let score = score(step, search.hasFullChroma)
      if score >= target, step < found.step { found = (step, search.hasFullChroma, score) }
      search.note(quality: step, byteCount: UInt64(step), score: score)
      next = search.next()
    }
    return (trialCount, found.step, found.hasFullChroma, found.score)
  }

  @Test("few trials reach a target closely, however scores rise with the quality", arguments: [60.0, 70, 76])
  func isShort(target: Double) {
    for slope in [0.35, 0.65, 1.2] {
      for miss in [-5, -2, 2, 5.0] {
        let first = (scale.step(1)...scale.step(89)).first { score($0, slope: slope) >= target + miss } ?? 0
        let found = search(target, from: first) { step, _ in score(step, slope: slope) }
        let excess = found.score - target
        #expect(found.trialCount <= 4 && (0...1).contains(excess), "\(slope), \(miss): \(found), \(excess) above")
      }
    }
  }

  @Test(
    "a target that only full chroma reaches gets a quality below that of full chroma, whose score is near",
    arguments: [70, 86, 89.9], [0.45, 0.65, 0.8])
  func fullChroma(first: Double, chroma: Double) {
    // Reduced chroma has 87 at the highest quality below 90.
    for target in [88.5, 90, 92] {
      let found = search(target, from: Int(first * Double(scale.steps))) { step, isFull in
        score(step, slope: 0.65, chroma: isFull ? chroma : 1)
      }
      #expect(found.hasFullChroma && found.trialCount <= 5 && found.score <= target + 1, "\(found)")
    }
  }

  @Test("a target that reduced chroma reaches keeps it", arguments: [70, 80, 89.9])
  func reducedChroma(first: Double) {
    for target in [80, 84, 86.5] {
      let found = search(target, from: Int(first * Double(scale.steps))) { step, isFull in
        score(step, slope: 0.65, chroma: isFull ? 0.7 : 1)
      }
      #expect(!found.hasFullChroma && found.score <= target + 1, "\(found)")
    }
  }
}
