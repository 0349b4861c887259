package import Admission
internal import ImagePipeline
package import WorkerOperations
internal import WorkerService

/// The memory budget as the listener uses it.
extension MemoryBudget: MessageMemory {
  package func admit(_ request: MessageRequest) -> MessageAnswer {
    let admission = receive(
      request.byteCount, of: request.connection, isContinuation: request.isContinuation,
      buffering: request.bufferedByteCount, grant: request.grant)
    return switch admission {
    case .granted: .granted
    case .waiting(let id): .waiting(id)
    case .full: .full
    case .tooLarge(let limit): .tooLarge(limit)
    }
  }
}

extension CallAdmission {
  /// Refuses calls for which there will be no time, before their images are received.
  init(_ service: ImageWorkerService) {
    self.init { call in
      let caller = ImageCaller(identity: call.identity, peer: call.peer, deadline: call.deadline)
      return switch service.expect(call.path, of: caller, connection: call.connection) {
      case .success(let call): .admitted(until: call)
      case .failure(let error): .refused(error.message, retryDelay: error.retryDelay)
      }
    }
  }
}
