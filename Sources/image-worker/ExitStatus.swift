internal import ArgumentParser

/// The exit statuses of all commands; the table in the article Deploying has a row for each.
enum ExitStatus: Int32, CaseIterable {
  case success = 0
  case failure = 1
  case usage = 64
  case unavailable = 69
  case interrupted = 130
  case terminated = 143

  /// The meaning for `serve` and `playground`, and for the other commands; `nil` where it does not occur.
  private var meanings: (serve: String?, others: String?) {
    switch self {
    case .success: ("drained after a signal", "every image has a result, or had one before")
    case .failure:
      (
        "a setting, file or address cannot be used, or work was cancelled at the end of `--drain-timeout-seconds`",
        "an image failed, or a file or folder cannot be used"
      )
    case .usage: ("the command line is invalid", "the command line or the manifest is invalid, or names no preset")
    case .unavailable:
      (nil, "`batch --to`: no worker can be reached for `--give-up-seconds`, or they refuse this client")
    case .interrupted: ("a second SIGINT", "SIGINT; `batch`: also SIGTERM, before all images were done")
    case .terminated: ("a second SIGTERM", "SIGTERM")
    }
  }

  /// The row of the table.
  var markdown: String { "| \(rawValue) | \(meanings.serve ?? "–") | \(meanings.others ?? "–") |" }

  var code: ExitCode { ExitCode(rawValue) }
}
