// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/job_options.h"
#include "common/wire/proto_enums.h"
#include "job.pb.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Reflection;

// A row of the table of options, and its field in the message. Null for a
// TextField that the message encodes differently.
struct WireField {
  const JobOption& option;
  const FieldDescriptor* field;
};

std::vector<WireField> FindFields() {
  std::vector<WireField> fields;
  for (const JobOption& option : JobOptions()) {
    const auto* text = std::get_if<TextField>(&option.field);
    const bool other_form = text != nullptr && text->on_wire == nullptr;
    const FieldDescriptor* field =
        v1::Job::descriptor()->FindFieldByName(std::string(option.name));
    MILLRACE_CHECK(field != nullptr);  // or a row lacks its field
    fields.push_back({option, other_form ? nullptr : field});
  }
  return fields;
}

const std::vector<WireField>& Fields() {
  static const std::vector<WireField>& fields =
      *new std::vector<WireField>(FindFields());
  return fields;
}

// Writes one field of a JobSpec into the message.
class FieldWriter {
 public:
  FieldWriter(const JobSpec& spec, const FieldDescriptor* field, v1::Job& out)
      : spec_(spec),
        field_(field),
        set_(*v1::Job::GetReflection()),
        out_(out) {}

  void operator()(bool JobSpec::*member) {
    set_.SetBool(&out_, field_, spec_.*member);
  }
  void operator()(int JobSpec::*member) {
    set_.SetUInt32(&out_, field_, static_cast<uint32_t>(spec_.*member));
  }
  void operator()(int64_t JobSpec::*member) {
    set_.SetUInt64(&out_, field_, static_cast<uint64_t>(spec_.*member));
  }
  void operator()(uint64_t JobSpec::*member) {
    set_.SetUInt64(&out_, field_, spec_.*member);
  }
  void operator()(double JobSpec::*member) {
    set_.SetDouble(&out_, field_, spec_.*member);
  }
  void operator()(std::string JobSpec::*member) {
    set_.SetString(&out_, field_, spec_.*member);
  }
  void operator()(std::vector<std::string> JobSpec::*member) {
    for (const std::string& value : spec_.*member) {
      set_.AddString(&out_, field_, value);
    }
  }
  void operator()(const WordField& words) {
    set_.SetEnumValue(&out_, field_, words.get(spec_));
  }
  void operator()(const TextField& text) { (*this)(text.on_wire); }

 private:
  const JobSpec& spec_;
  const FieldDescriptor* const field_;
  const Reflection& set_;
  v1::Job& out_;
};

// Reads one field of a JobSpec from the message.
class FieldReader {
 public:
  FieldReader(const v1::Job& in, const FieldDescriptor* field, JobSpec& spec)
      : in_(in), field_(field), get_(*v1::Job::GetReflection()), spec_(spec) {}

