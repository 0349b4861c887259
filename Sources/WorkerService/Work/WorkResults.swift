internal import FoundationEssentials
internal import ImagePipeline

/// The output and the outcome of each rendition of an image, until its job takes them.
struct WorkResults {
  private static let chunkByteCount = 64 * 1024

  /// The bytes of each rendition, in chunks that fit into a message; all but the last are full.
  private var outputs: [[Data]] = []
  private var outcomes: [RenditionOutcome?] = []
  private var isTaken: [Bool] = []

  /// Notes the renditions of a plan; those that could not be planned have failed.
  mutating func expect(_ plan: PlannedImage) {
    makeRoom(for: plan.renditions.count)
    isTaken = plan.renditions.map { _ in false }
    outcomes = plan.renditions.map { if case .failure(let error) = $0 { .failure(error) } else { nil } }
  }

  /// Whether all renditions have ended.
  var areComplete: Bool { outcomes.allSatisfy { $0 != nil } }

  /// Whether the outcome of each rendition was taken.
  var areTaken: Bool { isTaken.allSatisfy(\.self) }

  /// Copies compressed bytes of a rendition, which may precede the plan.
  mutating func append(_ bytes: RawSpan, to index: Int) {
    makeRoom(for: index + 1)
    var rest = bytes
    while !rest.isEmpty {
      if outputs[index].last?.count ?? Self.chunkByteCount == Self.chunkByteCount { outputs[index].append(Data()) }
      let last = outputs[index].count - 1
      let count = min(rest.byteCount, Self.chunkByteCount - outputs[index][last].count)
      rest.extracting(first: count).withUnsafeBytes { outputs[index][last].append(contentsOf: $0) }
      rest = rest.extracting(droppingFirst: count)
    }
  }

  private mutating func makeRoom(for count: Int) {
    while outputs.count < count { outputs.append([]) }
  }

  /// Notes outcomes by the index of their rendition; the first of each counts.
  mutating func note(_ ends: [WorkResponse.End]) {
    for (index, outcome) in ends where outcomes.indices.contains(index) {
      outcomes[index] = outcomes[index] ?? outcome
    }
  }

  /// Removes and returns the bytes that were appended since the last call, in chunks that fit into a message.
  ///
  /// The last chunk may be smaller than the others: its receiver may not be able to continue without it.
  mutating func takeOutput(of index: Int) -> [Data] {
    defer { outputs[index] = [] }
    return outputs[index]
  }

  /// Returns the outcome of a rendition once it has ended; `nil` before that, and afterwards.
  mutating func takeEnd(of index: Int) -> RenditionOutcome? {
    guard !isTaken[index], let outcome = outcomes[index] else { return nil }
    isTaken[index] = true
    return outcome
  }
}
