import Foundation
import SystemPackage
import Testing

@testable import ResultCache

@Suite("CacheDirectory")
struct CacheDirectoryTests {
  private let scratch = Scratch()

  @Test("a new file is none that exists, nor one behind a link")
  func create() throws {
    let directory = try CacheDirectory(scratch.path)
    let victim = "\(scratch.path)/victim"
    try directory.create("victim").close()
    #expect(throws: Errno.fileExists) { try directory.create("victim") }
    symlink(victim, "\(scratch.path)/link")
    symlink("\(scratch.path)/absent", "\(scratch.path)/dangling")
    for name in ["link", "dangling"] { #expect(throws: Errno.fileExists) { try directory.create(name) } }
    #expect(!FileManager.default.fileExists(atPath: "\(scratch.path)/absent"))
  }

  @Test("links are followed neither to read nor to lock")
  func links() throws {
    let directory = try CacheDirectory(scratch.path)
    try directory.create("victim").close()
    symlink("\(scratch.path)/victim", "\(scratch.path)/link")
    #expect(throws: Errno.tooManySymbolicLinkLevels) { try directory.open("link") }
    #expect(throws: Errno.tooManySymbolicLinkLevels) { try directory.openLock("link") }
    let (file, status) = try #require(try directory.open("victim"))
    try file.close()
    #expect(status.byteCount == 0)
  }
}
