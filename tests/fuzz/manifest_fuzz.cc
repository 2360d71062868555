// SPDX-License-Identifier: Apache-2.0
// store.json, both with the correct checksum for its content and as it is.
#include <string>

#include "common/base/check.h"
#include "common/graph/manifest.h"
#include "common/graph/store.h"
#include "tests/fuzz/support/checksummed_manifest.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

void Parse(std::string_view json) {
  const absl::StatusOr<Manifest> manifest = ParseManifest(json, "store.json");
  if (!manifest.ok()) return;
  // A valid manifest survives being written and read again.
  const absl::StatusOr<Manifest> again =
      ParseManifest(FormatManifest(*manifest), "store.json");
  MILLRACE_CHECK(again.ok());
  MILLRACE_CHECK(again->schema == manifest->schema);
  MILLRACE_CHECK(again->splits == manifest->splits);
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json = millrace::fuzz::Input(data, size).Rest();
  millrace::fuzz::Parse(json);
  const std::string fixed = millrace::fuzz::WithChecksum(json);
  millrace::fuzz::Parse(fixed);
  (void)millrace::Store::Open(
      millrace::fuzz::WriteScratch("store/store.json", fixed).parent_path());
  return 0;
}
