import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import ResultCache

@Suite("Result cache")
struct ResultCacheTests {
  private static func cache(
    memory: Int = 1 << 20, disk: Int = 1 << 20, in scratch: Scratch? = nil, log: Log = Log()
  ) throws -> ResultCache {
    try ResultCache(
      limits: CacheLimits(memoryByteCount: memory, diskByteCount: disk, directory: scratch?.path), logger: log.logger)
  }

  @Test("returns cached results, and evicts the least recently used")
  func leastRecentlyUsed() throws {
    let cache = try Self.cache(memory: 100_000)
    for name in ["a", "b", "c"] { cache.put(name, byteCount: 30_000) }
    #expect(cache.has("a") && cache.has("b") && cache.has("c"))
    #expect(cache.has("a"))
    cache.put("d", byteCount: 30_000)
    #expect(cache.has("a") && !cache.has("b") && cache.has("c") && cache.has("d"))
    #expect(cache.memoryByteCount <= 100_000 && cache.memoryByteCount > 90_000)
  }

  @Test("counts a result once when it is stored again")
  func keptAnew() throws {
    let cache = try Self.cache(memory: 100_000)
    cache.put("a", byteCount: 30_000)
    let once = cache.memoryByteCount
    cache.put("a", byteCount: 30_000)
    #expect(cache.has("a") && cache.memoryByteCount == once)
    cache.put("a", byteCount: 20_000)
    #expect(cache.has("a") && cache.memoryByteCount == once - 10_000)
  }

  @Test("matches a simple LRU list through ten thousand random steps")
  func randomSteps() {
    var generator = SeededGenerator(seed: 40)
    var recent = RecentlyUsed<Int>()
    var plain: [(CacheKey, Int)] = []
    let keys = (0..<40).map { CacheKey.of("\($0)") }
    for step in 0..<10_000 {
      let key = keys[Int.random(in: 0..<40, using: &generator)]
      let place = plain.firstIndex { $0.0 == key }
      switch Int.random(in: 0..<4, using: &generator) {
      case 0:
        #expect(recent.use(key) == place.map { plain[$0].1 })
        if let place { plain.append(plain.remove(at: place)) }
      case 1:
        #expect(recent.insert(step, for: key) == place.map { plain[$0].1 })
        if let place { plain.remove(at: place) }
        plain.append((key, step))
      case 2:
        #expect(recent.remove(key) == place.map { plain[$0].1 })
        if let place { plain.remove(at: place) }
      default:
        let oldest = recent.removeOldest()
        #expect(oldest?.key == plain.first?.0 && oldest?.value == plain.first?.1)
        if !plain.isEmpty { plain.removeFirst() }
      }
      #expect(recent.count == plain.count)
    }
  }

  @Test("a result that is too large is not cached, and costs nothing after its release")
  func tooLarge() throws {
    let cache = try Self.cache(memory: 100_000)
    cache.put("a", byteCount: 50_000)
    cache.put("b", byteCount: 200_000)
    #expect(!cache.has("b") && cache.memoryByteCount <= 100_000)
    cache.put("c", byteCount: 50_000)
    #expect(cache.has("c"))
    let collector = cache.collector()
    collector.append([UInt8](repeating: 0, count: 40_000))
    let buffered = cache.memoryByteCount
    collector.giveUp()
    #expect(cache.memoryByteCount == buffered - 40_000 - CachedResult.blockOverhead)
  }

  @Test("files are found again by the next process, with their exact sizes and in their order of use")
  func restart() throws {
    let scratch = Scratch()
    do {
      let cache = try Self.cache(memory: 0, disk: 100_000, in: scratch)
      for name in ["a", "b", "c"] {
        cache.put(name, byteCount: 30_000)
        usleep(20_000)  // file times have a limited resolution
      }
      #expect(cache.has("a"))
      #expect(cache.diskByteCount == scratch.byteCount && scratch.results.count == 3)
    }
    for name in [".left.part", "notes.txt"] {
      try Data([1]).write(to: URL(fileURLWithPath: "\(scratch.path)/\(name)"))
    }
    let cache = try Self.cache(memory: 0, disk: 100_000, in: scratch)
    #expect(cache.diskByteCount == scratch.byteCount && cache.diskByteCount > 90_000)
    #expect(!FileManager.default.fileExists(atPath: "\(scratch.path)/.left.part"))
    #expect(FileManager.default.fileExists(atPath: "\(scratch.path)/notes.txt"))
    cache.put("d", byteCount: 30_000)
    #expect(cache.has("a") && !cache.has("b") && cache.has("c") && cache.has("d"))
    #expect(cache.diskByteCount == scratch.byteCount && cache.diskByteCount <= 100_000)
  }

