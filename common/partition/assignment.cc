// SPDX-License-Identifier: Apache-2.0
#include "common/partition/assignment.h"

#include <utility>

#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/random/philox.h"
#include "common/sample/draw/draw.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

// "part" in ASCII. It keeps these Philox words distinct from those of
// docs/determinism.md, whose counters have a purpose in its place.
constexpr uint32_t kDomain = 0x70617274;

PhiloxKey KeyOf(uint64_t seed, uint32_t method, uint32_t type) {
  const PhiloxWords words =
      Philox({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
             {method, type, kDomain, 0});
  return {words[0], words[1]};
}

constexpr uint32_t kRandomMethod = 0;
constexpr uint32_t kHashMethod = 1;

absl::StatusOr<std::vector<PartitionId>> ReadAssignment(
    const NodeType& type, const std::filesystem::path& path, int parts) {
  MILLRACE_ASSIGN_OR_RETURN(const Array array, ReadNpyIntegers(path));
  if (array.shape().size() != 1) {
    return absl::InvalidArgumentError(StrCat(
        path.string(), ": an assignment has one dimension, but this has ",
        array.shape().size()));
  }
  if (array.rows() != type.count) {
    return absl::InvalidArgumentError(StrCat(path.string(), ": ", array.rows(),
                                             " values, but type \"", type.name,
                                             "\" has ", type.count, " nodes"));
  }
  std::vector<PartitionId> assignment(static_cast<size_t>(type.count));
  const auto values = array.As<int64_t>();
  for (int64_t node = 0; node < type.count; ++node) {
    const int64_t value = values[node];
    if (value < 0 || value >= parts) {
      return absl::InvalidArgumentError(
          StrCat(path.string(), ": index ", node, " is ", value,
                 ", but partitions are 0 to ", parts - 1));
    }
    assignment[node] = static_cast<PartitionId>(value);
  }
  return assignment;
}

}  // namespace

Assignment AssignRandom(const Schema& schema, int parts, uint64_t seed) {
  Assignment assignment;
  for (size_t type = 0; type < schema.node_types.size(); ++type) {
    const auto count = static_cast<uint64_t>(schema.node_types[type].count);
    auto& owners = assignment.emplace_back(count);
    if (count == 0) continue;
    const Permutation permutation(
        KeyOf(seed, kRandomMethod, static_cast<uint32_t>(type)), count);
    for (uint64_t node = 0; node < count; ++node) {
      // The product is below 2^64: a type has fewer than 2^48 nodes.
      owners[node] = static_cast<PartitionId>(
          permutation(node) * static_cast<uint64_t>(parts) / count);
    }
  }
  return assignment;
}

Assignment AssignHash(const Schema& schema, int parts, uint64_t seed) {
  const PhiloxKey key = KeyOf(seed, kHashMethod, 0);
  Assignment assignment;
  for (const NodeType& type : schema.node_types) {
    const auto count = static_cast<uint64_t>(type.count);
    auto& owners = assignment.emplace_back(count);
    for (uint64_t node = 0; node < count; ++node) {
      const PhiloxWords words =
          Philox(key, {static_cast<uint32_t>(node),
                       static_cast<uint32_t>(node >> 32), 0, 0});
      owners[node] = static_cast<PartitionId>(
          uint64_t{words[0]} * static_cast<uint64_t>(parts) >> 32);
    }
  }
  return assignment;
}

absl::StatusOr<Assignment> AssignGiven(
    const Schema& schema,
    const std::map<std::string, std::filesystem::path>& files, int parts) {
  for (const auto& [name, path] : files) {
    if (absl::Status found = schema.FindType(name).status(); !found.ok()) {
      return InvalidField({.field = "assignment",
                           .value = StrCat(name, "=", path.string()),
                           .limit = std::string(found.message())});
    }
  }
  Assignment assignment;
  for (const NodeType& type : schema.node_types) {
    const auto file = files.find(type.name);
    if (file == files.end()) {
      return InvalidField(
          {.field = "assignment",
           .limit = StrCat("no file for node type \"", type.name,
                           "\"; give one as ", type.name, "=F.npy")});
    }
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(std::vector<PartitionId> owners,
                              ReadAssignment(type, file->second, parts));
    assignment.push_back(std::move(owners));
  }
  return assignment;
}

}  // namespace millrace
