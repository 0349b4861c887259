/// The `google.protobuf.FileDescriptorSet` of everything that is served, as reflection gives it out.
public enum DescriptorSet {
  /// The serialized set; each file comes after those it imports.
  public static var serialized: [UInt8] { PackageResources.descriptor_set_binpb }
}
