// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace millrace {

// At least `bytes` bytes of uninitialised memory, 64-byte aligned; freed with
// the last copy of the pointer, on any thread. Throws std::bad_alloc.
//
// Blocks of 64 KiB and more are not given back to the system at once: up to
// kKeptBlockBytes of a process are kept for the next blocks of about their
// size. Batches and frames are alike, and fresh memory costs a page fault and
// a zeroing every 4 KiB, together about as much as the copy into it.
// AddressSanitizer builds keep nothing, so that it sees every use after free.
std::shared_ptr<std::byte> AllocateBlock(size_t bytes);

inline constexpr size_t kKeptBlockBytes = size_t{256} << 20;

// Bytes kept at present.
size_t KeptBlockBytes();

// For programs that send or receive batches, at their start: lets glibc's
// malloc keep freed memory too, for blocks up to its limit of 32 MiB. Most of
// what gRPC receives passes through malloc; by default the pages go back to the
// system and are zeroed again for every batch, a quarter of a client's time.
// At most kKeptBlockBytes in the main arena and 64 MiB in each of 15 others
// stay unused; --max-inflight-bytes does not count them.
void KeepFreedMemory();

}  // namespace millrace