  @Test("a smaller limit at the next start removes what no longer fits")
  func smallerLimit() throws {
    let scratch = Scratch()
    do {
      let cache = try Self.cache(memory: 0, disk: 200_000, in: scratch)
      for name in ["a", "b", "c"] { cache.put(name, byteCount: 30_000) }
    }
    let cache = try Self.cache(memory: 0, disk: 50_000, in: scratch)
    #expect(scratch.results.count == 1 && cache.diskByteCount == scratch.byteCount)
  }

  @Test("the most recently used results survive the next start in any directory order")
  func orderOfUse() throws {
    let scratch = Scratch()
    let names = (0..<16).map { "\($0)" }
    do {
      let cache = try Self.cache(memory: 0, in: scratch)
      for name in names { cache.put(name, byteCount: 1000) }
    }
    // Every fifth, so that this order differs from that of the names and of the files.
    let used = names.indices.map { names[$0 * 5 % names.count] }
    for (second, name) in used.enumerated() {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000 + Double(second))],
        ofItemAtPath: "\(scratch.path)/\(CacheKey.of(name).hexadecimal).result")
    }
    let cache = try Self.cache(memory: 0, disk: scratch.byteCount / 2, in: scratch)
    #expect(scratch.results.count == names.count / 2)
    for name in used[..<(names.count / 2)] { #expect(!cache.has(name), "\(name)") }
    for name in used[(names.count / 2)...] { #expect(cache.has(name), "\(name)") }
  }

  static let damages: [(name: String, change: @Sendable (inout Data) -> Void)] = [
    ("a bit of the body", { $0[$0.count - 100] ^= 1 }),
    ("a bit of the metadata", { $0[DiskEntry.headerByteCount] ^= 1 }),
    ("a bit of the digest", { $0[DiskEntry.headerByteCount - 1] ^= 1 }),
    ("a bit of the magic word", { $0[0] ^= 1 }),
    ("a bit of the key", { $0[9] ^= 1 }),
    ("a length", { $0[40] ^= 1 }),
    ("a huge length", { $0[47] = 0x7F }),
    ("cut in the body", { $0 = $0.prefix($0.count - 1) }),
    ("cut in the header", { $0 = $0.prefix(20) }),
    ("emptied", { $0 = Data() }),
    ("longer", { $0.append(0) }),
    ("zeros", { $0 = Data(count: $0.count) }),
  ]

  @Test("a damaged file is removed, and its result is produced again", arguments: damages.map(\.name))
  func damaged(name: String) throws {
    let damage = try #require(Self.damages.first { $0.name == name })
    let scratch = Scratch()
    let log = Log()
    let cache = try Self.cache(memory: 0, in: scratch, log: log)
    cache.put("a", byteCount: 100_000)
    #expect(cache.has("a"))
    try scratch.damage(try #require(scratch.results.first), damage.change)
    #expect(cache.result(for: .of("a")) == nil)
    #expect(scratch.results.isEmpty && cache.diskByteCount == 0 && cache.memoryByteCount == 0)
    #expect(log.lines.count == 1)
    cache.put("a", byteCount: 100_000)
    #expect(cache.has("a"))
  }

  @Test("a write failure disables the disk cache with one warning, and the memory cache continues")
  func unwritable() throws {
    let scratch = Scratch()
    let log = Log()
    let cache = try Self.cache(in: scratch, log: log)
    try FileManager.default.removeItem(atPath: scratch.path)
    for name in ["a", "b"] { cache.put(name, byteCount: 1000) }
    #expect(cache.has("a") && cache.has("b") && cache.disk?.isOff == true)
    #expect(log.lines.count == 1)
  }

  @Test("a directory locked by another process is left to it; one that cannot be created is an error")
  func directories() throws {
    let scratch = Scratch()
    let log = Log()
    let first = try Self.cache(memory: 0, in: scratch)
    let second = try Self.cache(memory: 0, in: scratch, log: log)
    first.put("a", byteCount: 1000)
    second.put("b", byteCount: 1000)
    #expect(first.has("a") && !second.has("a") && !second.has("b") && log.lines.count == 1)
    #expect(throws: CacheError.self) {
      try ResultCache(limits: CacheLimits(directory: "/dev/null/cache"), logger: log.logger)
    }
  }

  @Test("a directory in which others may write is an error", arguments: [0o777, 0o775, 0o702, 0o1777])
  func openDirectory(mode: Int) throws {
    let scratch = Scratch()
    // The second, because the first heeds the mask of new files.
    try #require(mkdir(scratch.path, 0o700) == 0 && chmod(scratch.path, mode_t(mode)) == 0)
    let error = #expect(throws: CacheError.self) { try Self.cache(in: scratch) }
    let digits = String(mode, radix: 8)
    #expect(error?.description.contains("\(scratch.path): may be written by others (mode \(digits))") == true)
    chmod(scratch.path, 0o755)
    let cache = try Self.cache(memory: 0, in: scratch)
    cache.put("a", byteCount: 1000)
    #expect(cache.has("a"))
  }

  @Test("a directory of another user is an error")
  func foreignDirectory() throws {
    // Only root can give a directory away; others have none at this path.
    let scratch = Scratch()
    var path = "/"
    if geteuid() == 0 {
      path = scratch.path
      try #require(mkdir(path, 0o700) == 0 && chown(path, 65534, 65534) == 0)
    }
    let error = #expect(throws: CacheError.self) {
      try ResultCache(limits: CacheLimits(directory: path), logger: Log().logger)
    }
    #expect(error?.description.contains("belongs to the user") == true)
  }

  @Test(
    "a forged result with a correct digest is not served if others may have written it", arguments: ["mode", "owner"])
  func forged(how: String) throws {
    let scratch = Scratch()
    let log = Log()
    do { try Self.cache(memory: 0, in: scratch).put("a", byteCount: 1000) }
    let file = try #require(scratch.results.first)
    if how == "owner", geteuid() == 0 { try #require(chown(file, 65534, 65534) == 0) } else { chmod(file, 0o666) }
    let cache = try Self.cache(memory: 0, in: scratch, log: log)
    #expect(!cache.has("a") && scratch.results.isEmpty && cache.diskByteCount == 0 && log.lines.count == 1)
    // The same while the cache is open.
    cache.put("a", byteCount: 1000)
    chmod(file, 0o666)
    #expect(!cache.has("a") && scratch.results.isEmpty && log.lines.count == 2)
  }

  @Test("planted links, pipes and directories are neither followed, waited for nor served")
  func planted() throws {
    let (scratch, other) = (Scratch(), Scratch())
    let victim = "\(other.path)/victim"
    do {
      let cache = try Self.cache(memory: 0, in: other)
      cache.put("b", byteCount: 1000)
      try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
    }
    let linked = try #require(other.results.first)
    let cache = try Self.cache(memory: 0, in: scratch)
    let name = { (key: String) in "\(scratch.path)/\(CacheKey.of(key).hexadecimal)" }
    symlink(victim, "\(scratch.path)/.\(CacheKey.of("a").hexadecimal).part")
    cache.put("a", byteCount: 1000)
    #expect(cache.has("a") && FileManager.default.contents(atPath: victim) == Data("precious".utf8))
    symlink(linked, "\(name("b")).result")
    mkfifo("\(name("c")).result", 0o600)
    mkdir("\(name("d")).result", 0o700)
    for key in ["b", "c", "d"] { #expect(!cache.has(key)) }
    let next = try Self.cache(memory: 0, in: scratch, log: Log())
    #expect(next.disk?.isOff == true)
  }

  @Test("what was planted before the start is removed, and the links' targets stay")
  func plantedBefore() throws {
    let (scratch, other) = (Scratch(), Scratch())
    do { try Self.cache(memory: 0, in: other).put("b", byteCount: 1000) }
    let linked = try #require(other.results.first)
    try #require(mkdir(scratch.path, 0o700) == 0)
    symlink(linked, "\(scratch.path)/\(CacheKey.of("b").hexadecimal).result")
    mkfifo("\(scratch.path)/\(CacheKey.of("c").hexadecimal).result", 0o600)
    symlink(linked, "\(scratch.path)/.x.part")
    let cache = try Self.cache(memory: 0, in: scratch)
    #expect(scratch.results.isEmpty && cache.diskByteCount == 0 && !cache.has("b"))
    #expect(other.results == [linked])
  }

  @Test("a lock that is a link is an error")
  func linkedLock() throws {
    let (scratch, other) = (Scratch(), Scratch())
    try #require(mkdir(scratch.path, 0o700) == 0)
    symlink(other.path, "\(scratch.path)/.lock")
    #expect(throws: CacheError.self) { try Self.cache(in: scratch) }
    #expect(!FileManager.default.fileExists(atPath: other.path))
  }

  @Test("files of results used from memory are kept")
  func usedFromMemory() throws {
    let scratch = Scratch()
    let cache = try Self.cache(disk: 100_000, in: scratch)
    for name in ["a", "b", "c"] { cache.put(name, byteCount: 30_000) }
    #expect(cache.has("a"))
    let files = Set(scratch.results)
    cache.put("d", byteCount: 30_000)
    let gone = files.subtracting(scratch.results)
    #expect(gone == ["\(scratch.path)/\(CacheKey.of("b").hexadecimal).result"])
  }

  @Test("a file's result is cached in memory after its first use")
  func promoted() throws {
    let scratch = Scratch()
    do { try Self.cache(in: scratch).put("a", byteCount: 1000) }
    let cache = try Self.cache(in: scratch)
    #expect(cache.memoryByteCount == 0 && cache.has("a") && cache.memoryByteCount > 1000)
  }
}
