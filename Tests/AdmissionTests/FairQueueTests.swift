import Foundation
import TestSupport
import Testing

@testable import Admission

@Suite("FairQueue")
struct FairQueueTests {
  @Test("serves work of a flow that takes equally long in order of arrival")
  func order() {
    var queue = FairQueue<Int>()
    for number in 0..<5 { _ = queue.append(number, to: "a", cost: .milliseconds(10)) }
    #expect(queue.count == 5)
    #expect((0..<6).map { _ in queue.popFirst() } == [0, 1, 2, 3, 4, nil])
    #expect(queue.count == 0)
  }

  @Test("serves work in order of arrival although its estimates vary, and that of one kind whatever they are")
  func variation() {
    var (queue, random) = (FairQueue<Int>(), SeededGenerator(seed: 17))
    let kinds = [100, 1000].map { byteCount in
      let file = [UInt8](repeating: 0, count: byteCount)
      return CostKind(ImageClaim(file.span.bytes), pixelCount: nil, [])
    }
    var order: [Int] = []
    for number in 0..<400 {
      let cost = Duration.milliseconds(Int.random(in: 20...60, using: &random))
      _ = queue.append(number, to: "similar", cost: cost)
      let other = Duration.milliseconds(Int.random(in: 5...500, using: &random))
      _ = queue.append(1000 + number, to: "one kind", cost: other, kind: kinds[0])
      if number % 2 == 0, let next = queue.popFirst() { order.append(next) }
    }
    while let next = queue.popFirst() { order.append(next) }
    #expect(order.filter { $0 < 1000 } == Array(0..<400))
    #expect(order.filter { $0 >= 1000 } == Array(1000..<1400))
    // Another kind passes.
    _ = queue.append(0, to: "two kinds", cost: .milliseconds(500), kind: kinds[0])
    _ = queue.append(1, to: "two kinds", cost: .milliseconds(50), kind: kinds[1])
    #expect(queue.popFirst() == 1)
  }

  @Test("serves the only work of a flow next, however much another flow has enqueued")
  func flood() {
    var queue = FairQueue<String>()
    for _ in 0..<100 { _ = queue.append("flood", to: "a", cost: .seconds(1)) }
    #expect(queue.popFirst() == "flood")
    _ = queue.append("single", to: "b", cost: .milliseconds(1))
    #expect(queue.popFirst() == "single" || queue.popFirst() == "single")
  }

  @Test("gives flows equal shares of the time, whatever their work costs")
  func shares() {
    var queue = FairQueue<(name: String, cost: Duration)>()
    let costs: [String: Duration] = ["a": .milliseconds(10), "b": .milliseconds(40), "c": .milliseconds(5)]
    for (name, cost) in costs { for _ in 0..<400 { _ = queue.append((name, cost), to: name, cost: cost) } }
    var served: [String: Duration] = [:]
    for _ in 0..<300 {
      guard let work = queue.popFirst() else { break }
      served[work.name, default: .zero] += work.cost
    }
    let shares = served.values.sorted()
    #expect(shares.count == 3 && shares[2] - shares[0] <= .milliseconds(80))
  }

  @Test("a flow does not save up time in which it had no work")
  func idle() {
    var queue = FairQueue<String>()
    for _ in 0..<50 { _ = queue.append("a", to: "a", cost: .milliseconds(10)) }
    for _ in 0..<40 { _ = queue.popFirst() }
    for _ in 0..<50 { _ = queue.append("b", to: "b", cost: .milliseconds(10)) }
    let next = (0..<20).compactMap { _ in queue.popFirst() }
    #expect(abs(next.filter { $0 == "a" }.count - 10) <= 1)
  }

  @Test("small work passes large work of its flow, but only for so long")
  func smallFirst() {
    var queue = FairQueue<String>()
    for _ in 0..<4 { _ = queue.append("large", to: "a", cost: .milliseconds(500)) }
    // Small work keeps coming.
    var order: [String] = []
    for _ in 0..<500 {
      _ = queue.append("small", to: "a", cost: .milliseconds(10))
      if let next = queue.popFirst() { order.append(next) }
    }
    let first = order.firstIndex(of: "large") ?? 0
    // 2 s of work, less what the small work itself would let pass.
    #expect((150...200).contains(first))
    #expect(order.filter { $0 == "large" }.count >= 3)
  }

  @Test("charges a flow for work that took longer than estimated")
  func correction() {
    var queue = FairQueue<String>()
    for _ in 0..<20 { for name in ["a", "b"] { _ = queue.append(name, to: name, cost: .milliseconds(10)) } }
    #expect(queue.popFirst() == "a")
    queue.correct(.milliseconds(55), of: "a")
    #expect((0..<8).compactMap { _ in queue.popFirst() } == ["b", "b", "b", "b", "b", "b", "b", "a"])
  }

  @Test("finds the next work that is suitable")
  func suitable() {
    var queue = FairQueue<Int>()
    for number in 0..<3 { _ = queue.append(number, to: "a", cost: .milliseconds(1)) }
    _ = queue.append(3, to: "b", cost: .milliseconds(1))
    #expect(queue.count(of: "a") == 3 && queue.count(of: "b") == 1)
    #expect(queue.popFirst { $0 == 3 } == 3 && queue.popFirst { $0 == 3 } == nil)
  }

  @Test("removes work that waits, and no other")
  func removal() {
    var queue = FairQueue<Int>()
    let ids = (0..<3).map { queue.append($0, to: "a", cost: .milliseconds(1)) }
    #expect(queue.remove(ids[1], from: "a") == 1)
    #expect(queue.remove(ids[1], from: "a") == nil && queue.remove(ids[0], from: "b") == nil)
    #expect(queue.popFirst() == 0 && queue.remove(ids[0], from: "a") == nil)
    #expect(queue.popFirst() == 2 && queue.count == 0)
  }

  @Test("estimates the work until new work is done: that of its flow, and as much of each other flow")
  func estimate() {
    var queue = FairQueue<Int>()
    for _ in 0..<10 { _ = queue.append(0, to: "a", cost: .milliseconds(100)) }
    #expect(queue.work(untilEndOf: .milliseconds(100), in: "a") == .milliseconds(1100))
    #expect(queue.work(untilEndOf: .milliseconds(100), in: "a", after: ["a": .milliseconds(30)]) == .milliseconds(1130))
    // Of other flows, what is expected counts with what waits, and no more than their share.
    let expected: [String: Duration] = ["b": .milliseconds(300), "c": .seconds(9), "a": .milliseconds(30)]
    #expect(queue.work(untilEndOf: .milliseconds(100), in: "a", after: expected) == .milliseconds(1130 + 300 + 1130))
    // It passes the work of its flow that takes longer.
    #expect(queue.work(untilEndOf: .milliseconds(20), in: "a") == .milliseconds(20))
    #expect(queue.work(untilEndOf: .milliseconds(50), in: "b") == .milliseconds(100))
    _ = queue.append(0, to: "b", cost: .milliseconds(20))
    #expect(queue.work(untilEndOf: .milliseconds(50), in: "b") == .milliseconds(140))
    #expect(
      queue.work(untilEndOf: .milliseconds(100), in: "a", after: ["b": .milliseconds(30)]) == .milliseconds(1150))
  }
}
