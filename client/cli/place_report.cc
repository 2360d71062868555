// SPDX-License-Identifier: Apache-2.0
#include "client/cli/place_report.h"

#include <nlohmann/json.hpp>

#include "common/base/strings.h"

namespace millrace {

void AddPlaces(const PlaceCounts& counts, nlohmann::ordered_json& line) {
  line["gpu_hops"] = counts.hops.device;
  line["cpu_hops"] = counts.hops.host;
  line["gpu_rows"] = counts.rows.gpu;
  line["gpu_pinned_rows"] = counts.rows.gpu_pinned;
  line["cpu_rows"] = counts.rows.cpu;
}

std::string DescribePlaces(const PlaceCounts& counts) {
  const FeatureRowCounts& rows = counts.rows;
  const uint64_t read = rows.gpu + rows.gpu_pinned;
  if (counts.hops.device == 0 && read == 0) return "";
  return StrCat("GPUs sampled ", counts.hops.device, " of ",
                counts.hops.device + counts.hops.host, " hops and read ", read,
                " of ", read + rows.cpu, " feature rows, ", rows.gpu_pinned,
                " of these from pinned memory");
}

}  // namespace millrace
