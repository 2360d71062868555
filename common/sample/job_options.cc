// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_options.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using Group = JobOption::Group;
using Identity = JobOption::Identity;
using Problem = FieldError::Problem;

// ---- Words ----

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
// Written with an amount after a colon.
constexpr OptionWord kNegatives[] = {Word("binary", NegativeMode::kBinary),
                                     Word("triplet", NegativeMode::kTriplet),
                                     Word("shared", NegativeMode::kShared),
                                     Word("in-batch", NegativeMode::kInBatch),
                                     Word("none", NegativeMode::kNone, false)};

std::string WordOf(std::span<const OptionWord> words, int number) {
  for (const OptionWord& word : words) {
    if (word.number == number) return std::string(word.word);
  }
  return StrCat(number);  // never, in a job that was checked
}

// ---- Fields with a syntax of their own ----

std::string Trimmed(std::string_view text) {
  return std::string(absl::StripAsciiWhitespace(AbslView(text)));
}

// "15,10" and "S__R__D=15,10".
absl::Status ParseAllFanouts(std::span<const std::string> texts,
                             JobSpec& spec) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == text.npos) {
      if (!spec.fanouts.empty()) {
        return InvalidField({.field = "fanouts",
                             .value = text,
                             .limit = "given twice without a relation; write "
                                      "SRC__REL__DST=15,10 for each relation"});
      }
      MILLRACE_ASSIGN_OR_RETURN(spec.fanouts, ParseFanouts(text));
      continue;
    }
    const std::string relation = Trimmed(text.substr(0, equals));
    MILLRACE_ASSIGN_OR_RETURN(Fanouts fanouts,
                              ParseFanouts(text.substr(equals + 1)));
    if (!spec.relation_fanouts.emplace(relation, std::move(fanouts)).second) {
      return InvalidField({.field = "fanouts",
                           .value = text,
                           .limit = StrCat("names ", relation, " twice")});
    }
  }
  return absl::OkStatus();
}

std::string FormatAllFanouts(const JobSpec& spec) {
  std::string text = FormatFanouts(spec.fanouts);
  for (const auto& [relation, fanouts] : spec.relation_fanouts) {
    absl::StrAppend(&text, " ", relation, "=", FormatFanouts(fanouts));
  }
  return text;
}

absl::Status ParseJobNegatives(std::span<const std::string> texts,
                               JobSpec& spec) {
  MILLRACE_ASSIGN_OR_RETURN(spec.negatives, ParseNegatives(texts.back()));
  return absl::OkStatus();
}

std::string FormatJobNegatives(const JobSpec& spec) {
  return FormatNegatives(spec.negatives);
}

constexpr std::string_view kInduced = "induced:";

absl::Status ParseTrainGraph(std::span<const std::string> texts,
                             JobSpec& spec) {
  const std::string& text = texts.back();
  spec.train_graph.clear();
  if (text == "full") return absl::OkStatus();
  if (text.starts_with(kInduced) && text.size() > kInduced.size()) {
    spec.train_graph = text.substr(kInduced.size());
    return absl::OkStatus();
  }
  return InvalidField(
      {.field = "train_graph",
       .value = StrCat("\"", text, "\""),
       .limit = "is neither full nor induced:SPLIT, e.g. induced:train"});
}

std::string FormatTrainGraph(const JobSpec& spec) {
  return spec.train_graph.empty() ? "full" : StrCat(kInduced, spec.train_graph);
}

// ---- The table ----

constexpr SampleMethod kWalkers[] = {SampleMethod::kWalk, SampleMethod::kPpr};
constexpr SampleMethod kWalkOnly[] = {SampleMethod::kWalk};
constexpr SampleMethod kPprOnly[] = {SampleMethod::kPpr};

