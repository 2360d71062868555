// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace millrace {

// Allocates at least `bytes` bytes of uninitialised memory, 64-byte aligned.
// The last copy of the pointer frees them, on any thread. Throws
// std::bad_alloc.
//
// Freed blocks of 64 KiB and more are not returned to the system at once: a
// process keeps up to kKeptBlockBytes of them for the next blocks of about
// their size. Batches and frames resemble each other in size, and fresh memory
// costs a page fault and zeroing for every 4 KiB, together about as much as the
// copy into it. AddressSanitizer builds keep nothing, so that every use after
// free is seen.
std::shared_ptr<std::byte> AllocateBlock(size_t bytes);

inline constexpr size_t kKeptBlockBytes = size_t{256} << 20;

// Number of bytes currently kept.
size_t KeptBlockBytes();

// Lets glibc's malloc keep freed memory too, for blocks up to its limit of 32
// MiB. Programs that send or receive batches call it when they start. Most of
// what gRPC receives passes through malloc; by default the pages go back to the
// system and are zeroed again for every batch, which takes a quarter of a
// client's time. At most kKeptBlockBytes in the main arena and 64 MiB in each
// of 15 others are kept unused; --max-inflight-bytes does not count them.
void KeepFreedMemory();

}  // namespace millrace
