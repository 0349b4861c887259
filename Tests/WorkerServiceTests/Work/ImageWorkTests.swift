import Admission
import ImagePipeline
import TestSupport
import Testing

@testable import WorkerService

@Suite("ImageWork")
struct ImageWorkTests {
  @Test(
    "what a reader buffers is charged until the image starts, and not below 256 KiB", arguments: [100_000, 1 << 20])
  func buffered(byteCount: Int) throws {
    let bytes = paddedImage(byteCount: byteCount)
    let memory = MemoryBudget(limit: 1 << 30, maxWaiting: 1)
    let work = ImageWork(
      ImageServer(limits: ImageLimits(), cancellation: Cancellation(), tracing: TraceTarget()),
      memory: memory)
    let planning = WorkRequest.Planning(results: .renditions([ProcessingConfiguration()]))
    var rest = bytes[...]
    func read(_ count: Int) throws {
      let window = Array(rest.prefix(count))
      rest = rest.dropFirst(try work.readHeader(window.span.bytes, isLast: window.count == rest.count, planning))
    }
    let fileByteCount = bytes.count - byteCount
    while rest.count > fileByteCount { try read(min(ImageServer.windowByteCount, rest.count - fileByteCount)) }
    try work.chargeBuffered()
    #expect(work.plan == nil)
    #expect(byteCount < 256 << 10 ? memory.buffered == 0 : memory.buffered >= byteCount)
    while work.plan == nil { try read(ImageServer.windowByteCount) }
    try work.chargeBuffered()
    try work.start(nil)
    #expect(memory.buffered == 0)
  }
}
