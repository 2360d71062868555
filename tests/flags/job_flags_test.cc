// SPDX-License-Identifier: Apache-2.0
#include "client/flags/job_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/cli/numbers.h"
#include "common/file/npy.h"
#include "common/sample/resolve_job.h"
#include "tests/support/test_directory.h"
#include "tests/support/test_store.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class JobFlagsTest : public DirectoryTest {
 protected:
  // The flags after parsing these arguments; throws CLI::ParseError.
  static JobFlags Parsed(std::vector<std::string> args) {
    CLI::App app("JOB");
    JobFlags flags;
    Parse(app, flags, std::move(args));
    return flags;
  }
  static void Parse(CLI::App& app, JobFlags& flags,
                    std::vector<std::string> args) {
    flags.AddTo(app);
    CheckValues(app);
    std::reverse(args.begin(), args.end());  // as CLI11 wants it
    app.parse(args);
  }
  static JobSpec SpecOf(std::vector<std::string> args) {
    const absl::StatusOr<JobSpec> spec = Parsed(std::move(args)).Spec();
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? *spec : JobSpec();
  }
  // The error of SamplingSpec().
  static absl::Status Refusal(std::vector<std::string> args) {
    return Parsed(std::move(args)).SamplingSpec().status();
  }
};

TEST_F(JobFlagsTest, DefaultsAreThoseOfAJob) {
  EXPECT_EQ(SpecOf({}), JobSpec());
  const JobFlags flags = Parsed({});
  EXPECT_EQ(flags.prefetch_batches(), 4);
  EXPECT_EQ(flags.prefetch_bytes(), int64_t{1} << 30);
  EXPECT_FALSE(flags.has_seeds_file());
  EXPECT_FALSE(flags.excludes_seed_edges());
  EXPECT_EQ(flags.WantedColumns().value(), Columns());
  EXPECT_FALSE(flags.Seeds(SeedKind::kNode).value().has_value());
}

TEST_F(JobFlagsTest, EachOptionSetsItsField) {
  const std::vector<
      std::pair<std::vector<std::string>, std::function<void(JobSpec&)>>>
      cases = {{{"--seeds", "edge"},
                [](JobSpec& s) { s.seed_kind = SeedKind::kEdge; }},
               {{"--seeds", "graph"},
                [](JobSpec& s) { s.seed_kind = SeedKind::kGraph; }},
               {{"--split", "test"}, [](JobSpec& s) { s.split = "test"; }},
               {{"--type", "item"}, [](JobSpec& s) { s.seed_type = "item"; }},
               {{"--batch-size", "7"}, [](JobSpec& s) { s.batch_size = 7; }},
               {{"--seed", "9"}, [](JobSpec& s) { s.seed = 9; }},
               {{"--no-shuffle"}, [](JobSpec& s) { s.shuffle = false; }},
               {{"--shuffle"}, [](JobSpec&) {}},
               {{"--seed-order", "local"},
                [](JobSpec& s) { s.seed_order = SeedOrder::kLocal; }},
               {{"--drop-last"}, [](JobSpec& s) { s.drop_last = true; }},
               {{"--fanouts", "15,10"},
                [](JobSpec& s) {
                  s.fanouts = {15, 10};
                }},
               {{"--fanouts", "3", "--fanouts", "a__r__b=2,1"},
                [](JobSpec& s) {
                  s.fanouts = {3};
                  s.relation_fanouts = {{"a__r__b", {2, 1}}};
                }},
               {{"--method", "labor"},
                [](JobSpec& s) { s.method = SampleMethod::kLabor; }},
               {{"--direction", "out"},
                [](JobSpec& s) { s.direction = Direction::kOut; }},
               {{"--replace"}, [](JobSpec& s) { s.replace = true; }},
               {{"--disjoint"}, [](JobSpec& s) { s.disjoint = true; }},
               {{"--weighted"}, [](JobSpec& s) { s.weighted = true; }},
               {{"--temporal", "last"},
                [](JobSpec& s) { s.temporal = TemporalStrategy::kLast; }},
               {{"--train-graph", "induced:train"},
                [](JobSpec& s) { s.train_graph = "train"; }},
               {{"--walks", "3", "--walk-length", "4", "--metapath",
                 "a__r__b,b__s__a"},
                [](JobSpec& s) {
                  s.walks = 3;
                  s.walk_length = 4;
                  s.metapath = {"a__r__b", "b__s__a"};
                }},
               {{"--method", "ppr", "--restart", "0.5"},
                [](JobSpec& s) {
                  s.method = SampleMethod::kPpr;
                  s.restart = 0.5;
                }},
               {{"--method", "walk", "--walk-p", "2", "--walk-q", "0.25"},
                [](JobSpec& s) {
                  s.method = SampleMethod::kWalk;
                  s.walk_p = 2;
                  s.walk_q = 0.25;
                }},
               {{"--negatives", "triplet:4"},
                [](JobSpec& s) {
                  s.negatives = {NegativeMode::kTriplet, 4};
                }},
               {{"--exclude-seed-edges", "reverse"},
                [](JobSpec& s) { s.exclude = ExcludeSeedEdges::kReverse; }}};
  for (const auto& [args, set] : cases) {
    JobSpec want;
    set(want);
    EXPECT_EQ(SpecOf(args), want) << args[0];
  }
}

