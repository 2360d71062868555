// SPDX-License-Identifier: Apache-2.0
// The memory of all devices, and the pinned memory of the host.
//
// A device pointer is an address in a range that the host must not touch: it is
// mapped without any access, so that a program that reads or writes through
// such a pointer crashes. Kernels and copies use a second mapping of the same
// pages, whose addresses Resolve() returns after it has checked the access.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ptxemu {

// A pool of stream-ordered memory.
struct MemoryPool {
  int device;
  uint32_t accessible_from;  // a bit for each device
  uint64_t used_bytes = 0;
  uint64_t most_used_bytes = 0;
  std::map<int, uint64_t> attributes = {};  // those that the program has set
};

// Not thread-safe: the runtime's lock guards it.
class Memory {
 public:
  struct Allocation {
    size_t bytes;
    bool is_live;
    int device;
    MemoryPool* pool;  // null if it was not allocated in stream order
  };

  // The acting device of copies, which reach every device.
  static constexpr int kEveryDevice = -1;

  static Memory& Get();

  // Returns 0 if the device has too little free memory. The bytes are 0xCD.
  // Addresses are never used again.
  uint64_t Allocate(int device, size_t bytes);
  // The same for memory in stream order: accesses fail until SetLive().
  uint64_t AllocateFromPool(MemoryPool* pool, size_t bytes);
  void SetLive(uint64_t address);
  // False if the address is not the start of an allocation.
  bool Free(uint64_t address);

  void Pin(const void* host, size_t bytes, int device);
  bool Unpin(const void* host);
  bool IsPinned(const void* host, size_t bytes) const;

  // Whether the address is in the range of some device, allocated or not.
  bool IsDeviceAddress(uint64_t address) const;
  // The device of such an address, or -1.
  int DeviceOf(uint64_t address) const;
  // The allocation or pinned range that contains the address, or null.
  const Allocation* FindAllocation(uint64_t address) const;
  const Allocation* FindPinned(uint64_t address) const;

  // From now on Resolve() checks whether a kernel of this device may access the
  // memory.
  void SetActingDevice(int device);
  void SetPeerAccess(int from, int to, bool allowed);
  bool HasPeerAccess(int from, int to) const;
  // Must be called after a pool's access rights have changed.
  void ForgetChecked();

  // Returns where the bytes are. `user` may be any number; accesses of the same
  // memory are faster if they give the same one.
  // INTERNAL: they are not in one live allocation that the acting device may
  // access; the message is that of the fault.
  absl::StatusOr<uint8_t*> Resolve(uint64_t address, size_t bytes,
                                   size_t user = 0);

  // Where an allocation is, without any check.
  uint8_t* Contents(uint64_t address) const {
    return contents_ + (address - base_);
  }
  size_t pinned_count() const { return pinned_.size(); }
  size_t used_bytes(int device) const { return used_bytes_[device]; }
  size_t free_bytes(int device) const {
    const Settings& settings = GetSettings();
    const uint64_t used = settings.taken_bytes + used_bytes_[device];
    return settings.memory_bytes - std::min(used, settings.memory_bytes);
  }

 private:
  using Allocations = std::map<uint64_t, Allocation>;

  // A range that was found to be accessible lately.
  struct Checked {
    uint64_t address = 0;
    size_t bytes = 0;
    uint8_t* contents = nullptr;

    bool Contains(uint64_t first, size_t count) const {
      return first >= address && first - address + count <= bytes;
    }
  };

  Memory();
  uint64_t AllocateBytes(int device, size_t bytes, MemoryPool* pool);
  static const Allocation* Find(const Allocations& allocations,
                                uint64_t address, size_t bytes);
  // Finds the allocation, and notes it in `found`.
  absl::StatusOr<uint8_t*> FindAccessible(uint64_t address, size_t bytes,
                                          Checked* found) const;
  absl::Status CheckAccess(uint64_t address,
                           const Allocation& allocation) const;

  int devices_;
  int acting_device_ = kEveryDevice;
  uint64_t base_ = 0;            // of the mapping without access
  uint8_t* contents_ = nullptr;  // of the other one
  size_t next_[kMaxDevices];     // offsets of the next allocations
  size_t used_bytes_[kMaxDevices] = {};
  uint32_t peers_[kMaxDevices] = {};  // whose memory each device may access
  Allocations allocations_;
  Allocations pinned_;
  Checked checked_[32];  // what each user accessed last
};

}  // namespace millrace::ptxemu
