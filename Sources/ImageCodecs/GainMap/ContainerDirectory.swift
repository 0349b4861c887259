/// The directory of GContainer in the XMP of a JPEG, which lists the images of a file in their order.
///
/// Source: Ultra HDR image format 1.1, "GContainer metadata".
struct ContainerDirectory {
  /// The place of a gain map.
  struct Place: Sendable, Hashable {
    /// The number of bytes between the end of the image and the map.
    var distance: UInt64
    var byteCount: UInt64
  }

  private struct Item {
    var semantic: [UInt8] = []
    var byteCount: UInt64 = 0
    var padding: UInt64 = 0
  }

  private enum Property: String {
    case semantic = "Semantic"
    case length = "Length"
    case padding = "Padding"
  }

  private static let container = "http://ns.google.com/photos/1.0/container/"
  private static let item = "http://ns.google.com/photos/1.0/container/item/"
  private static let maxItemCount = 16
  /// The maximum number of digits of a size, so that sums of sizes cannot overflow.
  private static let maxDigitCount = 12

  private var containerPrefixes: Set<String> = []
  private var itemPrefixes: Set<String> = []
  private var items: [Item] = []
  /// The property whose element is read.
  private var property: Property?

  /// Returns the place of the gain map in a packet of XMP; `nil` if it lists none.
  static func gainMap(in packet: [UInt8]) -> Place? {
    var directory = ContainerDirectory()
    directory.read(packet)
    guard let index = directory.items.firstIndex(where: { $0.semantic.elementsEqual("GainMap".utf8) }), index > 0,
      directory.items[index].byteCount > 0
    else { return nil }
    // The end of the image is found in its data, whatever its length is said to be.
    let between = directory.items[1..<index].reduce(directory.items[0].padding) { $0 + $1.byteCount + $1.padding }
    return Place(distance: between, byteCount: directory.items[index].byteCount)
  }

  private mutating func read(_ packet: [UInt8]) {
    var reader = XMLReader(packet)
    while let token = reader.next(), items.count <= Self.maxItemCount {
      switch token {
      case .start(let name, let attributes, let isEmpty): start(name, attributes, isEmpty: isEmpty)
      case .text(let text): if let property { set(property, text) }
      case .end: property = nil
      case .instruction: break
      }
    }
  }

  private mutating func start(_ name: ArraySlice<UInt8>, _ attributes: [XMLReader.Attribute], isEmpty: Bool) {
    for attribute in attributes where attribute.name.starts(with: "xmlns:".utf8) {
      let prefix = String(decoding: attribute.name.dropFirst(6), as: UTF8.self)
      if attribute.value.elementsEqual(Self.container.utf8) { containerPrefixes.insert(prefix) }
      if attribute.value.elementsEqual(Self.item.utf8) { itemPrefixes.insert(prefix) }
    }
    if local(name, in: containerPrefixes) == "Item" { items.append(Item()) }
    for attribute in attributes {
      if let property = property(attribute.name) { set(property, attribute.value) }
    }
    property = isEmpty ? nil : property(name)
  }

  /// The local part of a name with one of these prefixes.
  private func local(_ name: ArraySlice<UInt8>, in prefixes: Set<String>) -> String? {
    let parts = name.split(separator: UInt8(ascii: ":"), maxSplits: 1).map { String(decoding: $0, as: UTF8.self) }
    return parts.count == 2 && prefixes.contains(parts[0]) ? parts[1] : nil
  }

  private func property(_ name: ArraySlice<UInt8>) -> Property? {
    local(name, in: itemPrefixes).flatMap { Property(rawValue: $0) }
  }

  private mutating func set(_ property: Property, _ value: ArraySlice<UInt8>) {
    guard !items.isEmpty else { return }
    let number = value.count <= Self.maxDigitCount ? UInt64(String(decoding: value, as: UTF8.self)) ?? 0 : 0
    switch property {
    case .semantic: items[items.count - 1].semantic = Array(value.prefix(16))
    case .length: items[items.count - 1].byteCount = number
    case .padding: items[items.count - 1].padding = number
    }
  }
}
