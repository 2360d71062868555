// SPDX-License-Identifier: Apache-2.0
#include "tests/train/train_support.h"

#include <ATen/Parallel.h>

#include <random>
#include <thread>
#include <utility>

#include "client/loader.h"
#include "client/open_source.h"
#include "common/file/npy.h"
#include "common/ingest/add_split.h"
#include "tests/support/free_port.h"

namespace millrace::testing {
namespace {

constexpr int kClasses = 4;
constexpr int64_t kFeatures = 6;

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> ids;
  for (int64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

}  // namespace

TestGraph ClassGraph(int64_t nodes, int64_t train) {
  std::mt19937 random(7);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  std::vector<int64_t> label;
  std::vector<std::pair<int64_t, int64_t>> edges;
  Array feature = Array::Allocate(DType::kFloat32, {nodes, kFeatures});
  auto cells = feature.MutableAs<float>();
  for (int64_t v = 0; v < nodes; ++v) {
    label.push_back(v % kClasses);
    for (int64_t d = 0; d < kFeatures; ++d) {
      cells[v * kFeatures + d] = static_cast<float>(below(100)) / 100.0f +
                                 (d == v % kClasses ? 0.5f : 0.0f);
    }
    for (int e = 0; e < 5; ++e) {
      const int64_t any = below(nodes);
      const int64_t same = any - any % kClasses + v % kClasses;
      edges.emplace_back(e < 4 && same < nodes ? same : any, v);
    }
  }
  TestGraph graph;
  graph.types = {{.count = nodes,
                  .feature = feature,
                  .label = Array::Adopt(std::move(label))}};
  graph.relations = {{.edges = std::move(edges)}};
  graph.splits = {{.name = "train", .ids = Range(0, train)},
                  {.name = "valid", .ids = Range(train, train + 20)},
                  {.name = "test", .ids = Range(train + 20, train + 40)}};
  return graph;
}

TestGraph PaperGraph(int64_t papers, int64_t train) {
  std::mt19937 random(11);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  // A node below `n`, usually of the same class as `v`.
  const auto like = [&](int64_t v, int64_t n) {
    const int64_t any = below(n);
    const int64_t same = any - any % kClasses + v % kClasses;
    return below(4) > 0 && same < n ? same : any;
  };
  constexpr int64_t kSubjects = 8, kVenues = 5;
  const int64_t authors = papers / 2;
  Edges writes, written, of, has, cites, prints;
  for (int64_t v = 0; v < papers; ++v) {
    if (v % 9 == 8) continue;  // papers without an author
    for (int e = 0; e < 3; ++e) {
      const int64_t author = like(v, authors);
      writes.emplace_back(author, v);
      written.emplace_back(v, author);
      cites.emplace_back(like(v, papers), v);
    }
    const int64_t subject = like(v, kSubjects);
    of.emplace_back(subject, v);
    has.emplace_back(v, subject);
    prints.emplace_back(below(kVenues), v);
  }
  Array features = Array::Allocate(DType::kFloat32, {authors, 5});
  for (float& cell : features.MutableAs<float>()) {
    cell = static_cast<float>(below(100)) / 100.0f;
  }
  TestGraph graph = ClassGraph(papers, train);
  graph.types[0].name = "paper";
  graph.types.push_back(
      {.name = "author", .count = authors, .feature = RampFeature(authors, 5)});
  graph.types.push_back({.name = "subject", .count = kSubjects});
  graph.types.push_back({.name = "venue", .count = kVenues});
  graph.relations = {
      {.src = "author", .name = "writes", .dst = "paper", .edges = writes},
      {.src = "paper", .name = "by", .dst = "author", .edges = written},
      {.src = "subject", .name = "of", .dst = "paper", .edges = of},
      {.src = "paper", .name = "has", .dst = "subject", .edges = has},
      {.src = "paper", .name = "cites", .dst = "paper", .edges = cites},
      {.src = "venue", .name = "prints", .dst = "paper", .edges = prints}};
  for (TestSplit& split : graph.splits) split.type = "paper";
  return graph;
}

void WriteStore(const TestGraph& graph, const std::filesystem::path& path,
                int parts) {
  const absl::Status built = WriteGraph(graph, parts == 1 ? 0 : parts, path);
  EXPECT_TRUE(built.ok()) << built;
}

std::shared_ptr<BatchSource> OpenStore(const std::filesystem::path& path) {
  SourceOptions options;
  options.store = path.string();
  options.threads = 2;
  auto source = OpenSource(options);
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *source : nullptr;
}

std::shared_ptr<BatchSource> Serve(const TestGraph& graph,
                                   const std::string& name, int parts) {
  const std::filesystem::path path = TestDirectory(name) / "store";
  WriteStore(graph, path, parts);
  return OpenStore(path);
}

std::shared_ptr<BatchSource> ServeLinks(const TestGraph& graph,
                                        const std::vector<LinkSplit>& splits,
                                        const std::string& name, int parts) {
  const std::filesystem::path directory = TestDirectory(name);
  const std::filesystem::path path = directory / "store";
  WriteStore(graph, path, parts);
  for (const LinkSplit& split : splits) {
    Array pairs = Array::Allocate(
        DType::kInt64, {static_cast<int64_t>(split.edges.size()), 2});
    auto cells = pairs.MutableAs<int64_t>();
    for (size_t i = 0; i < split.edges.size(); ++i) {
      cells[2 * i] = split.edges[i].first;
      cells[2 * i + 1] = split.edges[i].second;
    }
    const std::filesystem::path file = directory / "pairs.npy";
    std::filesystem::remove(file);
    EXPECT_TRUE(WriteNpy(file, pairs).ok());
    NewEdgeSplit added;
    added.name = split.name;
    added.relation = split.relation;
    added.pairs = file;
    if (!split.labels.empty()) {
      added.labels = directory / "labels.npy";
      std::filesystem::remove(added.labels);
      EXPECT_TRUE(
          WriteNpy(added.labels, Array::Adopt(std::vector(split.labels))).ok());
    }
    const auto info = AddEdgeSplit(path, added);
    EXPECT_TRUE(info.ok()) << info.status();
  }
  return OpenStore(path);
}

TrainOptions SmallRun() {
  TrainOptions options;
  options.job.fanouts = {3, 2};
  options.job.batch_size = 16;
  options.model.hidden = 8;
  options.model.layers = 2;
  options.optimizer.lr = 0.01;
  options.epochs = 2;
  options.evaluation.inference.chunk = 50;
  return options;
}

TrainOptions LinkRun() {
  TrainOptions options = SmallRun();
  options.job.seed_kind = SeedKind::kEdge;
  options.job.fanouts = {10, 5};
  options.job.batch_size = 64;
  options.job.negatives = {NegativeMode::kBinary, 1};
  options.job.exclude = ExcludeSeedEdges::kReverse;
  options.task.kind = TaskKind::kLink;
  options.task.metric = MetricKind::kRocAuc;
  options.task.negatives = NegativeMode::kBinary;
  options.model.decoder = DecoderKind::kDot;
  options.model.hidden = 16;
  return options;
}

namespace {

// Connects ranks, each on a thread, and calls `use` for each.
void ConnectRanks(int world, const std::function<void(Collectives&)>& use) {
  const uint16_t port = FreePort();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.emplace_back([=, &use] {
      // Ranks, and tests that run in parallel, share a few cores.
      at::set_num_threads(1);
      auto collectives = Collectives::Connect({rank, world, "127.0.0.1", port});
      ASSERT_TRUE(collectives.ok()) << collectives.status();
      use(**collectives);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace

void RunRanks(int world, const std::function<void(Collectives&)>& body) {
  ConnectRanks(world, [&body](Collectives& collectives) {
    body(collectives);
    const absl::Status finished = collectives.Finish();
    EXPECT_TRUE(finished.ok()) << finished;
  });
}

std::vector<absl::Status> CreateTrainers(
    const std::vector<std::shared_ptr<BatchSource>>& sources,
    const std::vector<TrainOptions>& runs) {
  std::vector<absl::Status> statuses(runs.size());
  ConnectRanks(static_cast<int>(runs.size()), [&](Collectives& collectives) {
    const int rank = collectives.rank();
    absl::Status& status = statuses[rank];
    status = Trainer::Create(sources[rank], collectives, runs[rank]).status();
    if (status.ok()) {
      status = collectives.Finish();
    } else {
      collectives.Fail(status);
    }
  });
  return statuses;
}

std::vector<MetricsRecord> TrainRanks(
    int world, const std::shared_ptr<BatchSource>& source,
    const TrainOptions& options) {
  std::vector<MetricsRecord> history;
  RunRanks(world, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(source, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const absl::Status run = (*trainer)->Run();
    ASSERT_TRUE(run.ok()) << run;
    if (collectives.rank() == 0) history = (*trainer)->history();
  });
  return history;
}

std::vector<double> Losses(const std::vector<MetricsRecord>& history) {
  std::vector<double> losses;
  for (const MetricsRecord& record : history) {
    losses.push_back(record.loss.value_or(-1));
  }
  return losses;
}

absl::Status Refusal(const std::shared_ptr<BatchSource>& source,
                     const TrainOptions& options) {
  absl::Status status;
  RunRanks(1, [&](Collectives& collectives) {
    status = Trainer::Create(source, collectives, options).status();
  });
  return status;
}

absl::Status Refusal(const TestGraph& graph, const TrainOptions& options) {
  return Refusal(Serve(graph, "refusal"), options);
}

std::vector<Batch> AllBatches(const std::shared_ptr<BatchSource>& source,
                              const JobSpec& job) {
  LoaderOptions options;
  options.columns.degrees = true;
  options.columns.original_ids = true;
  auto loader = Loader::Create(source, job, options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  std::vector<Batch> batches;
  while (loader.ok()) {
    auto step = (*loader)->Next();
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok() || !step->has_value()) break;
    batches.push_back(*std::move((*step)->batch));
  }
  return batches;
}

}  // namespace millrace::testing