// Of p and q: their weights differ by a factor of at most 10^6, which 32 bits
// hold with three digits.
constexpr double kLeastBias = 0.001;
constexpr double kMostBias = 1000;

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
             "where only one has the split",
     .value_name = "TYPE",
     .field = &JobSpec::seed_type},
    {.name = "batch_size",
     .option = "batch-size",
     .group = Group::kSeeds,
     .help = "seeds of one batch",
     .field = &JobSpec::batch_size,
     .least = 1,
     .most = 1 << 30},
    {.name = "seed",
     .option = "seed",
     .group = Group::kSeeds,
     .help = "seed of all random draws",
     .field = &JobSpec::seed},
    {.name = "shuffle",
     .option = "shuffle",
     .group = Group::kSeeds,
     .help = "permute the seeds anew each epoch, as is the default, or keep "
             "their order",
     .field = &JobSpec::shuffle},
    {.name = "seed_order",
     .option = "seed-order",
     .group = Group::kSeeds,
     .help = "global, or local: one partition's seeds per batch",
     .field = Words<&JobSpec::seed_order>(kSeedOrders)},
    {.name = "drop_last",
     .option = "drop-last",
     .group = Group::kSeeds,
     .help = "leave out the batch smaller than the rest, and the ragged step",
     .field = &JobSpec::drop_last},
    {.name = "fanouts",
     .option = "fanouts",
     .group = Group::kSampling,
     .help = "neighbours per node and hop: 15,10,5, or per relation: "
             "SRC__REL__DST=15,10 (repeatable); -1 all, 0 none",
     .value_name = "N,N,...",
     .field = TextField{ParseAllFanouts, FormatAllFanouts,
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
     .help = "draw among edges and nodes not later than the seed, uniformly or "
             "the last ones; one tree per seed",
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
     .least = 1,
     .most = kMaxWalkLength,
     .identity = Identity::kInMethod},
    {.name = "restart",
     .option = "restart",
     .group = Group::kSampling,
     .help = "ppr: chance that a walk ends before a step; 0.15 if not given",
     .field = &JobSpec::restart,
     .shows_default = false,
     .methods = kPprOnly,
     .ignored_by_others = true,
     .least = 0,
     .most = 1,
     .identity = Identity::kInMethod},
    {.name = "walk_p",
     .option = "walk-p",
     .group = Group::kSampling,
     .help = "walk: node2vec's p: going back to the node before has the weight "
             "1/p; 1 if not given",
     .field = &JobSpec::walk_p,
     .shows_default = false,
     .methods = kWalkOnly,
     .least = kLeastBias,
     .most = kMostBias,
     .identity = Identity::kIfChanged,
     .optional_on_wire = true},
    {.name = "walk_q",
     .option = "walk-q",
     .group = Group::kSampling,
     .help = "walk: node2vec's q: going to a node that is not next to the node "
             "before has the weight 1/q; 1 if not given",
     .field = &JobSpec::walk_q,
     .shows_default = false,
     .methods = kWalkOnly,
     .least = kLeastBias,
     .most = kMostBias,
     .identity = Identity::kIfChanged,
     .optional_on_wire = true},
    {.name = "metapath",
     .option = "metapath",
     .group = Group::kSampling,
     .help = "walk, ppr: relations of the steps, in turn; not needed where "
             "there is only one",
     .value_name = "SRC__REL__DST,...",
     .field = &JobSpec::metapath,
     .methods = kWalkers,
     .identity = Identity::kInMethod},
    {.name = "negatives",
     .option = "negatives",
     .group = Group::kEdgeSeeds,
     .help = "binary:R pairs a seed, triplet:K destinations a seed, shared:K "
             "for the batch, in-batch",
     .value_name = "KIND",
     .field = TextField{ParseJobNegatives, FormatJobNegatives},
     .shows_default = false,
     .identity = Identity::kEdgeSeeds},
    {.name = "exclude",
     .option = "exclude-seed-edges",
     .group = Group::kEdgeSeeds,
     .help = "leave the seeds' edges out of the batch: none, self, or reverse: "
             "their reverses too",
     .field = Words<&JobSpec::exclude>(kExcluded),
     .shows_default = false,
     .identity = Identity::kEdgeSeeds},
};

// ---- What goes together ----

// A field, and its value where that matters.
struct Choice {
  std::string_view field;
  std::string_view value = {};
};

// A choice that excludes another, or needs it.
struct Rule {
  Problem problem;
  Choice choice;
  Choice other;
  bool (*is_broken)(const JobSpec& spec);
};

bool IsTemporal(const JobSpec& s) {
  return s.temporal != TemporalStrategy::kNone;
}
bool IsLast(const JobSpec& s) { return s.temporal == TemporalStrategy::kLast; }
bool IsLabor(const JobSpec& s) { return s.method == SampleMethod::kLabor; }
bool IsWalk(const JobSpec& s) { return s.method == SampleMethod::kWalk; }
bool IsPpr(const JobSpec& s) { return s.method == SampleMethod::kPpr; }
bool IsEdge(const JobSpec& s) { return s.seed_kind == SeedKind::kEdge; }
bool IsGraph(const JobSpec& s) { return s.seed_kind == SeedKind::kGraph; }
bool HasFanouts(const JobSpec& s) {
  return !s.fanouts.empty() ||
         std::any_of(s.relation_fanouts.begin(), s.relation_fanouts.end(),
                     [](const auto& entry) { return !entry.second.empty(); });
}
bool IsShared(const JobSpec& s) {
  return s.negatives.mode == NegativeMode::kShared;
}

using enum FieldError::Problem;

