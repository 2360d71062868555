// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "common/graph/schema.h"
#include "common/sample/batch.h"

namespace millrace {

// Returns a batch as the object that `millrace sample` prints. It contains
// every node type and relation of the schema, even if empty. `batch` must have
// original ids and edge ids. `with_features` adds "x" and "y".
nlohmann::ordered_json BatchJson(const Batch& batch, const Schema& schema,
                                 bool with_features);

}  // namespace millrace