TEST_F(JobFlagsTest, OnlyOfferedWordsAreTaken) {
  for (const char* option : {"--temporal", "--seeds", "--method"}) {
    EXPECT_THROW(Parsed({option, "none"}), CLI::ValidationError) << option;
  }
  EXPECT_EQ(SpecOf({"--exclude-seed-edges", "none"}), JobSpec());
  EXPECT_TRUE(Parsed({"--exclude-seed-edges", "none"}).excludes_seed_edges());
  // Only what is on by default can be turned off.
  EXPECT_THROW(Parsed({"--no-drop-last"}), CLI::ParseError);
}

TEST_F(JobFlagsTest, HelpShowsDefaults) {
  CLI::App app("JOB");
  JobFlags flags;
  Parse(app, flags, {});
  const auto shown = [&](const std::string& name) {
    return app.get_option(name)->get_default_str();
  };
  EXPECT_EQ(app.get_option("--fanouts")->get_type_name(), "N,N,...");
  app.get_option("--seeds")->capture_default_str();
  app.get_option("--train-graph")->capture_default_str();
  app.get_option("--temporal")->capture_default_str();
  EXPECT_EQ(shown("--seeds"), "node");
  EXPECT_EQ(shown("--train-graph"), "full");
  EXPECT_EQ(shown("--temporal"), "");
  EXPECT_EQ(shown("--prefetch-bytes"), "1G");
}

TEST_F(JobFlagsTest, NumbersOfOtherMethodsAreRefused) {
  for (const char* option : {"--restart", "--walk-p", "--walk-q"}) {
    // Even if they are the default.
    const absl::Status status =
        Refusal({"--fanouts", "1", option, option[2] == 'r' ? "0.15" : "1"});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::optional<FieldError> error = GetFieldError(status);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->problem, FieldError::Problem::kNeeds);
    EXPECT_EQ(error->other_field, "method");
  }
}

TEST_F(JobFlagsTest, GlobalBatchesAreDividedAmongTheWorld) {
  const JobFlags flags = Parsed({"--global-batch-size", "12"});
  EXPECT_EQ(flags.Spec().value().batch_size, 12);
  EXPECT_EQ(flags.Spec(3).value().batch_size, 4);
  EXPECT_EQ(flags.Spec(12).value().batch_size, 1);
  for (const int world : {5, 24}) {
    EXPECT_EQ(flags.Spec(world).status(),
              UsageError("--global-batch-size 12 is not divisible by the world "
                         "size " +
                         std::to_string(world) + "; use a multiple of it"));
  }
  EXPECT_THROW(Parsed({"--global-batch-size", "0"}), CLI::ParseError);
  EXPECT_EQ(SpecOf({"--global-batch-size", "1"}).batch_size, 1);
  EXPECT_THROW(Parsed({"--batch-size", "0"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"--batch-size", "4", "--global-batch-size", "4"}),
               CLI::ExcludesError);
}