  absl::Status operator()(bool JobSpec::*member) {
    spec_.*member = get_.GetBool(in_, field_);
    return absl::OkStatus();
  }
  absl::Status operator()(int JobSpec::*member) {
    // ResolveJob has lower limits.
    constexpr uint32_t kMaxInt = std::numeric_limits<int>::max();
    spec_.*member =
        static_cast<int>(std::min(get_.GetUInt32(in_, field_), kMaxInt));
    return absl::OkStatus();
  }
  absl::Status operator()(int64_t JobSpec::*member) {
    const uint64_t value = get_.GetUInt64(in_, field_);
    if (value > std::numeric_limits<int64_t>::max()) {
      return absl::InvalidArgumentError(
          StrCat("job.", field_->name(), " ", value, " is too large"));
    }
    spec_.*member = static_cast<int64_t>(value);
    return absl::OkStatus();
  }
  absl::Status operator()(uint64_t JobSpec::*member) {
    spec_.*member = get_.GetUInt64(in_, field_);
    return absl::OkStatus();
  }
  absl::Status operator()(double JobSpec::*member) {
    spec_.*member = get_.GetDouble(in_, field_);
    return absl::OkStatus();
  }
  absl::Status operator()(std::string JobSpec::*member) {
    spec_.*member = get_.GetString(in_, field_);
    return absl::OkStatus();
  }
  absl::Status operator()(std::vector<std::string> JobSpec::*member) {
    for (int i = 0; i < get_.FieldSize(in_, field_); ++i) {
      (spec_.*member).push_back(get_.GetRepeatedString(in_, field_, i));
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const WordField& words) {
    const int number = get_.GetEnumValue(in_, field_);
    const bool known =
        std::any_of(words.words.begin(), words.words.end(),
                    [&](const OptionWord& w) { return w.number == number; });
    if (!known) {
      return UnknownEnumerator(StrCat("job.", field_->name()), number);
    }
    words.set(spec_, number);
    return absl::OkStatus();
  }
  absl::Status operator()(const TextField& text) {
    return (*this)(text.on_wire);
  }

 private:
  const v1::Job& in_;
  const FieldDescriptor* const field_;
  const Reflection& get_;
  JobSpec& spec_;
};

// Fields that are encoded differently from the text that users write.

void FanoutsToProto(const JobSpec& spec, v1::Job& out) {
  out.mutable_fanouts()->Assign(spec.fanouts.begin(), spec.fanouts.end());
  for (const auto& [relation, fanouts] : spec.relation_fanouts) {
    v1::Job::RelationFanouts& entry = *out.add_relation_fanouts();
    entry.set_relation(relation);
    entry.mutable_fanouts()->Assign(fanouts.begin(), fanouts.end());
  }
}

absl::Status FanoutsFromProto(const v1::Job& in, JobSpec& spec) {
  spec.fanouts.assign(in.fanouts().begin(), in.fanouts().end());
  for (const v1::Job::RelationFanouts& entry : in.relation_fanouts()) {
    Fanouts fanouts(entry.fanouts().begin(), entry.fanouts().end());
    if (!spec.relation_fanouts.emplace(entry.relation(), std::move(fanouts))
             .second) {
      return absl::InvalidArgumentError(
          StrCat("job.relation_fanouts names ", entry.relation(), " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status NegativesFromProto(const v1::Job& in, JobSpec& spec) {
  if (!v1::Job::Negatives_IsValid(in.negatives())) {
    return UnknownEnumerator("job.negatives", in.negatives());
  }
  spec.negatives = {static_cast<NegativeMode>(in.negatives()),
                    in.negative_amount()};
  return absl::OkStatus();
}

}  // namespace

void JobToProto(const JobSpec& spec, v1::Job& out) {
  for (const auto& [option, field] : Fields()) {
    if (field == nullptr) continue;
    if (option.optional_on_wire && HasDefault(spec, option)) continue;
    std::visit(FieldWriter(spec, field, out), option.field);
  }
  FanoutsToProto(spec, out);
  out.set_negatives(static_cast<v1::Job::Negatives>(spec.negatives.mode));
  out.set_negative_amount(spec.negatives.amount);
}

absl::StatusOr<JobSpec> JobFromProto(const v1::Job& in) {
  JobSpec spec;
  for (const auto& [option, field] : Fields()) {
    if (field == nullptr) continue;
    if (option.optional_on_wire && !in.GetReflection()->HasField(in, field)) {
      continue;
    }
    MILLRACE_RETURN_IF_ERROR(
        std::visit(FieldReader(in, field, spec), option.field));
  }
  MILLRACE_RETURN_IF_ERROR(FanoutsFromProto(in, spec));
  MILLRACE_RETURN_IF_ERROR(NegativesFromProto(in, spec));
  return spec;
}

void ColumnsToProto(const Columns& columns, v1::Columns& out) {
  out.set_features(columns.features);
  out.set_edge_features(columns.edge_features);
  out.set_original_ids(columns.original_ids);
  out.set_edge_ids(columns.edge_ids);
  out.set_degrees(columns.degrees);
  out.set_labels(static_cast<v1::Columns::LabelRows>(columns.labels));
  out.set_feature_dtype(static_cast<v1::DType>(columns.feature_dtype));
}

absl::StatusOr<Columns> ColumnsFromProto(const v1::Columns& in) {
  if (!v1::Columns::LabelRows_IsValid(in.labels())) {
    return UnknownEnumerator("columns.labels", in.labels());
  }
  Columns columns;
  columns.features = in.features();
  columns.edge_features = in.edge_features();
  columns.original_ids = in.original_ids();
  columns.edge_ids = in.edge_ids();
  columns.degrees = in.degrees();
  columns.labels = static_cast<LabelRows>(in.labels());
  MILLRACE_ASSIGN_OR_RETURN(
      columns.feature_dtype,
      DTypeFromProto(in.feature_dtype(), "columns.feature_dtype"));
  return columns;
}

void UsedSplitsToProto(const std::vector<UsedSplit>& splits,
                       UsedSplitProtos& out) {
  for (const UsedSplit& split : splits) {
    v1::UsedSplit& entry = *out.Add();
    entry.set_type(split.type);
    entry.set_name(split.name);
    entry.set_fingerprint(split.fingerprint);
  }
}

std::vector<UsedSplit> UsedSplitsFromProto(const UsedSplitProtos& in) {
  std::vector<UsedSplit> splits;
  for (const v1::UsedSplit& entry : in) {
    splits.push_back({entry.type(), entry.name(), entry.fingerprint()});
  }
  return splits;
}

}  // namespace millrace
