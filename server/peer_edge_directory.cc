// SPDX-License-Identifier: Apache-2.0
#include "server/peer_edge_directory.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/sample/batch.h"
#include "common/sample/seeds.h"
#include "common/wire/ids.h"
#include "sampler.grpc.pb.h"
#include "server/peer_picker.h"

namespace millrace {
namespace {

// Items of one call: keeps it well below the receive limit.
constexpr size_t kMaxItemsPerCall = 1 << 19;

// One unary call to the owner of another partition, tried on its replicas in
// turn. Start() does not wait for the answer, Finish() does.
template <typename Request, typename Reply>
class PeerCall {
 public:
  using Method = std::function<void(v1::Sampler::Stub&, ::grpc::ClientContext*,
                                    const Request*, Reply*,
                                    std::function<void(::grpc::Status)>)>;

  PeerCall(const CallScope& scope, int partition, Request request,
           Method method)
      : scope_(scope),
        picker_(scope, partition),
        request_(std::move(request)),
        method_(std::move(method)) {}
  ~PeerCall() {
    if (attempt_ == nullptr) return;
    attempt_->context->TryCancel();
    attempt_->done.WaitForNotification();
  }

  absl::Status Start() {
    MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<FleetMember> member,
                              picker_.Pick());
    attempt_ = std::make_unique<Attempt>();
    attempt_->context = scope_.PeerContext();
    attempt_->stub = v1::Sampler::NewStub(member->NextChannel());
    Attempt* attempt = attempt_.get();
    method_(*attempt->stub, attempt->context.get(), &request_, &attempt->reply,
            [attempt](::grpc::Status status) {
              attempt->status = std::move(status);
              attempt->done.Notify();
            });
    return absl::OkStatus();
  }

  absl::StatusOr<Reply> Finish() {
    while (true) {
      attempt_->done.WaitForNotification();
      const std::unique_ptr<Attempt> attempt = std::move(attempt_);
      const absl::Status status = FromGrpcStatus(attempt->status);
      if (status.ok()) return std::move(attempt->reply);
      MILLRACE_RETURN_IF_ERROR(picker_.AfterFailure(status));
      MILLRACE_RETURN_IF_ERROR(Start());
    }
  }

  absl::Status Named(const absl::Status& status) const {
    return picker_.Named(status);
  }

 private:
  struct Attempt {
    std::unique_ptr<::grpc::ClientContext> context;
    std::unique_ptr<v1::Sampler::Stub> stub;
    Reply reply;
    ::grpc::Status status;
    absl::Notification done;
  };

