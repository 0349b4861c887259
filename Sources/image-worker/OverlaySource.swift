internal import Fields
internal import ImagePipeline
internal import Logging
internal import SystemPackage
internal import WorkerService

/// A directory of images that overlays name: each file by its name without extension.
///
/// Files are only read; they are decoded when they are drawn, in the process that works on the image.
struct OverlaySource {
  let path: FilePath

  static let option = "--overlays"
  private static let maxByteCount = 16 << 20
  /// The maximum size of all files in bytes, which are kept in memory.
  private static let maxTotalByteCount = 64 << 20

  /// The images as the files are now; hidden files and folders are left out.
  /// - Throws: an error that names the file which cannot be used.
  func read() throws(SettingsError) -> [AuxiliaryImage] {
    let names: [String]
    do { names = try FileSystem.names(in: path) } catch {
      throw SettingsError(description: "\(Self.option) \(path) cannot be read: \(error)")
    }
    var images: [String: (file: FilePath, image: AuxiliaryImage)] = [:]
    var byteCount = 0
    for name in names where !name.hasPrefix(".") {
      let file = path.appending(text: name)
      guard FileSystem.kind(of: file) != .directory, let stem = file.stemText else { continue }
      if let other = images[stem]?.file {
        throw SettingsError(
          description: "\(Self.option) \(file) has the same name as \(other) without extension; rename one of them")
      }
      let image = try Self.image(at: file, name: stem)
      byteCount += image.byteCount
      guard byteCount <= Self.maxTotalByteCount else {
        throw SettingsError(
          description: "\(Self.option) \(path) has files of more than \(Self.maxTotalByteCount >> 20) MiB together")
      }
      images[stem] = (file, image)
    }
    return images.values.map(\.image)
  }

  /// Reads the file of one image.
  private static func image(at file: FilePath, name: String) throws(SettingsError) -> AuxiliaryImage {
    guard name.utf8.count <= AuxiliaryImage.maxNameByteCount, FileSystem.kind(of: file) == .file else {
      throw SettingsError(description: "\(option) \(file) is not a regular file")
    }
    let bytes: [UInt8]
    do { bytes = try FileSystem.read(file, limit: maxByteCount, mayWait: false) } catch let error as Errno
      where error == .fileTooLarge
    {
      throw SettingsError(description: "\(option) \(file) has more than \(maxByteCount >> 20) MiB")
    } catch { throw SettingsError(description: "\(option) \(file) cannot be read: \(error)") }
    guard ImageReader.formatName(bytes.span.bytes) != nil else {
      throw SettingsError(description: "\(option) \(file) is not an image of a known format")
    }
    return AuxiliaryImage(ofOperator: bytes, name: name)
  }

  /// Reads the directory again; one that cannot be used leaves the overlays as they are.
  func reload(_ store: Replaceable<AuxiliaryImages>, _ logger: Logger) {
    do throws(SettingsError) {
      let images = try read()
      store.replace(with: images)
      logger.notice("overlays reloaded", metadata: ["directory": "\(path)", "overlays": "\(images.count)"])
    } catch {
      logger.error(
        "the directory of overlays cannot be used; the previous overlays stay in effect",
        metadata: ["error": "\(error)"])
    }
  }

  /// Returns the images that the overlays of local results name: files of a directory, or else files at the path that the
  /// name is.
  /// - `directory`: the directory; `nil` for none.
  /// - `isRemote`: whether a worker may have images that are not here.
  static func images(
    for configurations: [ProcessingConfiguration], directory: String?, isRemote: Bool = false
  ) throws(SettingsError) -> AuxiliaryImages {
    let names = Set(configurations.flatMap { $0.overlays ?? [] }.filter { $0.text == nil }.map(\.image))
    guard !names.isEmpty else { return AuxiliaryImages() }
    let named =
      try directory.map { (path) throws(SettingsError) in try OverlaySource(path: FilePath(text: path)).read() } ?? []
    var images = AuxiliaryImages(named.filter { names.contains($0.name) }, cache: OverlayCache())
    for name in names.sorted() where images[name] == nil {
      let file = FilePath(text: name)
      if FileSystem.isThere(file) {
        images.add(try image(at: file, name: name))
      } else if !isRemote {
        let place = directory ?? "DIRECTORY"
        throw SettingsError(
          description: "the overlay \(String(reflecting: name.beginning)) is not there; specify the path of an image, "
            + "or the name of one in \(option) \(place)")
      }
    }
    return images
  }
}
