/// A dictionary that keeps its values in the order of their last use; all operations take constant time.
struct RecentlyUsed<Value: Sendable>: Sendable {
  /// A node of the doubly linked list; the index -1 means none.
  private struct Node: Sendable {
    let key: CacheKey
    var value: Value
    var newer: Int
    var older: Int
  }

  private var nodes: [Node?] = []
  private var free: [Int] = []
  private var places: [CacheKey: Int] = [:]
  private var newest = -1
  private var oldest = -1

  var count: Int { places.count }

  /// Returns a value and marks it as the most recently used.
  mutating func use(_ key: CacheKey) -> Value? {
    guard let place = places[key], let node = nodes[place] else { return nil }
    unlink(node)
    link(node.key, node.value, at: place)
    return node.value
  }

  /// Inserts a value as the most recently used.
  /// - Returns: the previous value for the key.
  mutating func insert(_ value: Value, for key: CacheKey) -> Value? {
    let replaced = remove(key)
    let place = free.popLast() ?? nodes.count
    if place == nodes.count { nodes.append(nil) }
    places[key] = place
    link(key, value, at: place)
    return replaced
  }

  mutating func remove(_ key: CacheKey) -> Value? {
    guard let place = places.removeValue(forKey: key), let node = nodes[place] else { return nil }
    unlink(node)
    nodes[place] = nil
    free.append(place)
    return node.value
  }

  /// Removes and returns the least recently used value.
  mutating func removeOldest() -> (key: CacheKey, value: Value)? {
    guard oldest >= 0, let node = nodes[oldest] else { return nil }
    _ = remove(node.key)
    return (node.key, node.value)
  }

  private mutating func link(_ key: CacheKey, _ value: Value, at place: Int) {
    nodes[place] = Node(key: key, value: value, newer: -1, older: newest)
    if newest >= 0 { nodes[newest]?.newer = place } else { oldest = place }
    newest = place
  }

  private mutating func unlink(_ node: Node) {
    if node.newer >= 0 { nodes[node.newer]?.older = node.older } else { newest = node.older }
    if node.older >= 0 { nodes[node.older]?.newer = node.newer } else { oldest = node.newer }
  }
}