TEST_F(JobFlagsTest, SamplingNeedsFanoutsUnlessTheMethodDoesNot) {
  const absl::Status status = Refusal({});
  EXPECT_EQ(status,
            UsageError("--fanouts is needed: the neighbours to draw per node, "
                       "a number for each hop\ngive e.g. --fanouts 15,10,5, or "
                       "--fanouts 0 for the seeds alone"));
  EXPECT_FALSE(Refusal({"--method", "labor"}).ok());
  EXPECT_FALSE(Refusal({"--method", "ppr"}).ok());
  EXPECT_FALSE(Refusal({"--seeds", "edge"}).ok());
  EXPECT_TRUE(Refusal({"--method", "walk"}).ok());
  EXPECT_TRUE(Refusal({"--method", "induced"}).ok());
  EXPECT_TRUE(Refusal({"--seeds", "graph"}).ok());
  EXPECT_TRUE(Refusal({"--fanouts", "0"}).ok());
  EXPECT_TRUE(Refusal({"--fanouts", "a__r__b=1"}).ok());
}

TEST_F(JobFlagsTest, BadFanoutsAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal({"--fanouts", "many"})));
}

TEST_F(JobFlagsTest, PrefetchIsAtLeastOneBatch) {
  const JobFlags flags =
      Parsed({"--prefetch-batches", "1", "--prefetch-bytes", "3K"});
  EXPECT_EQ(flags.prefetch_batches(), 1);
  EXPECT_EQ(flags.prefetch_bytes(), 3072);
  EXPECT_THROW(Parsed({"--prefetch-batches", "0"}), CLI::ParseError);
}

TEST_F(JobFlagsTest, ColumnsAreAsAskedFor) {
  const auto columns = [](std::vector<std::string> args) {
    return Parsed(std::move(args)).WantedColumns().value();
  };
  EXPECT_EQ(columns({"--no-features"}), Columns{.features = false});
  EXPECT_EQ(columns({"--edge-features"}), Columns{.edge_features = true});
  EXPECT_EQ(columns({"--labels", "all"}), Columns{.labels = LabelRows::kAll});
  EXPECT_EQ(columns({"--labels", "seeds"}), Columns());
  EXPECT_EQ(columns({"--feature-dtype", "bfloat16"}),
            Columns{.feature_dtype = DType::kBFloat16});
  EXPECT_THROW(Parsed({"--labels", "none"}), CLI::ValidationError);
  EXPECT_THROW(Parsed({"--feature-dtype", "int8"}), CLI::ValidationError);
}

// Two types and relations; "train" is a split of one of each, "test" of two.
Manifest Splits() {
  Manifest manifest;
  manifest.schema.node_types = {{.name = "a"}, {.name = "b"}};
  manifest.schema.relations = {{.src = 0, .name = "r", .dst = 1},
                               {.src = 1, .name = "s", .dst = 0}};
  manifest.splits.resize(3);
  manifest.splits[0].name = "test";
  manifest.splits[1].name = "train";
  manifest.splits[2].name = "test";
  manifest.splits[1].type = manifest.splits[2].type = 1;
  manifest.edge_splits.resize(3);
  manifest.edge_splits[0].name = "test";
  manifest.edge_splits[1].name = "train";
  manifest.edge_splits[2].name = "test";
  manifest.edge_splits[0].relation = 1;
  return manifest;
}

// The type that is inferred; empty: none.
std::string Inferred(const JobFlags& flags, const Manifest& manifest) {
  JobSpec spec = flags.Spec().value();
  const JobSpec before = spec;
  const bool inferred = flags.InferSeedType(manifest, spec);
  EXPECT_EQ(inferred, spec != before);
  return inferred ? spec.seed_type : "";
}

