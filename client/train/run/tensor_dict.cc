// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/tensor_dict.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "client/tensor/torch_status.h"
#include "common/base/check.h"
#include "common/base/host_memory.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::pair<ElementType, at::ScalarType> kTypes[] = {
    {ElementType::kBool, at::kBool},
    {ElementType::kUint8, at::kByte},
    {ElementType::kInt8, at::kChar},
    {ElementType::kInt16, at::kShort},
    {ElementType::kInt32, at::kInt},
    {ElementType::kInt64, at::kLong},
    {ElementType::kFloat16, at::kHalf},
    {ElementType::kFloat32, at::kFloat},
    {ElementType::kFloat64, at::kDouble},
    {ElementType::kBFloat16, at::kBFloat16},
};

// OpenTorchFile reads no other types.
at::ScalarType ScalarTypeOf(ElementType type) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [type](const auto& pair) { return pair.first == type; });
  MILLRACE_CHECK(found != std::end(kTypes));
  return found->second;
}

// Returns the bytes from the first element of a tensor to its last.
std::string_view BytesOf(const StoredTensor& stored) {
  int64_t elements = 1;
  for (size_t i = 0; i < stored.sizes.size(); ++i) {
    if (stored.sizes[i] == 0) return {stored.data, 0};
    elements += (stored.sizes[i] - 1) * stored.strides[i];
  }
  return {stored.data,
          static_cast<size_t>(elements * ElementBytes(stored.format.type))};
}

// Sorts ranges by address, and joins those that overlap.
std::vector<std::string_view> Merge(std::vector<std::string_view> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](std::string_view left, std::string_view right) {
              return std::less<>()(left.data(), right.data());
            });
  std::vector<std::string_view> merged;
  for (const std::string_view range : ranges) {
    const size_t from_last =
        merged.empty() ? 0 : range.data() - merged.back().data();
    if (merged.empty() || from_last >= merged.back().size()) {
      merged.push_back(range);
    } else {
      merged.back() = {
          merged.back().data(),
          std::max(merged.back().size(), from_last + range.size())};
    }
  }
  return merged;
}

using StoredByName = std::vector<std::pair<std::string_view, StoredTensor>>;

// Copies of the tensors of a file, which do not depend on the file. Bytes that
// tensors share, as tied weights do, are copied once, so the copies never take
// more memory than the file.
class TensorCopies {
 public:
  static absl::StatusOr<TensorCopies> Of(const std::string& name,
                                         const StoredByName& tensors) {
    std::vector<std::string_view> ranges;
    for (const auto& [key, stored] : tensors) ranges.push_back(BytesOf(stored));
    TensorCopies copies;
    copies.ranges_ = Merge(std::move(ranges));
    uint64_t bytes = 0;
    for (const std::string_view range : copies.ranges_) bytes += range.size();
    MILLRACE_RETURN_IF_ERROR(
        CheckMemory(StrCat("reading ", name), bytes,
                    "use a host with more memory, or end other programs"));
    for (const std::string_view range : copies.ranges_) {
      const at::Tensor block =
          at::empty({static_cast<int64_t>(range.size())}, at::kByte);
      if (!range.empty()) {
        std::memcpy(block.mutable_data_ptr(), range.data(), range.size());
      }
      copies.blocks_.push_back(block);
    }
    return copies;
  }

  // Returns a view of the copies. INVALID_ARGUMENT: the tensor begins within an
  // element of another.
  absl::StatusOr<at::Tensor> View(const std::string& where,
                                  const StoredTensor& stored) const {
    const std::string_view bytes = BytesOf(stored);
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), bytes.data(),
                         [](const char* data, std::string_view range) {
                           return std::less<>()(data, range.data());
                         });
    const auto place = after - ranges_.begin() - 1;
    const int64_t offset = bytes.data() - ranges_[place].data();
    if (offset % ElementBytes(stored.format.type) != 0) {
      return absl::InvalidArgumentError(
          StrCat(where,
                 ": it begins within an element of another tensor\n"
                 "save it again after .clone()"));
    }
    return blocks_[place]
        .narrow(0, offset, static_cast<int64_t>(bytes.size()))
        .view(ScalarTypeOf(stored.format.type))
        .as_strided(stored.sizes, stored.strides);
  }

 private:
  std::vector<std::string_view> ranges_;  // of the file, in order
  std::vector<at::Tensor> blocks_;        // their bytes
};

absl::StatusOr<StoredByName> TensorsIn(const std::string& name,
                                       const PickleValue& dict) {
  if (dict.kind != PickleKind::kDict) {
    return absl::InvalidArgumentError(StrCat(name, ": it holds ",
                                             PickleKindName(dict.kind),
                                             ", not tensors by name"));
  }
  StoredByName tensors;
  std::unordered_set<std::string_view> keys;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& key = *dict.items[i];
    const PickleValue& value = *dict.items[i + 1];
    if (key.kind != PickleKind::kText) {
      return absl::InvalidArgumentError(StrCat(name, ": a key is ",
                                               PickleKindName(key.kind),
                                               ", not the name of a tensor"));
    }
    if (value.kind != PickleKind::kTensor) {
      return absl::InvalidArgumentError(
          StrCat(name, ": ", Quoted(key.bytes), " is ",
                 PickleKindName(value.kind), ", not a tensor"));
    }
    if (!keys.insert(key.bytes).second) {
      return absl::InvalidArgumentError(
          StrCat(name, ": two of its tensors are named ", Quoted(key.bytes)));
    }
    tensors.emplace_back(key.bytes, value.tensor);
  }
  return tensors;
}

}  // namespace

bool IsReadFromFiles(at::ScalarType type) {
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [type](const auto& pair) { return pair.second == type; });
}

absl::StatusOr<std::vector<NamedTensor>> CopyTensors(const std::string& name,
                                                     const PickleValue& dict) {
  MILLRACE_ASSIGN_OR_RETURN(const StoredByName stored, TensorsIn(name, dict));
  return CatchTorch(
      "copying tensors", [&]() -> absl::StatusOr<std::vector<NamedTensor>> {
        MILLRACE_ASSIGN_OR_RETURN(const TensorCopies copies,
                                  TensorCopies::Of(name, stored));
        std::vector<NamedTensor> tensors;
        for (const auto& [key, value] : stored) {
          MILLRACE_ASSIGN_OR_RETURN(
              at::Tensor tensor,
              copies.View(StrCat(name, ": ", Quoted(key)), value));
          tensors.push_back({std::string(key), std::move(tensor)});
        }
        return tensors;
      });
}

}  // namespace millrace
