internal import WorkThreads

/// Measures the fraction of time in which the current thread had a CPU.
///
/// Stages read the wall clock for each strip, which costs 25 ns but also counts the time in which the system ran other
/// threads. The CPU clock of the thread needs a system call, which costs ten times as much. It is therefore read once
/// for each portion of bytes, and gives the fraction of the stages' time in that portion that was work.
struct WorkClock {
  private var wall = ContinuousClock.now
  private var cpu = ThreadClock.now

  /// Restarts the measurement, possibly on another thread than before.
  mutating func begin() { self = WorkClock() }

  /// Returns the fraction since the last reading, 0 to 1, and restarts the measurement.
  mutating func share() -> Double {
    let began = self
    begin()
    let wallTime = began.wall.duration(to: wall)
    return wallTime > .zero ? min(1, max(0, (cpu - began.cpu) / wallTime)) : 1
  }
}
