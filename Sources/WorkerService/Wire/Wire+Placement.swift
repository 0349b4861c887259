internal import ImagePipeline
internal import WorkerProtocol

extension Gravity {
  static func read(_ wire: Imageworker_V1_Gravity) throws(PipelineError) -> Gravity? {
    switch wire {
    case .unspecified: nil
    case .center: .center
    case .north: .north
    case .northEast: .northEast
    case .east: .east
    case .southEast: .southEast
    case .south: .south
    case .southWest: .southWest
    case .west: .west
    case .northWest: .northWest
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "gravity")
    }
  }

  var wire: Imageworker_V1_Gravity {
    switch self {
    case .center: .center
    case .north: .north
    case .northEast: .northEast
    case .east: .east
    case .southEast: .southEast
    case .south: .south
    case .southWest: .southWest
    case .west: .west
    case .northWest: .northWest
    }
  }
}

extension Crop {
  init(_ wire: Imageworker_V1_Rect) throws(PipelineError) {
    let unit: Unit
    switch wire.unit {
    case .unspecified, .pixels: unit = .pixels
    case .fractions: unit = .fractions
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "crop.unit")
    }
    self.init(unit: unit, x: wire.x, y: wire.y, width: wire.width, height: wire.height)
  }
}

extension Imageworker_V1_Rect {
  init(_ crop: Crop) {
    self.init()
    unit = crop.unit == .pixels ? .pixels : .fractions
    (x, y, width, height) = (crop.x, crop.y, crop.width, crop.height)
  }
}
