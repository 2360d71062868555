// SPDX-License-Identifier: Apache-2.0
#include "client/remote/seed_lookup.h"

#include <algorithm>
#include <span>
#include <utility>

#include "client/remote/resolve_call.h"
#include "client/remote/row_call.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/seeds/resolve_seeds.h"
#include "common/wire/ids.h"
#include "common/wire/limits.h"
#include "sampler.pb.h"

namespace millrace {

absl::Status SeedLookup::StartIds(AttemptCalls& calls) {
  MILLRACE_RETURN_IF_ERROR(CheckExplicitSeeds(job_, list_));
  // A server would refuse too, but only after all of them have been resolved.
  const size_t count = std::max(list_.size(), list_.negatives.size());
  if (count > static_cast<size_t>(kMaxSeeds)) {
    return absl::InvalidArgumentError(
        StrCat(count, " explicit seeds are above the limit of ", kMaxSeeds,
               " of one batch\nuse a smaller batch size"));
  }
  if (job_.seed_relation < 0) {
    return StartIdsOf(job_.seed_type, list_.ids, ids_, calls);
  }
  const Relation& relation =
      context_.manifest.schema.relations[job_.seed_relation];
  MILLRACE_RETURN_IF_ERROR(StartIdsOf(relation.src, list_.ids, ids_, calls));
  MILLRACE_RETURN_IF_ERROR(
      StartIdsOf(relation.dst, list_.dst, dst_ids_, calls));
  return StartIdsOf(relation.dst, list_.negatives, negative_ids_, calls);
}

absl::Status SeedLookup::StartIdsOf(TypeIndex type,
                                    const std::vector<int64_t>& originals,
                                    std::vector<uint64_t>& ids,
                                    AttemptCalls& calls) {
  ids.resize(originals.size());
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<ResolveRequest> requests,
      SplitByLookup(context_.manifest, type, originals, ids.data()));
  for (ResolveRequest& request : requests) {
    MILLRACE_RETURN_IF_ERROR(calls.Add([&](CallDone done) {
      return StartResolveCall(context_, std::move(request), std::move(done));
    }));
  }
  return absl::OkStatus();
}

bool SeedLookup::needs_times() const {
  return NeedsSeedTimes(job_, context_.manifest.schema, list_);
}

absl::Status SeedLookup::StartTimes(AttemptCalls& calls) {
  const auto count = static_cast<int64_t>(ids_.size());
  list_.times.resize(ids_.size());
  RowRequest prototype;
  prototype.type = job_.seed_type;
  prototype.column = NodeColumn::kTime;
  prototype.target =
      Array::Borrow(DType::kInt64, {count}, list_.times.data(), nullptr);
  const Array ids =
      Array::Borrow(DType::kUint64, {count}, ids_.data(), nullptr);
  const PartitionBook& book = context_.manifest.books[job_.seed_type];
  for (RowRequest& request :
       SplitByOwner(OwnersOf(book, ids, count), book.partition_count(), ids,
                    prototype)) {
    MILLRACE_RETURN_IF_ERROR(calls.Add([&](CallDone done) {
      return StartRowCall(context_, std::move(request), std::move(done));
    }));
  }
  return absl::OkStatus();
}

void SeedLookup::AppendTo(v1::SampleRequest& message) const {
  const Schema& schema = context_.manifest.schema;
  const DType dst_ids = schema.node_types[job_.seed_type].id_dtype();
  const DType src_ids =
      job_.seed_relation < 0
          ? dst_ids
          : schema.node_types[schema.relations[job_.seed_relation].src]
                .id_dtype();
  AppendIds(ids_, src_ids, *message.mutable_explicit_ids());
  AppendIds(dst_ids_, dst_ids, *message.mutable_explicit_dst_ids());
  if (job_.spec.negatives.mode == NegativeMode::kNone) {
    AppendIds(negative_ids_, dst_ids, *message.mutable_explicit_negative_ids());
  }
  AppendRaw(std::span<const int64_t>(list_.times),
            *message.mutable_explicit_times());
}

}  // namespace millrace
