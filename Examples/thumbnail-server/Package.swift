// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "thumbnail-server",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    // In a package of your own: .package(url: "ADDRESS-OF-THIS-REPOSITORY", branch: "main")
    .package(name: "image-worker", path: "../.."),
  ],
  targets: [
    .executableTarget(
      name: "thumbnail-server",
      dependencies: [
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "ImageWorkerKit", package: "image-worker"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
