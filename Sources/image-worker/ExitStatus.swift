internal import ArgumentParser

/// The exit statuses of all commands; the table in the article Deploying has a row for each.
enum ExitStatus: Int32, CaseIterable {
  case success = 0
  case failure = 1
  case usage = 64
  case unavailable = 69
  case interrupted = 130
  case terminated = 143

  var code: ExitCode { ExitCode(rawValue) }
}
