// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/graph/schema.h"
#include "common/graph/store.h"

namespace millrace::cuda {

// The nodes of splits as bit sets in the memory of a device, for jobs that draw
// within a split. A set takes a bit for each node of its type, is uploaded at
// the first use, and is kept until the object is destroyed: there are at most
// as many as the store has splits. Thread-safe.
class DeviceMembers {
 public:
  // The device must be open.
  explicit DeviceMembers(int device) : device_(device) {}

  // Returns the set of a type's split, as HopFilter::members; null if the type
  // has no split of that name. Valid as long as the object. All calls take the
  // same store, or those that Store::WithNewSplits() makes from it.
  // DATA_LOSS: the split is damaged. FAILED_PRECONDITION: the set does not fit
  // into the memory of the device.
  absl::StatusOr<const uint64_t*> Find(const Store& store, TypeIndex type,
                                       std::string_view split);

 private:
  absl::StatusOr<DeviceBlock> Upload(const SplitMembers& members) const;

  const int device_;
  Mutex mutex_;
  std::map<std::pair<TypeIndex, std::string>, DeviceBlock> sets_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::cuda
