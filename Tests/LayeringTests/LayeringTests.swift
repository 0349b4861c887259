import Testing

/// Checks that each module contains and imports only what the table of layers allows.
@Suite("Layering")
struct LayeringTests {
  private static let system: Set<String> = [
    "Foundation", "FoundationEssentials", "Glibc", "Musl", "Darwin", "Synchronization", "Dispatch", "Testing",
  ]

  @Test("every folder of Sources has its row in the table")
  func rows() throws {
    let folders = try SourceTree.folders(in: "Sources").subtracting(["System"])
    #expect(folders.isSubset(of: Layer.all.map(\.name)))
    #expect(Set(Layer.inSwift.map(\.name)).isSuperset(of: ["image-worker", "ImagePipeline", "ImageCodecs"]))
  }

  @Test("a layer may import only layers below it")
  func order() {
    for (index, layer) in Layer.all.enumerated() {
      #expect(layer.modules.isSubset(of: Layer.all[(index + 1)...].map(\.name)), "\(layer.name)")
    }
  }

  @Test("imports follow the table", arguments: Layer.inSwift)
  func imports(layer: Layer) throws {
    for file in try SourceTree.files(in: "Sources/\(layer.name)") {
      let surplus = file.imports.subtracting(layer.modules).subtracting(layer.foreign)
      #expect(surplus.isEmpty, "\(layer.name)/\(file.path) imports \(surplus.sorted())")
    }
  }

  @Test("a target imports what the manifest declares for it, and declares nothing else")
  func declarations() throws {
    let manifest = try Manifest()
    #expect(Set(Layer.inSwift.map(\.name)).isSubset(of: manifest.dependencies.keys))
    for (target, declared) in manifest.dependencies.sorted(by: { $0.key < $1.key }) {
      let folder = SourceTree.has("Sources/\(target)") ? "Sources/\(target)" : "Tests/\(target)"
      guard !target.hasPrefix("C") || folder.hasPrefix("Tests") else { continue }
      let imported = try SourceTree.files(in: folder).reduce(into: Set<String>()) { $0.formUnion($1.imports) }
      let names = Set(declared.map { $0.replacing("-", with: "_") })
      let undeclared = imported.subtracting(names).subtracting(Self.system)
      #expect(undeclared.isEmpty, "\(target) imports \(undeclared.sorted()) without declaring it")
      let unused = names.subtracting(imported)
      #expect(unused.isEmpty, "\(target) declares \(unused.sorted()) and imports it nowhere")
    }
  }

  @Test("pointers stay in the Swift wrappers of the C modules", arguments: Layer.inSwift)
  func pointers(layer: Layer) throws {
    guard let maximum = layer.maxPointerLineCount else { return }
    let files = try SourceTree.files(in: "Sources/\(layer.name)").filter { $0.pointerLineCount > 0 }
    let count = files.reduce(0) { $0 + $1.pointerLineCount }
    #expect(count <= maximum, "\(layer.name) has \(count) lines with pointers, in \(files.map(\.path))")
  }

  @Test("the compiler checks that the pipeline has no unsafe code")
  func safety() throws {
    let manifest = try SourceTree.text("Package.swift")
    let target = try #require(manifest.split(separator: "name: \"ImagePipeline\",").dropFirst().first)
    #expect(try #require(target.split(separator: ".target(").first).contains(".strictMemorySafety()"))
    for file in try SourceTree.files(in: "Sources/ImagePipeline") {
      // In any letter case: a marker, a pointer type, a function that lends a pointer.
      #expect(!file.lines.contains { $0.lowercased().contains("unsafe") }, "\(file.path)")
    }
  }

