import Testing

@testable import image_worker

@Suite("SystemMemory")
struct SystemMemoryTests {
  @Test("finds the limits of a group and of those above it, of both versions of control groups")
  func files() {
    #expect(
      SystemMemory.files(groups: "0::/kube/pod\n")
        == [
          "/sys/fs/cgroup/kube/pod/memory.max", "/sys/fs/cgroup/kube/memory.max", "/sys/fs/cgroup/memory.max",
          "/sys/fs/cgroup/kube/pod/memory.high", "/sys/fs/cgroup/kube/memory.high", "/sys/fs/cgroup/memory.high",
        ])
    #expect(SystemMemory.files(groups: "0::/\n") == ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.high"])
    #expect(
      SystemMemory.files(groups: "12:cpu,cpuacct:/a\n7:memory:/docker/1\n")
        == [
          "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
          "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        ])
    #expect(SystemMemory.files(groups: "nonsense\n::\n").isEmpty)
  }

  @Test(
    "reads a limit",
    arguments: [("536870912\n", 512 << 20), ("max\n", nil), ("0\n", nil), ("", nil)] as [(String, Int?)])
  func limit(text: String, byteCount: Int?) { #expect(SystemMemory.limit(text: text) == byteCount) }

  @Test(
    "the default leaves the process what it needs itself",
    arguments: [(16384, nil, 768), (16384, 512, 416), (1024, nil, 512), (16384, 64, 32), (16384, 4096, 768)]
      as [(Int, Int?, Int)])
  func defaults(physical: Int, limit: Int?, expected: Int) {
    let memory = SystemMemory(physicalByteCount: physical << 20, limitByteCount: limit.map { $0 << 20 })
    #expect(memory.defaultLimit == expected << 20)
  }

  @Test(
    "the default fits into the addresses that a resource limit leaves",
    arguments: [("unlimited            ", 768), ("536870912            ", 216), ("209715200            ", 32)])
  func addresses(limit: String, expected: Int) {
    let memory = SystemMemory(
      physicalByteCount: 16 << 30,
      addressByteCount: SystemMemory.addresses(
        limits: "Max msgqueue size 819200 819200 bytes\nMax address space         \(limit)unlimited            bytes\n",
        usage: "51200 11000 9000 4 0 8 0\n", pageByteCount: 4096))
    #expect(memory.defaultLimit == expected << 20)
  }

  @Test(
    "a limit that leaves the process less than it needs itself does not fit",
    arguments: [
      (16384, 608, 512, nil), (16384, 607, 512, 511), (16384, 64, 32, 0), (1024, nil, 928, nil),
      (1024, nil, 1024, 928), (1024, 2048, 1024, 928),
    ] as [(Int, Int?, Int, Int?)])
  func shortage(physical: Int, group: Int?, limit: Int, expected: Int?) {
    let memory = SystemMemory(physicalByteCount: physical << 20, limitByteCount: group.map { $0 << 20 })
    #expect(memory.shortage(for: limit << 20) == expected.map { $0 << 20 })
  }

  @Test("this machine has memory")
  func current() { #expect(SystemMemory.current.physicalByteCount > 64 << 20) }
}
