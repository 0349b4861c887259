import ImageCodecs
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc

  /// Memory that libraries allocate and do not write.
  @Suite("Unwritten memory", .serialized, .timeLimit(.minutes(5)))
  struct UnwrittenMemoryTests {
    /// Sets the inverse of the level with which `malloc` fills new blocks; 0 for none.
    ///
    /// The module of the C library lacks the function for that.
    private static func setFill(_ level: Int32) {
      typealias Function = @convention(c) (Int32, Int32) -> Int32
      guard let address = dlsym(nil, "mallopt") else { preconditionFailure("there is no mallopt") }
      _ = unsafeBitCast(address, to: Function.self)(-6, level)  // M_PERTURB
    }

    /// Decodes an image while `malloc` fills new blocks with the inverse of `level`.
    private static func outcome(_ bytes: [UInt8], tolerates: Bool, level: Int32) -> Result<Pixels, CodecError> {
      setFill(level)
      defer { setFill(0) }
      return Result { () throws(CodecError) in
        try Pixels.decode(
          bytes, frames: (0, 0), toleratesTruncation: tolerates, toleratesDamage: tolerates,
          limits: CodecLimits(maxPixels: 1 << 24, maxBufferedPixels: 0, maxScans: 100))
      }
    }

    @Test("is in no pixel of a damaged image", arguments: Crasher.names)
    func pixels(name: String) throws {
      let bytes = try Crasher.bytes(name)
      for tolerates in [false, true] {
        let found = [Int32(0x55), 0x2A].map { Self.outcome(bytes, tolerates: tolerates, level: $0) }
        switch (found[0], found[1]) {
        case (.success(let first), .success(let second)): #expect(first.planes == second.planes)
        case (.failure(let first), .failure(let second)): #expect(first.message == second.message)
        default: Issue.record("\(found)")
        }
      }
    }

    @Test(
      "a tile with alpha, and a grid beyond its tiles, are refused",
      .enabled(if: ImageFormat.avif.isDecodable && ImageFormat.heic.isDecodable),
      arguments: ["avif", "heic"], ["alpha-of-a-tile", "grid-beyond-its-tiles"])
    func grids(format: String, name: String) throws {
      let bytes = try Crasher.bytes("\(format)/\(name).\(format)")
      #expect(throws: CodecError.self) { try Pixels.decode(bytes) }
    }
  }
#endif
