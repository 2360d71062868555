// SPDX-License-Identifier: Apache-2.0
// Which partition owns each node, and ways to decide this without looking at
// the edges.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/partition_book.h"
#include "common/graph/schema.h"

namespace millrace {

// The owner of each node: [node type][original id].
using Assignment = std::vector<std::vector<PartitionId>>;

// Gives each partition an equal share (to within one node) of every type. Node
// v of n goes to floor(perm(v) * parts / n), where perm is a permutation keyed
// by the seed and the index of the type.
Assignment AssignRandom(const Schema& schema, int parts, uint64_t seed);

// Gives a node to floor(h * parts / 2^32), where h is a Philox word that
// depends only on the seed and the original id. So a node keeps its partition
// when the graph grows.
Assignment AssignHash(const Schema& schema, int parts, uint64_t seed);

// Reads one .npy array of integers [n] per node type, by the type's name.
// INVALID_ARGUMENT: not integers, not one value per node, a value that is not
// from 0 to parts - 1 (the message names file, index and value), a type without
// a file, or a file for an unknown type. Also the errors of ReadNpyIntegers().
absl::StatusOr<Assignment> AssignGiven(
    const Schema& schema,
    const std::map<std::string, std::filesystem::path>& files, int parts);

}  // namespace millrace
