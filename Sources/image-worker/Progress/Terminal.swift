internal import FoundationEssentials
internal import LibC
internal import SystemPackage

/// The destination of an output stream of this process.
enum StreamKind: Sendable {
  case terminal
  /// A regular file or `/dev/null`: nothing else shows what is written to it while the command runs.
  case file
  /// A pipe or a socket, whose reader may write to the same terminal.
  case pipe

  init(of descriptor: FileDescriptor) {
    var status = stat()
    if isatty(descriptor.rawValue) != 0 {
      self = .terminal
    } else if fstat(descriptor.rawValue, &status) == 0 {
      let kind = status.st_mode & S_IFMT
      self = kind == S_IFREG || kind == S_IFCHR ? .file : .pipe
    } else {
      self = .pipe
    }
  }
}

/// The terminal that standard error is connected to.
enum Terminal {
  private static let defaultColumnCount = 80

  /// The width in characters, which changes when the user resizes the window; 80 if it is unknown.
  static var columnCount: Int {
    var size = winsize()
    guard ioctl(FileDescriptor.standardError.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return defaultColumnCount
    }
    return Int(size.ws_col)
  }

  /// Whether colors may be used: `NO_COLOR` is empty or not set, and `TERM` is a terminal that has colors.
  static func usesColor(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> Bool {
    let term = environment["TERM"] ?? ""
    return environment["NO_COLOR", default: ""].isEmpty && !term.isEmpty && term != "dumb"
  }

  /// Writes to standard error; progress that cannot be written is no reason to stop.
  static func write(_ text: String) {
    _ = try? FileDescriptor.standardError.writeAll(text.utf8)
  }
}
