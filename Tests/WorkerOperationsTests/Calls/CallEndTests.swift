import GRPCCore
import NIOCore
import NIOHTTP2
import Testing

@testable import WorkerOperations

@Suite("CallEnd")
struct CallEndTests {
  private static func failure(_ code: RPCError.Code, cause: (any Error)?) -> RPCError {
    RPCError(code: code, message: "failed", cause: cause)
  }

  @Test("a stream that its client closed is no defect", arguments: [false, true])
  func closedStream(isCancelled: Bool) {
    let cause = NIOHTTP2Errors.streamClosed(streamID: 1, errorCode: .cancel)
    #expect(CallEnd.code(Self.failure(.internalError, cause: cause), isCancelled: isCancelled) == .cancelled)
  }

  @Test("what the transport throws when its client closes a stream is no defect", arguments: [false, true])
  func transport(isCancelled: Bool) {
    let closed = NIOHTTP2Errors.streamClosed(streamID: 1, errorCode: .cancel)
    #expect(CallEnd.code(closed, isCancelled: isCancelled) == .cancelled)
    for error in [ChannelError.ioOnClosedChannel, IOError(errnoCode: 104, reason: "read")] as [any Error] {
      #expect(CallEnd.code(error, isCancelled: isCancelled) == (isCancelled ? .cancelled : .unknown))
    }
  }

  @Test("a channel that closed is its client's doing only if the call was cancelled")
  func closedChannel() {
    let error = Self.failure(.internalError, cause: ChannelError.ioOnClosedChannel)
    #expect(CallEnd.code(error, isCancelled: true) == .cancelled)
    #expect(CallEnd.code(error, isCancelled: false) == .internalError)
  }

  @Test("other errors keep their code", arguments: [false, true])
  func others(isCancelled: Bool) {
    #expect(CallEnd.code(Self.failure(.internalError, cause: nil), isCancelled: isCancelled) == .internalError)
    #expect(CallEnd.code(Self.failure(.notFound, cause: nil), isCancelled: isCancelled) == .notFound)
    #expect(CallEnd.code(CancellationError(), isCancelled: isCancelled) == RPCError.Code(of: CancellationError()))
  }
}
