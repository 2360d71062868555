// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/sample/place_counts.h"

namespace millrace {

// Adds what CPU and GPUs have done, as numbers.
void AddPlaces(const PlaceCounts& counts, nlohmann::ordered_json& line);

// The same as one sentence; empty if there is no GPU.
std::string DescribePlaces(const PlaceCounts& counts);

}  // namespace millrace