TEST_F(JobFlagsTest, TheOnlyTypeWithTheSplitIsInferred) {
  const auto inferred = [](std::vector<std::string> args) {
    return Inferred(Parsed(std::move(args)), Splits());
  };
  EXPECT_EQ(inferred({}), "b");
  EXPECT_EQ(inferred({"--split", "test"}), "");
  EXPECT_EQ(inferred({"--split", "other"}), "");
  EXPECT_EQ(inferred({"--seeds", "edge"}), "a__r__b");
  EXPECT_EQ(inferred({"--seeds", "edge", "--split", "test"}), "");
  // Not where it is said, or of no importance.
  EXPECT_EQ(inferred({"--type", "a"}), "");
  EXPECT_EQ(inferred({"--seeds-file", "F.npy"}), "");
  EXPECT_EQ(inferred({"--seeds", "graph"}), "");
}

TEST_F(JobFlagsTest, NothingIsInferredWhereThereIsOneType) {
  Manifest manifest = Splits();
  manifest.schema.node_types.pop_back();
  manifest.splits[1].type = manifest.splits[2].type = 0;
  EXPECT_EQ(Inferred(Parsed({}), manifest), "");
  EXPECT_EQ(Inferred(Parsed({"--seeds", "edge"}), Splits()), "a__r__b");
  manifest.schema.relations.pop_back();
  EXPECT_EQ(Inferred(Parsed({"--seeds", "edge"}), manifest), "");
}

class SeedsFileTest : public JobFlagsTest {
 protected:
  // The seeds of a file with the numbers from 0 on in this shape.
  absl::StatusOr<std::optional<ExplicitSeeds>> SeedsOf(
      const std::vector<int64_t>& shape, SeedKind kind) {
    Array array = Array::Allocate(DType::kInt32, shape);
    for (int32_t i = 0; i < array.element_count(); ++i) {
      array.MutableAs<int32_t>()[i] = i;
    }
    return SeedsOf(array, kind);
  }
  absl::StatusOr<std::optional<ExplicitSeeds>> SeedsOf(const Array& array,
                                                       SeedKind kind) {
    std::filesystem::remove(File());
    EXPECT_TRUE(WriteNpy(File(), array).ok());
    const JobFlags flags = Parsed({"--seeds-file", File()});
    EXPECT_TRUE(flags.has_seeds_file());
    return flags.Seeds(kind);
  }
  std::string File() const { return (directory_ / "seeds.npy").string(); }
};

using Numbers = std::vector<int64_t>;

TEST_F(SeedsFileTest, ColumnsAreIdsDestinationsAndTimes) {
  ExplicitSeeds seeds = **SeedsOf({3}, SeedKind::kNode);
  EXPECT_EQ(seeds.ids, (Numbers{0, 1, 2}));
  EXPECT_EQ(seeds.dst, Numbers());
  EXPECT_EQ(seeds.times, Numbers());
  seeds = **SeedsOf({3, 1}, SeedKind::kNode);
  EXPECT_EQ(seeds.ids, (Numbers{0, 1, 2}));
  seeds = **SeedsOf({3, 2}, SeedKind::kGraph);
  EXPECT_EQ(seeds.ids, (Numbers{0, 2, 4}));
  EXPECT_EQ(seeds.dst, Numbers());
  EXPECT_EQ(seeds.times, (Numbers{1, 3, 5}));
  seeds = **SeedsOf({2, 2}, SeedKind::kEdge);
  EXPECT_EQ(seeds.ids, (Numbers{0, 2}));
  EXPECT_EQ(seeds.dst, (Numbers{1, 3}));
  EXPECT_EQ(seeds.times, Numbers());
  seeds = **SeedsOf({2, 3}, SeedKind::kEdge);
  EXPECT_EQ(seeds.ids, (Numbers{0, 3}));
  EXPECT_EQ(seeds.dst, (Numbers{1, 4}));
  EXPECT_EQ(seeds.times, (Numbers{2, 5}));
}

