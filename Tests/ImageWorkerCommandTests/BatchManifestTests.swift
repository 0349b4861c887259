import ArgumentParser
import Foundation
import ImagePipeline
import SystemPackage
import Testing

@testable import image_worker

/// Lists of images with presets, overrides and names of their own.
@Suite("Batch manifest")
struct BatchManifestTests {
  private func rows(_ text: String) throws -> [BatchManifest.Row] {
    try BatchManifest.rows(of: Data(text.utf8), name: "list").map(\.row)
  }

  @Test("JSON lines have presets, overrides and names")
  func json() throws {
    let rows = try rows(
      """

      {"path": "a b.jpg", "preset": "favicon", "output": "x/y.jpg", "reason": "CORRUPT_IMAGE"}
      {"path": "c.png", "overrides": {"max_width": 9, "crop": {"width": 0.5}}, "options": {"quality": "0.5"}}

      """)
    #expect(
      rows == [
        BatchManifest.Row(path: "a b.jpg", preset: "favicon", output: "x/y.jpg"),
        BatchManifest.Row(
          path: "c.png", overrides: #"{"crop":{"width":0.5},"max_width":9}"#, options: ["quality": "0.5"]),
      ])
    #expect(try rows.map { try $0.place } == ["x/y", nil])
  }

  @Test("CSV has the same names in its first line, and options as further columns")
  func csv() throws {
    let text = "path,output,max-width,preset\r\n\"a,\"\"b\"\".jpg\",small.webp,9,\r\n\r\nc.jpg,v1.2,,favicon\r\n"
    let rows = try rows(text)
    #expect(
      rows == [
        BatchManifest.Row(path: "a,\"b\".jpg", options: ["max-width": "9"], output: "small.webp"),
        BatchManifest.Row(path: "c.jpg", preset: "favicon", output: "v1.2"),
      ])
    // Only what is an image's extension is replaced by that of the result.
    #expect(try rows.map { try $0.place } == ["small", "v1.2"])
  }

  @Test("a byte order mark is left out, and keys of different objects and values may be equal")
  func accepted() throws {
    #expect(try rows("\u{FEFF}path,max-width\r\na.jpg,50\r\n") == [.init(path: "a.jpg", options: ["max-width": "50"])])
    let filters = #"[{"name":"sepia"},{"name":"a\"name:"}]"#
    #expect(
      try rows("\u{FEFF}" + #"{"path": "name", "output": "path", "overrides": {"filters": "# + filters + "}}") == [
        .init(path: "name", overrides: #"{"filters":"# + filters + "}", output: "path")
      ])
  }

  @Test("fields of CSV may contain anything")
  func fields() throws {
    var line = 0
    let records = try CSV.records("a,\"b\nc\"\n\n\"\",d", maxByteCount: 99, failingLine: &line)
    #expect(records == [CSV.Record(line: 1, fields: ["a", "b\nc"]), CSV.Record(line: 4, fields: ["", "d"])])
    #expect(throws: ManifestProblem.self) { try CSV.records("a\nb,\"c", maxByteCount: 99, failingLine: &line) }
    #expect(line == 2)
  }

  @Test(
    "an error names the line",
    arguments: [
      ("{\"path\": \"a\"}\n{\"path\": 1}", "list:2: path must be text"),
      ("{\"preset\": \"a\"}", "list:1: path is missing"),
      ("{\"path\": \"a\", \"presset\": \"b\"}", "list:1: presset is unknown; it must be one of path"),
      ("\n{\"path\": \"a\"", "list:2: must be a JSON object"),
      ("file,preset\na,b", "list:1: the first line must be"),
      ("path,preset\na,b\nc", "list:3: has 1 fields; the first line has 2"),
      ("path,preset\n,b", "list:2: path is empty"),
      (
        "path,max-widht\n", "list:1: the column \"max-widht\" is unknown; it must be path, preset, output, overrides or"
      ),
      ("path,presets,\na,b,", "list:1: the column \"presets\" is unknown"),
      ("\npath,max-width,preset,max-width\na,1,b,2", "list:2: the column \"max-width\" is repeated"),
      ("{\"path\": \"a\"}\n{\"path\": \"a\", \"path\": \"b\"}", "list:2: the key \"path\" is repeated"),
      (#"{"path": "a", "overrides": {"a": {"b": {}}, "zoom": 1, "z\u006fom" : 2}}"#, "list:1: the key \"zoom\" is"),
      (#"{"path": "a\u0000b"}"#, "list:1: path contains U+0000"),
      (#"{"path": "a", "output": "x\u0000"}"#, "list:1: output contains U+0000"),
      ("path,output\na,x\0", "list:2: output contains U+0000"),
    ])
  func errors(text: String, message: String) {
    let error = #expect(throws: ManifestError.self) { try BatchManifest.rows(of: Data(text.utf8), name: "list") }
    #expect("\(error.map { "\($0)" } ?? "")".hasPrefix("--manifest \(message)"), "\(String(describing: error))")
  }

  @Test("an error is a sentence, or ends with a question")
  func sentences() {
    #expect(ManifestError(file: "list", line: 1, message: "is wrong").description == "--manifest list:1: is wrong.")
    #expect(
      ManifestError(file: "list", line: 1, message: "x; is it y?").description == "--manifest list:1: x; is it y?")
  }

  @Test("an output is a path below the output directory", arguments: ["/a", "../a", "a/../../b", ""])
  func outputs(output: String) {
    #expect(throws: ManifestProblem.self) { try BatchManifest.Row(path: "a", output: output).place }
  }

  @Test("overrides and options of a row replace those of the command")
  func requests() throws {
    let batch = try #require(
      try Batch.parseAsRoot(["a", "--out", "o", "--max-width", "5", "--quality", "0.5"]) as? Batch)
    var requests = BatchRequests(batch.results, PresetCatalog(), isRemote: false)
    #expect(try requests.requested(of: BatchManifest.Row(path: "a")) == nil)
    let row = BatchManifest.Row(
      path: "a", preset: "favicon", overrides: #"{"max_width": 9, "filters": [{"name": "sepia"}]}"#,
      options: ["max_height": "8"])
    let configuration = try #require(try requests.requested(of: row)).results[0].configuration
    #expect(configuration.maxWidth == 9 && configuration.maxHeight == 8 && configuration.compressionQuality == 0.5)
    #expect(configuration.filters?.map(\.name) == ["sepia"])
    for (row, word) in [
      (BatchManifest.Row(path: "a", overrides: #"{"max_widht": 9}"#), "overrides.max_widht"),
      (BatchManifest.Row(path: "a", options: ["max-widht": "9"]), "max-widht"),
      (BatchManifest.Row(path: "a", options: ["max-width": "9", "max_width": "8"]), "max-width is repeated"),
    ] {
      let error = #expect(throws: ManifestProblem.self) { try requests.requested(of: row) }
      #expect(error?.description.contains(word) == true, "\(String(describing: error))")
    }
    #expect(throws: PipelineError.self) { try requests.requested(of: BatchManifest.Row(path: "a", preset: "bogus")) }
  }

  @Test("a preset that only workers know is sent to them")
  func remotePreset() throws {
    let arguments = ["a", "--out", "o", "--to", "host:1", "--preset", "theirs", "--max-width", "5"]
    let batch = try #require(try Batch.parseAsRoot(arguments) as? Batch)
    let requested = try batch.results.requested(PresetCatalog(), isRemote: true).results[0]
    #expect(requested.preset == "theirs" && requested.overrides.maxWidth == 5)
    #expect(throws: PipelineError.self) { try batch.results.requested }
  }
}