constexpr Rule kRules[] = {
    {kConflict,
     {"fanouts"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && HasFanouts(s); }},
    {kConflict,
     {"method"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) {
       return IsGraph(s) && s.method != SampleMethod::kUniform;
     }},
    {kConflict,
     {"direction", "out"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) {
       return IsGraph(s) && s.direction == Direction::kOut;
     }},
    {kConflict,
     {"weighted"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && s.weighted; }},
    {kConflict,
     {"temporal"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && IsTemporal(s); }},
    {kConflict,
     {"train_graph"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && !s.train_graph.empty(); }},
    {kConflict,
     {"seed_kind", "edge"},
     {"method", "walk"},
     [](const JobSpec& s) { return IsEdge(s) && IsWalk(s); }},
    {kNeeds,
     {"negatives"},
     {"seed_kind", "edge"},
     [](const JobSpec& s) {
       return !IsEdge(s) && s.negatives.mode != NegativeMode::kNone;
     }},
    {kNeeds,
     {"exclude"},
     {"seed_kind", "edge"},
     [](const JobSpec& s) {
       return !IsEdge(s) && s.exclude != ExcludeSeedEdges::kNone;
     }},
    {kConflict,
     {"negatives", "shared"},
     {"disjoint"},
     [](const JobSpec& s) { return IsShared(s) && s.disjoint; }},
    {kConflict,
     {"negatives", "shared"},
     {"temporal"},
     [](const JobSpec& s) { return IsShared(s) && IsTemporal(s); }},
    {kConflict,
     {"replace"},
     {"method", "walk or ppr"},
     [](const JobSpec& s) { return s.replace && (IsWalk(s) || IsPpr(s)); }},
    {kConflict,
     {"temporal"},
     {"method", "walk or ppr"},
     [](const JobSpec& s) { return IsTemporal(s) && (IsWalk(s) || IsPpr(s)); }},
    {kConflict,
     {"fanouts"},
     {"method", "walk"},
     [](const JobSpec& s) { return IsWalk(s) && HasFanouts(s); }},
    {kConflict,
     {"disjoint"},
     {"method", "ppr"},
     [](const JobSpec& s) { return s.disjoint && IsPpr(s); }},
    {kConflict,
     {"weighted"},
     {"method", "labor"},
     [](const JobSpec& s) { return s.weighted && IsLabor(s); }},
    {kConflict,
     {"weighted"},
     {"walk_p"},
     [](const JobSpec& s) { return s.weighted && s.walk_p != 1; }},
    {kConflict,
     {"weighted"},
     {"walk_q"},
     [](const JobSpec& s) { return s.weighted && s.walk_q != 1; }},
    {kConflict,
     {"weighted"},
     {"temporal", "last"},
     [](const JobSpec& s) { return s.weighted && IsLast(s); }},
    {kConflict,
     {"temporal", "last"},
     {"replace"},
     [](const JobSpec& s) { return IsLast(s) && s.replace; }},
    {kConflict,
     {"method", "labor"},
     {"replace"},
     [](const JobSpec& s) { return IsLabor(s) && s.replace; }},
    {kConflict,
     {"method", "labor"},
     {"temporal", "last"},
     [](const JobSpec& s) { return IsLabor(s) && IsLast(s); }},
};

absl::Status CheckRules(const JobSpec& spec) {
  for (const Rule& rule : kRules) {
    if (!rule.is_broken(spec)) continue;
    return InvalidField({.problem = rule.problem,
                         .field = std::string(rule.choice.field),
                         .value = std::string(rule.choice.value),
                         .other_field = std::string(rule.other.field),
                         .other_value = std::string(rule.other.value)});
  }
  return absl::OkStatus();
}

std::string MethodsText(std::span<const SampleMethod> methods) {
  return absl::StrJoin(methods, " or ",
                       [](std::string* out, SampleMethod method) {
                         *out += WordOf(kMethods, static_cast<int>(method));
                       });
}

absl::Status CheckMethod(const JobSpec& spec, const JobOption& option) {
  if (option.ignored_by_others || HasDefault(spec, option)) {
    return absl::OkStatus();
  }
  return NeedsMethod(option);
}

std::string NumberText(double number) {
  return number >= std::numeric_limits<int64_t>::min() &&
                 number == static_cast<double>(static_cast<int64_t>(number))
             ? StrCat(static_cast<int64_t>(number))
             : StrCat(number);
}

