// SPDX-License-Identifier: Apache-2.0
#include "client/remote/resolve_call.h"

#include <grpcpp/client_context.h>

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/wire/ids.h"
#include "sampler.grpc.pb.h"

namespace millrace {
namespace {

class ResolveCall final : public Call {
 public:
  ResolveCall(const CallContext& context, ResolveRequest request,
              std::shared_ptr<FleetMember> member, CallDone done)
      : call_(context),
        request_(std::move(request)),
        member_(std::move(member)),
        stub_(v1::Sampler::NewStub(member_->NextChannel())),
        done_(std::move(done)),
        times_(TimesOf(call_)) {
    context_.set_deadline(absl::ToChronoTime(times_.deadline));
    message_.set_node_type(static_cast<uint32_t>(request_.type));
    message_.set_partition(static_cast<uint32_t>(request_.partition));
    message_.set_fingerprint(call_.manifest.fingerprint);
    message_.set_original_ids(request_.original_ids.data(),
                              request_.original_ids.size() * sizeof(int64_t));
  }

  // `self` lives until the callback ran.
  void Start(std::shared_ptr<ResolveCall> self) {
    stub_->async()->Resolve(&context_, &message_, &reply_,
                            [self](const grpc::Status& status) {
                              self->Finish(FromGrpcStatus(status));
                            });
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  void Finish(absl::Status status) {
    if (status.ok()) {
      call_.retry.NoteAnswer(request_.partition, absl::Now());
      status = Store();
    }
    done_(
        NoteFailure(call_, *member_, request_.partition, times_.start, status));
  }

  absl::Status Store() {
    const NodeType& type = call_.manifest.schema.node_types[request_.type];
    absl::StatusOr<std::vector<uint64_t>> read =
        ReadIds(reply_.ids(), type.id_dtype(), 0,
                static_cast<uint64_t>(type.count), "ids");
    if (!read.ok()) return ProtocolError(*member_, read.status());
    const std::vector<uint64_t>& ids = *read;
    if (ids.size() != request_.positions.size()) {
      return ProtocolError(
          *member_, absl::InternalError(
                        StrCat("it resolved ", ids.size(), " of ",
                               request_.positions.size(), " original ids")));
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      request_.target[request_.positions[i]] = ids[i];
    }
    return absl::OkStatus();
  }

  const CallContext call_;
  const ResolveRequest request_;
  const std::shared_ptr<FleetMember> member_;
  const std::unique_ptr<v1::Sampler::Stub> stub_;
  const CallDone done_;
  const CallTimes times_;
  grpc::ClientContext context_;
  v1::ResolveRequest message_;
  v1::ResolveReply reply_;
};

}  // namespace

absl::StatusOr<std::vector<ResolveRequest>> SplitByLookup(
    const Manifest& manifest, TypeIndex type,
    std::span<const int64_t> original_ids, uint64_t* target) {
  const PartitionBook& book = manifest.books[type];
  std::vector<ResolveRequest> requests;
  std::vector<ResolveRequest> by_part(book.parts());
  const auto add = [&](uint64_t part) {
    ResolveRequest& request = by_part[part];
    if (request.positions.empty()) return;
    request.type = type;
    request.partition = static_cast<int>(part);
    request.target = target;
    requests.push_back(std::exchange(request, {}));
  };
  for (size_t i = 0; i < original_ids.size(); ++i) {
    const auto original = static_cast<uint64_t>(original_ids[i]);
    if (original >= book.node_count()) {
      return absl::InvalidArgumentError(StrCat(
          "seed ", original_ids[i], " at position ", i,
          " is out of range; node type ", manifest.schema.node_types[type].name,
          " has ", book.node_count(), " nodes"));
    }
    const uint64_t part = original / book.lookup_width();
    by_part[part].original_ids.push_back(original_ids[i]);
    by_part[part].positions.push_back(i);
    if (by_part[part].positions.size() == kMaxIdsPerCall) add(part);
  }
  for (size_t part = 0; part < by_part.size(); ++part) add(part);
  return requests;
}

absl::StatusOr<std::shared_ptr<Call>> StartResolveCall(
    const CallContext& context, ResolveRequest request, CallDone done) {
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<FleetMember> member,
      context.fleet.Pick(request.partition, absl::InfinitePast()));
  auto call = std::make_shared<ResolveCall>(context, std::move(request),
                                            std::move(member), std::move(done));
  call->Start(call);
  return std::shared_ptr<Call>(call);
}

}  // namespace millrace
