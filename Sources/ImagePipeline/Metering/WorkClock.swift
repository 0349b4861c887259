internal import WorkThreads

/// Which part of the time since it was read last this thread had a CPU.
///
/// Stages read the wall clock for each strip, which costs 25 ns and counts the time in which the system gave the CPU to
/// others. The thread's own clock costs a system call, ten times as much: it is read for each portion of bytes, and says
/// what of all the stages' time in that portion was work.
struct WorkClock {
  private var wall = ContinuousClock.now
  private var cpu = ThreadClock.now

  /// Work begins, maybe on another thread than before.
  mutating func begin() { self = WorkClock() }

  /// 0 to 1; the next share is that of the time from now on.
  mutating func share() -> Double {
    let began = self
    begin()
    let wallTime = began.wall.duration(to: wall)
    return wallTime > .zero ? min(1, max(0, (cpu - began.cpu) / wallTime)) : 1
  }
}