// Checks the limits of a number.
absl::Status CheckLimits(const JobSpec& spec, const JobOption& option) {
  return std::visit(
      [&]<typename T>(const T& field) -> absl::Status {
        if constexpr (std::is_member_object_pointer_v<T>) {
          using Value = std::remove_cvref_t<decltype(spec.*field)>;
          if constexpr (std::is_arithmetic_v<Value>) {
            const auto value = static_cast<double>(spec.*field);
            if (value >= option.least && value <= option.most) {
              return absl::OkStatus();
            }
            return InvalidField(
                {.problem = Problem::kOutOfRange,
                 .field = std::string(option.name),
                 .value = StrCat(spec.*field),
                 .limit = StrCat(NumberText(option.least), " to ",
                                 NumberText(option.most))});
          }
        }
        return absl::OkStatus();
      },
      option.field);
}

// ---- Identity ----

// The method, with what belongs to it.
std::string MethodText(const JobSpec& spec) {
  std::string text = WordOf(kMethods, static_cast<int>(spec.method));
  if (IsWalk(spec) || IsPpr(spec)) {
    absl::StrAppend(&text, " ", spec.walks, " of ", spec.walk_length, " ",
                    absl::StrJoin(spec.metapath, ","));
  }
  if (IsPpr(spec)) absl::StrAppend(&text, " restart ", spec.restart);
  return text;
}

std::string TextOf(const JobSpec& spec, const JobOption& option) {
  if (option.name == "method") return MethodText(spec);
  return std::visit(
      [&spec]<typename T>(const T& field) -> std::string {
        if constexpr (std::is_same_v<T, WordField>) {
          return WordOf(field.words, field.get(spec));
        } else if constexpr (std::is_same_v<T, TextField>) {
          return field.format(spec);
        } else if constexpr (std::is_same_v<T, bool JobSpec::*>) {
          return spec.*field ? "yes" : "no";
        } else if constexpr (std::is_same_v<
                                 T, std::vector<std::string> JobSpec::*>) {
          return absl::StrJoin(spec.*field, ",");
        } else {
          return StrCat(spec.*field);
        }
      },
      option.field);
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
  return InvalidField({.problem = Problem::kNeeds,
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

absl::Status CheckJobOptions(const JobSpec& spec) {
  for (const JobOption& option : kOptions) {
    MILLRACE_RETURN_IF_ERROR(Reads(spec.method, option)
                                 ? CheckLimits(spec, option)
                                 : CheckMethod(spec, option));
  }
  return CheckRules(spec);
}

std::map<std::string_view, std::string> JobIdentity(const JobSpec& spec) {
  std::map<std::string_view, std::string> texts;
  for (const JobOption& option : kOptions) {
    const bool has =
        option.identity == Identity::kAlways ||
        (option.identity == Identity::kEdgeSeeds && IsEdge(spec)) ||
        (option.identity == Identity::kIfChanged && !HasDefault(spec, option));
    if (has) texts[option.option] = TextOf(spec, option);
  }
  return texts;
}

absl::StatusOr<Fanouts> ParseFanouts(std::string_view text,
                                     std::string_view field) {
  Fanouts fanouts;
  for (const absl::string_view item : absl::StrSplit(AbslView(text), ',')) {
    int32_t fanout = 0;
    // SimpleAtoi ignores blanks around the number.
    if (!absl::SimpleAtoi(item, &fanout) || fanout < kAllNeighbors) {
      return InvalidField({.field = std::string(field),
                           .value = StrCat("\"", text, "\""),
                           .limit = StrCat("\"", item,
                                           "\" is not a number of at least -1 "
                                           "(all neighbours); write e.g. "
                                           "15,10,5")});
    }
    fanouts.push_back(fanout);
  }
  return fanouts;
}

std::string FormatFanouts(const Fanouts& fanouts) {
  return absl::StrJoin(fanouts, ",");
}

absl::StatusOr<Negatives> ParseNegatives(std::string_view text,
                                         std::string_view field) {
  Negatives negatives;
  if (text.empty()) return negatives;
  const size_t colon = text.find(':');
  const std::string_view mode = text.substr(0, colon);
  const bool number =
      colon != text.npos &&
      absl::SimpleAtod(AbslView(text.substr(colon + 1)), &negatives.amount);
  for (const OptionWord& word : kNegatives) {
    const auto found = static_cast<NegativeMode>(word.number);
    if (!word.offered || word.word != mode ||
        number == (found == NegativeMode::kInBatch)) {
      continue;
    }
    negatives.mode = found;
    return negatives;
  }
  return InvalidField(
      {.field = std::string(field),
       .value = StrCat("\"", text, "\""),
       .limit = "is not one of binary:R, triplet:K, shared:K, in-batch"});
}

std::string FormatNegatives(const Negatives& negatives) {
  const std::string word = WordOf(kNegatives, static_cast<int>(negatives.mode));
  return negatives.mode == NegativeMode::kNone ||
                 negatives.mode == NegativeMode::kInBatch
             ? word
             : StrCat(word, ":", negatives.amount);
}

}  // namespace millrace
