// SPDX-License-Identifier: Apache-2.0
// Reads pickles that hold tensors, numbers, texts and containers of them.
// Nothing is executed: what a pickle may name and call is a short list.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/ingest/pickle/pickle_value.h"

namespace millrace {

struct PickleSource {
  std::string name;        // for messages
  std::string_view bytes;  // must outlive the document
  // The storage that a persistent id (torch.save's tuple) stands for; `where`
  // begins messages.
  std::function<absl::StatusOr<StoredTensor>(const std::string& where,
                                             const PickleValue& id)>
      storage;
  // The storage in the bytes that torch.storage._load_from_bytes takes.
  std::function<absl::StatusOr<StoredTensor>(std::string_view)> load_bytes;
};

// Reads the pickle (protocols 2 to 5) at the start of `source.bytes`. Memory
// is some 200 bytes for an instruction, of which there may be 2^20, or one for
// every 2 bytes of `source.bytes` if those are more. Allowed:
// dict, collections.OrderedDict and defaultdict, torch.Size,
// torch._utils._rebuild_tensor_v2 and _rebuild_parameter, storage types,
// torch.storage._load_from_bytes, GLT's partition books (tensors). Attributes
// of dictionaries are left out.
// INVALID_ARGUMENT: any other instruction, name or call; DATA_LOSS: it ends
// too early, or refers to what is not there. Both name file and byte, and the
// tensor when it is the value of a key.
absl::StatusOr<PickleDocument> Unpickle(const PickleSource& source);

}  // namespace millrace
