import Fields
import ImagePipeline
import ImageWorkerKit
import TestSupport

/// The result of the engine itself, without the library; its types have the same names as those of the library.
func engineResult(_ image: [UInt8], _ texts: [(field: String, text: String)]) throws -> [UInt8] {
  var fields = ImagePipeline.ProcessingConfiguration()
  for option in ImagePipeline.ProcessingConfiguration.fields.flatMap(\.options) {
    for (field, text) in texts where field == option.path.joined(separator: ".") {
      let value = try option.value(of: text)
      try fields.set(option.path.reversed().reduce(value) { .record([$1: $0]) }, field: "")
    }
  }
  return try TestSupport.process(image, fields).bytes
}
