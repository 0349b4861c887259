import GRPCCore
import Testing

@testable import WorkerOperations

@Suite("Status codes")
struct StatusCodeTests {
  @Test(
    "have the names of gRPC",
    arguments: [
      (RPCError.Code.cancelled, "CANCELLED"), (.unknown, "UNKNOWN"), (.invalidArgument, "INVALID_ARGUMENT"),
      (.deadlineExceeded, "DEADLINE_EXCEEDED"), (.notFound, "NOT_FOUND"), (.alreadyExists, "ALREADY_EXISTS"),
      (.permissionDenied, "PERMISSION_DENIED"), (.resourceExhausted, "RESOURCE_EXHAUSTED"),
      (.failedPrecondition, "FAILED_PRECONDITION"), (.aborted, "ABORTED"), (.outOfRange, "OUT_OF_RANGE"),
      (.unimplemented, "UNIMPLEMENTED"), (.internalError, "INTERNAL"), (.unavailable, "UNAVAILABLE"),
      (.dataLoss, "DATA_LOSS"), (.unauthenticated, "UNAUTHENTICATED"),
    ])
  func names(code: RPCError.Code, name: String) {
    #expect(code.name == name)
  }

  @Test("of clients and their images are no failures of the worker")
  func failures() {
    let ofWorker: [RPCError.Code] = [.unknown, .internalError, .dataLoss, .unavailable, .resourceExhausted]
    for code in ofWorker { #expect(code.isWorkerFailure) }
    let ofOthers: [RPCError.Code] = [
      .cancelled, .deadlineExceeded, .invalidArgument, .failedPrecondition, .unimplemented,
    ]
    for code in ofOthers { #expect(!code.isWorkerFailure) }
  }
}
