// SPDX-License-Identifier: Apache-2.0
#include "server/core/core.h"

#include <algorithm>
#include <utility>

#include "common/base/host_memory.h"
#include "common/base/log.h"
#include "common/base/processors.h"
#include "common/base/random_hex.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/graph/manifest.h"
#include "common/graph/verify.h"
#include "common/grpc/time.h"
#include "common/sample/draw/draw.h"
#include "common/wire/error_info.h"
#include "common/wire/frame.h"
#include "server/load/refusal.h"
#include "server/load/request_limits.h"

namespace millrace {
namespace {

// Enough for the largest single request, a set of ids, together with its reply.
constexpr uint64_t kMinLeafBytes = 192 << 20;

// Hexadecimal digits that distinguish the servers of a fleet.
constexpr size_t kInstanceDigits = 16;

ServerOptions Complete(ServerOptions options) {
  if (options.threads < 1) options.threads = UsableProcessors();
  if (options.max_inflight_bytes == 0) {
    options.max_inflight_bytes = HostMemoryBytes() / 4;
  }
  if (options.max_leaf_bytes == 0) {
    options.max_leaf_bytes =
        std::max(kMinLeafBytes, options.max_inflight_bytes / 4);
  }
  return options;
}

// The files of partitions that are mapped and not copied to RAM, and `copies`.
std::vector<MemoryCopy> WithMappedFiles(const Store& store,
                                        std::vector<MemoryCopy> copies) {
  MemoryCopy graph = {"graph", "mmap", 0};
  MemoryCopy features = {"features", "mmap", 0};
  for (const FileInfo& file : store.manifest().files) {
    if (!PartitionOfFile(file.path).has_value() ||
        !IsMappedFile(store, file.path) ||
        store.FindLoaded(file.path) != nullptr) {
      continue;
    }
    const bool is_feature = file.path.ends_with("/feature.npy");
    (is_feature ? features : graph).bytes += file.bytes;
  }
  copies.insert(copies.begin(), {graph, features});
  return copies;
}

// Feature rows whose errors pass through DeviceError().
class CheckedRows final : public FeatureRows {
 public:
  CheckedRows(ServerCore& core, std::shared_ptr<FeatureRows> rows)
      : core_(core), rows_(std::move(rows)) {}

  absl::StatusOr<Array> GatherNodes(TypeIndex type,
                                    std::span<const uint64_t> ids,
                                    ArrayMemory* memory) override {
    return Checked(rows_->GatherNodes(type, ids, memory));
  }
  absl::StatusOr<Array> GatherEdges(RelationIndex relation,
                                    std::span<const uint32_t> parts,
                                    std::span<const uint64_t> rows,
                                    ArrayMemory* memory) override {
    return Checked(rows_->GatherEdges(relation, parts, rows, memory));
  }
  FeatureRowCounts counts() const override { return rows_->counts(); }

 private:
  absl::StatusOr<Array> Checked(absl::StatusOr<Array> gathered) {
    MILLRACE_RETURN_IF_ERROR(core_.DeviceError(gathered.status()));
    return gathered;
  }

