import Foundation
import ImagePipeline
import TestSupport
import Testing

@testable import Admission

@Suite("CostModel")
struct CostModelTests {
  @Test("estimates the cost of an image from images of its kind")
  func costs() {
    let (model, photo) = (CostModel(), Fixture.bytes("photo-420.jpg"))
    let configuration = ProcessingConfiguration(maxWidth: 100)
    let large = ProcessingConfiguration(preferredFormat: .png)
    for _ in 0..<40 { model.learn(.milliseconds(80), for: model.estimate(of: .init(photo), [configuration])) }
    #expect(model.estimate(of: .init(photo), [configuration]).duration == .milliseconds(80))
    #expect(model.estimate(of: .init(photo), [large]).duration != .milliseconds(80))
    for _ in 0..<40 { model.learn(.milliseconds(8), for: model.estimate(of: .init(photo), [configuration])) }
    #expect(model.estimate(of: .init(photo), [configuration]).duration < .milliseconds(9))
    #expect(model.estimate(of: nil, [configuration]).duration > .zero)
    // Results from the cache take no time and leave the estimate as it is.
    let known = model.estimate(of: .init(photo), [configuration])
    for _ in 0..<40 { model.learn(.zero, for: known) }
    #expect(model.estimate(of: .init(photo), [configuration]).duration == known.duration)
    // A few bytes that took long do not make large images of other kinds look expensive.
    let small = model.estimate(of: .init(repeating: 0, count: 64), [configuration])
    for _ in 0..<100 { model.learn(.seconds(2), for: small) }
    #expect(model.estimate(of: .init(repeating: 0, count: 10_000_000), [large]).duration < .seconds(3))
  }
}
