import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// `process`, `inspect` and `filters`: the commands that need no server.
@Suite("Local commands", .timeLimit(.minutes(15)))
struct LocalCommandTests {
  @Test("process writes the pipeline's result under the input's name and the result's extension")
  func process() async throws {
    let scratch = try ScratchFolder()
    let input = try scratch.write(Fixture.bytes("photo-420.jpg"), to: "in.jpg")
    let outcome = try await WorkerProgram.run(
      [
        "process", input, "--preset", "favicon", "--format", "png", "--filter", "sepia=0.5", "--out",
        scratch.path("out"),
      ])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path("out")) == ["in.png"])
    let result = try scratch.bytes("out/in.png")
    #expect(outcome.output.hasPrefix("\(input): jpeg 240x160, 15472 bytes -> \(scratch.path("out/in.png")): 64x43, "))
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == 3 && lines[0].hasSuffix(": 64x43, \(result.count) bytes"))
    #expect(lines[1].hasPrefix("1 image in ") && lines[1].hasSuffix(": 1 done"))
    #expect(lines[2].hasPrefix("15.1 KiB in, ") && lines[2].contains(", saved "))
    let configuration = ProcessingConfiguration(
      maxWidth: 64, maxHeight: 64, preferredFormat: .png, filters: [Filter(name: "sepia", intensity: 0.5)])
    #expect(try result == TestSupport.process(Fixture.bytes("photo-420.jpg"), configuration).bytes)
  }

  @Test("a failed image makes process exit with 1 and does not stop the others")
  func failure() async throws {
    let scratch = try ScratchFolder()
    let whole = try scratch.write(Fixture.bytes("photo.png"), to: "whole.png")
    let cut = try scratch.write(Fixture.bytes("photo-420.jpg").prefix(3000), to: "cut.jpg")
    let missing = scratch.path("missing.jpg")
    let outcome = try await WorkerProgram.run(
      ["process", missing, cut, whole, "--preset", "favicon", "--quiet", "--out", scratch.path("out")])
    #expect(outcome.status == 1 && outcome.output.isEmpty)
    let errors = outcome.errors.split(separator: "\n")
    #expect(errors.count == 2, "\(errors)")
    #expect(errors.contains { $0.hasPrefix("\(missing): ") })
    #expect(errors.contains { $0.hasPrefix("\(cut): TRUNCATED_IMAGE: ") })
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path("out")) == ["whole.jpg"])
  }

  @Test("a tolerated problem delivers the result with a warning")
  func toleration() async throws {
    let scratch = try ScratchFolder()
    let cut = try scratch.write(Fixture.bytes("photo-420.jpg").prefix(12000), to: "cut.jpg")
    let outcome = try await WorkerProgram.run(
      ["process", cut, "--tolerate-truncation", "--timings", "--out", scratch.path("out")])
    #expect(outcome.status == 0 && outcome.output.contains("\n  warning: "))
    #expect(outcome.output.contains("decode") && outcome.output.contains("encode"))
    let json = try await WorkerProgram.run(
      ["process", cut, "--tolerate-truncation", "--json", "--out", scratch.path("json")])
    #expect(json.output.contains(#""warning_details":[{"code":"TRUNCATED","message":""#))
    #expect(try !scratch.bytes("out/cut.jpg").isEmpty)
  }

  @Test("two inputs with the same name do not overwrite each other's result")
  func collision() async throws {
    let scratch = try ScratchFolder()
    let first = try scratch.write(Fixture.bytes("photo-420.jpg"), to: "same.jpg")
    let second = try scratch.write(Fixture.bytes("photo.png"), to: "same.png")
    let outcome = try await WorkerProgram.run(
      ["process", first, second, "--preset", "favicon", "--out", scratch.path("out")])
    #expect(outcome.status == 1 && outcome.errors.hasPrefix("\(second): "))
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path("out")) == ["same.jpg"])
  }

  @Test("inspect prints the properties of the image and of the result without decoding")
  func inspect() async throws {
    let scratch = try ScratchFolder()
    // The header is in the first kilobytes; the rest of the file is not needed.
    let input = try scratch.write(Fixture.bytes("photo-420.jpg").prefix(3000), to: "in.jpg")
    let outcome = try await WorkerProgram.run(["inspect", input, "--preset", "favicon", "--format", "webp"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    let rows = Dictionary(
      outcome.output.split(separator: "\n").compactMap { line -> (Substring, String)? in
        guard let gap = line.firstRange(of: "  ") else { return nil }
        return (line[..<gap.lowerBound], line[gap.upperBound...].trimmingCharacters(in: .whitespaces))
      }, uniquingKeysWith: { first, _ in first })
    #expect(rows["format"] == "jpeg" && rows["size"] == "240x160" && rows["alpha"] == "no")
    #expect(rows["result"] == "webp 64x43" && rows["decoded at"] == "6/8")
  }

  @Test("inspect --json has the names of InspectImage's response")
  func inspectJSON() async throws {
    let scratch = try ScratchFolder()
    let input = try scratch.write(Fixture.bytes("photo-420.jpg").prefix(3000), to: "in.jpg")
    let outcome = try await WorkerProgram.run(["inspect", input, "--json", "--preset", "favicon"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty && outcome.output.count { $0 == "\n" } == 1)
    let card = try #require(
      JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
    let (info, output) = (card["info"] as? [String: Any] ?? [:], card["output"] as? [String: Any] ?? [:])
    #expect(info["format"] as? String == "jpeg" && info["width"] as? Int == 240 && info["height"] as? Int == 160)
    #expect(info["bit_depth"] as? Int == 8 && info["color_space"] as? String == "ycbcr")
    #expect(info["has_alpha"] as? Bool == false && info["orientation"] as? Int == 1)
    #expect(output["width"] as? Int == 64 && output["height"] as? Int == 43)
    #expect(card["file"] as? String == input && (card["working_set_bytes"] as? Int ?? 0) > 0)
  }

  @Test("process --json prints an object per result, errors included, and the summary")
  func processJSON() async throws {
    let scratch = try ScratchFolder()
    let whole = try scratch.write(Fixture.bytes("photo-420.jpg"), to: "whole.jpg")
    let cut = try scratch.write(Fixture.bytes("photo-420.jpg").prefix(3000), to: "cut.jpg")
    let outcome = try await WorkerProgram.run(
      ["process", whole, cut, "--preset", "favicon", "--json", "--out", scratch.path("out")])
    #expect(outcome.status == 1 && outcome.errors.isEmpty)
    let objects = try outcome.output.split(separator: "\n").map {
      try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    try #require(objects.count == 3)
    #expect(objects[0]["status"] as? String == "done" && objects[0]["input"] as? String == whole)
    #expect(objects[0]["output"] as? String == scratch.path("out/whole.jpg"))
    #expect(objects[0]["input_bytes"] as? Int == 15472 && objects[0]["format"] as? String == "jpeg")
    #expect(try objects[0]["output_bytes"] as? Int == scratch.bytes("out/whole.jpg").count)
    #expect((objects[0]["milliseconds"] as? Double ?? 0) > 0 && objects[0]["details"] == nil)
    #expect(objects[1]["status"] as? String == "failed" && objects[1]["reason"] as? String == "TRUNCATED_IMAGE")
    let summary = objects[2]["summary"] as? [String: Any] ?? [:]
    #expect(summary["images"] as? Int == 2 && summary["done"] as? Int == 1 && summary["failed"] as? Int == 1)
    #expect(summary["input_bytes"] as? Int == 15472 && (summary["saved_percent"] as? Double ?? 0) > 50)
  }

  @Test("inspect refuses a file of an unknown format")
  func unknown() async throws {
    let scratch = try ScratchFolder()
    let input = try scratch.write(Array("only words, many of them, and no image".utf8), to: "notes.txt")
    let outcome = try await WorkerProgram.run(["inspect", input])
    #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.contains("UNKNOWN_FORMAT"))
  }

  @Test("presets lists every preset with its bounds, quality and format, and those of a file")
  func presets() async throws {
    let scratch = try ScratchFolder()
    let file = try scratch.add(
      "presets.yaml", Array("presets: {square: {max_height: 40}, upload: {max_width: 9, preferred_format: webp}}".utf8))
    let outcome = try await WorkerProgram.run(["presets", "--presets", file])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    let rows = outcome.output.split(separator: "\n").map { line in
      line.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
    #expect(rows.map { $0[0] } == ["preset"] + Preset.builtIn.map(\.name) + ["square"])
    #expect(rows.contains { $0.prefix(5) == ["thumbnail", "1280x720", "any", "1.0", "jpeg"] })
    #expect(rows.contains { $0.prefix(5) == ["widget", "1024 wide", "1000000", "0.8", "jpeg"] })
    #expect(rows.contains { $0.prefix(5) == ["upload", "9 wide", "any", "1.0", "webp"] })
    #expect(rows.contains { $0.prefix(5) == ["square", "40 high", "any", "1.0", "original"] })
  }

  @Test("filters lists every filter and every parameter with its range and default")
  func filters() async throws {
    let outcome = try await WorkerProgram.run(["filters"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    let rows = outcome.output.split(separator: "\n").dropFirst().map { line in
      line.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
    let expected = FilterKind.allCases.flatMap { kind in
      [[kind.rawValue, kind.summary]]
        + kind.parameters.map { parameter in
          let bounds = [parameter.range.lowerBound, parameter.range.upperBound].map(FilterParameter.text)
          return [
            parameter.name, bounds.joined(separator: " to "), FilterParameter.text(parameter.defaultValue),
            parameter.summary,
          ]
        }
    }
    #expect(rows == expected)
  }
}
