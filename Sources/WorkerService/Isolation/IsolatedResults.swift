internal import FoundationEssentials
internal import ImagePipeline

/// The output and the outcome of each rendition that a helper works on, until the caller takes them.
struct IsolatedResults {
  private var outputs: [OutputChunks] = []
  private var outcomes: [Result<ProcessingReport, PipelineError>?] = []
  private var isTaken: [Bool] = []

  /// Creates the results of an image that is not planned yet.
  init() {}

  /// Creates the results of the renditions of a plan; those that could not be planned have failed.
  init(_ plan: PlannedImage) {
    outputs = plan.renditions.map { _ in OutputChunks() }
    isTaken = plan.renditions.map { _ in false }
    outcomes = plan.renditions.map { if case .failure(let error) = $0 { .failure(error) } else { nil } }
  }

  /// Whether all renditions have ended.
  var areComplete: Bool { outcomes.allSatisfy { $0 != nil } }

  /// Whether the outcome of each rendition was taken.
  var areTaken: Bool { isTaken.allSatisfy(\.self) }

  /// Copies compressed bytes of a rendition.
  mutating func append(_ bytes: RawSpan, to index: Int) { outputs[index].append(bytes) }

  /// Notes outcomes by the index of their rendition; the first of each counts.
  mutating func note(_ new: [(index: Int, outcome: Result<ProcessingReport, PipelineError>)]) {
    for (index, outcome) in new where outcomes.indices.contains(index) {
      outcomes[index] = outcomes[index] ?? outcome
    }
  }

  /// Returns the bytes that were appended since the last call.
  mutating func takeOutput(of index: Int) -> [Data] { outputs[index].take() }

  /// Returns the outcome of a rendition once it has ended; `nil` before that, and afterwards.
  mutating func takeEnd(of index: Int) -> Result<ProcessingReport, PipelineError>? {
    guard !isTaken[index], let outcome = outcomes[index] else { return nil }
    isTaken[index] = true
    return outcome
  }
}
