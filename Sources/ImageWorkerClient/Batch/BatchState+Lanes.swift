internal import GRPCCore
internal import Synchronization

/// One stream of a batch, as its state has it.
struct BatchLaneState: Sendable {
  struct Flying: Sendable {
    let number: Int
    var intake: Intake
    var collector: ResultCollector
    let began: ContinuousClock.Instant
  }

  /// The worker of the stream; `nil` between streams.
  var worker: Worker?
  /// By id on the stream.
  var inFlight: [String: Flying] = [:]
  /// The number of items that were sent on the stream.
  var sentCount = 0
  var nextID = 1
  /// No further items go over the stream.
  var isClosing = false
  /// Why the worker takes no items any more; `nil` while it does.
  var refusal: ImageWorkerError?
  /// When the stream was opened, until its connection is there.
  var connectingSince: ContinuousClock.Instant? = .now
  var isStalled = false
  var isEnded = false
  /// When an item made progress.
  var movedAt = ContinuousClock.now
  /// When the first of the streams failed that have failed since the last success.
  var failingSince: ContinuousClock.Instant?
  /// The number of streams that failed since the last success.
  var failures = 0
  /// When the next stream may be opened.
  ///
  /// Behind one address there may be several workers of which one is lost: that the streams of other lanes go on says
  /// nothing about the next stream of this one.
  var availableAt = ContinuousClock.now

  /// Takes a part of an item's results.
  /// - Returns: the end of the item, if the part is its last one or one too many.
  mutating func take(_ part: ResponsePart, of id: String) -> ResultCollector.End? {
    do throws(ImageWorkerError) {
      guard try inFlight[id]?.intake.admits(part) == true else { return nil }
    } catch { return .failure(error) }
    movedAt = .now
    return inFlight[id]?.collector.add(part)
  }
}

extension BatchState {
  /// The time until the connection of a stream is there.
  private static let connectLimit = Duration.seconds(20)
  /// A stream ends after this many items, so that the load spreads over workers that came later.
  private static let itemsPerStream = 1000

  /// Waits until there is an item to open a stream for.
  /// - Returns: whether there is one.
  func waitForWork(lane: Int) async -> Bool {
    let isSpeculative = options.isSpeculative
    return await wait { contents in
      if contents.isDone { return false }
      if contents.lanes[lane].availableAt > .now { return nil }
      if contents.hasWork { return true }
      return isSpeculative && contents.straggler(notOn: nil) != nil ? true : nil
    } ?? false
  }

  func open(lane: Int, worker: Worker) {
    contents.withLock { contents in
      let last = contents.lanes[lane]
      contents.lanes[lane] = BatchLaneState()
      contents.lanes[lane].worker = worker
      (contents.lanes[lane].failingSince, contents.lanes[lane].failures) = (last.failingSince, last.failures)
    }
  }

  /// Waits for the next item that the stream should carry; `nil` if there is none.
  func next(lane: Int) async -> BatchShipment? {
    contents.withLock { $0.lanes[lane].connectingSince = nil }
    let shipment: BatchShipment?? = await wait { contents in
      let state = contents.lanes[lane]
      if state.isClosing || state.isEnded || state.sentCount >= Self.itemsPerStream || contents.isDone {
        contents.lanes[lane].isClosing = true
        return .some(nil)
      }
      return contents.take(lane: lane, options).map { .some($0) }
    }
    return shipment ?? nil
  }

  /// Whether the item's copy is still wanted: one that has ended early, such as a corrupt one, needs no more bytes.
  func isWanted(_ id: String, lane: Int) -> Bool {
    contents.withLock { $0.lanes[lane].inFlight[id] != nil }
  }

  /// The worker took bytes of an image.
  func noteSending(lane: Int) { contents.withLock { $0.lanes[lane].movedAt = .now } }

  /// Ends an item whose image cannot be read.
  func fail(_ id: String, lane: Int, _ error: SourceError) {
    update { contents in
      guard let flying = contents.land(id, lane: lane) else { return }
      contents.finish(flying.number, .failure(error.error))
    }
  }

