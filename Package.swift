// swift-tools-version: 6.2

import Foundation
import PackageDescription

/// Parts of the codecs that are built in where pkg-config knows their library, or as the option `--traits` says.
///
/// A build without any of them: `--disable-default-traits`.
let codecTraits: [(name: String, library: String, description: String)] = [
  ("TIFF", "libtiff-4", "Decode TIFF through libtiff."),
  ("HEIF", "libheif", "Decode HEIC and AVIF, and encode AVIF, through libheif."),
  ("JXL", "libjxl", "Decode and encode JPEG XL through libjxl."),
  ("LCMS", "lcms2", "Convert the colors of profiles, through littlecms."),
  ("ISAL", "libisal", "Inflate and deflate PNG through ISA-L, which is faster than zlib."),
]

/// The sandbox of `--isolation process`, which is built in where pkg-config knows its library; Linux only.
let sandboxTrait = (
  name: "ISOLATION", library: "libseccomp",
  description: "Process images in sandboxed processes, through libseccomp."
)

/// Text overlays, which are built in where pkg-config knows their library.
let textTrait = (name: "TEXT", library: "pangocairo", description: "Draw texts, through Pango, HarfBuzz and Cairo.")

/// Its static library if there is one, so that programs without isolation do not need the shared one to start.
var sandboxLibrary: String {
  let folders = ["lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "lib"]
  let isStatic = folders.contains { FileManager.default.fileExists(atPath: "/usr/\($0)/libseccomp.a") }
  return isStatic ? ":libseccomp.a" : "seccomp"
}

/// Whether one of pkg-config's directories has a file for `library`.
///
/// Its program can't be run from every manifest.
func isInstalled(_ library: String) -> Bool {
  let custom = (Context.environment["PKG_CONFIG_PATH"] ?? "").split(separator: ":").map(String.init)
  let prefixes = ["/usr", "/usr/local", "/opt/homebrew"]
  let triples = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "lib/\($0)" }
  let usual = prefixes.flatMap { prefix in
    (["lib", "lib64", "share"] + triples).map { "\(prefix)/\($0)/pkgconfig" }
  }
  return (custom + usual).contains { FileManager.default.fileExists(atPath: "\($0)/\(library).pc") }
}

/// Whether the headers are where the link in CLibPango leads.
let hasTextHeaders = FileManager.default.fileExists(atPath: "/usr/include/pango-1.0/pango/pango.h")

let traits = codecTraits + [sandboxTrait, textTrait]

func whenBuilt(_ target: String, _ trait: String) -> Target.Dependency {
  .target(name: target, condition: .when(traits: [trait]))
}

