internal import Admission
internal import FoundationEssentials
internal import ImagePipeline
internal import Synchronization

/// Collects the results of several images as the rows of one tensor, inside the message that contains it.
///
/// The first result that begins decides on the shape of all rows; then memory is charged for all of them. Rows of images
/// without a result are zero.
final class TensorBatch: Sendable {
  private struct State {
    /// The shape of a row, and the index of the row that was first.
    var first: (shape: TensorShape, row: Int)?
    var head = 0
    var rowByteCount = 0
    var bytes = Data()
    var memory: ResultMemory?
    var failure: PipelineError?
  }

  private let rowCount: Int
  private let maxByteCount: Int
  private let budget: MemoryBudget
  private let head: @Sendable (TensorShape, _ byteCount: Int) throws -> [UInt8]
  private let state = Mutex(State())

  /// Creates a tensor without rows.
  ///
  /// - Parameters:
  ///   - rowCount: The number of images.
  ///   - maxByteCount: The maximum size of all rows in bytes.
  ///   - budget: The memory to charge.
  ///   - head: Returns the part of the message before the rows, for the shape of a row and the size of all rows.
  init(
    rowCount: Int, maxByteCount: Int, budget: MemoryBudget,
    head: @escaping @Sendable (TensorShape, _ byteCount: Int) throws -> [UInt8]
  ) {
    self.rowCount = rowCount
    self.maxByteCount = maxByteCount
    self.budget = budget
    self.head = head
  }

  /// Why there is no room for the tensor; `nil` if there is, and before the first row has begun.
  var failure: PipelineError? { state.withLock { $0.failure } }

  /// Begins a row.
  /// - Returns: The size of the row in bytes.
  /// - Throws: `invalidField` if its shape is not that of the others, `limitExceeded` or `overloaded` if there is no room
  ///   for all of them.
  func begin(_ row: Int, _ shape: TensorShape) throws -> Int {
    try state.withLock { state in
      if let failure = state.failure { throw failure }
      guard let first = state.first else {
        do throws(PipelineError) { try allocate(shape, &state) } catch {
          state.failure = error
          throw error
        }
        state.first = (shape, row)
        return state.rowByteCount
      }
      guard shape == first.shape else { throw PipelineError(shape, of: row, not: first.shape, of: first.row) }
      return state.rowByteCount
    }
  }

  /// Charges and allocates the message; runs inside the lock, so that other rows wait for it.
  private func allocate(_ shape: TensorShape, _ state: inout State) throws(PipelineError) {
    guard let rowByteCount = shape.byteCount else {
      throw PipelineError(.internalDefect, "a result has no size")
    }
    let byteCount = rowByteCount * rowCount
    guard byteCount <= maxByteCount else {
      throw PipelineError(
        .limitExceeded,
        "the tensor of \(rowCount) images has \(byteCount) bytes, above max_message_bytes of \(maxByteCount), which also "
          + "limits the message of a response; send fewer images in a call",
        limit: .init(name: "max_message_bytes", limit: UInt64(maxByteCount), value: UInt64(byteCount)))
    }
    let head: [UInt8]
    do { head = try self.head(shape, byteCount) } catch {
      throw PipelineError(.internalDefect, "a response cannot be serialized: \(error)")
    }
    // The transport copies the message once.
    state.memory = try ResultMemory(2 * (head.count + byteCount), of: budget)
    (state.head, state.rowByteCount) = (head.count, rowByteCount)
    state.bytes = Data(count: head.count + byteCount)
    state.bytes.replaceSubrange(0..<head.count, with: Data(head))
  }

  /// Copies bytes of a row that has begun.
  ///
  /// - Parameters:
  ///   - chunk: The bytes.
  ///   - row: The index of the row.
  ///   - offset: The number of bytes of the row before these.
  /// - Throws: `internalDefect` if the row is shorter.
  func write(_ chunk: Data, to row: Int, at offset: Int) throws(PipelineError) {
    try state.withLock { state throws(PipelineError) in
      guard offset + chunk.count <= state.rowByteCount else {
        throw PipelineError(.internalDefect, "a result has more bytes than its shape")
      }
      let start = state.head + row * state.rowByteCount + offset
      state.bytes.replaceSubrange(start..<start + chunk.count, with: chunk)
    }
  }

  /// Sets the bytes of a row to zero.
  func clear(_ row: Int) {
    state.withLock { state in
      let start = state.head + row * state.rowByteCount
      if state.rowByteCount > 0 { state.bytes.resetBytes(in: start..<start + state.rowByteCount) }
    }
  }

  /// Removes and returns the message, to which what follows the rows is added.
  func take(withRows: Bool, tail: [UInt8]) throws(PipelineError) -> ResponseMessage {
    try state.withLock { state throws(PipelineError) in
      guard let memory = state.memory.take() else {
        throw PipelineError(.internalDefect, "a tensor has no rows")
      }
      if !withRows { state.bytes.removeSubrange(state.head...) }
      if !tail.isEmpty { state.bytes.append(contentsOf: tail) }
      defer { state.bytes = Data() }
      return ResponseMessage(state.bytes, memory)
    }
  }
}

/// A serialized message, whose memory is charged.
final class ResponseMessage: Sendable {
  private let bytes: Mutex<Data>
  /// The memory of the message, and of one copy until `serialized` is called.
  let memory: ResultMemory

  fileprivate init(_ bytes: Data, _ memory: ResultMemory) {
    self.bytes = Mutex(bytes)
    self.memory = memory
  }

  /// Returns a copy of the bytes, and frees them.
  func serialized<Bytes>(_ copy: (Data) -> Bytes) -> Bytes {
    let bytes = self.bytes.withLock { bytes in
      defer { bytes = Data() }
      return bytes
    }
    let byteCount = bytes.count
    let result = copy(bytes)
    memory.shrink(to: byteCount)
    return result
  }
}

extension PipelineError {
  fileprivate init(_ shape: TensorShape, of row: Int, not other: TensorShape, of otherRow: Int) {
    func text(_ shape: TensorShape) -> String { "\(shape.dimensions.compactMap(\.self))" }
    self.init(
      .invalidField,
      "its result has the shape \(text(shape)), but that of image \(otherRow) has \(text(other)); set max_width, "
        + "max_height and allow_upscale in the preset, with resize_mode FILL or STRETCH, or with pad",
      field: "inputs[0]", of: .message)
  }
}
