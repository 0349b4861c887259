import Foundation
import Logging
import Testing

@testable import WorkerTelemetry

@Suite("LogLine")
struct LogLineTests {
  @Test("a line contains nothing that a terminal obeys, in any format", arguments: LogFormat.allCases)
  func foreignText(format: LogFormat) throws {
    let hostile = "a\u{1b}[31m\u{9b}2J\u{202e}\u{2028}\r\n\t\u{7f}\u{1}b"
    let line = format.format(
      LogLine(
        time: Date(timeIntervalSince1970: 0), level: .info, label: hostile, message: hostile,
        metadata: [("text", .string(hostile)), ("list", .array([.string(hostile)]))]))
    #expect(line.last == "\n")
    #expect(!line.dropLast().unicodeScalars.contains { $0.isControlling }, "\(line.debugDescription)")
    guard format == .json else { return }
    let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    for name in ["logger", "message", "text"] { #expect(object[name] as? String == hostile) }
    #expect(object["list"] as? [String] == [hostile])
  }
}
