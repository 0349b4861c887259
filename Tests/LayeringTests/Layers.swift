import Testing

/// A module of this package and the rules for its contents.
struct Layer: Sendable, CustomTestStringConvertible {
  var name: String
  /// Modules of this package that it may import.
  var modules: Set<String>
  /// Modules of other packages and of the system that it may import.
  var foreign: Set<String>
  /// Maximum number of lines that name a pointer, which may only decrease; `nil` where pointers are allowed.
  var maxPointerLineCount: Int?

  var testDescription: String { name }
}

extension Layer {
  private static let libc: Set<String> = ["Glibc", "Musl", "Darwin"]
  private static let grpc: Set<String> = ["GRPCCore", "GRPCProtobuf", "SwiftProtobuf"]

  /// Modules from top to bottom: a module imports only modules below it.
  static let all = [
    Layer(
      name: "image-worker",
      modules: [
        "WorkerPlayground", "WorkerService", "WorkerOperations", "WorkerTelemetry", "WorkerIsolation",
        "ImageWorkerClient", "WorkerProtocol", "Admission", "ResultCache", "ImagePipeline", "ImageCodecs", "Fields",
        "WorkThreads", "LibC", "CPlatform",
      ],
      foreign: [
        "ArgumentParser", "Dispatch", "FoundationEssentials", "GRPCCore", "GRPCNIOTransportHTTP2Posix",
        "Logging",
        "ServiceLifecycle", "Synchronization", "SystemPackage", "Tracing", "UnixSignals", "Yams",
      ],
      // Reading and writing files, and the bytes of auxiliary images.
      maxPointerLineCount: 3),
    Layer(
      name: "WorkerPlayground",
      modules: ["WorkerProtocol", "WorkerService", "Admission", "ImagePipeline", "Fields", "LibC", "CPlaygroundPage"],
      foreign: grpc.union([
        "AsyncAlgorithms", "FoundationEssentials", "HTTPTypes", "HummingbirdCore", "Logging", "NIOCore", "NIOPosix",
        "ServiceLifecycle", "Synchronization", "Tracing",
      ]),
      maxPointerLineCount: 1),
    Layer(
      name: "WorkerService",
      modules: [
        "WorkerProtocol", "ProtobufWire", "Admission", "ResultCache", "ImagePipeline", "Fields", "WorkThreads",
        "WorkerIsolation", "LibC",
      ],
      foreign: grpc.union([
        "AsyncAlgorithms", "CoreMetrics", "FoundationEssentials", "ServiceContextModule", "Synchronization",
        "SystemPackage", "Tracing", "Yams",
      ]),
      // Received images, and auxiliary ones, are lent and hashed where they lie.
      maxPointerLineCount: 11),
    Layer(
      name: "WorkerOperations",
      modules: ["WorkerProtocol", "ProtobufWire", "WorkThreads", "LibC", "CLibZ", "CPlatform"],
      foreign: grpc.union([
        "CoreMetrics", "Crypto", "FoundationEssentials", "GRPCNIOTransportHTTP2Posix", "Logging", "NIOCore",
        "NIOHPACK", "NIOHTTP2", "NIOPosix", "NIOSSL", "NIOTLS", "ServiceContextModule", "SwiftASN1",
        "Synchronization", "Tracing", "X509",
      ]),
      // The memory of messages, which carries its charge: ChargedBuffer.swift. The request of LoadReportService.swift.
      maxPointerLineCount: 7),
    Layer(
      name: "WorkerTelemetry", modules: ["WorkerProtocol", "ProtobufWire", "LibC"],
      foreign: grpc.union([
        "CoreMetrics", "Dispatch", "FoundationEssentials", "GRPCNIOTransportHTTP2Posix", "Logging", "NIOCore",
        "NIOHTTP1", "NIOPosix", "ServiceContextModule", "ServiceLifecycle", "Synchronization", "Tracing",
      ]),
      maxPointerLineCount: 5),
    Layer(
      name: "ImageWorkerClient", modules: ["WorkerProtocol"],
      foreign: grpc.union([
        "Dispatch", "FoundationEssentials", "GRPCNIOTransportHTTP2Posix", "NIOCore", "NIOSSL", "Synchronization",
        "SystemPackage",
      ]),
      maxPointerLineCount: 1),
    Layer(
      name: "WorkerProtocol", modules: [], foreign: grpc.union(["Foundation", "FoundationEssentials"]),
      maxPointerLineCount: 0),
    Layer(name: "ProtobufWire", modules: [], foreign: [], maxPointerLineCount: 5),
    Layer(
      name: "ResultCache", modules: ["WorkThreads", "LibC"],
      foreign: ["Crypto", "Logging", "Synchronization", "SystemPackage"],
      maxPointerLineCount: 5),
    Layer(
      name: "ImageWorkerKit",
      modules: ["Admission", "ImagePipeline", "ImageCodecs", "Fields", "WorkThreads", "LibC"],
      foreign: ["Synchronization"], maxPointerLineCount: 0),
    Layer(
      name: "Admission", modules: ["ImagePipeline", "WorkThreads"],
      foreign: ["Synchronization"], maxPointerLineCount: 0),
    Layer(
      name: "ImagePipeline", modules: ["ImageCodecs", "ImageKernels", "Fields", "WorkThreads", "LibC"],
      foreign: ["ServiceContextModule", "Synchronization", "Tracing"],
      maxPointerLineCount: 0),
    Layer(name: "WorkerIsolation", modules: ["LibC", "CSandbox"], foreign: ["Synchronization"]),
    Layer(name: "ImageKernels", modules: ["Fields", "ImageCodecs", "CPixels", "CText"], foreign: ["Synchronization"]),
    Layer(name: "ImageCodecs", modules: ["Fields", "CCodecs", "CInstructions"], foreign: ["Synchronization"]),
    Layer(name: "Fields", modules: [], foreign: [], maxPointerLineCount: 0),
    Layer(name: "WorkThreads", modules: ["LibC"], foreign: ["Synchronization"]),
    Layer(name: "LibC", modules: [], foreign: libc, maxPointerLineCount: 3),
    Layer(name: "CCodecs", modules: ["CInstructions"], foreign: []),
    Layer(name: "CPixels", modules: ["CInstructions"], foreign: []),
    Layer(name: "CText", modules: [], foreign: []),
    Layer(name: "CInstructions", modules: [], foreign: []),
    Layer(name: "CPlatform", modules: [], foreign: []),
    Layer(name: "CPlaygroundPage", modules: [], foreign: []),
    Layer(name: "CSandbox", modules: [], foreign: []),
    // The only system library used in addition to those of CCodecs.
    Layer(name: "CLibZ", modules: [], foreign: []),
  ]

