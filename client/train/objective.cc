// SPDX-License-Identifier: Apache-2.0
#include "client/train/objective.h"

#include "client/train/label_objective.h"
#include "client/train/link_objective.h"

namespace millrace {

std::unique_ptr<Objective> MakeObjective(const Task& task, SeedKind seeds) {
  switch (seeds) {
    case SeedKind::kEdge:
      return std::make_unique<LinkObjective>(task);
    case SeedKind::kGraph:
      return std::make_unique<GraphObjective>(task);
    case SeedKind::kNode:
      break;
  }
  return std::make_unique<NodeObjective>(task);
}

}  // namespace millrace
