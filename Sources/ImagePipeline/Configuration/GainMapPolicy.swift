internal import Fields

/// The HDR gain map of a result.
package enum GainMapPolicy: String, Sendable, Hashable, FieldChoice {
  case drop
  /// That of the image, which follows its geometry.
  case keep
}
