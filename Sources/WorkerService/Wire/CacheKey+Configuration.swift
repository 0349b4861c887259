internal import Fields
internal import ImagePipeline
internal import ResultCache

extension CacheKey {
  /// The key of an image's result.
  ///
  /// It covers every field of the configuration, at every depth, by the fields' names. A field that is not set and one
  /// that is set to its default differ, although their results do not: such a result is stored twice, never wrongly
  /// served. Results of another version have other keys.
  /// - `configuration`: complete, with the preset's fields in place.
  init(input: InputHasher, configuration: ProcessingConfiguration, version: UInt64 = ResultVersion.current) {
    let request = FieldValue.list([.integer(version), configuration.fieldValue])
    self.init(input: input, configuration: request.canonicalBytes)
  }
}