/// The plugin that builds the documentation; empty unless `make docs` requests it, so that other builds do not fetch it.
let documentationPlugin: [Package.Dependency] =
  Context.environment["IMAGE_WORKER_DOCS"] == nil
  ? [] : [.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0")]

/// Each of one version, so that a build of a commit is the same on every day.
let packages: [Package.Dependency] = [
  .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
  .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
  .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
  .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
  .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
  .package(url: "https://github.com/apple/swift-distributed-tracing", exact: "1.7.3"),
  .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0", traits: []),
  .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
  .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
  .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
  .package(url: "https://github.com/apple/swift-nio-http2", exact: "1.46.0"),
  // As the packages for certificates, part of every build in any case: grpc-swift-nio-transport depends on them.
  .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
  .package(url: "https://github.com/apple/swift-protobuf", exact: "1.39.0"),
  .package(url: "https://github.com/apple/swift-service-context", exact: "1.5.1"),
  .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
  .package(url: "https://github.com/grpc/grpc-swift-2", exact: "2.4.3"),
  .package(url: "https://github.com/grpc/grpc-swift-nio-transport", exact: "2.9.2"),
  .package(url: "https://github.com/grpc/grpc-swift-protobuf", exact: "2.4.1"),
  .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1", traits: []),
  .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
  .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
]

/// Whether the tests of this package are built, too, as `deploy/swift.sh` requests: packages that depend on this one cannot have
/// the flags below.
let isTested = Context.environment["IMAGE_WORKER_TESTED"] == "1"

/// Tests use internal declarations, also of a release: one build is for them and for the worker.
let testable: [SwiftSetting] = isTested ? [.unsafeFlags(["-enable-testing"], .when(configuration: .release))] : []

let strictSwift: [SwiftSetting] =
  testable + [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]

/// Generated code is held to the language mode, not to our warnings.
let generatedSwift: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// What tests need to process images in the time that they have.
let optimizedC: [CSetting] = isTested ? [.unsafeFlags(["-O1"], .when(configuration: .debug))] : []

/// Tests are compiled in less than half the time without optimization.
let strictTests: [SwiftSetting] =
  strictSwift + (isTested ? [.unsafeFlags(["-Onone"], .when(configuration: .release))] : [])

/// Those that compute in Swift what they compare are always optimized.
let optimizedTests: [SwiftSetting] =
  strictSwift + (isTested ? [.unsafeFlags(["-O"], .when(configuration: .debug))] : [])

let strictC: [CSetting] =
  optimizedC + [
    .define("NDEBUG", .when(configuration: .release)),
    .treatAllWarnings(as: .error),
    .enableWarning("all"),
    .enableWarning("extra"),
  ]

let codecDefinitions: [CSetting] = codecTraits.map { .define("CCODECS_\($0.name)", .when(traits: [$0.name])) }

/// libheif decodes AV1 with less memory, and encodes 10 bits, where dav1d and libaom, which it loads in any case, can also
/// be called directly.
let av1Libraries = ["dav1d", "aom"].filter(isInstalled)
let av1: (settings: [CSetting], linking: [LinkerSetting]) = (
  av1Libraries.map { .define("CCODECS_\($0.uppercased())", .when(traits: ["HEIF"])) },
  av1Libraries.map { .linkedLibrary($0, .when(traits: ["HEIF"])) }
)

let grpcCore: Target.Dependency = .product(name: "GRPCCore", package: "grpc-swift-2")
let grpcInProcess: Target.Dependency = .product(name: "GRPCInProcessTransport", package: "grpc-swift-2")
let grpcPosix: Target.Dependency = .product(
  name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport")
let grpcProtobuf: Target.Dependency = .product(name: "GRPCProtobuf", package: "grpc-swift-protobuf")
let swiftProtobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let tracing: Target.Dependency = .product(name: "Tracing", package: "swift-distributed-tracing")
let inMemoryTracing: Target.Dependency = .product(name: "InMemoryTracing", package: "swift-distributed-tracing")
let serviceContext: Target.Dependency = .product(name: "ServiceContextModule", package: "swift-service-context")
let serviceLifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let metrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let nio: [Target.Dependency] = [
  .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
]
let nioHTTP2: [Target.Dependency] = [
  .product(name: "NIOHTTP2", package: "swift-nio-http2"), .product(name: "NIOHPACK", package: "swift-nio-http2"),
]
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
/// TLS and the certificates of its clients.
let nioTLS: [Target.Dependency] = [
  .product(name: "NIOSSL", package: "swift-nio-ssl"), .product(name: "NIOTLS", package: "swift-nio"),
  .product(name: "SwiftASN1", package: "swift-asn1"), .product(name: "X509", package: "swift-certificates"),
]
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
/// The server alone: routers and middleware would double what must be compiled for it.
let hummingbird: [Target.Dependency] = [
  .product(name: "HummingbirdCore", package: "hummingbird"), .product(name: "HTTPTypes", package: "swift-http-types"),
]
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let asyncAlgorithms: Target.Dependency = .product(name: "AsyncAlgorithms", package: "swift-async-algorithms")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let yams: Target.Dependency = .product(name: "Yams", package: "Yams")
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

let targets: [Target] = [
  // The executable: commands, configuration, wiring.
  .executableTarget(
    name: "image-worker",
    dependencies: [
      "CPlatform", "LibC",
      "WorkerPlayground", "WorkerService", "WorkerOperations", "WorkerTelemetry", "WorkerIsolation",
      "ImageWorkerClient", "Admission", "ResultCache", "ImagePipeline", "ImageCodecs", "Fields", "WorkThreads",
      "WorkerProtocol",
      argumentParser, grpcCore, grpcPosix, logging, serviceLifecycle, system, tracing, unixSignals, yams,
    ],
    swiftSettings: strictSwift),
  // The page on which presets are tuned, and its HTTP server.
  .target(
    name: "WorkerPlayground",
    dependencies: [
      "CPlaygroundPage", "LibC", "WorkerProtocol", "WorkerService", "Admission", "ImagePipeline", "Fields",
      asyncAlgorithms,
      grpcCore,
      grpcProtobuf, logging, serviceLifecycle, swiftProtobuf, tracing,
    ] + hummingbird + nio,
    exclude: ["Resources"],
    swiftSettings: strictSwift),
  // The files of that page, embedded by the C compiler.
  .target(name: "CPlaygroundPage", cSettings: strictC),
  // The RPCs: chunks in and out, request -> Plan, error -> RPCError.
  .target(
    name: "WorkerService",
    dependencies: [
      "WorkerProtocol", "ProtobufWire", "Admission", "ResultCache", "ImagePipeline", "Fields", "WorkThreads", "LibC",
      "WorkerIsolation", asyncAlgorithms, grpcCore, grpcProtobuf, metrics, swiftProtobuf, system, tracing, yams,
    ],
    swiftSettings: strictSwift),
  // The listener, identities, health, reflection, and what is recorded of each call.
  .target(
    name: "WorkerOperations",
    dependencies: [
      "WorkerProtocol", "ProtobufWire", "WorkThreads", "LibC", "CLibZ", "CPlatform", crypto, grpcCore, grpcPosix,
      grpcProtobuf, logging, metrics,
      serviceContext, swiftProtobuf, tracing,
    ] + nio + nioHTTP2 + nioTLS,
    swiftSettings: strictSwift),
  // Traces, metrics and logs: where they are recorded, and how they reach a collector, Prometheus and a terminal.
  .target(
    name: "WorkerTelemetry",
    dependencies: [
      "WorkerProtocol", "ProtobufWire", "LibC", grpcCore, grpcPosix, grpcProtobuf, logging, metrics, nioHTTP1,
      serviceContext,
      serviceLifecycle, swiftProtobuf, tracing,
    ] + nio,
    swiftSettings: strictSwift),
  // The client: retries, batches over several workers, resumption.
  .target(
    name: "ImageWorkerClient",
    dependencies: ["WorkerProtocol", grpcCore, grpcPosix, grpcProtobuf, nioCore, nioSSL, swiftProtobuf, system],
    swiftSettings: strictSwift),
  // Results by what they are results of, in memory and in files; knows nothing of images.
  .target(
    name: "ResultCache", dependencies: ["LibC", "WorkThreads", crypto, logging, system], swiftSettings: strictSwift),
  // Generated code and the descriptor set; nothing by hand.
  .target(
    name: "WorkerProtocol",
    dependencies: [grpcCore, grpcProtobuf, swiftProtobuf],
    resources: [.embedInCode("Generated/descriptor_set.binpb")],
    swiftSettings: generatedSwift),
  // The wire format of protocol buffers, for what generated code is too slow for or does not know.
  .target(name: "ProtobufWire", swiftSettings: strictSwift),
  // Processes that images are worked on in: how they are started, their channels and their limits.
  .target(name: "WorkerIsolation", dependencies: ["CSandbox", "LibC"], swiftSettings: strictSwift),
  // Embedded C: the sandbox of such a process, and the process that forks them.
  .target(
    name: "CSandbox",
    cSettings: strictC + [.define("CSANDBOX_SECCOMP", .when(traits: [sandboxTrait.name]))],
    linkerSettings: [.linkedLibrary(sandboxLibrary, .when(traits: [sandboxTrait.name]))]),
  // Everything that an image or a message can wait for, and who is first.
  .target(
    name: "Admission", dependencies: ["ImagePipeline", "WorkThreads"],
    swiftSettings: strictSwift + [.strictMemorySafety()]),
  // The engine as a library, for other programs; without gRPC, NIO and Foundation.
  .target(
    name: "ImageWorkerKit",
    dependencies: ["Admission", "ImagePipeline", "ImageCodecs", "Fields", "WorkThreads", "LibC"],
    swiftSettings: strictSwift),
  // The ordered stages, plans, presets, geometry and the memory of one image.
  .target(
    name: "ImagePipeline",
    dependencies: ["Fields", "ImageCodecs", "ImageKernels", "WorkThreads", "LibC", serviceContext, tracing],
    swiftSettings: strictSwift + [.strictMemorySafety()]),
  // The threads that images are worked on, their clocks, and how tasks and messages wait.
  .target(name: "WorkThreads", dependencies: ["LibC"], swiftSettings: strictSwift),
  // The C library, by one name on all systems.
  .target(name: "LibC", swiftSettings: strictSwift),
  // The Swift face of the pixel kernels: resizers, converters, filters and orientation over rows.
  .target(
    name: "ImageKernels", dependencies: ["Fields", "ImageCodecs", "CPixels", "CText"], swiftSettings: strictSwift),
  // Sniffing, headers, and owners of the C decoders and encoders.
  .target(name: "ImageCodecs", dependencies: ["Fields", "CCodecs", "CInstructions"], swiftSettings: strictSwift),
  // Rows of fields: how a record is read, written, merged, checked and set by options; depends on nothing.
  .target(name: "Fields", swiftSettings: strictSwift),
  // Embedded C: one push decoder and one encoder interface over the codec libraries.
  .target(
    name: "CCodecs",
    dependencies: [
      "CInstructions", "CLibJPEG", "CLibWebP", "CLibZ", whenBuilt("CLibTIFF", "TIFF"), whenBuilt("CLibHEIF", "HEIF"),
      whenBuilt("CLibJXL", "JXL"), whenBuilt("CLibLCMS", "LCMS"), whenBuilt("CLibISAL", "ISAL"),
    ],
    cSettings: strictC + codecDefinitions + av1.settings,
    linkerSettings: [.linkedLibrary("m"), .linkedLibrary("jxl", .when(traits: ["JXL"]))] + av1.linking),
  // Embedded C: resize, color and orientation kernels.
  .target(name: "CPixels", dependencies: ["CInstructions"], cSettings: strictC, linkerSettings: [.linkedLibrary("m")]),
  // Embedded C: fonts, the layout of texts, and their pixels.
  .target(
    name: "CText",
    dependencies: ["CLibCairo", "CLibFontconfig", "CLibGObject", "CLibHarfBuzz"].map { whenBuilt($0, textTrait.name) },
    cSettings: strictC + [
      .define("CTEXT_PANGO", .when(traits: [textTrait.name])),
      .headerSearchPath("../System/CLibPango", .when(traits: [textTrait.name])),
    ],
    linkerSettings: [
      .linkedLibrary("m"), .linkedLibrary("pango-1.0", .when(traits: [textTrait.name])),
    ]),
  // The widest instructions that the kernels may use; depends on nothing.
  .target(name: "CInstructions", cSettings: strictC),

  // System libraries, found by pkg-config.
  .systemLibrary(
    name: "CLibJPEG", path: "Sources/System/CLibJPEG", pkgConfig: "libjpeg",
    providers: [.apt(["libjpeg62-turbo-dev"]), .brew(["jpeg-turbo"])]),
  .systemLibrary(
    name: "CLibISAL", path: "Sources/System/CLibISAL", pkgConfig: "libisal",
    providers: [.apt(["libisal-dev"]), .brew(["isa-l"])]),
  .systemLibrary(
    name: "CLibLCMS", path: "Sources/System/CLibLCMS", pkgConfig: "lcms2",
    providers: [.apt(["liblcms2-dev"]), .brew(["little-cms2"])]),
  .systemLibrary(
    name: "CLibWebP", path: "Sources/System/CLibWebP", pkgConfig: "libwebp",
    providers: [.apt(["libwebp-dev"]), .brew(["webp"])]),
  // The allocator's settings; part of the C library.
  .systemLibrary(name: "CPlatform", path: "Sources/System/CPlatform"),
  .systemLibrary(
    name: "CLibZ", path: "Sources/System/CLibZ", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
  .systemLibrary(
    name: "CLibTIFF", path: "Sources/System/CLibTIFF", pkgConfig: "libtiff-4",
    providers: [.apt(["libtiff-dev"]), .brew(["libtiff"])]),
  .systemLibrary(
    name: "CLibHEIF", path: "Sources/System/CLibHEIF", pkgConfig: "libheif",
    providers: [.apt(["libheif-dev"]), .brew(["libheif"])]),
  // Not by pkg-config, whose file for it has a flag that the package manager warns of each time.
  .systemLibrary(
    name: "CLibJXL", path: "Sources/System/CLibJXL", providers: [.apt(["libjxl-dev"]), .brew(["jpeg-xl"])]),
  // Of Pango there is only a link to its headers in CLibPango, because its file for pkg-config has a flag of which the package
  // manager warns each time.
  .systemLibrary(
    name: "CLibCairo", path: "Sources/System/CLibCairo", pkgConfig: "cairo",
    providers: [.apt(["libpango1.0-dev"]), .brew(["pango"])]),
  .systemLibrary(
    name: "CLibFontconfig", path: "Sources/System/CLibFontconfig", pkgConfig: "fontconfig",
    providers: [.apt(["libpango1.0-dev"]), .brew(["pango"])]),
  .systemLibrary(
    name: "CLibGObject", path: "Sources/System/CLibGObject", pkgConfig: "gobject-2.0",
    providers: [.apt(["libpango1.0-dev"]), .brew(["pango"])]),
  .systemLibrary(
    name: "CLibHarfBuzz", path: "Sources/System/CLibHarfBuzz", pkgConfig: "harfbuzz",
    providers: [.apt(["libpango1.0-dev"]), .brew(["pango"])]),

  // Fixtures, chunking, and reference implementations shared by the tests.
  .target(
    name: "TestSupport",
    dependencies: ["ImageCodecs", "ImagePipeline"],
    path: "Tests/TestSupport",
    resources: [.copy("Fixtures")],
    swiftSettings: strictSwift + [.enableExperimentalFeature("Lifetimes")]),
  // Runs single jobs under a counter of instructions; see `make cost-gate`.
  .executableTarget(
    name: "CostGate", dependencies: ["ImageCodecs", "ImagePipeline"], path: "Tests/CostGate",
    exclude: ["gate.py", "figures.json"], swiftSettings: strictSwift),
  // Helpers that images make fail or take over, for the tests of isolation.
  .executableTarget(
    name: "FaultyHelper", dependencies: ["CSandbox", "ImagePipeline", "WorkerIsolation", "WorkerService"],
    path: "Tests/FaultyHelper", swiftSettings: strictTests),
  // One suite for each room.
  .testTarget(name: "FieldsTests", dependencies: ["Fields"], swiftSettings: strictTests),
  .testTarget(
    name: "CPixelsTests", dependencies: ["CPixels"], swiftSettings: optimizedTests),
  .testTarget(
    name: "ImageKernelsTests", dependencies: ["ImageCodecs", "ImageKernels", "TestSupport"], exclude: ["similarity.py"],
    resources: [.copy("Similarity")], swiftSettings: strictTests),
  .testTarget(
    name: "ImageCodecsTests", dependencies: ["CCodecs", "ImageCodecs", "TestSupport"], swiftSettings: strictTests),
  .testTarget(
    name: "ImagePipelineTests",
    dependencies: [
      "Fields", "ImageCodecs", "ImageKernels", "ImagePipeline", "TestSupport", "WorkThreads", inMemoryTracing, tracing,
    ],
    exclude: ["ResultHashes.txt"], swiftSettings: strictTests),
  .testTarget(
    name: "AdmissionTests", dependencies: ["Admission", "ImagePipeline", "TestSupport", "WorkThreads"],
    swiftSettings: strictTests),
  .testTarget(
    name: "ImageWorkerKitTests",
    dependencies: ["Admission", "Fields", "ImageCodecs", "ImagePipeline", "ImageWorkerKit", "TestSupport"],
    exclude: ["PublicAPI.txt"], swiftSettings: strictTests),
  .testTarget(
    name: "ResultCacheTests", dependencies: ["ResultCache", "TestSupport", logging, system], swiftSettings: strictTests),
  // The built program, as a shell sees it, and its declarations.
  .testTarget(
    name: "ImageWorkerCommandTests",
    dependencies: [
      "image-worker", "Fields", "ImageCodecs", "ImagePipeline", "ImageWorkerClient", "TestSupport", "WorkerOperations",
      "WorkerPlayground",
      "WorkerProtocol", "WorkerService", "WorkerTelemetry", argumentParser, swiftProtobuf, system,
    ],
    swiftSettings: strictTests),
  .testTarget(
    name: "WorkerPlaygroundTests",
    dependencies: [
      "Admission", "Fields", "ImagePipeline", "WorkerPlayground", "WorkerService", grpcCore, nioCore, tracing,
    ] + hummingbird,
    swiftSettings: strictTests),
  // Every text that users see, in one file that `make text` writes.
  .testTarget(
    name: "UserVisibleTextTests", dependencies: ["image-worker", "Fields", "WorkerTelemetry", argumentParser],
    exclude: ["UserVisibleText.md"], swiftSettings: strictTests),
  // What each module may import; reads the sources and this manifest.
  .testTarget(name: "LayeringTests", swiftSettings: strictTests),
  .testTarget(
    name: "ProtobufWireTests", dependencies: ["ProtobufWire", "TestSupport", swiftProtobuf],
    swiftSettings: strictTests),
  .testTarget(
    name: "WorkerServiceTests",
    dependencies: [
      "Admission", "FaultyHelper", "Fields", "ImageCodecs", "ImageKernels", "ImagePipeline", "ResultCache",
      "TestSupport", "WorkThreads", "WorkerIsolation",
      "WorkerOperations", "WorkerProtocol", "WorkerService", "WorkerTelemetry",
      asyncAlgorithms, grpcCore, grpcInProcess, grpcProtobuf, inMemoryTracing, logging, metrics, swiftProtobuf, tracing,
    ],
    swiftSettings: strictTests),
  .testTarget(
    name: "WorkerOperationsTests",
    dependencies: [
      "CLibZ", "TestSupport", "WorkThreads", "WorkerOperations", "WorkerProtocol", "WorkerTelemetry", grpcCore,
      grpcInProcess, grpcPosix, grpcProtobuf, inMemoryTracing, logging, swiftProtobuf, tracing,
    ] + nio + nioHTTP2,
    swiftSettings: strictTests),
  .testTarget(
    name: "ImageWorkerClientTests",
    dependencies: [
      "ImageWorkerClient", "WorkerProtocol", grpcCore, grpcPosix, grpcProtobuf, swiftProtobuf,
    ],
    swiftSettings: strictTests),
  .testTarget(
    name: "WorkerTelemetryTests",
    dependencies: [
      "TestSupport", "WorkerProtocol", "WorkerTelemetry", grpcCore, grpcProtobuf, logging, metrics, swiftProtobuf,
      tracing,
    ],
    swiftSettings: strictTests),
]

let package = Package(
  name: "image-worker",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "image-worker", targets: ["image-worker"]),
    .library(name: "ImageWorkerKit", targets: ["ImageWorkerKit"]),
    .library(name: "ImageWorkerClient", targets: ["ImageWorkerClient", "WorkerProtocol"]),
  ],
  traits: Set(
    traits.map { .trait(name: $0.name, description: $0.description) }
      + [
        .default(
          enabledTraits: Set(
            traits.filter { isInstalled($0.library) && ($0.name != textTrait.name || hasTextHeaders) }.map(\.name)))
      ]),
  dependencies: packages + documentationPlugin,
  targets: targets,
  swiftLanguageModes: [.v6],
  cLanguageStandard: .c11
)
