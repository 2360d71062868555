// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_options.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/sample/job_texts.h"

namespace millrace {
namespace {

using Group = JobOption::Group;
using Identity = JobOption::Identity;

template <auto kMember>
constexpr WordField Words(std::span<const OptionWord> words) {
  using Enum = std::remove_cvref_t<decltype(std::declval<JobSpec&>().*kMember)>;
  return {words,
          [](const JobSpec& spec) { return static_cast<int>(spec.*kMember); },
          [](JobSpec& spec, int number) {
            spec.*kMember = static_cast<Enum>(number);
          }};
}

template <typename Enum>
constexpr OptionWord Word(std::string_view word, Enum value,
                          bool offered = true) {
  return {word, static_cast<int>(value), offered};
}

constexpr OptionWord kSeedKinds[] = {Word("edge", SeedKind::kEdge),
                                     Word("graph", SeedKind::kGraph),
                                     Word("node", SeedKind::kNode)};
constexpr OptionWord kSeedOrders[] = {Word("global", SeedOrder::kGlobal),
                                      Word("local", SeedOrder::kLocal)};
constexpr OptionWord kDirections[] = {Word("in", Direction::kIn),
                                      Word("out", Direction::kOut)};
constexpr OptionWord kMethods[] = {
    Word("induced", SampleMethod::kInduced),
    Word("labor", SampleMethod::kLabor), Word("ppr", SampleMethod::kPpr),
    Word("uniform", SampleMethod::kUniform), Word("walk", SampleMethod::kWalk)};
constexpr OptionWord kTemporal[] = {
    Word("uniform", TemporalStrategy::kUniform),
    Word("last", TemporalStrategy::kLast),
    Word("none", TemporalStrategy::kNone, /*offered=*/false)};
constexpr OptionWord kExcluded[] = {
    Word("none", ExcludeSeedEdges::kNone),
    Word("self", ExcludeSeedEdges::kSelf),
    Word("reverse", ExcludeSeedEdges::kReverse)};

constexpr SampleMethod kWalkers[] = {SampleMethod::kWalk, SampleMethod::kPpr};
constexpr SampleMethod kWalkOnly[] = {SampleMethod::kWalk};
constexpr SampleMethod kPprOnly[] = {SampleMethod::kPpr};

// Limits on p and q, so that their weights differ by a factor of at most 10^6
// and 32 bits hold them to three digits.
constexpr double kMinBias = 0.001;
constexpr double kMaxBias = 1000;

constexpr JobOption kOptions[] = {
    {.name = "seed_kind",
     .option = "seeds",
     .group = Group::kSeeds,
     .help = "what batches are built around",
     .field = Words<&JobSpec::seed_kind>(kSeedKinds)},
    {.name = "split",
     .option = "split",
     .group = Group::kSeeds,
     .help = "split that the seeds come from",
     .value_name = "NAME",
     .field = &JobSpec::split},
    {.name = "seed_type",
     .option = "type",
     .group = Group::kSeeds,
     .help = "node type of the seeds, or relation of edge seeds; not needed "
             "if only one has the split",
     .value_name = "TYPE",
     .field = &JobSpec::seed_type},
    {.name = "batch_size",
     .option = "batch-size",
     .group = Group::kSeeds,
     .help = "seeds per batch",
     .field = &JobSpec::batch_size,
     .min = 1,
     .max = 1 << 30},
    {.name = "seed",
     .option = "seed",
     .group = Group::kSeeds,
     .help = "seed for all random draws",
     .field = &JobSpec::seed},
    {.name = "shuffle",
     .option = "shuffle",
     .group = Group::kSeeds,
     .help = "shuffle the seeds every epoch (the default), or keep their order",
     .field = &JobSpec::shuffle},
    {.name = "seed_order",
     .option = "seed-order",
     .group = Group::kSeeds,
     .help = "global, or local: one partition's seeds per batch",
     .field = Words<&JobSpec::seed_order>(kSeedOrders)},
    {.name = "drop_last",
     .option = "drop-last",
     .group = Group::kSeeds,
     .help = "drop the last batch if it is smaller, and the last step if not "
             "all ranks have a batch for it",
     .field = &JobSpec::drop_last},
    {.name = "fanouts",
     .option = "fanouts",
     .group = Group::kSampling,
     .help = "neighbours per node and hop: 15,10,5, or per relation: "
             "SRC__NAME__DST=15,10 (repeatable); -1 all, 0 none",
     .value_name = "N,N,...",
     .field = TextField{ParseJobFanouts, FormatJobFanouts,
                        /*repeatable=*/true}},
    {.name = "method",
     .option = "method",
     .group = Group::kSampling,
     .help = "uniform; labor: neighbours that frontier nodes share; walk: "
             "random walks; ppr: what walks visit most; induced: all edges "
             "among the sampled nodes",
     .field = Words<&JobSpec::method>(kMethods)},
    {.name = "direction",
     .option = "direction",
     .group = Group::kSampling,
     .help = "follow in-edges or out-edges from the seeds",
     .field = Words<&JobSpec::direction>(kDirections)},
    {.name = "replace",
     .option = "replace",
     .group = Group::kSampling,
     .help = "draw with replacement",
     .field = &JobSpec::replace},
    {.name = "disjoint",
     .option = "disjoint",
     .group = Group::kSampling,
     .help = "one tree per seed",
     .field = &JobSpec::disjoint},
    {.name = "weighted",
     .option = "weighted",
     .group = Group::kSampling,
     .help = "draw by the edges' weights",
     .field = &JobSpec::weighted},
    {.name = "temporal",
     .option = "temporal",
     .group = Group::kSampling,
     .help = "draw only edges and nodes that are not later than the seed, "
             "uniformly or the latest ones; one tree per seed",
     .field = Words<&JobSpec::temporal>(kTemporal),
     .shows_default = false},
    {.name = "train_graph",
     .option = "train-graph",
     .group = Group::kSampling,
     .help = "full, or induced:SPLIT: only nodes of that split are neighbours, "
             "for inductive training",
     .value_name = "full|induced:SPLIT",
     .field = TextField{ParseTrainGraph, FormatTrainGraph,
                        /*repeatable=*/false, &JobSpec::train_graph}},
    {.name = "walks",
     .option = "walks",
     .group = Group::kSampling,
     .help = "walk, ppr: walks from each node",
     .field = &JobSpec::walks,
     .methods = kWalkers,
     .identity = Identity::kInMethod},
    {.name = "walk_length",
     .option = "walk-length",
     .group = Group::kSampling,
     .help = "walk, ppr: steps of a walk",
     .field = &JobSpec::walk_length,
     .methods = kWalkers,
     .min = 1,
     .max = kMaxWalkLength,
     .identity = Identity::kInMethod},
    {.name = "restart",
     .option = "restart",
     .group = Group::kSampling,
     .help =
         "ppr: probability that a walk ends before a step; 0.15 if not given",
     .field = &JobSpec::restart,
     .shows_default = false,
     .methods = kPprOnly,
     .ignored_by_others = true,
     .min = 0,
     .max = 1,
     .identity = Identity::kInMethod},
    {.name = "walk_p",
     .option = "walk-p",
     .group = Group::kSampling,
     .help = "walk: node2vec's p: going back to the previous node has weight "
             "1/p; 1 if not given",
     .field = &JobSpec::walk_p,
     .shows_default = false,
     .methods = kWalkOnly,
     .min = kMinBias,
     .max = kMaxBias,
     .identity = Identity::kIfChanged,
     .optional_on_wire = true},
    {.name = "walk_q",
     .option = "walk-q",
     .group = Group::kSampling,
     .help = "walk: node2vec's q: going to a node that is not a neighbour of "
             "the previous node has weight 1/q; 1 if not given",
     .field = &JobSpec::walk_q,
     .shows_default = false,
     .methods = kWalkOnly,
     .min = kMinBias,
     .max = kMaxBias,
     .identity = Identity::kIfChanged,
     .optional_on_wire = true},
    {.name = "metapath",
     .option = "metapath",
     .group = Group::kSampling,
     .help = "walk, ppr: relations of the steps, used in turn; not needed if "
             "there is only one",
     .value_name = "SRC__NAME__DST,...",
     .field = &JobSpec::metapath,
     .methods = kWalkers,
     .identity = Identity::kInMethod},
    {.name = "negatives",
     .option = "negatives",
     .group = Group::kEdgeSeeds,
     .help = "binary:R pairs per seed, triplet:K destinations per seed, "
             "shared:K destinations for the batch, or in-batch",
     .value_name = "KIND",
     .field = TextField{ParseJobNegatives, FormatJobNegatives},
     .shows_default = false,
     .identity = Identity::kEdgeSeeds},
    {.name = "exclude",
     .option = "exclude-seed-edges",
     .group = Group::kEdgeSeeds,
     .help = "leave the seeds' edges out of the batch: none, self, or reverse "
             "(their reverses too)",
     .field = Words<&JobSpec::exclude>(kExcluded),
     .shows_default = false,
     .identity = Identity::kEdgeSeeds},
};

std::string MethodsText(std::span<const SampleMethod> methods) {
  return absl::StrJoin(methods, " or ",
                       [](std::string* out, SampleMethod method) {
                         *out += WordOf(kMethods, static_cast<int>(method));
                       });
}

}  // namespace

std::span<const JobOption> JobOptions() { return kOptions; }

const JobOption* FindJobOption(std::string_view name) {
  for (const JobOption& option : kOptions) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

bool Reads(SampleMethod method, const JobOption& option) {
  return option.methods.empty() ||
         std::find(option.methods.begin(), option.methods.end(), method) !=
             option.methods.end();
}

absl::Status NeedsMethod(const JobOption& option) {
  return InvalidField({.problem = FieldError::Problem::kNeeds,
                       .field = std::string(option.name),
                       .other_field = "method",
                       .other_value = MethodsText(option.methods)});
}

bool HasDefault(const JobSpec& spec, const JobOption& option) {
  static const JobSpec& defaults = *new JobSpec;
  return std::visit(
      [&spec]<typename T>(const T& field) {
        if constexpr (std::is_same_v<T, WordField>) {
          return field.get(spec) == field.get(defaults);
        } else if constexpr (std::is_same_v<T, TextField>) {
          return field.format(spec) == field.format(defaults);
        } else {
          return spec.*field == defaults.*field;
        }
      },
      option.field);
}

std::string WordOf(std::span<const OptionWord> words, int number) {
  for (const OptionWord& word : words) {
    if (word.number == number) return std::string(word.word);
  }
  return StrCat(number);  // unreachable for a checked job
}

}  // namespace millrace
