/// A number in an XMP packet, which is searched and not parsed.
package enum XMPNumber {
  private static let maxByteCount = 32

  /// Returns the number that a property has, as an attribute or as an element.
  /// - Parameters:
  ///   - name: The local name of the property, with any prefix in the packet.
  ///   - packet: An XMP packet, or bytes that contain one.
  /// - Returns: `nil` if the packet has no such property, or one that is no number.
  package static func find(_ name: String, in packet: [UInt8]) -> Double? {
    let wanted = ":\(name)"
    var start = 0
    while let place = packet[start...].firstPosition(of: wanted) {
      start = place + wanted.utf8.count
      // ="1.5", ='1.5' or >1.5<
      let isElement = packet[start...].first == UInt8(ascii: ">")
      let isAttribute = packet[start...].first == UInt8(ascii: "=") && start + 1 < packet.count
      guard isElement || isAttribute else { continue }
      let value = packet[(start + (isElement ? 1 : 2))...].prefix(maxByteCount)
      let text = value.prefix { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "'") }
      if let number = Double(String(decoding: text, as: UTF8.self)), number.isFinite { return number }
    }
    return nil
  }
}

extension Collection<UInt8> where Index == Int {
  /// Whether `text` occurs in the bytes.
  func contains(text: String) -> Bool { firstPosition(of: text) != nil }

  /// Returns the position at which `text` occurs first; `nil` if it does not.
  func firstPosition(of text: String) -> Int? {
    let wanted = Array(text.utf8)
    guard let first = wanted.first, count >= wanted.count else { return nil }
    return (startIndex...endIndex - wanted.count).first { start in
      self[start] == first && self[start..<start + wanted.count].elementsEqual(wanted)
    }
  }
}
