internal import CCodecs

/// Calls `body` with an interrupt that asks `mayContinue`, and is valid until `body` returns.
func withInterrupt<Result>(_ mayContinue: () -> Bool, _ body: (ccodecs_interrupt) -> Result) -> Result {
  withoutActuallyEscaping(mayContinue) { mayContinue in
    var owner = ProgressCheck(mayContinue: mayContinue)
    // C only returns the function's result; nothing unwinds through this frame.
    return withUnsafeMutablePointer(to: &owner) { owner in
      body(
        ccodecs_interrupt(
          may_continue: { $0?.assumingMemoryBound(to: ProgressCheck.self).pointee.mayContinue() ?? true }, owner: owner)
      )
    }
  }
}

/// The owner of a `ccodecs_interrupt`.
private struct ProgressCheck {
  var mayContinue: () -> Bool
}
