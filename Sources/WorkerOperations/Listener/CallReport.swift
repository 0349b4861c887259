internal import GRPCCore
internal import NIOHPACK

/// The report of a call by the listener, which counts unless an interceptor reports the call.
struct CallReport {
  private let log: CallLog
  let record = CallRecord()
  private let method: String
  /// When the call's headers arrived.
  let began = ContinuousClock.now
  /// The number of the call in the log; `nil` before it is forwarded.
  private var id: UInt64?
  /// The status that the transport has sent without an interceptor.
  private var status: (code: RPCError.Code?, message: String?)?
  private var isOver = false

  /// Begins the report of a call with this path.
  init(_ log: CallLog, path: String) {
    self.log = log
    method = String(path.drop { $0 == "/" })
  }

  /// Notes the facts of a call that is accepted, and adds its number to its headers.
  mutating func accept(_ headers: inout HPACKHeaders, deadline: CallDeadline?, callerName: String?) {
    record.accept(deadline: deadline, callerName: callerName)
    let id = log.records.add(record)
    headers.add(name: CallRecords.key, value: String(id))
    self.id = id
  }

  mutating func note(trailers: HPACKHeaders) {
    guard !record.isClaimed else { return }
    let code = trailers.first(name: "grpc-status").flatMap { Int($0) }.flatMap { Status.Code(rawValue: $0) }
    // A response without a status refuses a request that is not gRPC.
    status = (code.map { RPCError.Code($0) } ?? .invalidArgument, trailers.first(name: "grpc-message"))
  }

  /// Reports the call, whose stream is closed, if no interceptor does.
  mutating func end(peer: String) {
    guard !isOver else { return }
    isOver = true
    if let id { log.records.remove(id) }
    guard record.claim() else { return record.close() }
    let call = CallLog.Call(
      began: began, method: method, isDispatched: false, peer: peer, identity: record.callerName)
    if let refusal = record.refusal {
      log.note(call, refusal.code, refusal)
    } else if let status {
      log.note(call, status.code, status.code.map { RPCError(code: $0, message: status.message ?? "") })
    } else {
      log.note(call, .cancelled, nil)
    }
  }
}
