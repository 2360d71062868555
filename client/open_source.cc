// SPDX-License-Identifier: Apache-2.0
#include "client/open_source.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "client/remote_batch_source.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/local/local_batch_source.h"

namespace millrace {

absl::StatusOr<std::shared_ptr<BatchSource>> OpenSource(
    const SourceOptions& options) {
  if (options.store.empty() == options.servers.empty()) {
    return InvalidField(
        {.problem = FieldError::Problem::kMissing,
         .field = "store",
         .limit = "give a store or servers to take batches from"});
  }
  if (!options.servers.empty()) {
    return RemoteBatchSource::Connect({.servers = options.servers,
                                       .tls = options.tls,
                                       .partition_wait = options.partition_wait,
                                       .cache_ratio = options.cache_ratio});
  }
  if (options.cache_ratio != 0) {
    return InvalidField(
        {.field = "cache_ratio",
         .value = StrCat(options.cache_ratio),
         .limit = "is for servers: the features of a store are read from its "
                  "mapped files, whose pages the system keeps in memory"});
  }
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const Store> store,
                            Store::Open(options.store));
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return LocalBatchSource::Create(std::move(store), options.threads > 0
                                                        ? options.threads
                                                        : std::max(1, cores));
}

}  // namespace millrace
