// SPDX-License-Identifier: Apache-2.0
#include "client/open_source.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "client/remote_batch_source.h"
#include "common/base/field_error.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/memory_options.h"
#include "common/tier/load_store.h"

namespace millrace {
namespace {

// Servers decide where they keep their stores.
absl::Status CheckNoMemoryOptions(const MemoryOptions& memory) {
  std::string_view field;
  if (memory.graph != MemoryTier::kMmap) field = "graph_memory";
  if (memory.features != MemoryTier::kMmap) field = "feature_memory";
  if (memory.fallback != DeviceFallback::kAllow) field = "device_fallback";
  if (memory.gpus != MemoryOptions().gpus) field = "gpus";
  if (memory.cache_ratio != 0) field = "cache_ratio";
  if (field.empty()) return absl::OkStatus();
  return InvalidField({.problem = FieldError::Problem::kConflict,
                       .field = std::string(field),
                       .other_field = "servers"});
}

}  // namespace

absl::StatusOr<std::shared_ptr<BatchSource>> OpenSource(
    const SourceOptions& options) {
  if (options.store.empty() == options.servers.empty()) {
    return InvalidField(
        {.problem = FieldError::Problem::kMissing,
         .field = "store",
         .limit = "give a store or servers to take batches from"});
  }
  if (!options.servers.empty()) {
    MILLRACE_RETURN_IF_ERROR(CheckNoMemoryOptions(options.memory));
    return RemoteBatchSource::Connect({.servers = options.servers,
                                       .tls = options.tls,
                                       .partition_wait = options.partition_wait,
                                       .trace_slow = options.trace_slow,
                                       .cache_ratio = options.cache_ratio,
                                       .device_cache = options.device_cache});
  }
  MemoryOptions memory = options.memory;
  if (options.cache_ratio != 0) memory.cache_ratio = options.cache_ratio;
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                            Store::Open(options.store));
  MILLRACE_ASSIGN_OR_RETURN(LoadedStore loaded,
                            LoadStore(std::move(store), memory));
  const int threads =
      options.threads > 0 ? options.threads : UsableProcessors();
  return LocalBatchSource::Create(std::move(loaded.store), threads,
                                  std::move(loaded.sampler),
                                  std::move(loaded.features));
}

}  // namespace millrace
