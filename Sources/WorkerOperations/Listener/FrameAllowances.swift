internal import NIOCore

/// The frames that a connection's client may send although they carry no data of a call.
///
/// Needed with swift-nio-http2 1.46.0: it ends a connection after 200 PING, SETTINGS or RST_STREAM frames, and limits no
/// others.
struct FrameAllowances {
  private var pings: Allowance
  private var settings: Allowance
  private var resets: Allowance
  private var controls: Allowance
  /// Calls that the client may cancel as soon as they begin; each that it lets finish earns it another.
  var earlyResets: Allowance

  enum Kind: String {
    case pings = "too_many_pings"
    case settings = "too_many_settings"
    /// Calls that the client cancels as soon as they begin, of which few are served.
    case resets = "too_many_resets"
    /// All other frames.
    case controls = "too_many_control_frames"
  }

  init(_ limits: ConnectionLimits, now: NIODeadline) {
    pings = Allowance(limits.maxPings, per: .seconds(30), now: now)
    settings = Allowance(limits.maxSettings, per: .seconds(30), now: now)
    earlyResets = Allowance(limits.maxResets, per: .seconds(10), now: now)
    resets = Allowance(10 * limits.maxResets, per: .seconds(10), now: now)
    controls = Allowance(limits.maxControls, per: .seconds(30), now: now)
  }

  /// Counts a frame; returns `false` if there are too many of its kind.
  mutating func take(_ kind: Kind) -> Bool {
    switch kind {
    case .pings: pings.take(now: .now())
    case .settings: settings.take(now: .now())
    case .resets: resets.take(now: .now())
    case .controls: controls.take(now: .now())
    }
  }

  /// Notes a frame to the client, which may answer it with a ping and open two windows.
  mutating func noteSent() {
    pings.earn()
    controls.earn(2)
  }
}
