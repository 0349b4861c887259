import Testing

/// A module of this package, and what may be in it.
struct Layer: Sendable, CustomTestStringConvertible {
  var name: String
  /// The modules of this package that it may import.
  var modules: Set<String>
  /// The modules of other packages and of the system that it may import.
  var foreign: Set<String>
  /// The maximum number of lines that name a pointer, which may only fall; `nil` where pointers belong.
  var maxPointerLineCount: Int?

  var testDescription: String { name }
}

extension Layer {
  private static let libc: Set<String> = ["Glibc", "Musl", "Darwin"]
  private static let grpc: Set<String> = ["GRPCCore", "GRPCProtobuf", "SwiftProtobuf"]

  /// From the top down: a module imports only what stands below it.
  static let all = [
    Layer(
      name: "image-worker",
      modules: [
        "WorkerService", "WorkerOperations", "WorkerTelemetry", "WorkerProtocol", "ResultCache", "ImagePipeline",
        "ImageCodecs", "Fields", "WorkThreads", "CMalloc",
      ],
      foreign: libc.union([
        "ArgumentParser", "Dispatch", "FoundationEssentials", "GRPCCore", "GRPCNIOTransportHTTP2Posix",
        "Logging",
        "ServiceLifecycle", "Synchronization", "SystemPackage", "Tracing", "UnixSignals", "Yams",
      ]),
      maxPointerLineCount: 3),
    Layer(
      name: "WorkerService",
      modules: ["WorkerProtocol", "ProtobufWire", "ResultCache", "ImagePipeline", "Fields", "WorkThreads"],
      foreign: grpc.union([
        "AsyncAlgorithms", "CoreMetrics", "FoundationEssentials", "ServiceContextModule", "Synchronization", "Tracing",
        "Yams",
      ]),
      maxPointerLineCount: 14),
    Layer(
      name: "WorkerOperations", modules: ["WorkerProtocol", "WorkThreads", "CLibZ"],
      foreign: grpc.union(libc).union([
        "CoreMetrics", "FoundationEssentials", "GRPCNIOTransportHTTP2Posix", "Logging", "NIOCore", "NIOHPACK",
        "NIOHTTP2",
        "NIOPosix",
        "ServiceContextModule", "Synchronization", "Tracing",
      ]),
      maxPointerLineCount: 1),
    Layer(
      name: "WorkerTelemetry", modules: ["WorkerProtocol", "ProtobufWire"],
      foreign: grpc.union(libc).union([
        "CoreMetrics", "Dispatch", "FoundationEssentials", "GRPCNIOTransportHTTP2Posix", "Logging", "NIOCore",
        "NIOHTTP1", "NIOPosix", "ServiceContextModule", "ServiceLifecycle", "Synchronization", "Tracing",
      ]),
      maxPointerLineCount: 5),
    Layer(
      name: "WorkerProtocol", modules: [], foreign: grpc.union(["Foundation", "FoundationEssentials"]),
      maxPointerLineCount: 0),
    Layer(name: "ProtobufWire", modules: [], foreign: [], maxPointerLineCount: 5),
    Layer(
      name: "ResultCache", modules: [],
      foreign: libc.union(["Crypto", "Logging", "Synchronization", "SystemPackage"]),
      maxPointerLineCount: 5),
    Layer(
      name: "ImagePipeline", modules: ["ImageCodecs", "ImageKernels", "Fields", "WorkThreads"],
      foreign: libc.union(["ServiceContextModule", "Synchronization", "Tracing"]),
      maxPointerLineCount: 0),
    Layer(name: "ImageKernels", modules: ["ImageCodecs", "CPixels"], foreign: ["Synchronization"]),
    Layer(name: "ImageCodecs", modules: ["Fields", "CCodecs"], foreign: ["Synchronization"]),
    Layer(name: "Fields", modules: [], foreign: [], maxPointerLineCount: 0),
    Layer(name: "WorkThreads", modules: [], foreign: libc.union(["Synchronization"])),
    Layer(name: "CCodecs", modules: [], foreign: []),
    Layer(name: "CPixels", modules: [], foreign: []),
    Layer(name: "CMalloc", modules: [], foreign: []),
    // Of the system's libraries the one that is used beside CCodecs.
    Layer(name: "CLibZ", modules: [], foreign: []),
  ]

  /// Those written in Swift by hand, where the house has them.
  static var inSwift: [Layer] { all.filter { SourceTree.has("Sources/\($0.name)") && !$0.name.hasPrefix("C") } }
}

/// The number of files outside WorkerService/Wire that may still import the wire's types, by folder.
///
/// Wire types and domain types are to meet in that folder alone: the numbers may only fall.
let maxWireFileCounts = ["Admission": 0, "Batch": 0, "Calls": 3, "Jobs": 0, "Presets": 2]
/// The modules of the wire's types.
let wireModules: Set<String> = ["WorkerProtocol", "SwiftProtobuf", "GRPCProtobuf"]

/// The folders of CCodecs that every other folder may include.
///
/// Those of single formats include none of each other.
let sharedFolders: Set<String> = ["core", "memory", "color", "include"]
