// SPDX-License-Identifier: Apache-2.0
#include "client/cli/label_json.h"

namespace millrace {

nlohmann::ordered_json LabelJson(const LabelSummary& summary) {
  nlohmann::ordered_json json = {{"labelled", summary.labelled}};
  if (summary.largest < 0) return json;
  json["classes"] = summary.classes();
  json["largest"] = summary.largest;
  json["largest_node"] = summary.largest_node;
  json["sparse"] = summary.sparse;
  return json;
}

}  // namespace millrace
