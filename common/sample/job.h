// SPDX-License-Identifier: Apache-2.0
// A job as a value: everything but (epoch, batch) that names a batch, and what
// of the batch is wanted. resolve_job.h checks it against a graph.
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
// Limit of the steps of all walks from one node.
inline constexpr int64_t kMaxWalkSteps = int64_t{1} << 20;

// How pairs that are not edges are chosen, for training on edges;
// docs/determinism.md section 6.
enum class NegativeMode : uint8_t {
  kNone = 0,
  kBinary = 1,   // amount pairs for each seed, both ends drawn
  kTriplet = 2,  // amount destinations for each seed
  kShared = 3,   // amount destinations for the batch
  kInBatch = 4,  // the other seeds' destinations; nothing is drawn
};
struct Negatives {
  NegativeMode mode = NegativeMode::kNone;
  double amount = 1;  // a whole number, except for kBinary

  friend bool operator==(const Negatives&, const Negatives&) = default;
};
// How often a negative that is an edge is drawn again.
inline constexpr int kMaxRedraws = 20;

// Which edges a batch must not have: those of its seeds, or their reverses
// too.
enum class ExcludeSeedEdges : uint8_t { kNone = 0, kSelf = 1, kReverse = 2 };

// The sampling spec plus seed, as a user gives it and as every request
// carries it. Defaults are those of the command line.
struct JobSpec {
  uint64_t seed = 1;
  SeedKind seed_kind = SeedKind::kNode;
  // Node type, or for edge seeds a relation (SRC__NAME__DST). Empty if the
  // graph has only one.
  std::string seed_type;
  std::string split = "train";  // empty if all seeds are explicit
  // For relations that are not among `relation_fanouts`. Empty if they are not
  // sampled.
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
  // All but kNone imply `disjoint`.
  TemporalStrategy temporal = TemporalStrategy::kNone;
  // kWalk and kPpr: walks from each node, and their steps.
  int walks = 0;
  int walk_length = 0;
  double restart = 0.15;  // kPpr: chance that a walk ends before a step
  // kWalk: node2vec's p and q (Grover and Leskovec 2016).
  double walk_p = 1;
  double walk_q = 1;
  // kWalk, kPpr: the relations of the steps, in turn. Empty if the graph has
  // only one.
  std::vector<std::string> metapath;
  // Split outside of which no node is a neighbour, where its type has that
  // split. If empty, all nodes are.
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
  // Type that features are cast to on the wire (kFloat16, kBFloat16); kNone to
  // send them as they are stored.
  DType feature_dtype = DType::kNone;

  friend bool operator==(const Columns&, const Columns&) = default;
};

// A job checked against a graph, names replaced by numbers. A temporal job is
// disjoint here, whether that was asked for or not.
struct ResolvedJob {
  JobSpec spec;
  // Type of the seeds, or for edge seeds of their destinations.
  TypeIndex seed_type = 0;
  RelationIndex seed_relation = -1;  // -1 unless seeds are edges
  int hops = 0;                      // for kWalk the steps of a walk
  std::vector<Fanouts> fanouts;      // [relation][hop]; for kWalk all 0
  // kWalk, kPpr: relations of the steps, in turn.
  std::vector<RelationIndex> metapath;
};

// Whether negatives of the job are drawn, not given.
inline bool DrawsNegatives(const JobSpec& spec) {
  return spec.negatives.mode != NegativeMode::kNone &&
         spec.negatives.mode != NegativeMode::kInBatch;
}

// Whether seeds are nodes of this type, or edges with an end of this type.
inline bool IsSeedType(const ResolvedJob& job, const Schema& schema,
                       TypeIndex type) {
  return job.seed_type == type ||
         (job.seed_relation >= 0 &&
          schema.relations[job.seed_relation].src == type);
}

// Whether labels of seeds are labels of nodes of this type.
inline bool LabelsSeeds(const ResolvedJob& job, TypeIndex type) {
  return job.spec.seed_kind != SeedKind::kEdge && job.seed_type == type;
}

// Whether a step of a walk depends on the step before.
inline bool IsBiased(const JobSpec& spec) {
  return spec.walk_p != 1 || spec.walk_q != 1;
}

// Whether the edges of a batch are those of all its nodes, not only of the
// expanded ones: methods whose edges do not follow the hops.
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
