import Foundation
import TestSupport
import Testing

@testable import image_worker

/// The result of an invalid call in a shell: the exit status, and an error that names the cause.
@Suite("Exit status", .timeLimit(.minutes(15)))
struct ExitStatusTests {
  /// A call, and the words that its error must contain.
  struct Misuse: Sendable, CustomTestStringConvertible {
    var arguments: [String]
    var words: [String]
    var testDescription: String { arguments.joined(separator: " ") }
  }

  @Test("the article Deploying has a row for each exit status, and no other")
  func article() throws {
    let text = try document("Sources/image-worker/Documentation.docc/Deploying.md")
    let section = try #require(
      text.components(separatedBy: "## Exit statuses\n").last?.components(separatedBy: "\n## ").first)
    let statuses = section.matches(of: /\n\| (\d+) \|/).map { Int32($0.1) }
    #expect(statuses == ExitStatus.allCases.map(\.rawValue))
  }

  /// Calls that the parser rejects: status 64, as defined in sysexits.h, and the usage.
  static let unparsed = [
    Misuse(arguments: ["--bogus"], words: ["--bogus"]),
    Misuse(arguments: ["bogus"], words: ["there is no command \"bogus\""]),
    Misuse(arguments: ["proces", "a.jpg"], words: ["\"proces\"; did you mean process?"]),
    Misuse(arguments: ["process"], words: ["<image>"]),
    Misuse(arguments: ["process", "a.jpg"], words: ["--out"]),
    Misuse(
      arguments: ["process", "a.jpg", "-o", "o", "--rendition", "small"],
      words: ["colon", "Usage: image-worker process"]),
    Misuse(arguments: ["process", "a.jpg", "--out"], words: ["--out"]),
    Misuse(arguments: ["process", "a.jpg", "--out", "o", "--max-width", "wide"], words: ["--max-width", "wide"]),
    Misuse(arguments: ["process", "a.jpg", "--out", "o", "--format", "bmp"], words: ["--format", "bmp", "avif"]),
    Misuse(arguments: ["process", "a.jpg", "--out", "o", "--filter", "blur=1,radius"], words: ["radius"]),
    Misuse(arguments: ["process", "a.jpg", "--out", "o", "--filter", "blur=much"], words: ["much"]),
    Misuse(arguments: ["inspect"], words: ["<file>"]),
    Misuse(arguments: ["inspect", "a.jpg", "b.jpg"], words: ["b.jpg"]),
    Misuse(arguments: ["batch", "--out", "o"], words: ["--list"]),
    Misuse(arguments: ["batch", "a", "--out", "o", "--jobs", "0"], words: ["--jobs", "0", "1024"]),
    Misuse(
      arguments: ["batch", "a", "--out", "o", "--memory-limit-mib", "0"], words: ["--memory-limit-mib", "1048576"]),
    Misuse(arguments: ["filters", "sepia"], words: ["sepia"]),
    Misuse(arguments: ["process", "a.jpg", "--out", "o", "--max-width", "0"], words: ["--max-width is 0", "65500"]),
    Misuse(arguments: ["inspect", "a.jpg", "--quality", "2"], words: ["--quality is 2", "between 0 and 1"]),
    Misuse(arguments: ["inspect", "a.jpg", "--scale-factor", "0.5"], words: ["--scale-factor is 0.5", "at least 1"]),
    Misuse(arguments: ["inspect", "a.jpg", "--filter", "bogus=1"], words: ["--filter", "bogus", "sepia"]),
    Misuse(
      arguments: ["process", "a.jpg", "--ot", "small/"], words: ["there is no option --ot; did you mean --out?"]),
    Misuse(
      arguments: ["process", "a.jpg", "--out", "o", "--max-widht=9"],
      words: ["--max-widht; did you mean --max-width?"]),
    Misuse(
      arguments: ["batch", "a", "--skip-exsiting"], words: ["--skip-exsiting; did you mean --skip-existing?"]),
    Misuse(arguments: ["inspect", "--qualty", "1"], words: ["--qualty; did you mean --quality?"]),
    Misuse(arguments: ["serve", "--prot", "1"], words: ["--prot; did you mean --port?"]),
    Misuse(arguments: ["playground", "--thread", "1"], words: ["--thread; did you mean --threads?"]),
    Misuse(arguments: ["presets", "--preset", "1"], words: ["--preset; did you mean --presets?"]),
    Misuse(arguments: ["filters", "--hlep"], words: ["--hlep; did you mean --help?"]),
    Misuse(arguments: ["token", "--tem"], words: ["there is no option --tem"]),
    Misuse(
      arguments: ["process", "a.jpg", "--out", "o", "--quality", "80"],
      words: ["--quality is 80", "between 0 and 1; did you mean 0.8?"]),
    Misuse(arguments: ["process", "https://example.com/a.jpg", "--out", "o"], words: ["is a URL", "curl"]),
    Misuse(arguments: ["batch", "https://example.com/a.jpg", "--out", "o"], words: ["is a URL", "curl"]),
    Misuse(arguments: ["inspect", "https://example.com/a.jpg"], words: ["https://example.com/a.jpg is a URL"]),
    Misuse(arguments: ["token", ""], words: ["\"\" is not a valid identity name; use up to 64 letters"]),
    Misuse(arguments: ["token", "a\nb"], words: [#""a\nb" is not a valid identity name"#]),
    Misuse(arguments: ["serve", "--port", "many"], words: ["--port", "many"]),
    Misuse(arguments: ["serve", "--port", "99999"], words: ["--port is 99999", "65535"]),
    Misuse(arguments: ["serve", "--threads", "0"], words: ["--threads is 0", "1024"]),
    Misuse(arguments: ["serve", "--log-level", "loud"], words: ["--log-level", "loud", "notice"]),
  ]

  @Test("a call that cannot be parsed exits with 64 and the usage", arguments: unparsed)
  func parsing(misuse: Misuse) async throws {
    let outcome = try await WorkerProgram.run(misuse.arguments)
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.contains("Usage: image-worker"))
    for word in misuse.words { #expect(outcome.errors.contains(word), "\(outcome.errors)") }
  }

  /// Calls that parse but request something that does not exist: a usage error, too, as a shell sees it.
  static let refused = [
    Misuse(arguments: ["--resize-mode", "fill", "--max-width", "9"], words: ["--resize-mode fill", "--max-height"]),
    Misuse(arguments: ["--preset", "bogus"], words: ["UNKNOWN_PRESET", "bogus", "compressedFavicon"]),
    Misuse(arguments: ["--preset", "thumbnial"], words: ["did you mean thumbnail?"]),
  ]
  static let missing = [
    Misuse(arguments: ["--presets", "/nowhere/presets.yaml"], words: ["/nowhere/presets.yaml"])
  ]

  @Test(
    "a command whose output cannot be written exits with 1",
    arguments: [
      ["presets"], ["filters"], ["token", "web"], ["inspect"], ["--help"], ["--version"], ["--version", "--verbose"],
    ])
  func fullOutput(arguments: [String]) async throws {
    let scratch = try ScratchFolder()
    let input = try scratch.write(Fixture.bytes("photo.png"), to: "in.png")
    let outcome = try await WorkerProgram.run(
      arguments + (arguments == ["inspect"] ? [input] : []), outputPath: "/dev/full")
    #expect(outcome.status == 1)
    #expect(outcome.errors == "Error: standard output cannot be written: No space left on device\n")
  }

  @Test("an invalid configuration exits with 64, a missing file with 1, and both write nothing")
  func refusals() async throws {
    for misuse in Self.refused { try await refusal(misuse, status: 64) }
    for misuse in Self.missing { try await refusal(misuse, status: 1) }
  }

  private func refusal(_ misuse: Misuse, status: Int32) async throws {
    let scratch = try ScratchFolder()
    let input = try scratch.write(Fixture.bytes("photo-420.jpg"), to: "in.jpg")
    for command in [["process", input, "--out", scratch.path("out")], ["inspect", input]] {
      let outcome = try await WorkerProgram.run(command + misuse.arguments)
      #expect(outcome.status == status && outcome.output.isEmpty, "\(command[0])")
      for word in misuse.words { #expect(outcome.errors.contains(word), "\(outcome.errors)") }
    }
    #expect(try scratch.names == ["in.jpg"])
  }

  @Test("a file or folder that cannot be written is named with its option")
  func outputs() async throws {
    let scratch = try ScratchFolder()
    let input = try scratch.write(Fixture.bytes("photo.png"), to: "in.png")
    for (options, error) in [
      (
        ["--out", scratch.path("a"), "--trace-out", "/dev/full"],
        "--trace-out /dev/full cannot be written: No space left"
      ),
      (["--out", ""], "--out \"\" cannot be created: No such file or directory"),
    ] {
      let outcome = try await WorkerProgram.run(["process", input] + options)
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("Error: \(error)"), "\(outcome.errors)")
    }
  }

  static let settings = [
    Misuse(arguments: ["--config", "/nowhere/worker.yaml"], words: ["/nowhere/worker.yaml"])
  ]

  @Test("an invalid setting ends the server with 1 before it listens", arguments: settings)
  func setting(misuse: Misuse) async throws {
    let outcome = try await WorkerProgram.run(["serve"] + misuse.arguments)
    #expect(outcome.status == 1 && outcome.output.isEmpty)
    #expect(!outcome.errors.contains("serving"))
    for word in misuse.words { #expect(outcome.errors.contains(word), "\(outcome.errors)") }
  }
}
