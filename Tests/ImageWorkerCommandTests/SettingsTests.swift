import ArgumentParser
import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing
import WorkerOperations
import WorkerService

@testable import image_worker

@Suite("Settings of serve")
struct SettingsTests {
  private static func settings(
    options: OptionValues = [:], file: String? = nil, environment: [String: String] = [:]
  ) throws -> Settings {
    guard let file else { return try Settings.read(options: options, file: nil, environment: environment) }
    let scratch = try ScratchFolder()
    let path = try scratch.write(file.utf8, to: "settings.yaml")
    return try Settings.read(options: options, file: path, environment: environment)
  }

  private static func error(
    options: OptionValues = [:], file: String? = nil, environment: [String: String] = [:]
  ) -> String {
    do {
      _ = try settings(options: options, file: file, environment: environment)
      return ""
    } catch { return "\(error)" }
  }

  @Test("each setting has a row with a unique option, variable and key")
  func rows() {
    let rows = Settings.rows
    #expect(rows.count >= 26)
    for names in [rows.map(\.key), rows.map(\.option), rows.map(\.variable)] { #expect(Set(names).count == rows.count) }
    #expect(rows.allSatisfy { $0.help.hasSuffix(".") && !$0.defaultText.isEmpty && !$0.accepted.isEmpty })
    let memory = rows.first { $0.key == "memoryLimitMib" }
    #expect(memory?.option == "memory-limit-mib" && memory?.variable == "IMAGE_WORKER_MEMORY_LIMIT_MIB")
  }

  @Test("--help has every option")
  func help() {
    let help = Serve.helpMessage(columns: 200).split { $0.isWhitespace }.joined(separator: " ")
    for row in Settings.rows {
      #expect(help.contains("--\(row.option)"), "\(row.option)")
      #expect(help.contains("Default: \(row.defaultText)."), "\(row.option)")
    }
  }

  @Test("the article Deploying contains the table of settings")
  func article() throws {
    let text = try document("Sources/image-worker/Documentation.docc/Deploying.md")
    let lines = text.split(separator: "\n").map(String.init)
    let rows = Settings.rows.map(\.markdown)
    for row in rows { #expect(lines.contains(row), "the table of Deploying.md lacks this row:\n\(row)") }
    #expect(lines.filter { $0.hasPrefix("| `--") } == rows, "Deploying.md has rows of no setting, or in another order")
  }

  @Test("options override the environment, which overrides the file, which overrides the default")
  func precedence() throws {
    let file = "port: 1\nthreads: 2\nmemoryLimitMib: 100\n"
    let environment = ["IMAGE_WORKER_PORT": "3", "IMAGE_WORKER_THREADS": "4"]
    let settings = try Self.settings(options: ["port": ["5"]], file: file, environment: environment)
    #expect(settings.port == 5 && settings.threadCount == 4 && settings.memoryLimit == 100 << 20)
    let limits = settings.connectionLimits
    #expect(limits.windowByteCount == 1024 << 10 && limits.maxFrameByteCount == 256 << 10)
  }

  @Test("a byte order mark in front of the file is skipped")
  func byteOrderMark() throws {
    let settings = try Self.settings(file: "\u{FEFF}port: 7\nthreads: 2\n")
    #expect(settings.port == 7 && settings.threadCount == 2)
  }

  @Test("descriptors for event loops and threads are part of the minimum")
  func descriptors() {
    #expect(SystemLimits.minDescriptorCount(coreCount: 2, threadCount: 2) == 50)
    #expect(SystemLimits.minDescriptorCount(coreCount: 16, threadCount: 32) == 152)
  }

  @Test(
    "an error uses the spelling under which the value was set",
    arguments: [
      (["port": ["70000"]], nil, [:], "--port is 70000; it must be between 0 and 65535"),
      (
        ["memory-limit-mib": ["many"]], nil, [:],
        "--memory-limit-mib is \"many\"; it must be a whole number, 32 to 1048576"
      ),
      ([:], nil, ["IMAGE_WORKER_PORT": "many"], "IMAGE_WORKER_PORT is \"many\"; it must be a whole number, 0 to 65535"),
      ([:], "port: 1\nframeKib: 15\n", [:], "frameKib in settings.yaml:2 is 15; it must be between 16 and 16383"),
      ([:], nil, ["LOG_LEVEL": "loud"], "LOG_LEVEL is \"loud\"; it must be one of trace, debug, info"),
      (["log-format": ["xml"]], nil, [:], "--log-format is \"xml\"; it must be one of json, text"),
      ([:], "onlyPresets: perhaps\n", [:], "onlyPresets in settings.yaml:1 is \"perhaps\"; it must be true or false"),
      (["spill-directory": ["/nowhere"]], nil, [:], "--spill-directory is \"/nowhere\"; it must be a directory"),
    ] as [(OptionValues, String?, [String: String], String)])
  func spelling(options: OptionValues, file: String?, environment: [String: String], message: String) {
    let error = Self.error(options: options, file: file, environment: environment)
    #expect(error.replacing(/in \S*settings.yaml/, with: "in settings.yaml").hasPrefix(message), "\(error)")
  }

  @Test(
    "an unknown name is refused, and the nearest one is suggested",
    arguments: [
      ("memoryLimitMb: 5\n", [:], "memoryLimitMb", "memoryLimitMib"), ("Port: 5\n", [:], "Port", "port"),
      ("a: {b: 1}\n", [:], "a in", "did you mean"),
      (nil, ["IMAGE_WORKER_MEMORY_LIMIT": "5"], "IMAGE_WORKER_MEMORY_LIMIT ", "IMAGE_WORKER_MEMORY_LIMIT_MIB"),
      (nil, ["IMAGE_WORKER_THREAD": "5"], "IMAGE_WORKER_THREAD ", "IMAGE_WORKER_THREADS"),
    ] as [(String?, [String: String], String, String)])
  func unknown(file: String?, environment: [String: String], name: String, nearest: String) {
    let error = Self.error(file: file, environment: environment)
    #expect(error.hasPrefix(name) && error.contains("is not a setting") && error.contains(nearest), "\(error)")
  }

  @Test(
    "a file that is not a mapping of settings is refused", arguments: ["[1]", "port", "port: [1]", "port:", "port: {"])
  func badFile(text: String) {
    #expect(!Self.error(file: text).isEmpty)
  }

  @Test("the variables of Kubernetes and Docker for a service of this name are not settings")
  func serviceLinks() throws {
    let settings = try Self.settings(environment: [
      "IMAGE_WORKER_PORT": "tcp://10.0.0.1:50051", "IMAGE_WORKER_SERVICE_HOST": "10.0.0.1",
      "IMAGE_WORKER_SERVICE_PORT": "50051", "IMAGE_WORKER_SERVICE_PORT_GRPC": "50051",
      "IMAGE_WORKER_PORT_50051_TCP": "tcp://10.0.0.1:50051", "IMAGE_WORKER_PORT_50051_TCP_ADDR": "10.0.0.1",
      "IMAGE_WORKER": "/usr/bin/image-worker", "OTHER": "1",
    ])
    #expect(settings.port == 50051)
  }

  @Test("codecs are isolated by default; without isolation, images on which they crash cannot be kept")
  func isolation() throws {
    #expect(try Self.settings().isolation.isolation == .auto)
    #expect(try Self.settings(options: ["isolation": ["none"]]).isolation.isolation == .none)
    #expect(
      Self.error(environment: ["IMAGE_WORKER_ISOLATION": "never"])
        == "IMAGE_WORKER_ISOLATION is \"never\"; it must be one of auto, none, process")
    let error = Self.error(environment: ["IMAGE_WORKER_ISOLATION": "none", "IMAGE_WORKER_CRASH_DIRECTORY": "/tmp"])
    #expect(error.hasPrefix("IMAGE_WORKER_CRASH_DIRECTORY is \"/tmp\"") && error.contains("--isolation none"))
  }

  @Test("the limit of instructions is no setting, and must be valid")
  func instructionSet() throws {
    for value in ["scalar", "avx2", "neon", "avx512"] {
      #expect(try Self.settings(environment: [InstructionSet.variable: value]).port == 50051)
    }
    #expect(
      Self.error(environment: [InstructionSet.variable: "AVX2"])
        == "IMAGE_WORKER_INSTRUCTION_SET is \"AVX2\"; it must be scalar, avx2, neon or avx512")
  }

