<<<<<<< HEAD
/// Random numbers that are the same in every run.
///
/// Source: SplitMix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
=======
/// A small generator with a seed, so that a failure can be seen again.
///
/// Source: SplitMix64, Steele, Lea, Flood 2014.
>>>>>>> fcaa94d (Check layers by a table, and make tests fail for what they claim)
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
<<<<<<< HEAD
    var value = state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
=======
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
>>>>>>> fcaa94d (Check layers by a table, and make tests fail for what they claim)
  }
}
