// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "absl/strings/str_format.h"
#include "common/base/round_up.h"
#include "common/base/status_macros.h"

namespace millrace::ptxemu {
namespace {

constexpr size_t kPageBytes = 4096;
// Addresses of each device, which outlast its memory because none is reused.
constexpr size_t kArenaBytes = size_t{256} << 30;
constexpr size_t kAlignment = 256;
constexpr int kFreshByte = 0xCD;
// Larger allocations are filled only so far, which saves real memory.
constexpr size_t kMaxFilledBytes = size_t{64} << 20;

void* MapAll(int fd, size_t bytes, int protection) {
  void* mapped =
      mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (mapped == MAP_FAILED) {
    std::perror("ptxemu: mapping device memory");
    std::abort();
  }
  return mapped;
}

}  // namespace

Memory& Memory::Get() {
  static auto* memory = new Memory;
  return *memory;
}

Memory::Memory()
    : devices_(std::max<int>(1, GetSettings().visible_devices.size())) {
  std::fill_n(next_, kMaxDevices, kPageBytes);
  const size_t bytes = kArenaBytes * devices_;
  const int fd = memfd_create("ptxemu", 0);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    std::perror("ptxemu: creating device memory");
    std::abort();
  }
  base_ = reinterpret_cast<uint64_t>(MapAll(fd, bytes, PROT_NONE));
  contents_ = static_cast<uint8_t*>(MapAll(fd, bytes, PROT_READ | PROT_WRITE));
  close(fd);
}

uint64_t Memory::Allocate(int device, size_t bytes) {
  const uint64_t address = AllocateBytes(device, bytes, nullptr);
  if (address != 0) SetLive(address);
  return address;
}

uint64_t Memory::AllocateFromPool(MemoryPool* pool, size_t bytes) {
  return AllocateBytes(pool->device, bytes, pool);
}

uint64_t Memory::AllocateBytes(int device, size_t bytes, MemoryPool* pool) {
  if (bytes > free_bytes(device)) return 0;
  // The gap keeps neighbours apart, so that overruns are noticed.
  const size_t room =
      RoundUp(std::max<size_t>(bytes, 1), kAlignment) + kAlignment;
  if (next_[device] + room > kArenaBytes) return 0;
  const uint64_t address = base_ + kArenaBytes * device + next_[device];
  next_[device] += room;
  used_bytes_[device] += bytes;
  if (pool != nullptr) {
    pool->used_bytes += bytes;
    pool->most_used_bytes = std::max(pool->most_used_bytes, pool->used_bytes);
  }
  std::memset(Contents(address), kFreshByte, std::min(bytes, kMaxFilledBytes));
  allocations_[address] = {bytes, false, device, pool};
  return address;
}

void Memory::SetLive(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found != allocations_.end()) found->second.is_live = true;
}

bool Memory::Free(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  const Allocation& allocation = found->second;
  used_bytes_[allocation.device] -= allocation.bytes;
  if (allocation.pool != nullptr)
    allocation.pool->used_bytes -= allocation.bytes;
  // Gives whole pages back to the system.
  uint8_t* const contents = Contents(address);
  const auto begin = RoundUp(reinterpret_cast<uint64_t>(contents), kPageBytes);
  const auto end = (reinterpret_cast<uint64_t>(contents) + allocation.bytes) /
                   kPageBytes * kPageBytes;
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
  }
  allocations_.erase(found);
  ForgetChecked();
  return true;
}

void Memory::Pin(const void* host, size_t bytes, int device) {
  pinned_[reinterpret_cast<uint64_t>(host)] = {bytes, true, device, nullptr};
}

bool Memory::Unpin(const void* host) {
  ForgetChecked();
  return pinned_.erase(reinterpret_cast<uint64_t>(host)) > 0;
}

bool Memory::IsPinned(const void* host, size_t bytes) const {
  return Find(pinned_, reinterpret_cast<uint64_t>(host), bytes) != nullptr;
}

