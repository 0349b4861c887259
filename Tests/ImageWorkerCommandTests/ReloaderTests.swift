import Dispatch
import Synchronization
import SystemPackage
import Testing

@testable import image_worker

@Suite("Reloader", .timeLimit(.minutes(5)))
struct ReloaderTests {
  /// Reloads that wait until a test lets them end.
  private final class Reloads: Sendable {
    let count = Atomic(0)
    private let (begun, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    private let ended = DispatchSemaphore(value: 0)

    func reload() {
      count.add(1, ordering: .sequentiallyConsistent)
      begun.signal()
      released.wait()
      ended.signal()
    }

    func waitForBegin() { begun.wait() }

    /// Ends all and returns whether there were `count`.
    func end(count: Int) -> Bool {
      for _ in 0...count { released.signal() }
      for _ in 0..<count { ended.wait() }
      return ended.wait(timeout: .now() + 0.1) == .timedOut
    }
  }

  @Test("a reload that hangs delays nobody, and those meanwhile become one")
  func hanging() async {
    let reloads = Reloads()
    let reloader = await Reloader { reloads.reload() }
    reloader.request()
    reloads.waitForBegin()
    for _ in 0..<9 { reloader.request() }
    #expect(reloads.count.load(ordering: .sequentiallyConsistent) == 1)
    #expect(reloads.end(count: 2))
    #expect(reloads.count.load(ordering: .sequentiallyConsistent) == 2)
  }

  @Test("what may never end is not read again")
  func irregular() throws {
    for path in ["/dev/zero", "/"] as [FilePath] {
      let error = #expect(throws: SettingsError.self) {
        try FileSystem.text(of: path, option: "--presets", isReload: true)
      }
      #expect(error?.description == "--presets \(path) cannot be read: not a regular file")
    }
  }
}