  /// Takes a part of a response.
  /// - Returns: the end of an item, if the part is its last one.
  func receive(_ id: String, _ part: ResponsePart, lane: Int) -> ResultCollector.End? {
    let retry = retry
    let (end, hasChanged) = contents.withLock { contents -> (ResultCollector.End?, Bool) in
      guard let end = contents.lanes[lane].take(part, of: id),
        let flying = contents.land(id, lane: lane, isDone: !end.isRefusal)
      else { return (nil, false) }
      let worker = contents.lanes[lane].worker?.address.text ?? ""
      switch end {
      case .outcomes(let outcomes, let preview):
        contents.note(itemTime: flying.began.duration(to: .now))
        contents.finish(flying.number, .success(outcomes), preview: preview, worker: worker)
      case .failure(let error):
        contents.retry(
          flying.number, lane: lane, error, isBreak: error.isRetryable && !error.isRefusal, retry, worker: worker)
      }
      if case .failure(let error) = end, error.isEnd {
        // The worker shuts down. What it has begun it will finish; the rest goes elsewhere.
        contents.lanes[lane].isClosing = true
        contents.lanes[lane].refusal = error
      } else {
        (contents.lanes[lane].failingSince, contents.lanes[lane].failures) = (nil, 0)
      }
      return (end, true)
    }
    if hasChanged { changed.notify() }
    return end
  }

  /// The stream has ended: its items wait again.
  /// - `error`: `nil` for a stream that ended in order.
  /// - Returns: the error of the connection, if it is one.
  func close(lane: Int, error: ImageWorkerError?) -> ImageWorkerError? {
    let retry = retry
    return update { contents -> ImageWorkerError? in
      let state = contents.lanes[lane]
      for id in state.inFlight.keys { _ = contents.land(id, lane: lane, isDone: false) }
      contents.lanes[lane].isEnded = true
      if contents.isDone { return nil }
      if let error, error.kind == .authentication {
        contents.failure = contents.failure ?? error
        return nil
      }
      // Whatever else a worker, or a proxy, ends a stream with, another one may not.
      let lost =
        error.map { $0.isRetryable ? $0 : .lost("the stream ended with \($0)") }
        ?? .lost("the stream ended before its items")
      for flying in state.inFlight.values {
        contents.retry(
          flying.number, lane: lane, lost, isBreak: true, retry, worker: state.worker?.address.text ?? "")
      }
      return state.inFlight.isEmpty && (error == nil || state.isClosing) ? state.refusal : lost
    }
  }

  /// A stream could not be opened, or broke.
  func noteFailure(lane: Int, _ error: ImageWorkerError) {
    let retry = retry
    update { contents in
      contents.lanes[lane].failures += 1
      contents.lanes[lane].availableAt = .now + retry.delay(afterFailures: contents.lanes[lane].failures)
      let since = contents.lanes[lane].failingSince ?? contents.lanes[lane].connectingSince ?? .now
      contents.lanes[lane].failingSince = since
      guard since.duration(to: .now) > retry.giveUpAfter else { return }
      contents.failure =
        contents.failure
        ?? ImageWorkerError(
          "no worker could be reached for \(retry.giveUpAfter); last error: \(error.message)", code: error.code)
    }
  }

  /// Ends items whose timeout has passed, and streams on which nothing happens.
  func expire() {
    let (timeout, stallAfter) = (options.timeout, retry.stallAfter)
    let connectLimit = min(Self.connectLimit, retry.giveUpAfter)
    update { contents in
      let now = ContinuousClock.now
      for lane in contents.lanes.indices {
        if let began = contents.lanes[lane].connectingSince, contents.lanes[lane].worker != nil {
          contents.lanes[lane].isStalled = contents.lanes[lane].isStalled || began.duration(to: now) > connectLimit
        }
        let silence = contents.lanes[lane].movedAt.duration(to: now)
        let numbers = contents.lanes[lane].inFlight.values.map(\.number)
        if numbers.isEmpty { continue }
        let hasExpired = numbers.contains { contents.entries[$0]?.deadline.map { $0 < now } ?? false }
        if silence > stallAfter || hasExpired && silence > (timeout ?? stallAfter) / 2 {
          contents.lanes[lane].isStalled = true
        }
      }
      guard let timeout else { return }
      for entry in contents.entries.values where entry.deadline.map({ $0 < now }) ?? false {
        contents.finish(entry.number, .failure(ImageWorkerError.timedOut(after: timeout)))
        for lane in contents.lanes.indices {
          for (id, flying) in contents.lanes[lane].inFlight where flying.number == entry.number {
            _ = contents.land(id, lane: lane, isDone: false)
          }
        }
      }
    }
  }

