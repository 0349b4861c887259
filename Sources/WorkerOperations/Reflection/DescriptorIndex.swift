internal import SwiftProtobuf
internal import WorkerProtocol

/// An index from symbols to the files that describe them.
///
/// A symbol is a message, field, oneof, enum, enum value, service or method.
struct DescriptorIndex: Sendable {
  /// A file of the descriptor set, in the form that reflection sends.
  struct File: Sendable {
    var name: String
    var imports: [String]
    var serialized: [UInt8]
  }

  /// Full names of the services, sorted.
  let services: [String]
  private let files: [String: File]
  private let fileOfSymbol: [String: String]
  private let messages: Set<String>
  private let fileOfExtension: [String: [Int32: String]]

  /// Creates an index without the files of services that are not served.
  ///
  /// - Throws: If the bytes are not a `FileDescriptorSet`.
  init(serialized: [UInt8] = DescriptorSet.serialized, without services: Set<String> = []) throws {
    var set = try Google_Protobuf_FileDescriptorSet(serializedBytes: serialized)
    set.file.removeAll { file in file.service.contains { services.contains(Self.join(file.package, $0.name)) } }
    var files: [String: File] = [:]
    var symbols: [String: String] = [:]
    var messages: Set<String> = []
    var extensions: [String: [Int32: String]] = [:]
    for file in set.file {
      files[file.name] = File(name: file.name, imports: file.dependency, serialized: try file.serializedBytes())
      for symbol in Self.symbols(of: file) { symbols[symbol] = file.name }
      let described = file.messageType.flatMap { Self.messages(in: $0, scope: file.package) }
      messages.formUnion(described.map(\.name))
      for field in file.extension + described.flatMap(\.message.extension) {
        extensions[String(field.extendee.drop { $0 == "." }), default: [:]][field.number] = file.name
      }
    }
    self.files = files
    self.messages = messages
    fileOfSymbol = symbols
    fileOfExtension = extensions
    self.services = set.file.flatMap { file in file.service.map { Self.join(file.package, $0.name) } }.sorted()
  }

  /// Whether a client's text can be a name; others are not looked up, because hashing them takes long.
  private static func canBeName(_ text: String) -> Bool { text.utf8.count <= 512 }

  func file(named name: String) -> File? { Self.canBeName(name) ? files[name] : nil }

  /// Returns the file that declares `symbol`, a full name; a method may follow its service after a dot or a slash.
  func file(containing symbol: String) -> File? {
    guard Self.canBeName(symbol) else { return nil }
    let name = symbol.drop { $0 == "." }.split(separator: "/", omittingEmptySubsequences: false).joined(separator: ".")
    return fileOfSymbol[name].flatMap { files[$0] }
  }

  func file(extending type: String, number: Int32) -> File? {
    Self.canBeName(type) ? fileOfExtension[type]?[number].flatMap { files[$0] } : nil
  }

  func hasMessage(_ name: String) -> Bool { Self.canBeName(name) && messages.contains(name) }

  /// Returns the numbers of a message's extensions, sorted.
  func extensionNumbers(of type: String) -> [Int32] { fileOfExtension[type]?.keys.sorted() ?? [] }

  /// Returns a file and everything it imports, imports first, without those in `sent`.
  func closure(of file: File, without sent: Set<String>) -> [File] {
    var seen = sent
    var result: [File] = []
    func visit(_ file: File) {
      guard seen.insert(file.name).inserted else { return }
      for name in file.imports {
        if let imported = files[name] { visit(imported) }
      }
      result.append(file)
    }
    visit(file)
    return result
  }

  private static func join(_ scope: String, _ name: String) -> String { scope.isEmpty ? name : "\(scope).\(name)" }

  /// Returns a message and all messages nested in it, with their full names.
  private static func messages(
    in message: Google_Protobuf_DescriptorProto, scope: String
  ) -> [(name: String, message: Google_Protobuf_DescriptorProto)] {
    let name = join(scope, message.name)
    return [(name, message)] + message.nestedType.flatMap { messages(in: $0, scope: name) }
  }

  private static func symbols(of file: Google_Protobuf_FileDescriptorProto) -> [String] {
    let methods = file.service.flatMap { service in
      let name = join(file.package, service.name)
      return [name] + service.method.map { join(name, $0.name) }
    }
    return methods + file.messageType.flatMap { symbols(of: $0, in: file.package) }
      + file.enumType.flatMap { symbols(of: $0, in: file.package) }
      + file.extension.map { join(file.package, $0.name) }
  }

  private static func symbols(of message: Google_Protobuf_DescriptorProto, in scope: String) -> [String] {
    let name = join(scope, message.name)
    let members = message.field.map(\.name) + message.oneofDecl.map(\.name) + message.extension.map(\.name)
    return [name] + members.map { join(name, $0) }
      + message.nestedType.flatMap { symbols(of: $0, in: name) }
      + message.enumType.flatMap { symbols(of: $0, in: name) }
  }

  /// Returns the symbols of an enum, with two names for each value.
  ///
  /// By protobuf's rules, enum values are siblings of their enum. People search for the name inside the enum, so the
  /// index contains both.
  private static func symbols(of enumeration: Google_Protobuf_EnumDescriptorProto, in scope: String) -> [String] {
    let name = join(scope, enumeration.name)
    return [name] + enumeration.value.flatMap { [join(scope, $0.name), join(name, $0.name)] }
  }
}