TEST_F(SeedsFileTest, OtherShapesAreRefused) {
  EXPECT_EQ(SeedsOf({2, 3}, SeedKind::kNode).status(),
            UsageError("--seeds-file " + File() +
                       " has the shape (2, 3); it must be (n), or (n, 2) with "
                       "times"));
  for (const Numbers& shape : {Numbers{4}, Numbers{2, 1}, Numbers{2, 4}}) {
    const absl::Status status = SeedsOf(shape, SeedKind::kEdge).status();
    EXPECT_TRUE(IsUsageError(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("; it must be (n, 2), or (n, 3) with times"));
  }
  EXPECT_FALSE(SeedsOf({2, 0}, SeedKind::kNode).ok());
}

TEST_F(SeedsFileTest, OtherFilesAreRefused) {
  const absl::Status floats =
      SeedsOf(Array::Adopt(std::vector<float>{1, 2}), SeedKind::kNode).status();
  EXPECT_TRUE(IsUsageError(floats)) << floats;
  EXPECT_THAT(std::string(floats.message()),
              HasSubstr("--seeds-file " + File()));
  const absl::Status absent =
      Parsed({"--seeds-file", File() + "x"}).Seeds(SeedKind::kNode).status();
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
}

class SourceFlagsTest : public JobFlagsTest {
 protected:
  static absl::Status Opened(std::vector<std::string> args) {
    CLI::App app("SOURCE");
    SourceFlags flags;
    flags.AddTo(app);
    flags.AddConnectionTo(app);
    CheckValues(app);
    std::reverse(args.begin(), args.end());
    app.parse(args);
    return flags.Open().status();
  }
};

TEST_F(SourceFlagsTest, OneSourceIsNeeded) {
  const TestStore store(SmallGraph());
  EXPECT_TRUE(Opened({"--store", store.path()}).ok());
  EXPECT_THROW((void)Opened({}), CLI::RequiredError);
  EXPECT_THROW((void)Opened({"--store", store.path(), "--servers", "a:1"}),
               CLI::RequiredError);
  EXPECT_THROW((void)Opened({"--servers", "nowhere"}), CLI::ValidationError);
}

TEST_F(SourceFlagsTest, ValuesHaveLimits) {
  const TestStore store(SmallGraph());
  const auto opened = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"--store", store.path()});
    return Opened(std::move(args));
  };
  EXPECT_TRUE(opened({"--threads", "1024", "--partition-wait", "0"}).ok());
  EXPECT_THROW((void)opened({"--threads", "1025"}), CLI::ValidationError);
  EXPECT_THROW((void)opened({"--threads", "-1"}), CLI::ValidationError);
  EXPECT_THROW((void)opened({"--cache-ratio", "1.1"}), CLI::ValidationError);
  EXPECT_THROW((void)opened({"--cache-ratio", "-0.1"}), CLI::ValidationError);
  for (const char* wait : {"-1s", "soon"}) {
    EXPECT_EQ(opened({"--partition-wait", wait}),
              UsageError("--partition-wait \"" + std::string(wait) +
                         "\" is not a duration; write e.g. 500ms, 30s or 2m"));
  }
}

TEST_F(SourceFlagsTest, OptionsReachTheSource) {
  const TestStore store(SmallGraph());
  const absl::Status cached = Opened({"--store", store.path(), "--cache-ratio",
                                      "0.5", "--feature-memory", "ram"});
  EXPECT_THAT(std::string(cached.message()),
              HasSubstr("cache_ratio 0.5 and feature_memory ram"));
  // Nobody listens at this port.
  const absl::Status absent =
      Opened({"--servers", "127.0.0.1:1", "--partition-wait", "0"});
  EXPECT_TRUE(absl::IsUnavailable(absent)) << absent;
  const absl::Status tls = Opened({"--servers", "127.0.0.1:1", "--tls-ca",
                                   (directory_ / "ca.pem").string()});
  EXPECT_TRUE(absl::IsNotFound(tls)) << tls;
  EXPECT_THAT(std::string(tls.message()), HasSubstr("ca.pem"));
}

