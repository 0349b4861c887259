internal import WorkerOperations
internal import WorkerPlayground

extension Settings {
  /// Where the playground is served; `nil` if it is not.
  ///
  /// The page knows no callers, so it is not served where others have to identify themselves.
  /// - Throws: `SettingsError` if somebody could use the page who could not use the worker.
  var playgroundAddress: Playground.Address? {
    get throws(SettingsError) {
      guard let playgroundPort else { return nil }
      guard security.identities == nil, security.tls?.clientCA == nil else {
        throw SettingsError(
          description: "--playground-port cannot be combined with --identities or --tls-client-ca: the page cannot "
            + "identify its callers")
      }
      let address = ListenAddress.tcp(host: playgroundHost, port: playgroundPort)
      guard address.isLocal || security.isInsecureAllowed else {
        throw SettingsError(
          description: "--playground-host \(playgroundHost) can be reached from other machines, and the page has "
            + "neither TLS nor identities. Use a loopback address, or allow it with --insecure")
      }
      return Playground.Address(
        host: playgroundHost, port: playgroundPort, isLocal: address.isLocal, fallsBackToAnyPort: choosesPlaygroundPort)
    }
  }
}
