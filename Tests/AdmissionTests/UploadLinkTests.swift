import Testing
import WorkThreads

@testable import Admission

/// Uploads over a link of which each open one gets an equal share, at times that are computed, not measured.
private struct SimulatedLink {
  struct Upload {
    let connection: UInt64
    let deadline: Duration
    let byteCount: Int
    /// The maximum rate of its client, in bytes per second.
    let rate: Double
    var left: Double
    var isOpen = false
    var waitingID: UInt64?
  }

  let bytesPerSecond: Double
  let began = ContinuousClock.now
  var time = Duration.zero
  var queue = MessageQueue(limit: 1 << 30)
  var uploads: [Upload] = []
  var refusals: [UInt64: Int] = [:]
  var late: [UInt64: Int] = [:]
  var useful: [UInt64: Int] = [:]

  private var now: UploadLink.Instant { began + time }

  init(bytesPerSecond: Double) { self.bytesPerSecond = bytesPerSecond }

  /// Begins a call; `rate` is the maximum rate of its client.
  mutating func call(_ byteCount: Int, of connection: UInt64, within deadline: Duration, rate: Double = .infinity) {
    if queue.link.promise(connection, within: deadline * ThreadQueue.usableShare, now) != nil {
      return refusals[connection, default: 0] += 1
    }
    var upload = Upload(
      connection: connection, deadline: time + deadline, byteCount: byteCount, rate: rate, left: Double(byteCount))
    let request = MessageRequest(
      byteCount: byteCount, connection: connection, isContinuation: false, bufferedByteCount: 1024
    ) {}
    upload.isOpen = queue.take(request, room: .max, now: now)
    if !upload.isOpen {
      upload.waitingID = queue.wait(request, now: now)
    }
    uploads.append(upload)
  }

  mutating func advance(_ step: Duration) {
    time += step
    let seconds = step / .seconds(1)
    let fast = uploads.count { $0.isOpen && $0.rate == .infinity }
    let slow = uploads.reduce(0) { $0 + ($1.isOpen && $1.rate < .infinity ? $1.rate : 0) }
    let share = (bytesPerSecond - slow) / Double(max(1, fast))
    for index in uploads.indices where uploads[index].isOpen {
      let upload = uploads[index]
      let byteCount = min(upload.left.rounded(), (min(upload.rate, share) * seconds).rounded())
      uploads[index].left -= byteCount
      queue.link.receive(
        Int(byteCount), of: upload.connection, isLast: uploads[index].left <= 0, now)
    }
    end()
    for waiter in queue.grant(room: .max, now: now) {
      for index in uploads.indices where uploads[index].waitingID == waiter.id { uploads[index].isOpen = true }
    }
  }

  /// Removes uploads that have arrived, or whose deadline has passed.
  private mutating func end() {
    for upload in uploads where upload.left <= 0 || upload.deadline < time {
      queue.link.release(upload.connection)
      if upload.isOpen {
        queue.release(upload.byteCount, of: upload.connection, isContinuation: false)
        if upload.left > 0 { queue.link.abandon(Int(upload.left), of: upload.connection, wasOpen: true) }
      } else if let id = upload.waitingID {
        _ = queue.abandon(id)
      }
      if upload.left > 0 {
        late[upload.connection, default: 0] += 1
      } else {
        useful[upload.connection, default: 0] += 1
      }
    }
    uploads.removeAll { $0.left <= 0 || $0.deadline < time }
  }
}

@Suite("UploadLink")
struct UploadLinkTests {
  @Test("receives as much in time as the link carries, however much is offered", arguments: [1.2, 2, 5], [3, 10])
  func overload(factor: Double, deadline: Int) {
    var link = SimulatedLink(bytesPerSecond: 25e6)
    let (byteCount, seconds, step) = (3_300_000, 60.0, 0.005)
    var offered = 0.0
    for number in 0..<Int(seconds / step) {
      offered += factor * link.bytesPerSecond / Double(byteCount) * step
      while offered >= 1 {
        link.call(byteCount, of: UInt64(number % 8), within: .seconds(deadline))
        offered -= 1
      }
      link.advance(.seconds(step))
    }
    let useful = link.useful.values.reduce(0, +)
    let best = link.bytesPerSecond * seconds / Double(byteCount)
    #expect(Double(useful) > 0.9 * best, "\(useful) of \(best); late: \(link.late)")
    #expect(link.late.values.reduce(0, +) < useful / 20)
  }

  @Test(
    "admits every call while the link has room, whether a slow client sends meanwhile", arguments: [20, 400], [0, 1])
  func calm(gap: Int, slowCount: Int) {
    var link = SimulatedLink(bytesPerSecond: 250e6)
    for number in 0..<40_000 {
      if number % 20_000 == 0, slowCount > 0 {
        link.call(3_000_000, of: 100, within: .seconds(60), rate: 100_000)
      }
      if number % gap == 0 { link.call(3_300_000, of: UInt64(number / gap % 7), within: .milliseconds(500)) }
      link.advance(.milliseconds(1))
    }
    let useful = link.useful.filter { $0.key < 100 }.values.reduce(0, +)
    #expect(link.refusals.isEmpty && link.late.isEmpty && useful >= 40_000 / gap - 1)
  }

  @Test("clients that send slowly do not keep a fast one from sending", arguments: [5, 100])
  func slowClients(count: Int) {
    var link = SimulatedLink(bytesPerSecond: 125e6)
    for number in 0..<12_000 {
      if number % 6000 == 0 {
        for slow in 0..<count {
          link.call(3_000_000, of: UInt64(100 + slow), within: .seconds(60), rate: 100_000)
        }
      }
      if number % 200 == 50 { link.call(3_000_000, of: 1, within: .seconds(1)) }
      link.advance(.milliseconds(5))
    }
    #expect(link.useful[1] ?? 0 >= 59, "refused: \(link.refusals[1] ?? 0), late: \(link.late[1] ?? 0)")
    #expect(link.useful.filter { $0.key >= 100 }.values.reduce(0, +) >= count)
  }

  @Test("the share of a connection is its own: a small upload of another is not refused")
  func shares() {
    var link = SimulatedLink(bytesPerSecond: 25e6)
    for number in 0..<4000 {
      if number % 5 == 0 { link.call(3_300_000, of: 1, within: .seconds(3)) }
      if number % 40 == 0 { link.call(100_000, of: 2, within: .seconds(1)) }
      link.advance(.milliseconds(5))
    }
    #expect(link.refusals[1] ?? 0 > 300 && link.refusals[2] == nil && link.late[2] == nil)
  }
}
