// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/class_count.h"

#include <algorithm>
#include <unordered_set>

#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

struct LabelledNode {
  int64_t label = -1;
  int64_t node = -1;  // original id
};

LabelledNode LargestOf(const std::vector<const SeedTable*>& tables) {
  LabelledNode largest;
  for (const SeedTable* table : tables) {
    if (table == nullptr || table->size() == 0) continue;
    const int64_t place = table->label.argmax().item().toLong();
    const int64_t label = table->label[place].item().toLong();
    if (label <= largest.label) continue;
    largest = {label, table->original_id[place].item().toLong()};
  }
  return largest;
}

// Returns the number of different labels, or `enough` if that is less.
int64_t CountOccurring(const std::vector<const SeedTable*>& tables,
                       int64_t enough) {
  std::unordered_set<int64_t> occurring;
  for (const SeedTable* table : tables) {
    if (table == nullptr) continue;
    const at::Tensor labels = table->label.contiguous();
    const int64_t* label = labels.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < labels.numel(); ++i) {
      if (label[i] < 0) continue;
      occurring.insert(label[i]);
      if (static_cast<int64_t>(occurring.size()) >= enough) return enough;
    }
  }
  return static_cast<int64_t>(occurring.size());
}

}  // namespace

absl::StatusOr<int64_t> CountClasses(
    const std::vector<const SeedTable*>& tables, int64_t chosen) {
  const LabelledNode largest = LargestOf(tables);
  if (chosen > 0) {
    if (largest.label < chosen) return chosen;
    return InvalidField(
        {.field = "classes",
         .value = StrCat(chosen),
         .limit = StrCat("node ", largest.node, " has the label ",
                         largest.label, ", but classes are 0 to ", chosen - 1)},
        Reason{"label_beyond_classes"});
  }
  if (largest.label < kUnquestionedClasses) return largest.label + 1;
  // One more than the largest label may not fit 64 bits.
  const int64_t enough = largest.label / kClassesPerOccurring + 1;
  const int64_t occurring = CountOccurring(tables, enough);
  if (occurring >= enough) return largest.label + 1;
  return WithReason(
      absl::FailedPreconditionError(StrCat(
          "node ", largest.node, " has the label ", largest.label,
          ", but only ", occurring, " different labels occur; labels above ",
          kUnquestionedClasses - 1,
          " count as classes only if at least one class in ",
          kClassesPerOccurring, " occurs")),
      Reason{"classes_with_gaps"});
}

}  // namespace millrace
