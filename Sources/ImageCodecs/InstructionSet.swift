internal import CInstructions

/// The environment variable that limits the instructions of the kernels, for tests and benchmarks; results do not depend
/// on them.
package enum InstructionSet {
  /// The name of the variable.
  package static let variable = String(cString: cinstructions_variable)
  /// The accepted values of the variable.
  package static let accepted = "scalar, avx2, neon or avx512"

  /// Whether `text` is a value of the variable.
  package static func isValid(_ text: String) -> Bool {
    var set = CINSTRUCTIONS_SCALAR
    return cinstructions_parse(text, &set)
  }
}
