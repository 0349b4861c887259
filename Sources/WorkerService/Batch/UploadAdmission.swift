internal import Admission
internal import ImagePipeline
internal import WorkThreads

/// Admits an upload whose bytes may still be arriving.
///
/// It may be refused where a whole image would wait.
struct UploadAdmission: ImageAdmission {
  let item: BatchItem
  let table: ItemTable
  let memory: MemoryBudget
  let shares: ConnectionShares
  let connection: String

  func mayWaitForProcess() -> Bool { table.mayWaitForProcess(item) }

  func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    // Before the wait: an upload that exceeds its connection's share is refused immediately.
    let isUpload = !table.isComplete(item)
    let share = isUpload ? try shares.take(byteCount, of: connection) : nil
    do throws(PipelineError) {
      let reservation =
        table.mayWaitForMemory(item)
        ? try await memory.reserve(byteCount, isUpload: isUpload, cancellation: cancellation)
        : try memory.reserveNow(byteCount, isUpload: isUpload)
      let claim = share.map { share in
        Claim { [memory] in
          withExtendedLifetime(share) { memory.endUpload(byteCount) }
        }
      }
      table.note(.reserved, of: item, share: claim)
      return reservation
    } catch {
      table.note(.none, of: item)
      throw error
    }
  }
}

/// Admits an image of a batch stream whose bytes arrived in one part.
struct ItemAdmission: ImageAdmission {
  let item: BatchItem
  let table: ItemTable
  let memory: MemoryBudget

  func mayWaitForProcess() -> Bool { table.mayWait(item) }

  func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    guard table.mayWait(item) else { return try memory.reserveNow(byteCount) }
    return try await memory.reserve(byteCount, cancellation: cancellation)
  }

  func reserveSpare(_ byteCount: Int) -> Reservation? { memory.reserveSpare(byteCount) }
}
