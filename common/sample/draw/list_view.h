// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// The lists of one relation in one partition, as the stages of a draw read
// them.
struct ListView {
  const Store& store;
  int part;
  const DrawContext& context;
  const Relation& relation;
  RelationIndex relation_index;
  const NeighborLists& lists;
  // The nodes of the partition that have the lists.
  const NodeColumns& nodes;
  uint64_t first_id;
  uint64_t node_count;
  // The nodes that may be neighbours; null if all may.
  const SplitMembers* members;

  // The DATA_LOSS error for the file of `column`.
  absl::Status Damaged(std::string_view column, std::string_view what) const {
    return DamagedFile(
        store,
        ListPath(part, store.schema().RelationName(relation_index),
                 context.direction, column),
        StrCat("is damaged: ", what));
  }
};

}  // namespace millrace
