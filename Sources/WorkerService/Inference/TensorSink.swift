internal import ImagePipeline

/// Copies the raw result of one image into its row of a tensor.
final class TensorSink: ResultSink {
  private let batch: TensorBatch
  private let row: Int
  private var filled = 0
  private var rowByteCount = 0

  init(_ batch: TensorBatch, row: Int) {
    self.batch = batch
    self.row = row
  }

  func send(_ part: ResultPart) async throws {
    switch part.content {
    case .header(let info):
      guard let tensor = info.tensor else { throw PipelineError(.internalDefect, "a result is not raw") }
      rowByteCount = try batch.begin(row, TensorShape(tensor))
    case .chunk(let bytes):
      try batch.write(bytes, to: row, at: filled)
      filled += bytes.count
    case .report:
      guard filled == rowByteCount else {
        throw PipelineError(.internalDefect, "a result has fewer bytes than its shape")
      }
    case .failure(let error): throw error
    }
  }
}
