internal import ImageKernels

extension ProcessingConfiguration {
  /// Returns the arithmetic with which an image with `framing` is resized.
  func resampling(_ framing: Framing) -> Resampling {
    // Without mixing, there is nothing to compute in light.
    let mixes = framing.isResampled && resamplingKernel != .nearest
    if mixes, resizeInLinearLight ?? false { return .linearLight }
    return exactResize ?? false ? .pillow : .stored
  }
}
