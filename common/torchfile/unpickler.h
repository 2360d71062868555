// SPDX-License-Identifier: Apache-2.0
// Reads pickles of tensors, numbers, strings and containers of them. It
// executes no code of the pickle, which may use only a short list of names and
// calls.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/torchfile/pickle_value.h"

namespace millrace {

struct PickleSource {
  std::string name;        // for messages
  std::string_view bytes;  // must outlive the document
  // Finds the storage that a persistent id (a tuple made by torch.save) refers
  // to; messages begin with `where`. Null if such ids are not allowed.
  std::function<absl::StatusOr<StoredTensor>(const std::string& where,
                                             const PickleValue& id)>
      storage;
  // Reads the storage in the argument of torch.storage._load_from_bytes. Null
  // if such calls are not allowed.
  std::function<absl::StatusOr<StoredTensor>(std::string_view)> load_bytes;
};

// Reads the pickle (protocols 2 to 5) at the start of `source.bytes`. Takes
// about 200 bytes of memory per instruction; there may be 2^20 instructions or
// one per 2 bytes of `source.bytes`, whichever is more.
// Allowed are dict, collections.OrderedDict and defaultdict, torch.Size,
// torch._utils._rebuild_tensor_v2 and _rebuild_parameter,
// torch._tensor._rebuild_from_type_v2, storage types,
// torch.storage._load_from_bytes, and GLT's partition books (as tensors).
// Attributes of dictionaries are ignored.
// INVALID_ARGUMENT: any other instruction, name or call. DATA_LOSS: the pickle
// is truncated, or refers to something that it does not contain. Both messages
// name the file and the byte, and the tensor if it is the value of a key.
absl::StatusOr<PickleDocument> Unpickle(const PickleSource& source);

}  // namespace millrace
