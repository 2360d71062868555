// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/graph/store.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/pending_fetch.h"

namespace millrace::testing {

// Fetches batches of epoch 0 of a job, with all features, from servers (a list
// as for --servers), waiting for them indefinitely. Each batch must equal the
// one made from the sound store at `path`. Returns the first error of a fetch.
inline absl::Status FetchAndCompare(const std::string& servers,
                                    const std::filesystem::path& path,
                                    const JobSpec& spec,
                                    const std::vector<uint32_t>& batches) {
  RemoteOptions options;
  options.servers = servers;
  options.partition_wait = absl::Hours(1);
  const auto source = RemoteBatchSource::Connect(options);
  if (!source.ok()) return source.status();
  const auto job = ResolveJob(spec, (*source)->manifest());
  EXPECT_TRUE(job.ok()) << job.status();
  const auto local =
      LocalBatchSource::Create(Store::Open(path).value(), 1).value();
  const Schema& schema = (*source)->manifest().schema;
  for (const uint32_t batch : batches) {
    BatchRequest request;
    request.batch = batch;
    request.columns = DigestColumns(/*features=*/true, false);
    PendingFetch fetch(**source, *job, request);
    if (!fetch.Wait().ok()) return fetch.Wait().status();
    const auto want = local->Make(*job, request);
    EXPECT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(DigestBatch(*fetch.Wait(), schema), DigestBatch(*want, schema));
  }
  return absl::OkStatus();
}

}  // namespace millrace::testing
