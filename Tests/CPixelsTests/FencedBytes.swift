#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Bytes that end directly before unreadable memory.
final class FencedBytes {
  struct NoMemory: Error {}

  private let pages: UnsafeMutableRawPointer
  private let byteCount: Int
  let bytes: UnsafeRawPointer

  init(_ contents: [UInt8]) throws {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    let open = (contents.count + page - 1) / page * page
    byteCount = open + page
    guard
      let pages = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), pages != MAP_FAILED
    else { throw NoMemory() }
    self.pages = pages
    let start = pages + (open - contents.count)
    contents.withUnsafeBytes { start.copyMemory(from: $0.baseAddress!, byteCount: contents.count) }
    bytes = UnsafeRawPointer(start)
    guard mprotect(pages + open, page, PROT_NONE) == 0 else { throw NoMemory() }
  }

  deinit { munmap(pages, byteCount) }
}
