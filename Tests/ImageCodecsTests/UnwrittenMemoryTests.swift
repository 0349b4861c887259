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
      "frames that libjxl decodes beyond its planes are refused", .enabled(if: ImageFormat.jxl.isDecodable),
      arguments: Crasher.names.filter { $0.hasPrefix("jxl/") })
    func frames(name: String) throws {
      let bytes = try Crasher.bytes(name)
      let error = #expect(throws: CodecError.self) { try Pixels.decode(bytes) }
      #expect(error?.code == .unsupported)
    }

    private static let libheif = [
      "avif/alpha-of-a-tile.avif", "avif/av1-override.avif", "avif/clap-overflow.avif",
      "avif/grid-beyond-its-tiles.avif",
      "avif/overlay-alpha-depth.avif", "avif/uuid-tile-alpha.avif", "heic/alpha-of-a-tile.heic",
      "heic/canvas-grid.heic",
      "heic/dependent-slice.heic", "heic/grid-beyond-its-tiles.heic", "heic/idat-end.heic", "heic/iden-alpha-leak.heic",
      "heic/iloc-twice.heic", "heic/uuid-cycle.heic",
    ]

    @Test(
      "files that libheif decodes beyond its planes are refused",
      .enabled(if: ImageFormat.avif.isDecodable && ImageFormat.heic.isDecodable), arguments: libheif)
    func derivedImages(name: String) throws {
      let bytes = try Crasher.bytes(name)
      #expect(throws: CodecError.self) { try Pixels.decode(bytes) }
    }

    @Test("a canvas beyond its stated size is charged", .enabled(if: ImageFormat.heic.isDecodable))
    func canvas() throws {
      let bytes = try Crasher.bytes("heic/canvas-budget.heic")
      let error = #expect(throws: CodecError.self) { try Pixels.decode(bytes, budget: ImageBudget(limit: 64 << 20)) }
      #expect(error?.code == .outOfMemory || error?.code == .limitExceeded)
    }
  }
#endif
