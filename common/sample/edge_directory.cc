// SPDX-License-Identifier: Apache-2.0
#include "common/sample/edge_directory.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"

namespace millrace {
namespace {

template <typename Id>
bool Contains(std::span<const Id> list, uint64_t neighbor) {
  return std::find(list.begin(), list.end(), static_cast<Id>(neighbor)) !=
         list.end();
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> FindEdges(const Store& store, int part,
                                               RelationIndex relation,
                                               std::span<const uint64_t> src,
                                               std::span<const uint64_t> dst) {
  const Relation& info = store.schema().relations[relation];
  const Direction direction = LookupDirection(info);
  const bool in = direction == Direction::kIn;
  const NeighborLists& lists =
      store.partition(part)->edges[relation].lists(direction);
  if (!lists.present()) {
    return absl::FailedPreconditionError(StrCat(
        "the store has no lists of ", store.schema().RelationName(relation)));
  }
  const std::span<const int64_t> indptr = lists.indptr.As<int64_t>();
  const uint64_t first = store.book(ListType(info, direction)).begin(part);
  std::vector<uint8_t> found(src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    const uint64_t owner = in ? dst[i] : src[i];
    const uint64_t neighbor = in ? src[i] : dst[i];
    const uint64_t row = owner - first;
    if (row >= indptr.size() - 1) {  // never empty
      return absl::InvalidArgumentError(StrCat("id ", owner, " at position ", i,
                                               " is not owned by partition ",
                                               part));
    }
    const int64_t begin = indptr[row];
    const int64_t degree = indptr[row + 1] - begin;
    if (begin < 0 || degree < 0 || begin + degree > lists.indices.rows()) {
      return absl::DataLossError(StrCat(
          (store.path() / ListPath(part, store.schema().RelationName(relation),
                                   direction, "indptr"))
              .string(),
          " is damaged at row ", row, "\nrun `millrace verify` on the store"));
    }
    const bool narrow = lists.indices.dtype() == DType::kUint32;
    found[i] =
        narrow ? Contains(lists.indices.As<uint32_t>().subspan(begin, degree),
                          neighbor)
               : Contains(lists.indices.As<uint64_t>().subspan(begin, degree),
                          neighbor);
  }
  return found;
}

}  // namespace millrace
