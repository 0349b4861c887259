internal import GRPCCore

/// The state of one reflection stream: it answers queries and records which files were already sent.
///
/// Both versions of the service use the same messages under different names and share this type.
struct ReflectionStream {
  enum Query {
    case file(name: String)
    case fileContaining(symbol: String)
    case fileExtending(type: String, number: Int32)
    case extensionNumbers(type: String)
    case services
    case nothing
  }

  enum Answer {
    /// Serialized file descriptors, imports first, without those that were sent earlier on this stream.
    case files([[UInt8]])
    case extensionNumbers(type: String, [Int32])
    case services([String])
    case failure(RPCError.Code, String)
  }

  private let index: DescriptorIndex
  private var sent: Set<String> = []

  init(index: DescriptorIndex) {
    self.index = index
  }

  mutating func answer(_ query: Query) -> Answer {
    switch query {
    case .file(let name): send(index.file(named: name), orSay: "no file \(name)")
    case .fileContaining(let symbol): send(index.file(containing: symbol), orSay: "no symbol \(symbol)")
    case .fileExtending(let type, let number):
      send(index.file(extending: type, number: number), orSay: "no extension \(number) of \(type)")
    case .extensionNumbers(let type):
      index.hasMessage(type)
        ? .extensionNumbers(type: type, index.extensionNumbers(of: type)) : .failure(.notFound, "no message \(type)")
    case .services: .services(index.services)
    case .nothing: .failure(.invalidArgument, "the request has no message_request")
    }
  }

  private mutating func send(_ file: DescriptorIndex.File?, orSay message: String) -> Answer {
    guard let file else { return .failure(.notFound, message) }
    let files = index.closure(of: file, without: sent)
    sent.formUnion(files.map(\.name))
    return .files(files.map(\.serialized))
  }
}
