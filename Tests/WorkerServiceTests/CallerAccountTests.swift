import Admission
import CoreMetrics
import Testing
import Tracing

@testable import WorkerService

@Suite("CallerAccount")
struct CallerAccountTests {
  private static func accounts(_ policies: CallerPolicy...) -> CallerAccounts {
    CallerAccounts(policies, metrics: NOOPMetricsHandler.instance)
  }

  private static func delay(_ body: () throws(CallerError) -> CallerImage) -> Duration? {
    do {
      _ = try body()
      return nil
    } catch {
      guard case .quotaExceeded(_, _, let delay) = error else { return nil }
      return delay
    }
  }

  @Test("a caller with an identity has one share on all its connections")
  func identities() {
    let known = WorkerEnvironment(threadCount: 1).with { $0.callerName = { _ in "archive" } }
    let unknown = WorkerEnvironment(threadCount: 1)
    ServiceContext.withValue(.topLevel) {
      #expect(
        ["a", "b"].map { known.imageCaller(peer: $0).connection } == Array(repeating: "identity:archive", count: 2))
      #expect(["a", "b"].map { unknown.imageCaller(peer: $0).connection } == ["a", "b"])
    }
  }

  @Test("a quota of images refills evenly, and the delay is the time until the next one")
  func images() throws {
    let account = try #require(
      Self.accounts(CallerPolicy(name: "a", quotas: [CallerQuota(.images, per: .minute, amount: 2)])).account(of: "a"))
    let start = ContinuousClock.now
    for _ in 0..<2 { _ = try account.beginImage(now: start) }
    #expect(Self.delay { () throws(CallerError) in try account.beginImage(now: start) } == .milliseconds(30_100))
    let later = start + .seconds(20)
    #expect(Self.delay { () throws(CallerError) in try account.beginImage(now: later) } == .milliseconds(10_100))
    _ = try account.beginImage(now: start + .milliseconds(30_100))
    // Nothing is saved for longer than a period.
    let much = start + .seconds(6000)
    for _ in 0..<2 { _ = try account.beginImage(now: much) }
    #expect(Self.delay { () throws(CallerError) in try account.beginImage(now: much) } != nil)
  }

  @Test("bytes may be overdrawn once, and are paid back before the next image")
  func bytes() throws {
    let account = try #require(
      Self.accounts(CallerPolicy(name: "a", quotas: [CallerQuota(.bytes, per: .minute, amount: 600)])).account(of: "a"))
    let start = ContinuousClock.now
    try account.beginImage(now: start).use(byteCount: 700)
    #expect(Self.delay { () throws(CallerError) in try account.beginImage(now: start) } == .milliseconds(10_100))
    _ = try account.beginImage(now: start + .milliseconds(10_100))
  }

  @Test("CPU time is charged")
  func cpu() throws {
    let account = try #require(
      Self.accounts(CallerPolicy(name: "a", quotas: [CallerQuota(.cpuSeconds, per: .hour, amount: 1e-6)]))
        .account(of: "a"))
    let start = ContinuousClock.now
    try account.beginImage(now: start).use(cpuTime: .milliseconds(1))
    #expect(Self.delay { () throws(CallerError) in try account.beginImage(now: start) } != nil)
  }

  private static func cpuAccount(seconds: Double) throws -> CallerAccount {
    try #require(
      accounts(CallerPolicy(name: "a", quotas: [CallerQuota(.cpuSeconds, per: .hour, amount: seconds)])).account(
        of: "a"))
  }

  @Test("the estimated CPU time of images that wait is reserved, and what they do not use is returned")
  func reservations() throws {
    let account = try Self.cpuAccount(seconds: 1)
    let start = ContinuousClock.now
    var images: [CallerImage] = []
    while let image = try? account.beginImage(cpuTime: .milliseconds(100), now: start) { images.append(image) }
    // Rounding decides whether one more begins.
    #expect((10...11).contains(images.count))
    images[0].use(cpuTime: .milliseconds(100))
    #expect(throws: CallerError.self) { try account.beginImage(now: start) }
    images.removeAll()
    let large = try account.beginImage(cpuTime: .milliseconds(850), now: start)
    let small = try account.beginImage(cpuTime: .milliseconds(1), now: start)
    let last = try account.beginImage(cpuTime: .milliseconds(850), now: start)
    #expect(throws: CallerError.self) { try account.beginImage(now: start) }
    // Reservations of others refuse nothing that has begun to wait.
    for image in [large, small, last] { try image.checkCPUTime(now: start) }
  }

  @Test("images that began to wait together do not begin when those before them have used the quota")
  func underestimated() throws {
    let account = try Self.cpuAccount(seconds: 1)
    let start = ContinuousClock.now
    let images = try (0..<90).map { _ in try account.beginImage(cpuTime: .milliseconds(3), now: start) }
    var used = Duration.zero
    for image in images
    where Self.delay({ () throws(CallerError) in
      try image.checkCPUTime(now: start); return image
    }) == nil {
      image.use(cpuTime: .milliseconds(100))
      used += .milliseconds(100)
    }
    #expect(used >= .seconds(1) && used <= .milliseconds(1100))
  }

  @Test("images in progress are limited, and end with their value")
  func inProgress() throws {
    let account = try #require(Self.accounts(CallerPolicy(name: "a", maxImages: 1)).account(of: "a"))
    var image: CallerImage? = try account.beginImage()
    #expect(throws: CallerError.self) { try account.beginImage() }
    _ = image
    image = nil
    _ = try account.beginImage()
  }

  @Test("what was used still counts after the policies are replaced, and a removed caller starts nothing")
  func replaced() throws {
    let quota = CallerQuota(.images, per: .hour, amount: 1)
    let accounts = Self.accounts(CallerPolicy(name: "a", quotas: [quota]))
    let account = try #require(accounts.account(of: "a"))
    _ = try account.beginImage()
    accounts.replace(with: [CallerPolicy(name: "a", presets: ["favicon"], quotas: [quota]), CallerPolicy(name: "b")])
    #expect(throws: CallerError.self) { try account.beginImage() }
    #expect(account.mayUse(preset: "favicon") && !account.mayUse(preset: "preview"))
    _ = try #require(accounts.account(of: "b")).beginImage()
    accounts.replace(with: [])
    #expect(throws: CallerError.notAllowed("the identity b was removed", field: nil)) {
      try #require(accounts.account(of: "b")).beginImage()
    }
    #expect(!account.mayUse(preset: "favicon"))
  }

  @Test("presets and fields are checked")
  func scopes() throws {
    let account = try #require(
      Self.accounts(CallerPolicy(name: "a", presets: ["favicon"], mayConfigure: false)).account(of: "a"))
    try account.check(preset: "favicon", setsFields: false)
    #expect(throws: CallerError.notAllowed("the identity a may not use the preset \"preview\"", field: "preset")) {
      try account.check(preset: "preview", setsFields: false)
    }
    #expect(throws: CallerError.self) { try account.check(preset: "favicon", setsFields: true) }
    let message = "the identity a may only use presets; leave auxiliary_images empty"
    #expect(throws: CallerError.notAllowed(message, field: "auxiliary_images")) {
      try account.checkConfiguring(field: "auxiliary_images")
    }
  }
}
