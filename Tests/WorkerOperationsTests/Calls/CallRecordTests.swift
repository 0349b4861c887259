import GRPCCore
import NIOCore
import Testing

@testable import WorkerOperations

@Suite("CallRecord")
struct CallRecordTests {
  private final class Object: Sendable {}

  private func metadata(_ id: UInt64) -> Metadata {
    var metadata = Metadata()
    metadata.addString(String(id), forKey: CallRecords.key)
    return metadata
  }

  @Test("a call is found by its number, and has its facts once it is accepted")
  func facts() throws {
    let (records, record) = (CallRecords(), CallRecord())
    let id = records.add(record)
    #expect(try records.record(metadata(id)) === record && record.deadline == nil && record.callerName == nil)
    record.accept(deadline: CallDeadline(try #require(CallTimeout("10S")), from: .now()), callerName: "shop")
    #expect(record.callerName == "shop" && record.deadline.map { $0 > .now } == true && !record.isLate)
    record.addWork(.seconds(2))
    record.addWork(.seconds(1))
    #expect(record.worked == .seconds(3))
  }

  @Test("the end of a call that is not open any more was reported")
  func reported() throws {
    let (records, record) = (CallRecords(), CallRecord())
    let id = records.add(record)
    records.remove(id)
    let error = #expect(throws: RPCError.self) { try records.record(metadata(id)) }
    #expect(error?.code == .cancelled)
    #expect(try records.record([:]) == nil && record.claim())
  }

  @Test("objects are kept until the stream is closed, and not afterwards")
  func lifetimes() {
    let record = CallRecord()
    weak var kept: Object?
    do {
      let object = Object()
      kept = object
      record.keep(object)
    }
    #expect(kept != nil)
    record.close()
    #expect(kept == nil)
    do {
      let object = Object()
      kept = object
      record.keep(object)
    }
    #expect(kept == nil)
  }
}
