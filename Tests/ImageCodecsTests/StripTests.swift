import ImageCodecs
import TestSupport
import Testing

@Suite("Strips")
struct StripTests {
  /// Three rows of four bytes: 0 to 3, 4 to 7, 8 to 11.
  private static func rows() throws -> RowBuffer { try rowBuffer(Array(0..<12), rowByteCount: 4) }

  private static func bytes(_ rows: Strip.Rows) -> [[UInt8]] {
    (0..<rows.rowCount).map { row in
      var bytes: [UInt8] = []
      rows.withRow(row) { bytes.append($0) }
      return bytes
    }
  }

  @Test("parts of rows are the requested ones")
  func parts() throws {
    let buffer = try Self.rows()
    defer { withExtendedLifetime(buffer) {} }
    let all = buffer.rows(count: 3)
    #expect(Self.bytes(all.prefix(1)) == [[0, 1, 2, 3]])
    #expect(Self.bytes(all.prefix(9)) == Self.bytes(all))
    #expect(Self.bytes(all.part(first: 1, count: 2, byteOffset: 1, byteCount: 2)) == [[5, 6], [9, 10]])
    #expect(all.portions(of: 2).map(Self.bytes) == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10, 11]]])
    var rest = all
    rest.dropFirst(2)
    #expect(Self.bytes(rest) == [[8, 9, 10, 11]])
  }

  @Test("a row after the last is refused")
  func missingRow() async {
    await #expect(processExitsWith: .failure) {
      try StripTests.rows().rows(count: 2).withRow(2) { _ in }
    }
  }

  @Test("parts that reach beyond the rows are refused")
  func longPart() async {
    await #expect(processExitsWith: .failure) {
      _ = try StripTests.rows().rows(count: 2).part(first: 0, count: 3, byteOffset: 0, byteCount: 4)
    }
    await #expect(processExitsWith: .failure) {
      _ = try StripTests.rows().rows(count: 2).part(first: 0, count: 1, byteOffset: 2, byteCount: 3)
    }
  }

  @Test("an encoder refuses rows that are too short or have another format")
  func encoderRefusesRows() throws {
    let budget = ImageBudget(limit: 1 << 20)
    let buffer = try Self.rows()
    defer { withExtendedLifetime(buffer) {} }
    var wide = try Encoder(
      options: EncoderOptions(format: .png, width: 5, height: 3, pixelFormat: .gray8), budget: budget)
    let short = #expect(throws: CodecError.self) {
      try wide.write(Strip(format: .gray8, rows: buffer.rows(count: 3)))
    }
    #expect(short?.code == .misuse)
    var gray = try Encoder(
      options: EncoderOptions(format: .png, width: 1, height: 3, pixelFormat: .gray8), budget: budget)
    let colored = #expect(throws: CodecError.self) {
      try gray.write(Strip(format: .rgb8, rows: buffer.rows(count: 3)))
    }
    #expect(colored?.code == .misuse)
  }
}
