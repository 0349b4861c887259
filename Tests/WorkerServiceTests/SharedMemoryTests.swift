import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol
import WorkerService
import WorkerTelemetry

#if os(Linux)
  /// A segment as clients create it.
  private final class Segment {
    static let token = Data((1...32).map { UInt8($0) })

    let name = "image-worker.test-\(UUID().uuidString)"
    let byteCount: Int

    private var path: String { "/dev/shm/\(name)" }

    /// Creates a segment that begins with the token; without `isAllocated`, the rest has no memory.
    init(_ byteCount: Int = 1 << 20, isAllocated: Bool = true, mode: Int = 0o600) throws {
      self.byteCount = byteCount
      try #require(FileManager.default.createFile(atPath: path, contents: nil))
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      let file = try #require(FileHandle(forWritingAtPath: path))
      try file.write(contentsOf: Self.token)
      if isAllocated { try file.write(contentsOf: Data(count: byteCount - Self.token.count)) }
      try file.truncate(atOffset: UInt64(byteCount))
      try file.close()
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func bytes() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

    func place(
      at offset: Int = 4096, size: Int? = nil, _ change: (inout Imageworker_V1_SharedMemory) -> Void = { _ in }
    ) -> Imageworker_V1_SharedMemory {
      .with {
        $0.name = name
        $0.offset = UInt64(offset)
        $0.maxBytes = UInt64(size ?? byteCount - offset)
        $0.token = Self.token
        change(&$0)
      }
    }
  }

  @Suite("Results in shared memory")
  struct SharedMemoryTests {
    private static let image = Data(Fixture.bytes("photo-420.jpg"))

    private static func request(
      _ place: Imageworker_V1_SharedMemory?, _ change: (inout Imageworker_V1_ProcessImageRequest) -> Void = { _ in }
    ) -> Imageworker_V1_ProcessImageRequest {
      .with {
        $0.image = image
        $0.configuration.maxWidth = 100
        $0.configuration.alwaysEncode = true
        if let place { $0.sharedMemory = place }
        change(&$0)
      }
    }

    private static func withClient(_ body: (Client) async throws -> Void) async throws {
      try await withWorker(takesSharedMemory: true) { client, environment in
        try await body(client)
        #expect(environment.memory.used == 0)
      }
    }

    @Test("are the bytes that are sent otherwise, at their place and nowhere else")
    func same() async throws {
      try await Self.withClient { client in
        let segment = try Segment()
        let sent = try await client.processRenditions(Self.request(nil))[""]
        let shared = try await client.processRenditions(Self.request(segment.place(at: 5000)))[""]
        #expect(shared?.parts == ["header", "report"])
        #expect(shared?.report?.outputBytes == sent.map { UInt64($0.bytes.count) })
        let bytes = try segment.bytes()
        let end = 5000 + (sent?.bytes.count ?? 0)
        #expect(Array(bytes[5000..<end]) == sent?.bytes)
        #expect(bytes.prefix(32) == Segment.token && bytes[32..<5000].allSatisfy { $0 == 0 })
        #expect(bytes[end...].allSatisfy { $0 == 0 } && bytes.count == segment.byteCount)
      }
    }

    @Test("of items, of renditions, and beside a preview that is sent")
    func kinds() async throws {
      try await Self.withClient { client in
        let segment = try Segment()
        let sent = try await client.processRenditions(Self.request(nil))[""]?.bytes ?? []
        func shared(at offset: Int) throws -> [UInt8] { try Array(segment.bytes()[offset..<offset + sent.count]) }
        let items = try await client.batch([
          .with {
            $0.itemID = "a"
            $0.start.image = Self.image
            $0.start.configuration = Self.request(nil).configuration
            $0.start.sharedMemory = segment.place(at: 100_000)
          }
        ])
        #expect(items["a"]?.parts == ["header", "report"])
        #expect(try shared(at: 100_000) == sent)
        let places = [200_000, 300_000]
        let renditions = try await client.processRenditions(
          .with {
            $0.image = Self.image
            $0.renditions = places.map { offset in
              .with {
                $0.renditionID = "\(offset)"
                $0.configuration = Self.request(nil).configuration
                $0.sharedMemory = segment.place(at: offset, size: 90_000)
              }
            }
          })
        #expect(renditions.values.allSatisfy { $0.parts == ["header", "report"] } && renditions.count == 2)
        for offset in places { #expect(try shared(at: offset) == sent) }
        let previewed = try await client.processRenditions(
          Self.request(segment.place(at: 400_000)) { $0.preview = true })
        #expect(previewed["~preview"]?.bytes.isEmpty == false && previewed[""]?.parts == ["header", "report"])
        #expect(try shared(at: 400_000) == sent)
      }
    }

    @Test("are refused where the request is wrong, with its field")
    func fields() async throws {
      try await Self.withClient { client in
        let segment = try Segment()
        let places: [(String, Imageworker_V1_SharedMemory)] = [
          ("name", segment.place { $0.name = "/etc/passwd" }), ("name", segment.place { $0.name = "image-worker." }),
          ("name", segment.place { $0.name = "image-worker.a/../../b" }), ("name", segment.place { $0.name = "other" }),
          ("name", segment.place { $0.name += String(repeating: "a", count: 200) }),
          ("name", segment.place { $0.name += "absent" }),
          ("token", segment.place { $0.token = Data(1...15) }), ("token", segment.place { $0.token = Data(1...65) }),
          ("token", segment.place { $0.token = Data(count: 32) }),
          ("offset", segment.place { $0.offset = 31 }), ("max_bytes", segment.place { $0.maxBytes = 0 }),
          ("max_bytes", segment.place { $0.maxBytes = .max }),
          ("name", segment.place { $0.token[31] ^= 1 }), ("name", segment.place { $0.maxBytes += 1 }),
        ]
        for (field, place) in places {
          let status = await failure { _ = try await client.processRenditions(Self.request(place)) }
          #expect(status?.code == .invalidArgument, "\(place)")
          let violation = status?.details.compactMap(\.badRequest).first?.violations.first
          #expect(violation?.field == "shared_memory.\(field)", "\(place)")
        }
        #expect(try segment.bytes().dropFirst(32).allSatisfy { $0 == 0 })
      }
    }

    @Test("are refused for segments that are not the client's to share")
    func segments() async throws {
      try await Self.withClient { client in
        for segment in [try Segment(isAllocated: false), try Segment(mode: 0o606)] {
          let status = await failure { _ = try await client.processRenditions(Self.request(segment.place())) }
          #expect(status?.details.compactMap(\.badRequest).first?.violations.first?.field == "shared_memory.name")
        }
        let segment = try Segment()
        let link = "image-worker.test-\(UUID().uuidString)"
        try FileManager.default.createSymbolicLink(
          atPath: "/dev/shm/\(link)", withDestinationPath: "/dev/shm/\(segment.name)")
        defer { try? FileManager.default.removeItem(atPath: "/dev/shm/\(link)") }
        let status = await failure {
          _ = try await client.processRenditions(Self.request(segment.place { $0.name = link }))
        }
        #expect(status?.code == .invalidArgument)
      }
    }

    @Test("cost nobody else his result if they are refused")
    func others() async throws {
      let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
      try await withWorker(cache: cache, takesSharedMemory: true) { client, _ in
        let segment = try Segment()
        // The same image with the same options, which one of them makes and the others wait for.
        for width in 60..<80 {
          try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<4 {
              let place = index % 2 == 0 ? segment.place(size: 10) : nil
              let request = Self.request(place) { $0.configuration.maxWidth = UInt32(width) }
              group.addTask {
                let status = await failure { _ = try await client.processRenditions(request) }
                return status?.code == (place == nil ? nil : .failedPrecondition)
              }
            }
            for try await isRight in group { #expect(isRight) }
          }
        }
      }
    }

    @Test("are refused if they are larger, one of several alone")
    func size() async throws {
      let registry = MetricRegistry()
      try await withWorker(metrics: registry, takesSharedMemory: true) { client, environment in
        let segment = try Segment()
        let status = await failure {
          _ = try await client.processRenditions(Self.request(segment.place(size: 100)))
        }
        #expect(status?.code == .failedPrecondition)
        let all = try await client.processRenditions(
          .with {
            $0.image = Self.image
            $0.renditions = [(5000, 100), (6000, 200_000)].map { offset, size in
              .with {
                $0.renditionID = "\(size)"
                $0.configuration = Self.request(nil).configuration
                $0.sharedMemory = segment.place(at: offset, size: size)
              }
            }
          })
        #expect(all["100"]?.parts.last == "error" && all["200000"]?.parts.last == "report")
        #expect(all["100"]?.errors.first?.code == 9)
        let bytes = try segment.bytes()
        #expect(bytes[5000..<6000].allSatisfy { $0 == 0 } && !bytes[6000..<6100].allSatisfy { $0 == 0 })
        #expect(environment.memory.used == 0)
      }
      var renditions: [String: Double] = [:]
      for family in registry.collect() where family.description.name == "imageworker.renditions" {
        for series in family.series {
          guard case .counter(let value) = series.value, let outcome = series.dimensions.first?.value else { continue }
          renditions[outcome] = value
        }
      }
      #expect(renditions["ok"] == 1 && renditions["limit_exceeded"] == 1)
    }

    @Test("are refused by a worker that does not take it, and beside renditions")
    func settings() async throws {
      let segment = try Segment()
      try await withWorker { client, _ in
        let status = await failure { _ = try await client.processRenditions(Self.request(segment.place())) }
        #expect(status?.code == .unimplemented && status?.message.contains("--shared-memory") == true)
      }
      try await Self.withClient { client in
        let status = await failure {
          _ = try await client.processRenditions(
            .with {
              $0.image = Self.image
              $0.renditions = [.named("a")]
              $0.sharedMemory = segment.place()
            })
        }
        #expect(status?.details.compactMap(\.badRequest).first?.violations.first?.field == "shared_memory")
      }
    }
  }
#endif
