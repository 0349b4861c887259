package import Logging
internal import NIOCore
internal import NIOPosix

/// Reports the state of the process to the service manager that started it; see sd_notify(3).
package struct SupervisorNotifier: Sendable {
  private let channel: any Channel

  /// Connects to the socket for reports.
  ///
  /// - Returns: `nil` if there is none, or if it cannot be used, which is logged.
  package static func connect(_ environment: SupervisorEnvironment, logger: Logger) async -> SupervisorNotifier? {
    guard let path = environment.notificationPath else { return nil }
    guard path.hasPrefix("/") else {
      logger.warning("NOTIFY_SOCKET is not a path; nothing is reported to it", metadata: ["NOTIFY_SOCKET": "\(path)"])
      return nil
    }
    do {
      let bootstrap = DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      return SupervisorNotifier(channel: try await bootstrap.connect(unixDomainSocketPath: path).get())
    } catch {
      logger.warning(
        "NOTIFY_SOCKET cannot be connected; nothing is reported to it",
        metadata: ["NOTIFY_SOCKET": "\(path)", "error": "\(error)"])
      return nil
    }
  }

  /// Reports that the worker serves.
  package func reportReady() { send("READY=1\nSTATUS=serving") }

  /// Reports that the worker drains.
  package func reportStopping() { send("STOPPING=1\nSTATUS=finishing the work in progress") }

  /// Reports that the process is alive, twice as often as the service manager asks, until the task is cancelled.
  ///
  /// The reports stop while an image thread is stuck, so that the service manager starts the worker anew. They are sent
  /// by an event loop, so that they also stop with it.
  package func reportLife(every timeout: Duration, health: HealthState) async {
    repeat {
      if !health.isStuck { send("WATCHDOG=1") }
    } while (try? await Task.sleep(for: timeout / 2)) != nil
  }

  /// Closes the connection after everything has been sent.
  package func close() async { try? await channel.close() }

  /// Sends one report; a service manager that does not read is not waited for.
  private func send(_ state: String) {
    channel.writeAndFlush(ByteBuffer(string: state), promise: nil)
  }
}
