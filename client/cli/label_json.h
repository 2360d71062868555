// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "common/graph/label_summary.h"

namespace millrace {

// {"labelled", "classes", "largest", "largest_node", "sparse"}, or only
// "labelled" if the labels are not classes.
nlohmann::ordered_json LabelJson(const LabelSummary& summary);

}  // namespace millrace
