internal import CPlaygroundPage
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore

/// A file of the page, part of the program.
struct PageFile: Sendable {
  private let path: String
  private let contentType: String
  private let contents: ByteBuffer

  static let all: [PageFile] = {
    var files: [PageFile] = []
    while let file = cplaygroundpage_file_at(files.count)?.pointee {
      // The bytes are constants of the program.
      let contents = UnsafeBufferPointer(start: file.bytes, count: file.byte_count)
      files.append(
        PageFile(
          path: String(cString: file.path), contentType: String(cString: file.content_type),
          contents: ByteBuffer(bytes: contents)))
    }
    return files
  }()

  /// Returns the file of a path; `nil` if there is none.
  static func named(_ path: String) -> PageFile? { all.first { $0.path == path } }

  /// The response that contains the file.
  var response: Response {
    Response(status: .ok, headers: [.contentType: contentType], body: ResponseBody(byteBuffer: contents))
  }
}
