// SPDX-License-Identifier: Apache-2.0
#include "common/base/huge_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

size_t HugeBlockBytes(size_t bytes) {
  return RoundUp(std::max<size_t>(bytes, 1),
                 bytes < kHugePage ? kPage : kHugePage);
}

absl::StatusOr<std::shared_ptr<std::byte>> AllocateHugeBlock(size_t bytes) {
  const size_t size = HugeBlockBytes(bytes);
  const bool huge = size >= kHugePage;
  // Large enough for an aligned block; the rest is given back.
  const size_t mapped = huge ? size + kHugePage : size;
  void* data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        StrCat("cannot allocate ", size, " bytes: ", std::strerror(errno)));
  }
  auto* begin = static_cast<std::byte*>(data);
  if (huge) {
    const auto address = reinterpret_cast<uintptr_t>(begin);
    const size_t before = RoundUp(address, kHugePage) - address;
    if (before > 0) munmap(begin, before);
    begin += before;
    munmap(begin + size, kHugePage - before);
    // Without huge pages the block is as good, only slower.
    madvise(begin, size, MADV_HUGEPAGE);
  }
  return std::shared_ptr<std::byte>(
      begin, [size](std::byte* block) { munmap(block, size); });
}

absl::StatusOr<Array> AllocateHugeArray(DType dtype,
                                        std::vector<int64_t> shape) {
  Array array = Array::Borrow(dtype, shape, nullptr, nullptr);
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> block,
                            AllocateHugeBlock(array.total_bytes()));
  return Array::Borrow(dtype, std::move(shape), block.get(), block);
}

}  // namespace millrace
