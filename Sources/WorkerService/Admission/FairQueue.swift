/// Waiting work of several flows, of which each gets an equal share of the time.
///
/// This is start-time fair queueing: each piece of work gets a start tag, which is the virtual time at which its flow's
/// earlier work would have been done with a share of its own. The piece with the smallest tag is next. A flow that
/// enqueues little is therefore served as soon as the current work is done, however much others have enqueued.
/// Source: P. Goyal, H. Vin, H. Cheng: Start-time Fair Queuing, IEEE/ACM Transactions on Networking 5 (1997).
struct FairQueue<Element> {
  private struct Piece {
    let id: UInt64
    let start: Duration
    let cost: Duration
    let element: Element
  }

  private struct Flow {
    /// In order of arrival.
    var waiting: [Piece] = []
    /// The end of the flow's last work in virtual time.
    var finish = Duration.zero
    /// The total cost of `waiting`.
    var cost = Duration.zero
  }

  private var flows: [String: Flow] = [:]
  private var virtualTime = Duration.zero
  private var lastID: UInt64 = 0
  /// The number of pieces that wait.
  private(set) var count = 0

  /// Appends work to its flow.
  /// - `cost`: the estimated time that the work takes.
  /// - Returns: The identifier for `remove`.
  mutating func append(_ element: Element, to name: String, cost: Duration) -> UInt64 {
    lastID += 1
    count += 1
    var flow = flows[name] ?? Flow()
    let start = max(virtualTime, flow.finish)
    flow.waiting.append(Piece(id: lastID, start: start, cost: cost, element: element))
    flow.finish = start + cost
    flow.cost += cost
    flows[name] = flow
    return lastID
  }

  /// Removes and returns the work that is next; `nil` if none waits.
  mutating func popFirst() -> Element? {
    let next = flows.lazy.compactMap { name, flow in flow.waiting.first.map { (name, $0) } }
      .min { ($0.1.start, $0.1.id) < ($1.1.start, $1.1.id) }
    guard let (name, piece) = next else { return nil }
    virtualTime = piece.start
    take(at: 0, from: name)
    return piece.element
  }

  /// Removes work that no longer needs to be done; `nil` if it is not waiting.
  mutating func remove(_ id: UInt64, from name: String) -> Element? {
    guard let index = flows[name]?.waiting.firstIndex(where: { $0.id == id }) else { return nil }
    return take(at: index, from: name)
  }

  @discardableResult
  private mutating func take(at index: Int, from name: String) -> Element? {
    guard let piece = flows[name]?.waiting.remove(at: index) else { return nil }
    count -= 1
    flows[name]?.cost -= piece.cost
    // What a flow has used counts until the others have caught up.
    if flows.count > count + 64 { flows = flows.filter { !$1.waiting.isEmpty || $1.finish > virtualTime } }
    return piece.element
  }

  /// Estimates the work that is done until new work of a flow is complete, its own included.
  func work(untilEndOf cost: Duration, in name: String) -> Duration {
    let own = (flows[name]?.cost ?? .zero) + cost
    return flows.reduce(own) { $1.key == name ? $0 : $0 + min($1.value.cost, own) }
  }
}
