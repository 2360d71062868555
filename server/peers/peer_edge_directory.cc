// SPDX-License-Identifier: Apache-2.0
#include "server/peers/peer_edge_directory.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/owner_groups.h"
#include "common/sample/batch.h"
#include "common/sample/seeds/resolve_seeds.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"
#include "server/peers/peer_call.h"

namespace millrace {
namespace {

// Largest number of items in one call; keeps it well below the receive limit.
constexpr size_t kMaxItemsPerCall = 1 << 19;

// A query about items that several partitions own.
template <typename Request, typename Reply, typename Answer>
struct OwnerQuery {
  std::string method;  // such as "/millrace.v1.Sampler/Resolve"
  // Makes the request about a group, without partition and fingerprint.
  std::function<Request(const OwnerGroup&)> request;
  // Reads a reply, which has one answer per item.
  std::function<absl::StatusOr<std::vector<Answer>>(const Reply&)> read;
  // Returns the answers for a group whose partition is read here.
  std::function<absl::StatusOr<std::vector<Answer>>(const OwnerGroup&)> look_up;
};

using PeerCalls = std::vector<std::unique_ptr<PeerCall>>;

// Starts a call for each group whose partition is not read here; null for the
// others.
template <typename Request, typename Reply, typename Answer>
absl::StatusOr<PeerCalls> StartCalls(
    const CallScope& scope, const std::vector<OwnerGroup>& groups,
    const OwnerQuery<Request, Reply, Answer>& query) {
  const Store& store = *scope.core.store;
  PeerCalls calls(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const int partition = groups[g].partition;
    if (scope.core.Reads(partition)) continue;
    Request request = query.request(groups[g]);
    request.set_partition(static_cast<uint32_t>(partition));
    request.set_fingerprint(store.manifest().fingerprint);
    calls[g] = std::make_unique<PeerCall>(scope, partition,
                                          Hedging::Kind::kLookup, query.method);
    MILLRACE_RETURN_IF_ERROR(calls[g]->Start(request));
  }
  return calls;
}

// Waits for the answers to a call about `count` items.
template <typename Request, typename Reply, typename Answer>
absl::StatusOr<std::vector<Answer>> FinishCall(
    PeerCall& call, size_t count,
    const OwnerQuery<Request, Reply, Answer>& query) {
  Reply reply;
  MILLRACE_RETURN_IF_ERROR(call.Finish(reply));
  absl::StatusOr<std::vector<Answer>> found = query.read(reply);
  if (found.ok() && found->size() != count) {
    found = absl::InternalError(
        StrCat("the reply has ", found->size(), " items, not ", count));
  }
  if (!found.ok()) return call.Named(found.status());
  return found;
}

// Asks all owners concurrently; returns the answers for `count` items in the
// items' order.
template <typename Request, typename Reply, typename Answer>
absl::StatusOr<std::vector<Answer>> Ask(
    const CallScope& scope, const std::vector<OwnerGroup>& groups, size_t count,
    const OwnerQuery<Request, Reply, Answer>& query) {
  MILLRACE_ASSIGN_OR_RETURN(const auto calls, StartCalls(scope, groups, query));
  std::vector<Answer> answers(count);
  // Looks up the local partitions while the calls are in flight.
  for (const bool here : {true, false}) {
    for (size_t g = 0; g < groups.size(); ++g) {
      if ((calls[g] == nullptr) != here) continue;
      const std::vector<uint32_t>& places = groups[g].places;
      MILLRACE_ASSIGN_OR_RETURN(
          const std::vector<Answer> found,
          here ? query.look_up(groups[g])
               : FinishCall(*calls[g], places.size(), query));
      PutAt<Answer>(found, places, answers);
    }
  }
  return answers;
}

v1::HasEdgesRequest MakeHasEdgesRequest(const Schema& schema,
                                        RelationIndex relation,
                                        const std::vector<uint64_t>& src,
                                        const std::vector<uint64_t>& dst) {
  const Relation& info = schema.relations[relation];
  v1::HasEdgesRequest request;
  request.set_relation(static_cast<uint32_t>(relation));
  AppendIds(src, schema.node_types[info.src].id_dtype(),
            *request.mutable_src_ids());
  AppendIds(dst, schema.node_types[info.dst].id_dtype(),
            *request.mutable_dst_ids());
  return request;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> PeerEdgeDirectory::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  MILLRACE_RETURN_IF_ERROR(scope_.CheckNotCancelled());
  const Store& store = *scope_.core.store;
  const uint64_t width = store.book(type).lookup_width();
  const NodeType& nodes = store.schema().node_types[type];
  OwnerQuery<v1::ResolveRequest, v1::ResolveReply, uint64_t> query;
  query.method = "/millrace.v1.Sampler/Resolve";
  query.request = [&](const OwnerGroup& group) {
    v1::ResolveRequest request;
    request.set_node_type(static_cast<uint32_t>(type));
    AppendRaw<int64_t>(TakeAt(original_ids, group.places),
                       *request.mutable_original_ids());
    return request;
  };
  query.read = [&](const v1::ResolveReply& reply) {
    return ReadIds(reply.ids(), nodes.id_dtype(), 0,
                   static_cast<uint64_t>(nodes.count), "ids");
  };
  query.look_up = [&](const OwnerGroup& group) {
    return ResolveIds(store, type, TakeAt(original_ids, group.places));
  };
  const auto owner = [&](size_t i) {
    return static_cast<int>(static_cast<uint64_t>(original_ids[i]) / width);
  };
  return Ask(scope_,
             GroupByOwner(original_ids.size(), store.partition_count(), owner,
                          kMaxItemsPerCall),
             original_ids.size(), query);
}

absl::StatusOr<std::vector<uint8_t>> PeerEdgeDirectory::HasEdges(
    RelationIndex relation, std::span<const uint64_t> src,
    std::span<const uint64_t> dst) {
  MILLRACE_RETURN_IF_ERROR(scope_.CheckNotCancelled());
  const Store& store = *scope_.core.store;
  const Relation& info = store.schema().relations[relation];
  OwnerQuery<v1::HasEdgesRequest, v1::HasEdgesReply, uint8_t> query;
  query.method = "/millrace.v1.Sampler/HasEdges";
  query.request = [&](const OwnerGroup& group) {
    return MakeHasEdgesRequest(store.schema(), relation,
                               TakeAt(src, group.places),
                               TakeAt(dst, group.places));
  };
  query.read = [](const v1::HasEdgesReply& reply) {
    return ReadRaw<uint8_t>(reply.found(), "found");
  };
  CancelPoller poller([&] { return scope_.CheckNotCancelled(); });
  query.look_up = [&](const OwnerGroup& group) {
    const std::vector<uint64_t> own_src = TakeAt(src, group.places);
    const std::vector<uint64_t> own_dst = TakeAt(dst, group.places);
    return FindEdges(store, group.partition, {relation, own_src, own_dst},
                     poller);
  };
  const Direction direction = LookupDirection(info);
  const PartitionBook& book = store.book(ListOwnerType(info, direction));
  const std::span<const uint64_t> owners =
      direction == Direction::kIn ? dst : src;
  const auto owner = [&](size_t i) { return book.Owner(owners[i]); };
  return Ask(scope_,
             GroupByOwner(src.size(), store.partition_count(), owner,
                          kMaxItemsPerCall),
             src.size(), query);
}

}  // namespace millrace
