import Testing
import WorkerOperations

@Suite("Supervisor environment")
struct SupervisorEnvironmentTests {
  private static func read(_ variables: [String: String]) throws -> SupervisorEnvironment {
    try SupervisorEnvironment(variables, processID: 42)
  }

  @Test("a process that nobody supervises reports nothing and opens its own socket")
  func empty() throws {
    for variables in [[:], ["NOTIFY_SOCKET": "", "WATCHDOG_USEC": "", "LISTEN_FDS": ""]] {
      let environment = try Self.read(variables)
      #expect(environment.notificationPath == nil && environment.watchdogTimeout == nil)
      #expect(environment.listeningDescriptor == nil)
    }
  }

  @Test("the variables of systemd are read")
  func all() throws {
    let environment = try Self.read([
      "NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42", "LISTEN_FDS": "1",
      "LISTEN_PID": "42", "LISTEN_FDNAMES": "grpc",
    ])
    #expect(environment.notificationPath == "/run/systemd/notify")
    #expect(environment.watchdogTimeout == .seconds(30))
    #expect(environment.listeningDescriptor == 3)
  }

  @Test(
    "variables for another process are ignored",
    arguments: [["LISTEN_PID": "41"], ["LISTEN_PID": ""], [:], ["LISTEN_PID": "42x"]])
  func others(processes: [String: String]) throws {
    let variables = ["LISTEN_FDS": "2", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "41"].merging(processes) { $1 }
    let environment = try Self.read(variables)
    #expect(environment.listeningDescriptor == nil && environment.watchdogTimeout == nil)
  }

  @Test("a timeout that is no positive number is none", arguments: ["-1", "0", "soon", "1.5"])
  func badTimeout(text: String) throws {
    #expect(try Self.read(["WATCHDOG_USEC": text]).watchdogTimeout == nil)
    #expect(try Self.read(["WATCHDOG_USEC": "1500"]).watchdogTimeout == .microseconds(1500))
  }

  @Test("several sockets are refused, because the worker would listen on only one")
  func severalSockets() {
    let error = #expect(throws: SupervisorEnvironment.Failure.self) {
      try Self.read(["LISTEN_FDS": "2", "LISTEN_PID": "42"])
    }
    #expect(error?.description == "LISTEN_FDS is 2; the worker listens on one socket, so pass only that of gRPC")
  }
}
