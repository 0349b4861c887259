internal import LibC
internal import SystemPackage

/// The memory that the process may use, as the system reports it.
struct SystemMemory {
  /// The memory of the machine in bytes.
  var physicalByteCount: Int
  /// The lowest limit of the process' control groups in bytes; `nil` if there is none.
  var limitByteCount: Int?
  /// The addresses in bytes that the process may still use, by its resource limit (`ulimit -v`); `nil` if it has none.
  var addressByteCount: Int?

  /// Memory that the process takes besides the limit: its code, threads and buffers, and what the allocator keeps.
  private static let processByteCount = 96 << 20
  private static let maxDefaultByteCount = 768 << 20

  /// The default of `--memory-limit-mib` in bytes.
  ///
  /// All that a control group and resource limits allow but what the process needs itself, or half of a machine's memory,
  /// which the worker shares with others; at most 768 MiB.
  var defaultLimit: Int {
    var limit = min(physicalByteCount / 2, Self.maxDefaultByteCount)
    for system in [limitByteCount, addressByteCount] {
      if let system { limit = min(limit, system - Self.processByteCount) }
    }
    return max(32 << 20, limit)
  }

  /// The lowest of the limits, less what the process needs itself, if a memory limit in bytes does not fit into it;
  /// otherwise `nil`.
  func shortage(for limit: Int) -> Int? {
    [limitByteCount, addressByteCount, physicalByteCount].compactMap(\.self).min()
      .map { max(0, $0 - Self.processByteCount) }.flatMap { $0 < limit ? $0 : nil }
  }

  /// The memory that this process may use.
  static var current: SystemMemory {
    let physical = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
    let groups = text("/proc/self/cgroup").map(files(groups:)) ?? []
    let limits = groups.compactMap { text($0).flatMap(limit(text:)) }.filter { $0 < physical }
    return SystemMemory(
      physicalByteCount: physical, limitByteCount: limits.min(),
      addressByteCount: addresses(
        limits: text("/proc/self/limits") ?? "", usage: text("/proc/self/statm") ?? "",
        pageByteCount: sysconf(Int32(_SC_PAGESIZE))))
  }

  /// The addresses in bytes that a process may still use; `nil` for any number.
  /// - `limits`: the text of `/proc/self/limits`.
  /// - `usage`: the text of `/proc/self/statm`, which begins with the number of pages in use.
  static func addresses(limits: String, usage: String, pageByteCount: Int) -> Int? {
    let name = "Max address space"
    guard let line = limits.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
      let limit = limit(text: String(line.dropFirst(name.count).drop { $0 == " " })),
      let pageCount = Int(usage.prefix { $0.isNumber })
    else { return nil }
    return max(0, limit - pageCount * pageByteCount)
  }

  /// The files that may contain the limits of the process' control groups and of those above them.
  ///
  /// A group above its `memory.high` is slowed down until it cannot work, so that this is a limit, too.
  /// - `groups`: the text of `/proc/self/cgroup`.
  static func files(groups: String) -> [String] {
    groups.split(separator: "\n").flatMap { line -> [String] in
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return [] }
      if fields[0] == "0", fields[1].isEmpty {
        return ["memory.max", "memory.high"].flatMap { paths(fields[2], "/sys/fs/cgroup", $0) }
      }
      guard fields[1].split(separator: ",").contains("memory") else { return [] }
      return paths(fields[2], "/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    }
  }

  /// The file of a group and of each group above it.
  private static func paths(_ group: Substring, _ root: String, _ name: String) -> [String] {
    var parts = group.split(separator: "/")
    var paths: [String] = []
    while true {
      paths.append(([root] + parts.map(String.init) + [name]).joined(separator: "/"))
      if parts.isEmpty { return paths }
      parts.removeLast()
    }
  }

  /// Reads a limit; `nil` for "max".
  static func limit(text: String) -> Int? { Int(text.prefix { $0.isNumber }).flatMap { $0 > 0 ? $0 : nil } }

  private static func text(_ path: String) -> String? {
    (try? FileSystem.read(FilePath(path), limit: 64 << 10)).map { String(decoding: $0, as: UTF8.self) }
  }
}
