// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "tests/support/forwarding_source.h"

namespace millrace::testing {

// Forwards everything to another source. A function sees each request for a
// batch first and may refuse it.
// Threads: any, provided that the function may be called on any.
class WatchedSource final : public ForwardingSource {
 public:
  // Called by Fetch, which fails with the returned error, if any.
  using Watch =
      std::function<absl::Status(const ResolvedJob&, const BatchRequest&)>;

  WatchedSource(std::shared_ptr<BatchSource> source, Watch watch)
      : ForwardingSource(std::move(source)), watch_(std::move(watch)) {}

  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    absl::Status refused = watch_(job, request);
    if (!refused.ok()) return done(std::move(refused));
    ForwardingSource::Fetch(job, std::move(request), std::move(done));
  }

 private:
  const Watch watch_;
};

}  // namespace millrace::testing
