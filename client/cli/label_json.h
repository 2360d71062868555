// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "common/graph/label_summary.h"

namespace millrace {

// Returns an object with "labelled", "classes", "largest", "largest_node" and
// "sparse", or with "labelled" alone if the labels are not classes.
nlohmann::ordered_json LabelJson(const LabelSummary& summary);

}  // namespace millrace
