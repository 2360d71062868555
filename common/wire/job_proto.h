// SPDX-License-Identifier: Apache-2.0
// Converts jobs, columns and splits to the messages of proto/ and back. All
// functions are pure; readers of messages check every enumerator and range.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/job.h"
#include "common/sample/seeds/used_splits.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace millrace {

namespace v1 {
class Columns;
class Job;
class UsedSplit;
}  // namespace v1

void JobToProto(const JobSpec& spec, v1::Job& out);
// INVALID_ARGUMENT: an unknown enumerator, a batch size beyond int64, or a
// relation named twice. ResolveJob() checks what the job means.
absl::StatusOr<JobSpec> JobFromProto(const v1::Job& in);

void ColumnsToProto(const Columns& columns, v1::Columns& out);
// INVALID_ARGUMENT: an unknown enumerator.
absl::StatusOr<Columns> ColumnsFromProto(const v1::Columns& in);

using UsedSplitProtos = google::protobuf::RepeatedPtrField<v1::UsedSplit>;
void UsedSplitsToProto(const std::vector<UsedSplit>& splits,
                       UsedSplitProtos& out);
std::vector<UsedSplit> UsedSplitsFromProto(const UsedSplitProtos& in);

}  // namespace millrace
