// SPDX-License-Identifier: Apache-2.0
// Converts a manifest to what a server says about its store, and back. The
// functions are pure; the reader checks every enumerator and range.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"

namespace millrace {

// The version of proto/; members of a fleet must agree on it.
inline constexpr uint32_t kProtocolVersion = 1;

namespace v1 {
class DescribeReply;
}  // namespace v1

// Sets the sampling version, uuid, fingerprints, schema, books and splits.
// Leaves the fields that describe one server as they are.
void ManifestToProto(const Manifest& manifest, v1::DescribeReply& out);
// `files` and `partitioning` keep their defaults. INVALID_ARGUMENT: the reply
// is inconsistent; the message names the type, relation or split.
absl::StatusOr<Manifest> ManifestFromProto(const v1::DescribeReply& in);

}  // namespace millrace
