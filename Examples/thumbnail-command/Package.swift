// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "thumbnail-command",
  platforms: [.macOS(.v15)],
  dependencies: [
    // In a package of your own: .package(url: "ADDRESS-OF-THIS-REPOSITORY", branch: "main")
    .package(name: "image-worker", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "thumbnail-command", dependencies: [.product(name: "ImageWorkerKit", package: "image-worker")])
  ],
  swiftLanguageModes: [.v6]
)
