// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_options.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace millrace {
namespace {

TEST(JobOptionsTest, NamesAndOptionsAreUnique) {
  std::set<std::string_view> names, options;
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(options.insert(option.option).second) << option.option;
    EXPECT_EQ(FindJobOption(option.name), &option);
  }
  EXPECT_EQ(FindJobOption("batch-size"), nullptr);
}

TEST(JobOptionsTest, ADefaultJobHasAllDefaults) {
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(HasDefault(JobSpec(), option)) << option.name;
  }
}

TEST(JobOptionsTest, EachHasItsOwnHelp) {
  std::set<std::string_view> helps;
  for (const JobOption& option : JobOptions()) {
    EXPECT_GE(option.help.size(), 10u) << option.name;
    EXPECT_TRUE(helps.insert(option.help).second) << option.name;
  }
}

TEST(JobOptionsTest, WordsStandForTheirValues) {
  JobSpec spec;
  const auto set = [&](const char* name, std::string_view word) {
    const auto& field = std::get<WordField>(FindJobOption(name)->field);
    for (const OptionWord& known : field.words) {
      if (known.word != word) continue;
      field.set(spec, known.number);
      EXPECT_EQ(field.get(spec), known.number);
      EXPECT_EQ(WordOf(field.words, known.number), word);
      return known.offered;
    }
    ADD_FAILURE() << name << " " << word;
    return false;
  };
  const auto words = [](const char* name) {
    return std::get<WordField>(FindJobOption(name)->field).words.size();
  };
  EXPECT_EQ(words("seed_kind"), 3u);
  EXPECT_TRUE(set("seed_kind", "edge"));
  EXPECT_EQ(spec.seed_kind, SeedKind::kEdge);
  EXPECT_TRUE(set("seed_kind", "graph"));
  EXPECT_EQ(spec.seed_kind, SeedKind::kGraph);
  EXPECT_TRUE(set("seed_kind", "node"));
  EXPECT_EQ(spec.seed_kind, SeedKind::kNode);
  EXPECT_EQ(words("seed_order"), 2u);
  EXPECT_TRUE(set("seed_order", "local"));
  EXPECT_EQ(spec.seed_order, SeedOrder::kLocal);
  EXPECT_TRUE(set("seed_order", "global"));
  EXPECT_EQ(spec.seed_order, SeedOrder::kGlobal);
  EXPECT_EQ(words("direction"), 2u);
  EXPECT_TRUE(set("direction", "out"));
  EXPECT_EQ(spec.direction, Direction::kOut);
  EXPECT_TRUE(set("direction", "in"));
  EXPECT_EQ(spec.direction, Direction::kIn);
  EXPECT_EQ(words("method"), 5u);
  for (const auto& [word, method] :
       {std::pair("induced", SampleMethod::kInduced),
        std::pair("labor", SampleMethod::kLabor),
        std::pair("ppr", SampleMethod::kPpr),
        std::pair("uniform", SampleMethod::kUniform),
        std::pair("walk", SampleMethod::kWalk)}) {
    EXPECT_TRUE(set("method", word));
    EXPECT_EQ(spec.method, method);
  }
  EXPECT_EQ(words("temporal"), 3u);
  EXPECT_TRUE(set("temporal", "uniform"));
  EXPECT_EQ(spec.temporal, TemporalStrategy::kUniform);
  EXPECT_TRUE(set("temporal", "last"));
  EXPECT_EQ(spec.temporal, TemporalStrategy::kLast);
  EXPECT_FALSE(set("temporal", "none"));
  EXPECT_EQ(spec.temporal, TemporalStrategy::kNone);
  EXPECT_EQ(words("exclude"), 3u);
  EXPECT_TRUE(set("exclude", "self"));
  EXPECT_EQ(spec.exclude, ExcludeSeedEdges::kSelf);
  EXPECT_TRUE(set("exclude", "reverse"));
  EXPECT_EQ(spec.exclude, ExcludeSeedEdges::kReverse);
  EXPECT_TRUE(set("exclude", "none"));
  EXPECT_EQ(spec.exclude, ExcludeSeedEdges::kNone);
  const auto& methods = std::get<WordField>(FindJobOption("method")->field);
  EXPECT_EQ(WordOf(methods.words, 77), "77");
}

TEST(JobOptionsTest, OnlyWalksReadTheirOptions) {
  for (const auto& [name, methods] :
       {std::pair("walks", "walk or ppr"),
        std::pair("walk_length", "walk or ppr"),
        std::pair("metapath", "walk or ppr"), std::pair("restart", "ppr"),
        std::pair("walk_p", "walk"), std::pair("walk_q", "walk")}) {
    const JobOption& option = *FindJobOption(name);
    const bool walk = std::string_view(methods).starts_with("walk");
    const bool ppr = std::string_view(methods).ends_with("ppr");
    EXPECT_EQ(Reads(SampleMethod::kWalk, option), walk) << name;
    EXPECT_EQ(Reads(SampleMethod::kPpr, option), ppr) << name;
    for (const SampleMethod other :
         {SampleMethod::kUniform, SampleMethod::kLabor,
          SampleMethod::kInduced}) {
      EXPECT_FALSE(Reads(other, option)) << name;
    }
    EXPECT_EQ(NeedsMethod(option).message(),
              std::string(name) + " needs method " + methods);
  }
  int read_by_all = 0;
  for (const JobOption& option : JobOptions()) {
    read_by_all += option.methods.empty() ? 1 : 0;
    EXPECT_TRUE(!option.methods.empty() || Reads(SampleMethod::kWalk, option));
  }
  EXPECT_EQ(read_by_all, static_cast<int>(JobOptions().size()) - 6);
}

TEST(JobOptionsTest, SectionsOfHelpHoldTheirOptions) {
  std::set<std::string_view> seeds, edges;
  for (const JobOption& option : JobOptions()) {
    if (option.group == JobOption::Group::kSeeds) seeds.insert(option.option);
    if (option.group == JobOption::Group::kEdgeSeeds) {
      edges.insert(option.option);
    }
  }
  EXPECT_EQ(seeds, (std::set<std::string_view>{"seeds", "split", "type",
                                               "batch-size", "seed", "shuffle",
                                               "seed-order", "drop-last"}));
  EXPECT_EQ(edges,
            (std::set<std::string_view>{"negatives", "exclude-seed-edges"}));
}

}  // namespace
}  // namespace millrace