  /// Modules written by hand in Swift that exist in this checkout.
  static var inSwift: [Layer] { all.filter { SourceTree.has("Sources/\($0.name)") && !$0.name.hasPrefix("C") } }
}

/// Maximum number of files per folder outside WorkerService/Wire that import the wire types.
///
/// Wire types and domain types should meet only in that folder, so these numbers may only decrease.
let maxWireFileCounts = ["Batch": 0, "Callers": 0, "Calls": 2, "Inference": 1, "Jobs": 0, "Presets": 2]
/// The modules of the wire types.
let wireModules: Set<String> = ["WorkerProtocol", "SwiftProtobuf", "GRPCProtobuf"]

/// The files that read 64-bit numbers and times from messages of other processes, and what they read.
///
/// Such a number has any value, and arithmetic with it ends the process. Each of these files bounds what it reads, or
/// passes it on to one that does, which a test with the extreme values shows.
let boundedNumbers: [String: Set<String>] = [
  "ImageWorkerClient/ImageResult.swift": ["timings"],
  "ImageWorkerClient/ImageWorkerError+Status.swift": ["retryInfo"],
  // Compared with the bytes that have arrived.
  "ImageWorkerClient/Intake.swift": ["outputBytes"],
  "WorkerService/Wire/Wire+Cache.swift": [
    "estimatedBytes", "gainMapBytes", "inputBytes", "outputBytes", "peakMemoryBytes",
  ],
  // Bits, of which none counts as a number.
  "WorkerService/Wire/Wire+Facts.swift": ["perceptualHash", "differenceHash"],
  "WorkerService/Wire/Wire+Isolation.swift": ["timings"],
  // Those of this process.
  "WorkerService/Wire/WireError.swift": ["retryInfo"],
  "WorkerService/Wire/Wire+Results.swift": ["timings"],
  // Their sum is checked for overflow.
  "WorkerService/Wire/Wire+SharedMemory.swift": ["offset", "maxBytes"],
  // Not waited for beyond the timeout.
  "WorkerTelemetry/Export/OTLPRetry.swift": ["retryInfo"],
  "WorkerTelemetry/Telemetry+Pipelines.swift": ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"],
  "image-worker/Batch/RemoteImage.swift": ["gainMapBytes", "inputBytes", "peakMemoryBytes"],
]

/// The folders of CCodecs that every other folder may include.
///
/// Folders of single formats do not include each other.
let sharedFolders: Set<String> = ["core", "memory", "color", "palette", "include"]
