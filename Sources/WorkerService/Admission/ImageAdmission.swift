internal import ImagePipeline

/// Reserves the memory that one image needs, before any of it is decoded.
protocol ImageAdmission {
  /// Waits for room, or refuses.
  ///
  /// - `byteCount`: what the image takes at most.
  /// - Throws: `limitExceeded` when it can never fit, `overloaded` when there is no room and no place in the queue,
  ///   `cancelled`.
  func reserve(_ byteCount: Int) async throws(PipelineError) -> Reservation
}

/// Admits images whose bytes are all here, in the order in which they arrive: they can wait without harm.
struct QueuedAdmission: ImageAdmission {
  let memory: MemoryBudget
  let cancellation: Cancellation

  func reserve(_ byteCount: Int) async throws(PipelineError) -> Reservation {
    try await memory.reserve(byteCount, cancellation: cancellation)
  }
}
