// SPDX-License-Identifier: Apache-2.0
// What a resumed Trainer must share with the one that wrote its checkpoint.
#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "client/train/option_texts.h"
#include "client/train/train_check.h"
#include "client/train/trainer.h"
#include "common/base/strings.h"
#include "common/sample/used_splits.h"

namespace millrace {
namespace {

// Batches are the same for all partitionings of a dataset, unless seeds are
// taken partition by partition.
std::string DatasetOf(const JobSpec& job, const Manifest& manifest) {
  return job.seed_order == SeedOrder::kLocal ? manifest.fingerprint
                                             : manifest.dataset_fingerprint;
}

uint64_t ChecksumOf(const SeedList& seeds) {
  uint64_t checksum = 0;
  const auto add = [&checksum](const void* data, uint64_t bytes) {
    // Where a column ends counts too.
    checksum = XXH3_64bits_withSeed(&bytes, sizeof(bytes), checksum);
    checksum = XXH3_64bits_withSeed(data, bytes, checksum);
  };
  for (const auto* column :
       {&seeds.ids, &seeds.times, &seeds.dst, &seeds.negatives}) {
    add(column->data(), column->size() * sizeof(int64_t));
  }
  add(seeds.edge_types.data(), seeds.edge_types.size() * sizeof(int32_t));
  add(seeds.labels.data(), seeds.labels.total_bytes());
  return checksum;
}

}  // namespace

absl::Status Trainer::NameSeeds() {
  uint64_t checksum = 0;
  if (options_.seeds.has_value()) {
    checksum = ChecksumOf(*options_.seeds);
    seeds_text_ = StrCat(options_.seeds->size(), " rows of checksum ",
                         absl::Hex(checksum, absl::kZeroPad16));
  }
  return CheckSameOnAllRanks(collectives_, "--seeds-file", checksum);
}

std::string Trainer::SeedTypeName() const {
  const Schema& schema = source_->manifest().schema;
  return learns_links() ? schema.RelationName(seed_relation_)
                        : schema.node_types[seed_type_].name;
}

// The seeds of the epochs that have begun; later ones may change.
std::string Trainer::OrderText() const {
  if (!order_.has_value()) return "none";
  const uint32_t begun = at_.epoch + (at_.next_batch > 0 ? 1 : 0);
  return StrCat(absl::Hex(order_->ChecksumOf(begun), absl::kZeroPad16),
                " up to epoch ", begun);
}

// The seeds of the splits that the run trains on or evaluates. A split that
// does not exist has no text, and neither has one whose seeds are listed.
OptionTexts Trainer::SplitTexts() const {
  const Manifest& manifest = source_->manifest();
  ResolvedJob job;
  job.spec = options_.job;
  job.seed_type = seed_type_;
  job.seed_relation = seed_relation_;
  OptionTexts texts;
  const auto add = [&](bool explicit_seeds) {
    for (const UsedSplit& split : SplitsOfJob(job, manifest, explicit_seeds)) {
      texts[StrCat(kSplitText, split.name, " of ", split.type)] =
          split.fingerprint;
    }
  };
  add(options_.seeds.has_value());
  const std::string& valid = options_.valid_split;
  const std::string& test = options_.test_split;
  job.spec.split = valid.empty() ? "valid" : valid;
  add(/*explicit_seeds=*/false);
  job.spec.split = test.empty() ? "test" : test;
  add(/*explicit_seeds=*/false);
  return texts;
}

OptionTexts Trainer::Identity() const {
  OptionTexts identity = TextsOfRun(options_);
  identity.merge(SplitTexts());
  identity["dataset fingerprint"] =
      DatasetOf(options_.job, source_->manifest());
  identity["--type"] = SeedTypeName();
  identity["--seeds-file"] = seeds_text_;
  if (model_->script() != nullptr) {
    identity["--model"] =
        StrCat("script of checksum ",
               absl::Hex(model_->script()->checksum(), absl::kZeroPad16));
  }
  identity["features"] = absl::StrCat(options_.model.in);
  identity["classes"] = absl::StrCat(options_.model.out);
  if (learns_links()) {
    identity["edge types"] = absl::StrCat(options_.model.edge_types);
  }
  // A model may be evaluated by other metrics than the one that chose it.
  if (options_.epochs > 0) {
    identity["--metric"] = MetricName(options_.task);
    identity["--order"] = OrderText();
    if (learns_links()) {
      identity["--eval-negatives"] = EvalNegativesText(options_.evaluation);
    }
    identity["--valid-split"] =
        options_.valid_split.empty() ? "valid" : options_.valid_split;
  }
  return identity;
}

}  // namespace millrace
