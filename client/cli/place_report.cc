// SPDX-License-Identifier: Apache-2.0
#include "client/cli/place_report.h"

#include <nlohmann/json.hpp>

#include "common/base/strings.h"

namespace millrace {

void AddPlaces(const PlaceCounts& counts, nlohmann::ordered_json& line) {
  line["gpu_hops"] = counts.hops.device;
  line["cpu_hops"] = counts.hops.host;
  line["gpu_rows"] = counts.device_reads.device_rows;
  line["gpu_pinned_rows"] = counts.device_reads.host_rows;
  line["cpu_rows"] = counts.host_reads;
}

std::string DescribePlaces(const PlaceCounts& counts) {
  const FeatureRowCounts& reads = counts.device_reads;
  const uint64_t read = reads.device_rows + reads.host_rows;
  if (counts.hops.device == 0 && read == 0) return "";
  return StrCat("GPUs sampled ", counts.hops.device, " of ",
                counts.hops.device + counts.hops.host, " hops and read ", read,
                " of ", read + counts.host_reads, " feature rows, ",
                reads.host_rows, " of these from pinned memory");
}

}  // namespace millrace
