import Testing

@testable import ImagePipeline

@Suite("Tone curves")
struct ToneCurveTests {
  private static let steps = ToneCurve.formula(share: 1) { ($0 * 5).rounded(.down) / 5 }
  private static let sepia = FilterEffect.color(.matrix(.sepia))

  private func chain(_ effects: [FilterEffect]) -> FilterChain {
    FilterChain(effects.map { (filter: $0 == Self.sepia ? .sepia : .gamma, effect: $0) })
  }

  @Test("a formula maps each level to its value, mixed by its intensity and clamped")
  func formula() {
    for level in 0...255 {
      let x = Double(level) / 255
      #expect(abs(Self.steps.value(x) - (x * 5).rounded(.down) / 5) < 1e-12)
      #expect(abs(ToneCurve.formula(share: 0.5) { 1 - $0 }.value(x) - 0.5) < 1e-12)
      #expect(abs(ToneCurve.formula(share: 1) { 2 * $0 - 0.5 }.value(x) - min(1, max(0, 2 * x - 0.5))) < 1e-12)
    }
    #expect(ToneCurve.formula(share: 1) { $0 }.isIdentity && ToneCurve.formula(share: 0) { 1 - $0 }.isIdentity)
    #expect(
      !Self.steps.isIdentity && ToneCurve.formula(share: 1) { 4 * $0 * (1 - $0) }.image(of: 0...1).lowerBound == 0)
  }

  @Test("a formula starts a pass; after curves it is part of their table")
  func passes() {
    let steps = FilterEffect.color(.curve(Self.steps))
    let darker = FilterEffect.color(.curve(.linear(slope: 0.4, intercept: 0)))
    #expect(chain([steps]).description == "levels(gamma)")
    #expect(chain([steps, Self.sepia]).description == "table(gamma) > matrix(sepia)")
    #expect(chain([Self.sepia, steps]).description == "matrix(sepia) | levels(gamma)")
    #expect(chain([darker, steps]).description == "levels(gamma, gamma)")
    guard case .levels(let table, _) = chain([darker, steps]).passes[0] else {
      Issue.record("no table")
      return
    }
    for level in 0...255 {
      let dark = (Double(level) * 0.4).rounded() / 255
      #expect(table[level] == UInt8(((dark * 5).rounded(.down) / 5 * 255).rounded()), "\(level)")
    }
  }
}

extension ToneCurve {
  /// Creates a curve that mixes x with `formula(x)`.
  fileprivate static func formula(share: Double, _ formula: (Double) -> Double) -> ToneCurve {
    .levels(
      (0...255).map { level in
        let x = Double(level) / 255
        return min(1, max(0, x + share * (formula(x) - x)))
      })
  }
}
