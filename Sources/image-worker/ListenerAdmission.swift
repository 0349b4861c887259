internal import Admission
internal import ImagePipeline
internal import WorkerOperations
internal import WorkerService

/// The memory budget as the listener uses it.
extension MemoryBudget: MessageMemory {}

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
