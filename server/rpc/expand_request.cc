// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/expand_request.h"

#include <algorithm>
#include <string>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "sampler.pb.h"
#include "server/load/memory_model.h"
#include "server/rpc/parse_request.h"

namespace millrace {
namespace {

using FrontierProto = v1::ExpandRequest::Frontier;

absl::Status CheckNumbers(const v1::ExpandRequest& request) {
  constexpr uint32_t kHopNumbers = 1 << 16;  // steps of walks count as hops
  if (v1::Job::Direction_IsValid(request.direction()) &&
      v1::ExpandRequest::Rule_IsValid(request.rule()) &&
      request.hop() < kHopNumbers) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("direction ", static_cast<int>(request.direction()), ", rule ",
             static_cast<int>(request.rule()), ", hop ", request.hop(),
             ": no such direction or rule, or beyond hop ", kHopNumbers - 1));
}

absl::Status CheckFrontierCount(const Schema& schema,
                                const v1::ExpandRequest& request) {
  const size_t relations = schema.relations.size();
  if (static_cast<size_t>(request.frontiers_size()) <= relations) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat(request.frontiers_size(), " frontiers: the graph has ", relations,
             " relations\nsend at most one for each"));
}

// Checks that some node type has a split of this name; an empty name means the
// whole graph.
absl::Status CheckWithin(const Manifest& manifest, const std::string& within) {
  if (within.empty() ||
      std::any_of(
          manifest.splits.begin(), manifest.splits.end(),
          [&](const SplitInfo& split) { return split.name == within; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("within \"", within,
             "\": no node type has such a split\nuse the name of a split of "
             "nodes, or none for the whole graph"));
}

// Checks the splits that the request was made with, and that the one to sample
// within is here.
absl::Status CheckSplits(ServedStore& store, const v1::ExpandRequest& request) {
  MILLRACE_RETURN_IF_ERROR(store.CheckSplits(
      UsedSplitsFromProto(request.splits()), request.within()));
  const Store& seen = *store;
  absl::Status within = CheckWithin(seen.manifest(), request.within());
  // The caller may know a split that was added after this server opened the
  // store; adding a split keeps the fingerprint.
  if (!within.ok() && store.LookForSplits(seen)) {
    return CheckWithin(store->manifest(), request.within());
  }
  return within;
}

absl::Status CheckFanout(const v1::ExpandRequest& request,
                         const FrontierProto& in) {
  if (in.fanout() == 0 || in.fanout() < kAllNeighbors ||
      in.fanout() > kMaxFanout) {
    return absl::InvalidArgumentError(
        StrCat("fanout ", in.fanout(), " is not -1 or 1 to ", kMaxFanout));
  }
  // RULE_AMONG reserves memory by the fanout, so it must be -1.
  if (request.rule() == v1::ExpandRequest::RULE_AMONG &&
      in.fanout() != kAllNeighbors) {
    return absl::InvalidArgumentError(
        StrCat("fanout ", in.fanout(), " of a set of nodes is not -1"));
  }
  return absl::OkStatus();
}

absl::Status CheckLists(const Schema& schema, const NeighborLists& lists,
                        RelationIndex relation, Direction direction) {
  if (lists.present()) return absl::OkStatus();
  return FieldStatus(
      absl::StatusCode::kFailedPrecondition,
      {.field = "direction",
       .value = std::string(DirectionName(direction)),
       .limit = StrCat("the store has no ", DirectionName(direction),
                       "-lists of ", schema.RelationName(relation))});
}

// Reads the ids of the nodes, which must be in the range that the partition
// `part` owns, and their trees and times.
absl::Status ReadOwnNodes(const Store& store, int part, TypeIndex type,
                          const FrontierProto& in, OwnedNodes& nodes) {
  const PartitionBook& book = store.book(type);
  MILLRACE_ASSIGN_OR_RETURN(
      nodes.ids, ReadIds(in.ids(), store.schema().node_types[type].id_dtype(),
                         book.begin(part), book.end(part), "ids"));
  MILLRACE_ASSIGN_OR_RETURN(nodes.trees,
                            ReadRaw<uint32_t>(in.trees(), "trees"));
  if (!nodes.trees.empty() && nodes.trees.size() != nodes.ids.size()) {
    return absl::InvalidArgumentError(
        StrCat(nodes.trees.size(), " trees for ", nodes.ids.size(), " ids"));
  }
  MILLRACE_ASSIGN_OR_RETURN(nodes.times, ReadRaw<int64_t>(in.times(), "times"));
  if (!nodes.times.empty() && nodes.times.size() != nodes.ids.size()) {
    return absl::InvalidArgumentError(
        StrCat(nodes.times.size(), " times for ", nodes.ids.size(), " ids"));
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeSet> ReadAmong(const FrontierProto& in,
                                  const NodeType& neighbors) {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> among,
      ReadIds(in.among(), neighbors.id_dtype(), 0,
              static_cast<uint64_t>(neighbors.count), "among"));
  NodeSet set;
  set.reserve(among.size());
  set.insert(among.begin(), among.end());
  return set;
}

absl::StatusOr<ExcludedEdges> ReadExcluded(const FrontierProto& in,
                                           const NodeType& owners,
                                           const NodeType& neighbors,
                                           bool lists_have_times) {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> nodes,
      ReadIds(in.excluded_nodes(), owners.id_dtype(), 0,
              static_cast<uint64_t>(owners.count), "excluded_nodes"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> others,
      ReadIds(in.excluded_neighbors(), neighbors.id_dtype(), 0,
              static_cast<uint64_t>(neighbors.count), "excluded_neighbors"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> times,
      ReadRaw<int64_t>(in.excluded_times(), "excluded_times"));
  if (nodes.size() != others.size() ||
      (!times.empty() && (times.size() != nodes.size() || !lists_have_times))) {
    return absl::InvalidArgumentError(
        StrCat("excluded edges: ", nodes.size(), " nodes, ", others.size(),
               " neighbours and ", times.size(), " times"));
  }
  ExcludedEdges excluded;
  excluded.timed = !times.empty();
  for (size_t i = 0; i < nodes.size(); ++i) {
    excluded.Add(nodes[i], others[i], excluded.timed ? times[i] : 0);
  }
  excluded.Sort();
  return excluded;
}

}  // namespace

Frontier OwnedNodes::Part(size_t begin, size_t count) const {
  Frontier all;
  all.relation = relation;
  all.fanout = fanout;
  all.ids = ids;
  all.trees = trees;
  all.times = times;
  all.among = &among;
  if (!excluded.by_node.empty()) all.excluded = &excluded;
  return all.Part(begin, count);
}

absl::Status CheckExpandRequest(ServerCore& core,
                                const v1::ExpandRequest& request) {
  MILLRACE_RETURN_IF_ERROR(
      core.CheckTarget(request.partition(), request.fingerprint()));
  MILLRACE_RETURN_IF_ERROR(CheckNumbers(request));
  MILLRACE_RETURN_IF_ERROR(CheckFrontierCount(core.store->schema(), request));
  return CheckSplits(core.store, request);
}

uint64_t SetBytes(const v1::ExpandRequest_Frontier& in) {
  return kBytesPerAmongByte * in.among().size() +
         kBytesPerExcludedByte * in.excluded_nodes().size();
}

absl::StatusOr<OwnedNodes> ReadFrontier(const Store& store,
                                        const v1::ExpandRequest& request,
                                        const v1::ExpandRequest_Frontier& in) {
  const Schema& schema = store.schema();
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("relation", in.relation(), schema.relations.size()));
  MILLRACE_RETURN_IF_ERROR(CheckFanout(request, in));
  OwnedNodes nodes;
  nodes.relation = static_cast<RelationIndex>(in.relation());
  nodes.fanout = in.fanout();
  const auto part = static_cast<int>(request.partition());
  const auto direction = static_cast<Direction>(request.direction());
  const NeighborLists& lists =
      store.partition(part)->edges[nodes.relation].lists(direction);
  MILLRACE_RETURN_IF_ERROR(
      CheckLists(schema, lists, nodes.relation, direction));
  const Relation& relation = schema.relations[nodes.relation];
  const TypeIndex type = ListOwnerType(relation, direction);
  const NodeType& neighbors =
      schema.node_types[NeighborType(relation, direction)];
  nodes.neighbor_dtype = neighbors.id_dtype();
  MILLRACE_RETURN_IF_ERROR(ReadOwnNodes(store, part, type, in, nodes));
  MILLRACE_ASSIGN_OR_RETURN(nodes.among, ReadAmong(in, neighbors));
  MILLRACE_ASSIGN_OR_RETURN(nodes.excluded,
                            ReadExcluded(in, schema.node_types[type], neighbors,
                                         lists.time.present()));
  return nodes;
}

}  // namespace millrace