  /// Waits until the stream is to be cancelled: it is stalled, or what it carries is not wanted any more.
  func waitForCancellation(lane: Int) async {
    _ = await wait { contents -> Bool? in
      contents.lanes[lane].isStalled || (contents.isDone && !contents.lanes[lane].inFlight.isEmpty) ? true : nil
    }
  }

  /// The error of a stream on which nothing happened for too long; `nil` for another one.
  func stall(lane: Int, _ worker: Worker) -> ImageWorkerError? {
    contents.withLock { contents in
      guard contents.lanes[lane].isStalled else { return nil }
      return contents.lanes[lane].connectingSince == nil
        ? .lost("the stream stalled") : .lost("\(worker.address.text): the connection was not answered in time")
    }
  }
}

extension BatchState.Contents {
  /// A copy is taken for slow only after this time.
  private static let minStragglerTime = Duration.milliseconds(500)

  /// Whether an item waits that may be sent now.
  var hasWork: Bool {
    let now = ContinuousClock.now
    return waiting.contains { entries[$0].map { $0.notBefore <= now } ?? false }
  }

  mutating func note(itemTime time: Duration) { itemTime = itemTime.map { ($0 * 7 + time) / 8 } ?? time }

  /// Takes an item from a lane.
  /// - `isDone`: whether the worker answered.
  mutating func land(_ id: String, lane: Int, isDone: Bool = true) -> BatchLaneState.Flying? {
    guard let flying = lanes[lane].inFlight.removeValue(forKey: id) else { return nil }
    lanes[lane].worker?.state.withLock { state in
      state.itemsInFlight -= 1
      state.itemsDone += isDone ? 1 : 0
    }
    return flying
  }

  /// The next item for a lane, or a copy of one that a slow worker has.
  mutating func take(lane: Int, _ options: BatchOptions) -> BatchShipment? {
    let state = lanes[lane]
    guard let worker = state.worker, state.inFlight.count < options.window,
      !state.inFlight.values.contains(where: { entries[$0.number]?.isSuspect ?? false })
    else { return nil }
    let now = ContinuousClock.now
    let isAlone = state.inFlight.isEmpty
    let index = waiting.firstIndex { number in
      entries[number].map { $0.notBefore <= now && (isAlone || !$0.isSuspect) } ?? false
    }
    let number: Int
    if let index {
      number = waiting.remove(at: index)
    } else if options.isSpeculative, let straggler = straggler(notOn: worker) {
      number = straggler
    } else {
      return nil
    }
    return ship(number, lane: lane, worker: worker, timeout: options.timeout)
  }

  private mutating func ship(_ number: Int, lane: Int, worker: Worker, timeout: Duration?) -> BatchShipment? {
    guard var entry = entries[number] else { return nil }
    let now = ContinuousClock.now
    if entry.deadline == nil, let timeout { entry.deadline = now + timeout }
    entry.attempts += 1
    entry.flights.append(BatchEntry.Flight(lane: lane, worker: ObjectIdentifier(worker), began: now))
    entries[number] = entry
    let id = "\(lanes[lane].nextID)"
    lanes[lane].nextID += 1
    lanes[lane].sentCount += 1
    if lanes[lane].inFlight.isEmpty { lanes[lane].movedAt = now }
    lanes[lane].inFlight[id] = BatchLaneState.Flying(
      number: number, intake: Intake(entry.request, maxByteCount: maxResultBytes),
      collector: ResultCollector(renditionCount: entry.request.renditions.count), began: now)
    worker.state.withLock { $0.itemsInFlight += 1 }
    return BatchShipment(id: id, number: number, upload: entry.upload, start: entry.request.start)
  }

  /// The item that another worker has had for the longest and for much longer than items take, when no others are left.
  func straggler(notOn worker: Worker?) -> Int? {
    guard isExhausted, waiting.isEmpty else { return nil }
    let limit = max(Self.minStragglerTime, (itemTime ?? .zero) * 2)
    let now = ContinuousClock.now
    let candidates = entries.values.compactMap { entry -> (began: ContinuousClock.Instant, number: Int)? in
      guard entry.flights.count == 1, let flight = entry.flights.first, entry.upload.isReplayable, !entry.isSuspect,
        flight.began.duration(to: now) > limit
      else { return nil }
      if let worker, flight.worker == ObjectIdentifier(worker) { return nil }
      return (flight.began, entry.number)
    }
    return candidates.min { $0.began < $1.began }?.number
  }
}
