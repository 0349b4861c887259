package import Foundation

/// The built program, next to the test bundle.
package enum TestProgram {
  /// The program's URL; the bundle is an executable on Linux and loaded by a tool elsewhere.
  package static let url: URL = {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
    let folder = bundle?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
    return folder.appendingPathComponent("image-worker")
  }()
}
