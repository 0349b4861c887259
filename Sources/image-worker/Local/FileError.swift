internal import SystemPackage

/// A file that cannot be used, with the option that names it.
struct FileError: Error, CustomStringConvertible {
  let description: String

  /// - `option`: the option as users spell it; `nil` for an argument or a file that none names.
  /// - `problem`: what failed, as in "cannot be read".
  /// - `reason`: the error of the system, or what is wrong with the contents.
  init(_ option: String?, _ path: String, _ problem: String, _ reason: String) {
    description = (option.map { "\($0) " } ?? "") + "\(path) \(problem): \(reason)"
  }
}
