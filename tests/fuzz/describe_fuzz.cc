// SPDX-License-Identifier: Apache-2.0
// A server's description of itself and its errors, as read by a client.
#include <string>

#include "absl/strings/cord.h"
#include "common/base/check.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "common/wire/manifest_proto.h"
#include "sampler.pb.h"
#include "tests/fuzz/support/graph.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

void ReadError(std::string_view bytes) {
  absl::Status status = absl::ResourceExhaustedError("busy\nwait");
  status.SetPayload(
      absl::string_view(kErrorInfoUrl.data(), kErrorInfoUrl.size()),
      absl::Cord(absl::string_view(bytes.data(), bytes.size())));
  ErrorInfoOf(status);
  IsRetryable(status);
}

void ReadManifest(std::string_view bytes) {
  v1::DescribeReply reply;
  if (!reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  const absl::StatusOr<Manifest> manifest = ManifestFromProto(reply);
  if (!manifest.ok()) return;
  v1::DescribeReply again;
  ManifestToProto(*manifest, again);
  const absl::StatusOr<Manifest> same = ManifestFromProto(again);
  MILLRACE_CHECK(same.ok());
  MILLRACE_CHECK(same->schema == manifest->schema);
  for (const FuzzJob& job : RichJobs()) {
    (void)ResolveJob(job.spec, *manifest);
    (void)CheckColumns(job.columns, manifest->schema);
  }
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = millrace::fuzz::Input(data, size).Rest();
  millrace::fuzz::ReadManifest(bytes);
  millrace::fuzz::ReadError(bytes);
  return 0;
}