  ServerCore& core_;
  const std::shared_ptr<FeatureRows> rows_;
};

// Whether an error already tells the client when to retry.
bool SaysWhenToRetry(const absl::Status& status) {
  return ErrorInfoOf(status).retry_after > absl::ZeroDuration() ||
         std::string(status.message()).starts_with(kEndedForOthers);
}

}  // namespace

// Every live call has at most one task in a pool. While some calls are being
// ended there may be twice as many as the limit, so the pools hold that many
// tasks and an admitted call never finds one full.
ServerCore::ServerCore(LoadedStore loaded, ServerOptions options_in,
                       std::unique_ptr<Fleet> fleet_in)
    : store(std::move(loaded.store)),
      sampler(std::move(loaded.sampler)),
      drawer(std::move(loaded.drawer)),
      features(loaded.features == nullptr
                   ? nullptr
                   : std::make_shared<CheckedRows>(*this, loaded.features)),
      copies(WithMappedFiles(*store, std::move(loaded.copies))),
      gpus(std::move(loaded.gpus)),
      damage(store->path(), store->mapped_partitions()),
      options(Complete(std::move(options_in))),
      started(SteadyNow()),
      instance(RandomHex(kInstanceDigits)),
      fleet(std::move(fleet_in)),
      admission(options.max_inflight_bytes),
      leaf_admission(options.max_leaf_bytes, "leaf call"),
      connection_calls(kMaxLiveCallsPerConnection),
      reading_calls(options.max_reading_calls),
      reading_describe_calls(options.max_reading_calls),
      sample_calls(options.max_sample_calls),
      gather_calls(options.max_leaf_calls),
      leaf_calls(options.max_leaf_calls),
      describe_calls(options.max_leaf_calls),
      leaf_pool("leaf", options.threads,
                2 * static_cast<size_t>(options.max_sample_calls) +
                    4 * static_cast<size_t>(options.max_leaf_calls)),
      // Twice the threads with a fleet, because some of them wait for other
      // servers.
      sample_pool("sample", fleet ? 2 * options.threads : options.threads,
                  2 * static_cast<size_t>(options.max_sample_calls)),
      describe_pool("describe", /*threads=*/1,
                    2 * static_cast<size_t>(options.max_leaf_calls)) {}

absl::Status ServerCore::CheckTarget(uint32_t partition,
                                     const std::string& fingerprint) const {
  const std::string& ours = store->manifest().fingerprint;
  const int asked = static_cast<int>(std::min<uint32_t>(partition, INT32_MAX));
  if (!fingerprint.empty() && fingerprint != ours) {
    const absl::Status other = absl::FailedPreconditionError(
        StrCat("this server has another store: fingerprint ", ours, ", not ",
               fingerprint, "\nserve one store everywhere"));
    return WithErrorInfo(WithRefusal(other, RefusalReason::kStore),
                         {.partition = asked, .moved = true});
  }
  const auto& served = store->mapped_partitions();
  if (!std::binary_search(served.begin(), served.end(),
                          static_cast<int64_t>(partition))) {
    std::string list;
    for (const int part : served) {
      list += StrCat(list.empty() ? "" : ",", part);
    }
    const absl::Status elsewhere = absl::FailedPreconditionError(
        StrCat("partition ", partition, " is not served here (", list, " of ",
               store->partition_count(), " are)"));
    return WithErrorInfo(WithRefusal(elsewhere, RefusalReason::kPartition),
                         {.partition = asked, .moved = true});
  }
  return damage.Check(asked);
}

bool ServerCore::ReadsAll() const {
  for (int part = 0; part < store->partition_count(); ++part) {
    if (!Reads(part)) return false;
  }
  return true;
}

bool ServerCore::IsReady() const {
  return !sample_calls.draining() && !damage.AreAllDamaged() && !device_failed;
}

bool ServerCore::IsLeafOnly() const {
  return fleet == nullptr && store->mapped_partitions().size() <
                                 static_cast<size_t>(store->partition_count());
}

absl::StatusOr<bool> ServerCore::Draw(int partition, const DrawContext& context,
                                      const Frontier& frontier, Picks& picks) {
  if (drawer != nullptr) {
    const auto drawn =
        drawer->Draw(*store, partition, context, frontier, picks);
    MILLRACE_RETURN_IF_ERROR(DeviceError(drawn.status()));
    if (*drawn) return true;
  }
  MILLRACE_RETURN_IF_ERROR(
      DrawNeighbors(*store, partition, context, frontier, picks));
  return false;
}

absl::Status ServerCore::DeviceError(const absl::Status& status) {
  if (absl::IsUnavailable(status) && !device_failed.exchange(true)) {
    LogError(LogComponent::kServer, "a GPU has failed\nrestart this server",
             {{"error", FirstLine(status)}});
    if (on_device_failure != nullptr) on_device_failure();
  }
  if (absl::IsResourceExhausted(status) && !SaysWhenToRetry(status)) {
    return WithErrorInfo(
        status, {.partition = std::nullopt, .retry_after = kRetryAfter});
  }
  return status;
}

absl::Status ServerCore::ErrorForClient(absl::Status status) {
  const std::string file = FindDamagedFile(status);
  if (file.empty()) return status;
  damage.Note(file, status);
  return damage.ClientError(file, status);
}

SteadyTime ServerCore::DeadlineOf(
    const ::grpc::CallbackServerContext& context) const {
  const SteadyTime now = SteadyNow();
  const SteadyTime asked = FromGrpcTime(context.raw_deadline());
  // A deadline this far away means that the client set none.
  if (asked - now > absl::Hours(24 * 365)) {
    return now + options.default_deadline;
  }
  return std::min(asked, now + options.max_deadline);
}

}  // namespace millrace
