import GRPCCore
import NIOCore
import Testing

@testable import WorkerOperations

@Suite("MessageFraming")
struct MessageFramingTests {
  /// Returns the refusal of a call's bytes, which arrive in parts of a size.
  private func refusal(_ bytes: [UInt8], isCompressed: Bool, partByteCount: Int) -> RequestRefusal? {
    var framing = MessageFraming(isCompressed: isCompressed)
    var rest = bytes[...]
    do throws(RequestRefusal) {
      repeat {
        let part = rest.prefix(partByteCount)
        rest = rest.dropFirst(part.count)
        try framing.push(ByteBuffer(bytes: part), isLast: rest.isEmpty)
      } while !rest.isEmpty
      return nil
    } catch { return error }
  }

  /// A message of three hundred bytes, all of them with the value of an invalid flag.
  private static let long: [UInt8] = [0, 0, 0, 1, 44] + [UInt8](repeating: 9, count: 300)

  @Test(
    "whole messages are accepted, in parts of any size",
    arguments: [[], [0, 0, 0, 0, 0], [0, 0, 0, 0, 2, 7, 7, 0, 0, 0, 0, 0], long + long] as [[UInt8]], [1, 3, 7, 1000])
  func whole(bytes: [UInt8], partByteCount: Int) {
    #expect(refusal(bytes, isCompressed: false, partByteCount: partByteCount) == nil)
    #expect(refusal(bytes, isCompressed: true, partByteCount: partByteCount) == nil)
  }

  @Test("every truncation is refused", arguments: [1, 3, 7, 1000])
  func truncations(partByteCount: Int) {
    for count in 1..<2 * Self.long.count where count != Self.long.count {
      let refused = refusal(
        Array((Self.long + Self.long).prefix(count)), isCompressed: false, partByteCount: partByteCount)
      #expect(refused?.code == .invalidArgument && refused?.message.contains("truncated") == true, "\(count)")
    }
  }

  @Test("a flag other than 0, and 1 in a compressed call, is refused", arguments: [0, 1, 2, 3, 255] as [UInt8])
  func flags(flag: UInt8) {
    for start in [[], Self.long] {
      let bytes = start + [flag, 0, 0, 0, 1, 5]
      #expect((refusal(bytes, isCompressed: false, partByteCount: 4) == nil) == (flag == 0))
      #expect((refusal(bytes, isCompressed: true, partByteCount: 4) == nil) == (flag <= 1))
    }
  }
}
