// SPDX-License-Identifier: Apache-2.0
// Manifest <-> what a server says of its store. The functions are pure; the
// reader checks every enumerator and range.
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

// Versions, uuid, fingerprint, schema, books and splits; leaves alone the
// fields that describe one server.
void ManifestToProto(const Manifest& manifest, v1::DescribeReply& out);
// `files` and `partitioning` stay empty. INVALID_ARGUMENT: inconsistent
// (names the type, relation or split).
absl::StatusOr<Manifest> ManifestFromProto(const v1::DescribeReply& in);

}  // namespace millrace
