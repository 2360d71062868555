// SPDX-License-Identifier: Apache-2.0
// A job: everything but (epoch, batch) that names a batch, and what of the
// batch is wanted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/graph/schema.h"

namespace millrace {

enum class SeedKind : uint8_t { kNode = 0, kEdge = 1, kGraph = 2 };
enum class SeedOrder : uint8_t { kGlobal = 0, kLocal = 1 };

// Neighbours drawn per frontier node, one number per hop; kAllNeighbors = all.
using Fanouts = std::vector<int32_t>;
inline constexpr int32_t kAllNeighbors = -1;
inline constexpr int kMaxHops = 255;

// The sampling spec plus seed, as a user gives it and as every request
// carries it. Defaults are those of the command line.
struct JobSpec {
  uint64_t seed = 1;
  SeedKind seed_kind = SeedKind::kNode;
  std::string seed_type;        // node type; empty: the only one
  std::string split = "train";  // empty: explicit seeds only
  Fanouts fanouts;              // for relations not named below; empty: none
  std::map<std::string, Fanouts> relation_fanouts;  // by "SRC__REL__DST"
  int64_t batch_size = 1024;                        // seeds, >= 1
  bool shuffle = true;
  SeedOrder seed_order = SeedOrder::kGlobal;
  bool drop_last = false;
  bool replace = false;
  bool disjoint = false;
  Direction direction = Direction::kIn;

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Which columns a batch shall carry besides its topology.
enum class LabelRows : uint8_t { kNone = 0, kSeeds = 1, kAll = 2 };
struct Columns {
  bool features = true;
  bool edge_features = false;
  bool original_ids = false;
  bool edge_ids = false;
  // Length of each node's lists in the whole graph, in the job's direction,
  // summed over relations: GCN's true degree.
  bool degrees = false;
  LabelRows labels = LabelRows::kSeeds;
  // Cast on the wire (kFloat16, kBFloat16); kNone: as stored.
  DType feature_dtype = DType::kNone;

  friend bool operator==(const Columns&, const Columns&) = default;
};

// A job checked against a graph, names replaced by numbers.
struct ResolvedJob {
  JobSpec spec;
  TypeIndex seed_type = 0;
  int hops = 0;
  std::vector<Fanouts> fanouts;  // [relation][hop]
};

// INVALID_ARGUMENT: a value out of range (names the option, the value and the
// limit). NOT_FOUND: no such type or relation. FAILED_PRECONDITION: the store
// lacks the direction, naming the command that makes it.
absl::StatusOr<ResolvedJob> ResolveJob(const JobSpec& spec,
                                       const Manifest& manifest);

}  // namespace millrace