bool Memory::IsDeviceAddress(uint64_t address) const {
  return address >= base_ && address - base_ < kArenaBytes * devices_;
}

int Memory::DeviceOf(uint64_t address) const {
  if (!IsDeviceAddress(address)) return -1;
  return static_cast<int>((address - base_) / kArenaBytes);
}

const Memory::Allocation* Memory::FindAllocation(uint64_t address) const {
  return Find(allocations_, address, 1);
}

const Memory::Allocation* Memory::FindPinned(uint64_t address) const {
  return Find(pinned_, address, 1);
}

const Memory::Allocation* Memory::Find(const Allocations& allocations,
                                       uint64_t address, size_t bytes) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return nullptr;
  const auto& [start, allocation] = *std::prev(after);
  return address + bytes <= start + allocation.bytes ? &allocation : nullptr;
}

void Memory::SetActingDevice(int device) {
  if (device == acting_device_) return;
  acting_device_ = device;
  ForgetChecked();
}

void Memory::SetPeerAccess(int from, int to, bool allowed) {
  const uint32_t bit = 1u << to;
  peers_[from] = allowed ? peers_[from] | bit : peers_[from] & ~bit;
  ForgetChecked();
}

bool Memory::HasPeerAccess(int from, int to) const {
  return (peers_[from] >> to & 1) != 0;
}

void Memory::ForgetChecked() {
  std::fill(std::begin(checked_), std::end(checked_), Checked());
}

// Memory of a pool is open to the devices of the pool's own list; other memory,
// to those that have enabled its device as a peer.
absl::Status Memory::CheckAccess(uint64_t address,
                                 const Allocation& allocation) const {
  if (acting_device_ == kEveryDevice || acting_device_ == allocation.device) {
    return absl::OkStatus();
  }
  const MemoryPool* const pool = allocation.pool;
  const bool allowed = pool != nullptr
                           ? (pool->accessible_from >> acting_device_ & 1) != 0
                           : HasPeerAccess(acting_device_, allocation.device);
  if (allowed) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "access at %#x: memory of device %d, accessed from device %d without %s",
      address, allocation.device, acting_device_,
      pool != nullptr ? "cudaMemPoolSetAccess" : "cudaDeviceEnablePeerAccess"));
}

absl::StatusOr<uint8_t*> Memory::Resolve(uint64_t address, size_t bytes,
                                         size_t user) {
  Checked& last = checked_[user % std::size(checked_)];
  if (last.Contains(address, bytes)) {
    return last.contents + (address - last.address);
  }
  return FindAccessible(address, bytes, &last);
}

absl::StatusOr<uint8_t*> Memory::FindAccessible(uint64_t address, size_t bytes,
                                                Checked* found) const {
  const bool on_device = IsDeviceAddress(address);
  const Allocations& allocations = on_device ? allocations_ : pinned_;
  const auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) {
    return absl::InternalError(absl::StrFormat(
        "access of %d bytes at %#x, which is neither device nor pinned memory",
        bytes, address));
  }
  const auto& [start, allocation] = *std::prev(after);
  if (address + bytes > start + allocation.bytes) {
    return absl::InternalError(absl::StrFormat(
        "access of %d bytes at %#x: %d bytes past the start of an allocation "
        "of %d bytes",
        bytes, address, address - start, allocation.bytes));
  }
  if (!allocation.is_live) {
    return absl::InternalError(
        absl::StrFormat("access at %#x: the memory is not allocated yet in "
                        "the order of this stream",
                        address));
  }
  if (on_device) MILLRACE_RETURN_IF_ERROR(CheckAccess(address, allocation));
  *found = {start, allocation.bytes,
            on_device ? Contents(start) : reinterpret_cast<uint8_t*>(start)};
  return found->contents + (address - start);
}

}  // namespace millrace::ptxemu