  @Test("every stage is in the list of stages")
  func stages() throws {
    let list = try SourceTree.text("Sources/ImagePipeline/Pipeline.swift")
    var names: [String] = []
    for file in try SourceTree.files(in: "Sources/ImagePipeline/Stages") {
      names += file.lines.compactMap { $0.wholeMatch(of: /struct (\w+): Stage\b.*/).map { String($0.1) } }
    }
    #expect(names.count >= 6)
    for name in names { #expect(list.contains("(\(name)(plan"), "\(name) is not in Pipeline.stages") }
  }

  @Test("every path that CONTRIBUTING.md names exists")
  func contributing() throws {
    let text = try SourceTree.text("CONTRIBUTING.md")
    // Paths in code spans or links: text that starts with a folder of this checkout, or a file at the top level.
    let names = text.matches(of: /[`(](\.?[\w-]+(?:\/[\w+.-]*)+|\w+\.md)[`)\/]?/).map { String($0.1) }
    #expect(names.count > 40)
    for name in names where !name.hasPrefix("../") { #expect(SourceTree.has(name), "\(name)") }
  }

  @Test("every test that SECURITY.md names exists")
  func security() throws {
    let rows = try SourceTree.text("SECURITY.md").matches(of: /\| `(Tests\/[\w\/.]+)`: ([^|]+) \|/)
    #expect(rows.count > 25)
    for row in rows {
      #expect(SourceTree.has(String(row.1)), "\(row.1)")
      #expect(try SourceTree.text(String(row.1)).contains(row.2), "\(row.1) has no \(row.2)")
    }
  }

  @Test("wire types stay in WorkerService/Wire")
  func wire() throws {
    var counts = maxWireFileCounts.mapValues { _ in 0 }
    for file in try SourceTree.files(in: "Sources/WorkerService") where !file.imports.isDisjoint(with: wireModules) {
      counts[String(file.path.prefix { $0 != "/" }), default: 0] += 1
    }
    counts["Wire"] = nil
    for (folder, count) in counts { #expect(count <= maxWireFileCounts[folder] ?? 0, "\(folder)") }
  }

  @Test("large numbers of other processes are read where they are bounded")
  func foreignNumbers() throws {
    let generated = try SourceTree.files(in: "Sources/WorkerProtocol/Generated")
    var names: Set<String> = ["timings", "retryInfo"]
    for message in generated.flatMap({ $0.text.split(separator: "public nonisolated struct ") }) {
      let name = message.prefix { $0 != ":" }
      guard name.hasPrefix("Imageworker_") || name.hasSuffix("PartialSuccess") else { continue }
      names.formUnion(message.matches(of: /public var (\w+): U?Int64\b/).map { String($0.1) })
    }
    #expect(names.isSuperset(of: ["rejectedSpans", "outputBytes", "decodedBytes"]))
    for file in try SourceTree.files(in: "Sources") where !file.imports.isDisjoint(with: wireModules) {
      if file.path.contains("/Generated/") { continue }
      let read = Set(file.text.matches(of: /\.(\w+)(?!\w)(?! *=[^=]|\()/).map { String($0.1) }).intersection(names)
      #expect(read == boundedNumbers[file.path] ?? [], "\(file.path): bound each number where it is read")
    }
  }

  @Test("the parts of the listener that stand for upstream defects name the versions that this package uses")
  func upstreamVersions() throws {
    let manifest = try SourceTree.text("Package.swift")
    let known = Dictionary(
      manifest.matches(of: /\/([\w-]+)", (?:from|exact): "([\d.]+)"/).map { (String($0.1), String($0.2)) }
    ) { $1 }
    var count = 0
    for name in try SourceTree.names(in: "Sources/WorkerOperations/Listener") {
      let text = try SourceTree.text("Sources/WorkerOperations/Listener/\(name)").replacing("\n/// ", with: " ")
      for sentence in text.matches(of: /\/\/\/ Needed with [^\n]*/) {
        for version in sentence.0.matches(of: /((?:swift|grpc)-[\w-]+) (\d+\.\d+\.\d+)/) {
          #expect(known[String(version.1)] == String(version.2), "\(name): does \(version.0) still need it?")
          count += 1
        }
      }
    }
    #expect(count >= 14)
    let article = try SourceTree.text("Sources/WorkerOperations/Documentation.docc/UpstreamDefects.md")
    for version in article.matches(of: /((?:swift|grpc)-[\w-]+) (\d+\.\d+\.\d+)/) {
      #expect(known[String(version.1)] == String(version.2))
    }
  }

  @Test("CPixels includes only its own headers and the system's")
  func kernels() throws {
    let files = try SourceTree.files(in: "Sources/CPixels", extensions: ["c", "h"])
    let headers = Set(files.map { $0.path.split(separator: "/").last.map(String.init) ?? $0.path })
    for file in files {
      for header in file.includes { #expect(headers.contains(header), "\(file.path) includes \(header)") }
      let system = file.lines.filter { $0.hasPrefix("#include <") }.compactMap {
        $0.split(separator: "<").last?.dropLast()
      }
      let allowed: Set<Substring> = [
        "arm_neon.h", "cinstructions.h", "immintrin.h", "math.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
        "stdlib.h", "string.h",
      ]
      #expect(allowed.isSuperset(of: system), "\(file.path): \(system)")
    }
  }

  @Test("a format's folder of CCodecs includes nothing of another format's")
  func formats() throws {
    let folders = try SourceTree.folders(in: "Sources/CCodecs")
    #expect(folders.isSuperset(of: sharedFolders))
    for file in try SourceTree.files(in: "Sources/CCodecs", extensions: ["c", "h"]) {
      #expect(!file.includes.contains("cpixels.h"), "\(file.path)")
      let own = String(file.path.prefix { $0 != "/" })
      guard folders.contains(own), !sharedFolders.contains(own) else { continue }
      for header in file.includes {
        let folder = header.split(separator: "/").dropLast().last.map(String.init) ?? own
        // Formats that embed another one create its decoder or transform.
        if header == "../formats.h" { continue }
        #expect(folder == own || sharedFolders.contains(folder), "\(file.path) includes \(header)")
      }
    }
  }
}
