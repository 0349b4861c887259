import Foundation
import ImagePipeline
import TestSupport
import Testing

@testable import Admission

@Suite("CostModel")
struct CostModelTests {
  private let model = CostModel(maxPixelCount: 500_000_000)
  private let photo = Data(Fixture.bytes("photo-420.jpg"))
  private let configuration = ProcessingConfiguration(maxWidth: 100)

  private func estimate(
    _ image: Data?, _ configuration: ProcessingConfiguration? = nil, for caller: String = "a"
  ) -> ImageCost {
    model.estimate(of: image.map { ImageClaim($0.bytes) }, [configuration ?? self.configuration], for: caller)
  }

  private func learn(_ milliseconds: Int, from image: Data?, count: Int = 40, for caller: String = "a") {
    for _ in 0..<count { model.learn(.milliseconds(milliseconds), for: estimate(image, for: caller)) }
  }

  @Test("estimates the cost of an image from its caller's images of its kind")
  func costs() {
    let other = ProcessingConfiguration(preferredFormat: .png)
    learn(80, from: photo)
    #expect(estimate(photo).duration == .milliseconds(80) && estimate(photo, other).duration < .milliseconds(80))
    learn(8, from: photo)
    #expect(estimate(photo).duration < .milliseconds(9))
    // Results from the cache take no time and leave the estimate as it is.
    let known = estimate(photo)
    for _ in 0..<40 { model.learn(.zero, for: known) }
    #expect(estimate(photo).duration == known.duration)
    learn(70, from: nil)
    #expect(estimate(nil).duration == .milliseconds(70) && !estimate(nil).isKnown && estimate(photo).isKnown)
  }

  @Test("an image whose header claims more pixels than are allowed costs nothing, as it is refused at once")
  func claims() {
    func png(_ chunk: String, side: UInt8) -> Data {
      Data([0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10, 0, 0, 0, 13] + Array(chunk.utf8) + [side, 0, 0, 0, 0, 0, 0x40, 0])
    }
    #expect(estimate(png("IHDR", side: 0)).duration < .milliseconds(2))
    #expect(estimate(png("IHDR", side: 0x40)).duration < .milliseconds(2))
    // The first chunk of Apple's variant, which is not decoded, is another one.
    #expect(estimate(png("CgBI", side: 0)).duration < .milliseconds(2))
  }

  @Test("estimates an image of which nothing was learned by the pixels in its header, not by its bytes")
  func header() throws {
    var bomb = Fixture.bytes("bilevel.png")
    bomb.replaceSubrange(16..<24, with: [0, 0, 64, 0, 0, 0, 64, 0])
    #expect(estimate(Data(bomb)).duration > .seconds(1) && estimate(Data(bomb)).isKnown)
    let small = Data(Fixture.bytes("bilevel.png"))
    #expect(estimate(small).duration < .milliseconds(10) && estimate(small).isKnown)
    #expect(estimate(Data(repeating: 0, count: bomb.count)).isKnown == false)
  }

  @Test("no caller changes the estimates of another")
  func callers() {
    let small = Data(Fixture.bytes("bilevel.png"))
    let calm = estimate(small, for: "b").duration
    // Neither with other images, nor with images that look alike, until most callers' images take longer.
    learn(2000, from: photo, count: 100, for: "bomber")
    learn(2000, from: small, count: 100, for: "bomber")
    #expect(estimate(small, for: "b").duration == calm && estimate(small, for: "bomber").duration == .seconds(2))
    learn(40, from: small, for: "c")
    #expect(estimate(small, for: "b").duration == .milliseconds(40))
    learn(3, from: small, for: "b")
    #expect(estimate(small, for: "b").duration == .milliseconds(3))
    // Those who sent images of the kind last are remembered.
    for number in 0..<16 { learn(50, from: small, for: "\(number)") }
    #expect(estimate(small, for: "b").duration == .milliseconds(50))
  }
}