TEST_F(SourceFlagsTest, LetAGpuOfTheProgramReadPinnedRows) {
  const auto reads = [](const std::string& arguments,
                        const std::optional<OwnGpu>& gpu) {
    CLI::App app("SOURCE");
    SourceFlags flags;
    flags.AddTo(app);
    flags.AddConnectionTo(app);
    app.parse(arguments);
    return flags.Options(gpu)->memory.gpus_read_pinned;
  };
  const std::string pinned = "--store s --feature-memory pinned";
  EXPECT_TRUE(reads(pinned, OwnGpu{.device = 3}));
  EXPECT_TRUE(reads(pinned + " --gpus 2,3", OwnGpu{.device = 3}));
  EXPECT_FALSE(reads(pinned + " --gpus 0,1", OwnGpu{.device = 3}));
  EXPECT_FALSE(reads(pinned, std::nullopt));
  EXPECT_FALSE(reads("--store s", OwnGpu{.device = 0}));
  EXPECT_FALSE(reads("--servers s:1", OwnGpu{.device = 0}));
}

TEST_F(SourceFlagsTest, UseTheUsualGpuUnlessGpusAreNamed) {
  const auto gpus_of = [](const std::string& arguments) {
    CLI::App app("SOURCE");
    SourceFlags flags;
    flags.AddTo(app);
    flags.AddConnectionTo(app);
    app.parse(arguments);
    EXPECT_EQ(flags.Options()->memory.gpus.size(),
              flags.Options(OwnGpu{.device = 3})->memory.gpus.size());
    return flags.Options(OwnGpu{.device = 3})->memory.gpus;
  };
  const std::vector<int> usual = {3}, first = {0};
  EXPECT_EQ(gpus_of("--store s --graph-memory cuda"), usual);
  EXPECT_EQ(gpus_of("--store s --feature-memory pinned"), usual);
  EXPECT_EQ(gpus_of("--store s --cache-ratio 0.5"), usual);
  EXPECT_EQ(gpus_of("--store s --graph-memory auto --gpus 0"), first);
  EXPECT_EQ(gpus_of("--store s --graph-memory auto --gpus 2,1"),
            (std::vector<int>{2, 1}));
  // Where GPUs must not be named, none is.
  EXPECT_EQ(gpus_of("--store s --graph-memory ram"), first);
  EXPECT_EQ(gpus_of("--servers h:1 --cache-ratio 0.5"), first);
  EXPECT_EQ(gpus_of("--servers h:1 --graph-memory cuda"), first);
}

// More threads than there are cores, each of which waits for all others.
TEST_F(SourceFlagsTest, StoresAreReadByAsManyThreadsAsWanted) {
  const TestStore store(SmallGraph());
  const int threads = static_cast<int>(std::thread::hardware_concurrency()) + 1;
  CLI::App app("SOURCE");
  SourceFlags flags;
  flags.AddTo(app);
  flags.AddConnectionTo(app);
  app.parse("--store " + store.path().string() + " --threads " +
            std::to_string(threads));
  EXPECT_EQ(flags.threads(), threads);
  const auto source = flags.Open().value();
  const ResolvedJob job = ResolveJob(JobSpec(), source->manifest()).value();
  Mutex mutex;
  CondVar arrived;
  int here = 0, met = 0;
  std::latch left(threads);
  for (int i = 0; i < threads; ++i) {
    source->Fetch(job, BatchRequest(), [&](const absl::StatusOr<Batch>&) {
      {
        MutexLock lock(&mutex);
        ++here;
        arrived.NotifyAll();
        met += arrived.WaitFor(&mutex, absl::Seconds(20),
                               [&] { return here == threads; })
                   ? 1
                   : 0;
      }
      left.count_down();
    });
  }
  left.wait();
  EXPECT_EQ(met, threads);
}

TEST_F(SourceFlagsTest, TlsOptionsAreTheClients) {
  CLI::App app("TLS");
  TlsOptions tls;
  AddTlsFlags(app, tls);
  std::vector<std::string> args = {"n", "--tls-server-name", "k", "--tls-key",
                                   "c", "--tls-cert",        "a", "--tls-ca"};
  app.parse(args);
  EXPECT_EQ(tls.ca, "a");
  EXPECT_EQ(tls.cert, "c");
  EXPECT_EQ(tls.key, "k");
  EXPECT_EQ(tls.server_name, "n");
}

}  // namespace
}  // namespace millrace::testing
