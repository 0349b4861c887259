import Admission
import Synchronization
import TestSupport
import Testing

@testable import ImageWorkerKit

@Suite("ProcessedChunks", .timeLimit(.minutes(5)))
struct ProcessedChunksTests {
  /// Supplies chunks, and counts those that were taken.
  private struct Source: AsyncSequence, Sendable {
    final class Count: Sendable {
      private let taken = Mutex(0)
      var value: Int { taken.withLock { $0 } }
      func increment() { taken.withLock { $0 += 1 } }
    }

    struct Iterator: AsyncIteratorProtocol {
      var rest: ArraySlice<[UInt8]>
      let count: Count
      let failure: Lost?

      mutating func next() async throws -> ArraySlice<UInt8>? {
        await Task.yield()
        guard let chunk = rest.popFirst() else {
          if let failure { throw failure }
          return nil
        }
        count.increment()
        return chunk[...]
      }
    }

    let chunks: [[UInt8]]
    var failure: Lost?
    let count = Count()

    func makeAsyncIterator() -> Iterator { Iterator(rest: chunks[...], count: count, failure: failure) }
  }

  private struct Lost: Error, Equatable {}

  private static let configuration = ["max_width": "80", "preferred_format": "jpeg", "compression_quality": "0.9"]

  @Test(
    "the chunks of the result are those of the engine, whatever the chunks of the image",
    arguments: ["photo-420.jpg", "photo.png", "photo.webp", "photo.psd"], [17, 500, 1 << 20])
  func results(file: String, byteCount: Int) async throws {
    let image = Fixture.bytes(file)
    let processor = ImageProcessor()
    let expected = try engineResult(image, Self.configuration.map { ($0.key, $0.value) })
    let result = processor.process(
      Source(chunks: chunks(of: image, byteCount)), as: try ProcessingConfiguration(Self.configuration))
    // It can be iterated again.
    for _ in 0..<2 {
      var bytes: [UInt8] = []
      for try await chunk in result {
        #expect(!chunk.isEmpty)
        bytes += chunk
      }
      #expect(bytes == expected)
    }
    #expect(result.report?.outputByteCount == UInt64(expected.count) && result.report?.output.format == "jpeg")
    #expect(processor.memory.used == 0 && processor.memory.buffered == 0)
  }

  @Test("the plan is known before the first chunk, and takes no more of the source than the header")
  func plan() async throws {
    let source = Source(chunks: chunks(of: Fixture.bytes("photo-420.jpg"), 700))
    let processor = ImageProcessor()
    let result = processor.process(source, as: try ProcessingConfiguration(Self.configuration))
    var iterator = result.makeAsyncIterator()
    let plan = try await iterator.plan()
    #expect(plan.input.format == "jpeg" && plan.output.width == 80 && source.count.value < source.chunks.count)
    #expect(processor.memory.used == 0 && result.report == nil)
    #expect(try await iterator.plan().output == plan.output)
    var byteCount = 0
    while let chunk = try await iterator.next() { byteCount += chunk.count }
    #expect(try await iterator.next() == nil)
    #expect(try await iterator.plan().output == plan.output)
    #expect(result.report?.outputByteCount == UInt64(byteCount))
  }

  @Test("output leaves before the source has ended, and a reader that stops returns the memory")
  func early() async throws {
    // 3 MB of noise, of which no encoder makes little.
    let image = Array("P6 1000 1000 255\n".utf8) + noiseSamples(3_000_000)
    let source = Source(chunks: chunks(of: image, 10_000))
    let processor = ImageProcessor()
    let result = processor.process(
      source, as: try ProcessingConfiguration(["preferred_format": "png", "png.compression_level": "1"]))
    for try await chunk in result {
      #expect(chunk.count < 1 << 20)
      break
    }
    #expect(source.count.value < source.chunks.count / 2)
    #expect(processor.memory.used == 0)
  }

  @Test("errors of the source and of the image end the iteration")
  func errors() async throws {
    let processor = ImageProcessor()
    let image = Fixture.bytes("photo-420.jpg")
    let lost = Source(chunks: chunks(of: Array(image.prefix(3000)), 500), failure: Lost())
    var iterator = processor.process(lost).makeAsyncIterator()
    await #expect(throws: Lost()) { while try await iterator.next() != nil {} }
    #expect(try await iterator.next() == nil)
    await #expect(throws: Lost()) { try await iterator.plan() }

    let cut = Source(chunks: chunks(of: Array(image.prefix(3000)), 500))
    let small = try ProcessingConfiguration(Self.configuration)
    let error = await #expect(throws: ImageProcessingError.self) {
      for try await _ in processor.process(cut, as: small) {}
    }
    #expect(error?.reason == .truncatedImage)
    let empty = await #expect(throws: ImageProcessingError.self) {
      for try await _ in processor.process(Source(chunks: [])) {}
    }
    #expect(empty?.reason == .emptyImage)
    var invalid = ProcessingConfiguration()
    invalid.maxWidth = 0
    let field = await #expect(throws: ImageProcessingError.self) {
      for try await _ in processor.process(Source(chunks: []), as: invalid) {}
    }
    #expect(field?.reason == .invalidField && field?.field == "max_width")
    #expect(processor.memory.used == 0 && processor.memory.buffered == 0)
  }

  @Test("a task that is cancelled while it works ends the iteration")
  func cancellation() async throws {
    let processor = ImageProcessor()
    let image = Array("P6 600 400 255\n".utf8) + noiseSamples(720_000)
    let source = Source(chunks: chunks(of: image, 20_000))
    let configuration = try ProcessingConfiguration(["preferred_format": "png"])
    let task = Task {
      for try await _ in processor.process(source, as: configuration) {
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    let error = await #expect(throws: ImageProcessingError.self) { try await task.value }
    #expect(error?.reason == .cancelled && source.count.value < source.chunks.count)
    #expect(processor.memory.used == 0)
  }
}
