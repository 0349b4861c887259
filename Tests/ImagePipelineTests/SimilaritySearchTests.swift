import Foundation
import ImageCodecs
import Testing

@testable import ImagePipeline

/// Searches with scores by a formula instead of images.
@Suite("The search for a similarity")
struct SimilaritySearchTests {
  private let scale = QualityScale(curve: .libjpeg, isFine: true)

  /// Returns the score of a photograph that has 78 at quality 75, and more where chroma is full.
  private func score(_ step: Int, slope: Double, jump: Double = 0) -> Double {
    let distance = 22 * exp(slope * (scale.coarseness(step) - scale.coarseness(scale.step(75))))
    return 100 - distance + (step >= scale.step(90) ? jump : 0)
  }

  /// Returns the number of trials, and the lowest quality that reaches a target.
  private func search(
    _ target: Double, from first: Int, score: (Int) -> Double
  ) -> (trialCount: Int, step: Int) {
    var search = SimilaritySearch(
      scale: scale, target: SimilarityTarget(score: target, maxQuality: 100), limit: .max, floor: scale.step(1),
      adaptsChroma: true, isPredicted: true)
    var (trialCount, lowest) = (0, Int.max)
    var next: Int? = first
    while let step = next {
      trialCount += 1
      if score(step) >= target { lowest = min(lowest, step) }
      search.note(quality: step, byteCount: UInt64(step), score: score(step))
      next = search.next
    }
    return (trialCount, lowest)
  }

  @Test("few trials reach a target closely, however scores rise with the quality", arguments: [60.0, 70, 76])
  func isShort(target: Double) {
    for slope in [0.35, 0.65, 1.2] {
      for miss in [-5, -2, 2, 5.0] {
        let first = (scale.step(1)...scale.step(89)).first { score($0, slope: slope) >= target + miss } ?? 0
        let found = search(target, from: first) { score($0, slope: slope) }
        let excess = score(found.step, slope: slope) - target
        #expect(found.trialCount <= 4 && (0...1).contains(excess), "\(slope), \(miss): \(found), \(excess) above")
      }
    }
  }

  @Test("a target that only full chroma reaches gets the lowest quality that has it", arguments: [86, 88, 91.5])
  func jump(first: Double) {
    let found = search(88, from: Int(first * Double(scale.steps))) { score($0, slope: 0.65, jump: 6) }
    #expect(found.step == scale.step(90) && found.trialCount <= 4, "\(found)")
  }
}
