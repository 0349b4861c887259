internal import CPlatform
@_spi(CustomByteBufferAllocator) internal import NIOCore
internal import WorkThreads

extension ByteBuffer {
  /// Creates an empty buffer of exactly `capacity` bytes whose `charge` is released when its memory is freed.
  ///
  /// Slices keep the memory, wherever they are passed; the charge follows a buffer that grows. Buffers from 32 MiB on are
  /// mapped from the system: they take memory only as bytes arrive, and it returns to the system at once.
  ///
  /// - Returns: `nil` if the system has no memory.
  static func charged(capacity: Int, charge: Claim) -> ByteBuffer? {
    guard let memory = Block.allocate(capacity) else { return nil }
    memory.storeBytes(
      of: UInt(bitPattern: Unmanaged.passRetained(charge).toOpaque()), toByteOffset: -16, as: UInt.self)
    return ByteBuffer(
      takingOwnershipOf: UnsafeMutableRawBufferPointer(start: memory, count: capacity), allocator: Block.allocator,
      writerIndex: 0)
  }
}

/// Memory blocks that keep a charge.
///
/// Two words stand before each: the charge or 0, and the number of mapped bytes or 0.
private enum Block {
  typealias Memory = UnsafeMutableRawPointer

  private static let headerByteCount = 16
  /// Of mapped blocks, so that their contents are aligned to pages.
  private static let mappedHeaderByteCount = 4096
  /// The allocator would map such blocks, too.
  ///
  /// Smaller messages use pages again: new ones cost 1.7 ms of CPU for 3 MB.
  private static let minMappedByteCount = 32 << 20

  static let allocator = ByteBufferAllocator(
    allocate: { Block.allocate($0) },
    reallocate: { old, oldByteCount, byteCount in
      guard let memory = Block.allocate(byteCount) else { return nil }
      guard let old else { return memory }
      memory.copyMemory(from: old, byteCount: min(oldByteCount, byteCount))
      memory.storeBytes(of: old.load(fromByteOffset: -16, as: UInt.self), toByteOffset: -16, as: UInt.self)
      old.storeBytes(of: 0, toByteOffset: -16, as: UInt.self)
      Block.free(old)
      return memory
    },
    deallocate: { Block.free($0) },
    copy: { $0.copyMemory(from: $1, byteCount: $2) })

  /// Allocates a block without a charge.
  static func allocate(_ byteCount: Int) -> Memory? {
    guard byteCount >= minMappedByteCount else {
      let block = Memory.allocate(byteCount: headerByteCount + byteCount, alignment: headerByteCount)
      return begin(block + headerByteCount, mappedByteCount: 0)
    }
    let mappedByteCount = mappedHeaderByteCount + byteCount
    return cplatform_map(mappedByteCount).map { begin($0 + mappedHeaderByteCount, mappedByteCount: mappedByteCount) }
  }

  private static func begin(_ memory: Memory, mappedByteCount: Int) -> Memory {
    memory.storeBytes(of: 0, toByteOffset: -16, as: UInt.self)
    memory.storeBytes(of: mappedByteCount, toByteOffset: -8, as: Int.self)
    return memory
  }

  static func free(_ memory: Memory) {
    let charge = Memory(bitPattern: memory.load(fromByteOffset: -16, as: UInt.self))
    let mappedByteCount = memory.load(fromByteOffset: -8, as: Int.self)
    if mappedByteCount > 0 {
      cplatform_unmap(memory - mappedHeaderByteCount, mappedByteCount)
    } else {
      (memory - headerByteCount).deallocate()
    }
    if let charge { Unmanaged<Claim>.fromOpaque(charge).release() }
  }
}