  const CallScope& scope_;
  PeerPicker picker_;
  const Request request_;
  const Method method_;
  std::unique_ptr<Attempt> attempt_;  // in flight
};

// The places of items by the partition that is asked about them, at most
// kMaxItemsPerCall in each group.
struct Group {
  int partition;
  std::vector<size_t> places;
};

template <typename OwnerFn>
std::vector<Group> GroupByOwner(size_t count, int parts, OwnerFn owner_of) {
  std::vector<Group> groups;
  std::vector<std::vector<size_t>> open(static_cast<size_t>(parts));
  const auto close = [&](int part) {
    if (!open[part].empty()) {
      groups.push_back({part, std::exchange(open[part], {})});
    }
  };
  for (size_t i = 0; i < count; ++i) {
    const int owner = owner_of(i);
    open[owner].push_back(i);
    if (open[owner].size() == kMaxItemsPerCall) close(owner);
  }
  for (int part = 0; part < parts; ++part) close(part);
  return groups;
}

template <typename T>
std::vector<T> Take(std::span<const T> values,
                    const std::vector<size_t>& places) {
  std::vector<T> taken;
  taken.reserve(places.size());
  for (const size_t place : places) taken.push_back(values[place]);
  return taken;
}

template <typename T>
void Put(const std::vector<T>& values, const std::vector<size_t>& places,
         std::vector<T>& out) {
  for (size_t i = 0; i < places.size(); ++i) out[places[i]] = values[i];
}

absl::Status WrongCount(size_t got, size_t asked) {
  return absl::InternalError(
      StrCat("the reply has ", got, " items, not ", asked));
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> PeerEdgeDirectory::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  using Call = PeerCall<v1::ResolveRequest, v1::ResolveReply>;
  MILLRACE_RETURN_IF_ERROR(scope_.CheckLive());
  const Store& store = *scope_.core.store;
  const PartitionBook& book = store.book(type);
  const NodeType& nodes = store.schema().node_types[type];
  const std::vector<Group> groups =
      GroupByOwner(original_ids.size(), store.parts(), [&](size_t i) {
        return static_cast<int>(static_cast<uint64_t>(original_ids[i]) /
                                book.lookup_width());
      });
  std::vector<uint64_t> ids(original_ids.size());
  std::vector<std::unique_ptr<Call>> calls(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    if (store.partition(groups[g].partition) != nullptr) continue;
    v1::ResolveRequest request;
    request.set_node_type(static_cast<uint32_t>(type));
    AppendRaw(std::span<const int64_t>(Take(original_ids, groups[g].places)),
              *request.mutable_original_ids());
    request.set_partition(static_cast<uint32_t>(groups[g].partition));
    request.set_fingerprint(store.manifest().fingerprint);
    calls[g] = std::make_unique<Call>(
        scope_, groups[g].partition, std::move(request),
        [](v1::Sampler::Stub& stub, auto* context, auto* in, auto* out,
           auto done) {
          stub.async()->Resolve(context, in, out, std::move(done));
        });
    MILLRACE_RETURN_IF_ERROR(calls[g]->Start());
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<size_t>& places = groups[g].places;
    if (calls[g] == nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(
          const std::vector<uint64_t> own,
          ResolveIds(store, type, Take(original_ids, places)));
      Put(own, places, ids);
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const v1::ResolveReply reply, calls[g]->Finish());
    const absl::StatusOr<std::vector<uint64_t>> found =
        ReadIds(reply.ids(), nodes.id_dtype(), 0,
                static_cast<uint64_t>(nodes.count), "ids");
    if (!found.ok()) return calls[g]->Named(found.status());
    if (found->size() != places.size()) {
      return calls[g]->Named(WrongCount(found->size(), places.size()));
    }
    Put(*found, places, ids);
  }
  return ids;
}

absl::StatusOr<std::vector<uint8_t>> PeerEdgeDirectory::HasEdges(
    RelationIndex relation, std::span<const uint64_t> src,
    std::span<const uint64_t> dst) {
  using Call = PeerCall<v1::HasEdgesRequest, v1::HasEdgesReply>;
  MILLRACE_RETURN_IF_ERROR(scope_.CheckLive());
  const Store& store = *scope_.core.store;
  const Relation& info = store.schema().relations[relation];
  const Direction direction = LookupDirection(info);
  const PartitionBook& book = store.book(ListType(info, direction));
  const std::span<const uint64_t> owners =
      direction == Direction::kIn ? dst : src;
  const std::vector<Group> groups =
      GroupByOwner(src.size(), store.parts(),
                   [&](size_t i) { return book.Owner(owners[i]); });
  std::vector<uint8_t> found(src.size());
  std::vector<std::unique_ptr<Call>> calls(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    if (store.partition(groups[g].partition) != nullptr) continue;
    v1::HasEdgesRequest request;
    request.set_relation(static_cast<uint32_t>(relation));
    AppendIds(Take(src, groups[g].places),
              store.schema().node_types[info.src].id_dtype(),
              *request.mutable_src_ids());
    AppendIds(Take(dst, groups[g].places),
              store.schema().node_types[info.dst].id_dtype(),
              *request.mutable_dst_ids());
    request.set_partition(static_cast<uint32_t>(groups[g].partition));
    request.set_fingerprint(store.manifest().fingerprint);
    calls[g] = std::make_unique<Call>(
        scope_, groups[g].partition, std::move(request),
        [](v1::Sampler::Stub& stub, auto* context, auto* in, auto* out,
           auto done) {
          stub.async()->HasEdges(context, in, out, std::move(done));
        });
    MILLRACE_RETURN_IF_ERROR(calls[g]->Start());
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<size_t>& places = groups[g].places;
    if (calls[g] == nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(
          const std::vector<uint8_t> own,
          FindEdges(store, groups[g].partition, relation, Take(src, places),
                    Take(dst, places)));
      Put(own, places, found);
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const v1::HasEdgesReply reply,
                              calls[g]->Finish());
    if (reply.found().size() != places.size()) {
      return calls[g]->Named(WrongCount(reply.found().size(), places.size()));
    }
    Put(std::vector<uint8_t>(reply.found().begin(), reply.found().end()),
        places, found);
  }
  return found;
}

}  // namespace millrace
