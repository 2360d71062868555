// SPDX-License-Identifier: Apache-2.0
// A job as a value: everything except (epoch, batch) that identifies a batch,
// and the columns that are requested. resolve_job.h checks it against a graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/graph/schema.h"
#include "common/sample/explicit_seeds.h"

namespace millrace {

enum class SeedKind : uint8_t { kNode = 0, kEdge = 1, kGraph = 2 };
enum class SeedOrder : uint8_t { kGlobal = 0, kLocal = 1 };
// How nodes are found around the seeds; docs/determinism.md sections 3 and 5.
enum class SampleMethod : uint8_t {
  kUniform = 0,  // neighbours, uniformly or by weight
  kLabor = 1,    // neighbours that frontier nodes share
  kWalk = 2,     // random walks from the seeds
  kPpr = 3,      // the nodes that walks from a node visit most
  kInduced = 4,  // all edges among the nodes that kUniform finds
};
// Which of the neighbours that are not later than the seed are drawn.
enum class TemporalStrategy : uint8_t { kNone = 0, kUniform = 1, kLast = 2 };

// How many neighbours are drawn for each frontier node, one number per hop;
// kAllNeighbors stands for all.
using Fanouts = std::vector<int32_t>;
inline constexpr int32_t kAllNeighbors = -1;
inline constexpr int32_t kMaxFanout = 1 << 20;
inline constexpr int kMaxHops = 255;
inline constexpr int kMaxWalkLength = 256;
// Limit on the steps of all walks from one node.
inline constexpr int64_t kMaxWalkSteps = int64_t{1} << 20;

// How negatives are chosen: pairs that are not edges, for training on edges.
// See docs/determinism.md, section 6.
enum class NegativeMode : uint8_t {
  kNone = 0,
  kBinary = 1,   // `amount` pairs per seed, both ends drawn
  kTriplet = 2,  // `amount` destinations per seed
  kShared = 3,   // `amount` destinations for the batch
  kInBatch = 4,  // none are drawn; uses the other seeds' destinations
};
struct Negatives {
  NegativeMode mode = NegativeMode::kNone;
  double amount = 1;  // an integer, except for kBinary

  friend bool operator==(const Negatives&, const Negatives&) = default;
};
// Maximum number of redraws of a negative that is an edge.
inline constexpr int kMaxRedraws = 20;

// Which edges a batch must not contain: those of its seeds, or also their
// reverses.
enum class ExcludeSeedEdges : uint8_t { kNone = 0, kSelf = 1, kReverse = 2 };

// The sampling parameters and the seed, as the user gives them and as every
// request carries them. The defaults are those of the command line.
struct JobSpec {
  uint64_t seed = 1;
  SeedKind seed_kind = SeedKind::kNode;
  // Node type, or for edge seeds a relation (SRC__NAME__DST). Empty if the
  // graph has only one.
  std::string seed_type;
  std::string split = "train";  // if empty, only explicit seeds
  // For relations that are not named below; empty if they are not sampled.
  Fanouts fanouts;
  std::map<std::string, Fanouts> relation_fanouts;  // by "SRC__NAME__DST"
  int64_t batch_size = 1024;                        // in seeds, >= 1
  bool shuffle = true;
  SeedOrder seed_order = SeedOrder::kGlobal;
  bool drop_last = false;
  bool replace = false;
  bool disjoint = false;
  Direction direction = Direction::kIn;
  SampleMethod method = SampleMethod::kUniform;
  bool weighted = false;
  // Any value but kNone implies `disjoint`.
  TemporalStrategy temporal = TemporalStrategy::kNone;
  // kWalk and kPpr: number of walks from each node, and of steps in each.
  int walks = 0;
  int walk_length = 0;
  double restart = 0.15;  // kPpr: probability that a walk ends before a step
  // kWalk: node2vec's p and q (Grover and Leskovec 2016).
  double walk_p = 1;
  double walk_q = 1;
  // kWalk and kPpr: relations of the steps, used in turn. If empty, the only
  // relation.
  std::vector<std::string> metapath;
  // If not empty, the name of a split: of node types that have it, only its
  // nodes are neighbours.
  std::string train_graph;
  // For edge seeds only.
  Negatives negatives;
  ExcludeSeedEdges exclude = ExcludeSeedEdges::kNone;

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Which columns a batch carries besides its topology.
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
  // dtype of the features on the wire (kFloat16 or kBFloat16); kNone means as
  // stored.
  DType feature_dtype = DType::kNone;

  friend bool operator==(const Columns&, const Columns&) = default;
};

// A job that has been checked against a graph, with names replaced by indices.
// `disjoint` is always set for a temporal job.
struct ResolvedJob {
  JobSpec spec;
  // Type of the seeds; for edge seeds, the type of the destinations.
  TypeIndex seed_type = 0;
  RelationIndex seed_relation = -1;  // for edge seeds; otherwise -1
  int hops = 0;                      // for kWalk, steps of a walk
  std::vector<Fanouts> fanouts;      // [relation][hop]; all 0 for kWalk
  // For kWalk and kPpr: relations of the steps, used in turn.
  std::vector<RelationIndex> metapath;
};

// Whether the job draws negatives, as opposed to being given them.
inline bool DrawsNegatives(const JobSpec& spec) {
  return spec.negatives.mode != NegativeMode::kNone &&
         spec.negatives.mode != NegativeMode::kInBatch;
}

// Whether seeds are of this node type; for edge seeds, whether one of their
// ends is.
inline bool IsSeedType(const ResolvedJob& job, const Schema& schema,
                       TypeIndex type) {
  return job.seed_type == type ||
         (job.seed_relation >= 0 &&
          schema.relations[job.seed_relation].src == type);
}

// Whether labels of seeds are labels of nodes of this type; `seed_type` is that
// of ResolvedJob.
inline bool LabelsSeeds(SeedKind seed_kind, TypeIndex seed_type,
                        TypeIndex type) {
  return seed_kind != SeedKind::kEdge && seed_type == type;
}
inline bool LabelsSeeds(const ResolvedJob& job, TypeIndex type) {
  return LabelsSeeds(job.spec.seed_kind, job.seed_type, type);
}

// Whether a step of a walk depends on the previous step.
inline bool IsBiased(const JobSpec& spec) {
  return spec.walk_p != 1 || spec.walk_q != 1;
}

// Whether a batch has the edges of all its nodes and not only of the expanded
// ones, as with methods whose edges do not follow the hops.
inline bool EdgesOfAllNodes(SampleMethod method) {
  return method == SampleMethod::kInduced || method == SampleMethod::kWalk;
}

// Whether the times of these seeds are the times of their nodes, which must be
// looked up when the seeds are resolved.
inline bool NeedsSeedTimes(const ResolvedJob& job, const Schema& schema,
                           const ExplicitSeeds& seeds) {
  return job.spec.temporal != TemporalStrategy::kNone &&
         job.spec.seed_kind != SeedKind::kEdge && seeds.times.empty() &&
         schema.node_types[job.seed_type].has_time;
}

}  // namespace millrace
