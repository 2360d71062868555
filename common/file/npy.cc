// SPDX-License-Identifier: Apache-2.0
#include "common/file/npy.h"

#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "common/file/mapped_file.h"

namespace millrace {
namespace {

// The whole pages inside [begin, begin + bytes).
struct Pages {
  void* begin = nullptr;
  size_t bytes = 0;
};

Pages InnerPages(const std::byte* data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = RoundUp(from, page);
  const uintptr_t end = (from + bytes) / page * page;
  if (end <= begin) return {};
  return {const_cast<std::byte*>(data) + (begin - from), end - begin};
}

// Heap memory must never get here: MADV_DONTNEED would erase it.
void Advise(const std::byte* data, size_t bytes, int advice) {
  const Pages pages = InnerPages(data, bytes);
  if (pages.bytes == 0 || !IsMapped(pages.begin, pages.bytes)) return;
  madvise(pages.begin, pages.bytes, advice);
}

absl::Status InFile(const std::filesystem::path& path,
                    const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(path.native(), ": ", status.message()));
}

absl::Status CheckLayout(const NpyHeader& header, size_t file_bytes) {
  if (header.fortran_order && header.shape.size() > 1) {
    return absl::InvalidArgumentError(
        "Fortran order; save it with numpy.ascontiguousarray()");
  }
  // The format demands alignment, and elements are read in place.
  if (header.data_offset % ItemBytes(header.dtype) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the data begin at byte ", header.data_offset,
        ", which is not a multiple of the ", ItemBytes(header.dtype),
        " bytes of a ", std::string(DTypeName(header.dtype)),
        "; save it with numpy.save()"));
  }
  return CheckNpySize(header, ItemBytes(header.dtype), file_bytes);
}

}  // namespace

absl::StatusOr<Array> MapNpy(const std::filesystem::path& path,
                             DType real_dtype) {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                            MappedFile::Open(path));
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(file->bytes(), real_dtype);
  if (!header.ok()) return InFile(path, header.status());
  if (absl::Status layout = CheckLayout(*header, file->bytes().size());
      !layout.ok()) {
    return InFile(path, layout);
  }
  const char* data = file->bytes().data() + header->data_offset;
  return Array::Borrow(header->dtype, std::move(header->shape), data,
                       std::move(file));
}

void AdviseAccess(const Array& array, Access access) {
  int advice = MADV_NORMAL;
  if (access == Access::kSequential) advice = MADV_SEQUENTIAL;
  if (access == Access::kRandom) advice = MADV_RANDOM;
  if (access == Access::kDone) advice = MADV_DONTNEED;
  Advise(array.data(), array.total_bytes(), advice);
}

void DropRows(const Array& array, int64_t begin, int64_t end) {
  MILLRACE_CHECK(begin >= 0 && begin <= end && end <= array.rows());
  const size_t row = array.row_bytes();
  Advise(array.data() + static_cast<size_t>(begin) * row,
         static_cast<size_t>(end - begin) * row, MADV_DONTNEED);
}

}  // namespace millrace
