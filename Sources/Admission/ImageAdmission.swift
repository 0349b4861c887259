package import ImagePipeline

/// Reserves the memory that one image requires, before the image is decoded.
package protocol ImageAdmission {
  /// Reserves memory.
  ///
  /// Waits for it if necessary, or refuses.
  ///
  /// - `byteCount`: the maximum memory of the image, in bytes.
  /// - `cancellation`: ends the wait when it is cancelled.
  /// - Throws: `limitExceeded` if the image can never fit, `overloaded` if there is neither room nor a place in the
  ///   queue, `cancelled`.
  func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation

  /// Reserves memory for an image whose needs are not known yet, if there is plenty; otherwise returns `nil`.
  func reserveSpare(_ byteCount: Int) -> Reservation?

  /// Records that the image uses a process, and returns whether it may wait for one; otherwise it is refused if none is free.
  func mayWaitForProcess() -> Bool
}

extension ImageAdmission {
  package func reserveSpare(_ byteCount: Int) -> Reservation? { nil }
  package func mayWaitForProcess() -> Bool { true }
}

/// Admits images whose bytes have all arrived, in order of arrival.
///
/// Waiting is harmless, since such an image does not depend on further input.
extension MemoryBudget: ImageAdmission {}
