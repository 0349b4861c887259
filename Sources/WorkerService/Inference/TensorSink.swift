internal import ImagePipeline

/// Copies the raw result of one image into its row of a tensor.
final class TensorSink: ResultSink {
  private let batch: TensorBatch
  private let row: Int
  private var filled = 0
  private var rowByteCount = 0
  private var content: PixelRect?
  /// The outcome of the image, after its report.
  private(set) var outcome: InferenceOutcome?

  init(_ batch: TensorBatch, row: Int) {
    self.batch = batch
    self.row = row
  }

  func send(_ part: ResultPart) async throws {
    switch part.content {
    case .header(let info):
      guard let tensor = info.tensor else { throw PipelineError(.internalDefect, "a result is not raw") }
      rowByteCount = try batch.begin(row, TensorShape(tensor))
      content = tensor.content
    case .chunk(let bytes):
      try batch.write(bytes, to: row, at: filled)
      filled += bytes.count
    case .report(let report):
      guard let content, filled == rowByteCount else {
        throw PipelineError(.internalDefect, "a result has fewer bytes than its shape")
      }
      outcome = .result(content: content, imageSize: report.processing.input.size)
    case .failure(let error): throw error
    }
  }
}
