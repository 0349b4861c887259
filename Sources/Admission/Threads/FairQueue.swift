/// Waiting work of several flows, of which each gets an equal share of the time.
///
/// This is start-time fair queueing: each flow has a start tag, which is the virtual time at which its earlier work would
/// have been done with a share of its own. The flow with the smallest tag is next. A flow that enqueues little is
/// therefore served as soon as the current work is done, however much others have enqueued.
/// Source: P. Goyal, H. Vin, H. Cheng: Start-time Fair Queuing, IEEE/ACM Transactions on Networking 5 (1997).
///
/// Within a flow, small work passes larger work that arrived earlier, but only if it arrives within `maxBypass`. Work of
/// the same kind, or of a similar cost, is done in order of arrival: costs are estimates, which change with the load, and
/// would otherwise let later work pass whenever they fall.
struct FairQueue<Element> {
  private struct Piece {
    let id: UInt64
    /// The virtual time before which work of the flow that arrives later may pass this piece.
    let rank: Duration
    let cost: Duration
    let kind: CostKind?
    let element: Element
  }

  private struct Flow {
    /// In the order in which they begin.
    var waiting: [Piece] = []
    /// The virtual time at which the first waiting piece may begin.
    var start = Duration.zero
  }

  /// The time of work after which smaller pieces no longer pass a piece, for each second that it takes longer than they
  /// do.
  private static var bypassFactor: Double { 16 }
  /// How many times the cost of a piece an earlier one must have to be passed by it.
  private static var minBypassRatio: Double { 4 }
  /// The maximum time of work for which later pieces of a flow may pass an earlier one.
  private static var maxBypass: Duration { .seconds(2) }

  private var flows: [String: Flow] = [:]
  private var virtualTime = Duration.zero
  private var lastID: UInt64 = 0
  /// The number of pieces that wait.
  private(set) var count = 0

  /// The number of pieces of a flow that wait.
  func count(of name: String) -> Int { flows[name]?.waiting.count ?? 0 }

  /// Appends work to its flow.
  /// - Parameters:
  ///   - element: The work.
  ///   - name: The name of the flow.
  ///   - cost: The estimated time that the work takes.
  ///   - kind: The kind of the work, of which nothing that arrived earlier is passed; `nil` if it is not known.
  /// - Returns: The identifier for `remove`.
  mutating func append(
    _ element: Element, to name: String, cost: Duration, kind: CostKind? = nil
  ) -> UInt64 {
    lastID += 1
    count += 1
    var flow = flows[name] ?? Flow()
    if flow.waiting.isEmpty { flow.start = max(virtualTime, flow.start) }
    let piece = Piece(id: lastID, rank: rank(of: cost), cost: cost, kind: kind, element: element)
    flow.waiting.insert(piece, at: index(of: cost, kind, in: flow))
    flows[name] = flow
    return lastID
  }

  /// The place of new work in its flow: behind the last piece that it must not pass.
  private func index(of cost: Duration, _ kind: CostKind?, in flow: Flow) -> Int {
    let rank = rank(of: cost)
    let last = flow.waiting.lastIndex { piece in
      piece.rank <= rank || piece.cost < cost * Self.minBypassRatio || (kind != nil && piece.kind == kind)
    }
    return last.map { $0 + 1 } ?? 0
  }

  private func rank(of cost: Duration) -> Duration { virtualTime + min(cost * Self.bypassFactor, Self.maxBypass) }

  /// Removes and returns the work that is next of the flows whose first piece is suitable; `nil` if there is none.
  mutating func popFirst(where isSuitable: (Element) -> Bool = { _ in true }) -> Element? {
    let next = flows.compactMap { name, flow -> (name: String, start: Duration, id: UInt64)? in
      guard let first = flow.waiting.first, isSuitable(first.element) else { return nil }
      return (name, flow.start, first.id)
    }.min { ($0.start, $0.id) < ($1.start, $1.id) }
    guard let next else { return nil }
    virtualTime = max(virtualTime, next.start)
    return take(at: 0, from: next.name, isDone: true)
  }

  /// Removes work that no longer needs to be done; `nil` if it is not waiting.
  mutating func remove(_ id: UInt64, from name: String) -> Element? {
    guard let index = flows[name]?.waiting.firstIndex(where: { $0.id == id }) else { return nil }
    return take(at: index, from: name, isDone: false)
  }

  private mutating func take(at index: Int, from name: String, isDone: Bool) -> Element? {
    guard let piece = flows[name]?.waiting.remove(at: index) else { return nil }
    count -= 1
    if isDone { flows[name]?.start += piece.cost }
    forgetIdleFlows()
    return piece.element
  }

  /// Charges a flow for work that took longer than estimated, or less long.
  mutating func correct(_ difference: Duration, of name: String) {
    var flow = flows[name] ?? Flow(start: virtualTime)
    flow.start = max(virtualTime, flow.start + difference)
    flows[name] = flow
    forgetIdleFlows()
  }

  /// The use of a flow counts until the others have caught up.
  private mutating func forgetIdleFlows() {
    if flows.count > count + 64 { flows = flows.filter { !$1.waiting.isEmpty || $1.start > virtualTime } }
  }

  /// Estimates the work that is done until new work of a flow is complete, its own included.
  ///
  /// - `expected`: the cost of work that will be appended before, by flow.
  func work(untilEndOf cost: Duration, in name: String, after expected: [String: Duration] = [:]) -> Duration {
    let before = flows[name].map { $0.waiting.prefix(index(of: cost, nil, in: $0)) } ?? []
    let own = before.reduce(.zero) { $0 + $1.cost } + (expected[name] ?? .zero) + cost
    var total = own
    for (other, flow) in flows where other != name {
      var others = expected[other] ?? .zero
      for piece in flow.waiting where others < own { others += piece.cost }
      total += min(others, own)
    }
    for (other, others) in expected where other != name && flows[other] == nil { total += min(others, own) }
    return total
  }
}