  @Test("the options are parsed from a command line")
  func options() throws {
    let serve = try #require(
      try Serve.parseAsRoot([
        "--max-scans", "7", "--max-work-pixels", "8", "--max-cpu-seconds-per-image", "9", "--window-kib", "64",
        "--frame-kib", "16", "--max-animation-frames", "5", "--max-animation-pixels", "6",
        "--max-connection-calls", "3",
        "--max-waiting-images", "0", "--max-open-uploads", "2", "--max-images-per-stream", "1", "--only-presets",
        "--spill-directory", "",
      ]) as? Serve)
    let settings = try Self.settings(options: serve.options.values)
    #expect(settings.limits.image.maxScans == 7 && settings.limits.image.maxWorkPixels == 8)
    #expect(settings.limits.image.maxAnimationFrames == 5 && settings.limits.image.maxAnimationPixels == 6)
    #expect(settings.limits.image.maxCPUTime == .seconds(9))
    #expect(settings.limits.image.spill == nil)
    let limits = settings.connectionLimits
    #expect(limits.windowByteCount == 64 << 10 && limits.maxFrameByteCount == 16 << 10)
    #expect(settings.maxConnectionCalls == 3 && settings.limits.maxWaitingImages == 0)
    #expect(settings.limits.maxOpenUploads == 2 && settings.limits.maxImagesPerStream == 1)
    #expect(settings.takesOnlyPresets)
    #expect(throws: (any Error).self) { try Serve.parseAsRoot(["--max-scan", "7"]) }
  }
}
