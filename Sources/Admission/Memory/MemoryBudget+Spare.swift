extension MemoryBudget {
  /// Reserves `byteCount` bytes for an image whose needs are not known yet, if no image waits and half of the budget
  /// remains.
  /// - Returns: The reservation, to be shrunk to what the image needs; `nil` if memory is not plentiful.
  package func reserveSpare(_ byteCount: Int) -> Reservation? {
    guard waitingCount == 0, byteCount <= limit / 2 - used else { return nil }
    return try? reserveNow(byteCount)
  }
}
