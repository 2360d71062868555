// SPDX-License-Identifier: Apache-2.0
#include "client/nn/script_model.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "client/nn/model.h"
#include "common/base/field_error.h"
#include "tests/support/store_builder.h"
#include "tests/train/script_support.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string FileIn(const std::string& directory) {
  return (TestDirectory(directory) / "model.pt").string();
}

// A script with a single weight, w = 1.
TestScript OneWeight(const std::string& methods) {
  return {{{"w", at::ones({1})}}, {}, methods};
}

absl::StatusOr<std::unique_ptr<ScriptModel>> LoadFor(
    const TestScript& script, const GraphShape& shape,
    const std::string& directory) {
  return ScriptModel::Load(SaveScript(script, FileIn(directory)), shape, 2);
}

// Three nodes: 1 and 2 are in the list of 0, and 0 is in that of 1.
Subgraph ThreeNodes() {
  Subgraph graph;
  const at::Tensor indptr = at::tensor({0, 2, 3, 3}, at::kInt);
  const at::Tensor index = at::tensor({1, 2, 0}, at::kInt);
  graph.nodes.push_back({at::ones({3, 2}), {}, {0, 2, 3}});
  graph.neighbors.push_back({indptr, index, {}, {}});
  return graph;
}

// Has 4 seeds, 8 nodes one hop away and 20 two hops away, with random lists.
Subgraph RandomSubgraph(int64_t features) {
  std::mt19937 random(5);
  std::vector<int32_t> indptr = {0}, index;
  for (uint32_t row = 0; row < 12; ++row) {
    const uint32_t reached = row < 4 ? 12 : 32;
    for (uint32_t e = random() % 5; e > 0; --e) {
      index.push_back(static_cast<int32_t>(random() % reached));
    }
    indptr.push_back(static_cast<int32_t>(index.size()));
  }
  Subgraph graph;
  graph.nodes.push_back(
      {Initializer(9).Uniform({32, features}, 1), {}, {0, 4, 12, 32}});
  graph.neighbors.push_back({at::tensor(indptr), at::tensor(index), {}, {}});
  return graph;
}

TEST(ScriptModelTest, GivesTheRowsOfOurSage) {
  ModelConfig config;
  config.in = 6;
  config.hidden = 8;
  config.out = 4;
  const auto ours = Model::Create(config).value();
  config.kind = ModelKind::kScript;
  config.out = 3;  // a minimum
  config.script =
      SaveScript(SageScript(ours->parameters().State()), FileIn("script_sage"));
  const auto theirs = Model::Create(config).value();
  EXPECT_EQ(theirs->config().out, 4);
  const Subgraph graph = RandomSubgraph(6);
  const at::Tensor want = ours->Forward(graph, {});
  const at::Tensor got = theirs->Forward(graph, {});
  EXPECT_EQ(got.sizes(), want.sizes());
  EXPECT_TRUE(at::allclose(got, want, 0, 1e-5));
  // What a script's layers need is not known.
  EXPECT_GT(ours->LayerBytes(graph), 0u);
  EXPECT_EQ(theirs->LayerBytes(graph), 0u);
}

TEST(ScriptModelTest, EdgesGoFromNeighborsToListOwners) {
  const auto model = LoadFor(OneWeight(R"(
def forward(self, x, edge_index):
    sources = torch.zeros([x.size(0), 1]).index_add(
        0, edge_index[1], self.w * edge_index[0].unsqueeze(1))
    return torch.cat([sources, torch.full_like(sources, edge_index.size(1))], 1)
)"),
                             GraphShape::Homogeneous(2), "script_edges");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->outputs(), 2);
  // The result has only the rows of the two seeds.
  EXPECT_TRUE(at::equal((*model)->Forward(ThreeNodes(), {})[0],
                        at::tensor({3.0f, 3.0f, 0.0f, 3.0f}).view({2, 2})));
}

constexpr char kEdgeSum[] = R"(
def forward(self, x, edge_index, edge_attr: Tensor):
    return self.w * torch.zeros([x.size(0), edge_attr.size(1)]).index_add(
        0, edge_index[1], edge_attr)
)";

TEST(ScriptModelTest, ReadsFeaturesOfEdges) {
  GraphShape shape = GraphShape::Homogeneous(2);
  shape.relations[0].features = 2;
  const auto model = LoadFor(OneWeight(kEdgeSum), shape, "script_attr");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->reads_edge_features());
  Subgraph graph = ThreeNodes();
  graph.edge_features = {
      at::tensor({1.f, 2.f, 4.f, 8.f, 16.f, 32.f}).view({3, 2})};
  EXPECT_TRUE(at::equal((*model)->Forward(graph, {})[0],
                        at::tensor({5.f, 10.f, 16.f, 32.f}).view({2, 2})));
}

TEST(ScriptModelTest, LeavesDefaultsAlone) {
  const auto model = LoadFor(OneWeight(R"(
def forward(self, x, edge_index, edge_weight: Optional[Tensor] = None, edge_attr: Optional[Tensor] = None, layers: int = 3):
    assert edge_weight is None and edge_attr is None
    return self.w * x * layers
)"),
                             GraphShape::Homogeneous(2), "script_defaults");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE((*model)->reads_edge_features());
  EXPECT_TRUE(at::equal((*model)->Forward(ThreeNodes(), {})[0],
                        at::full({2, 2}, 3.0f)));
}

// The seeds are of type b; no relation leads to c.
GraphShape TwoTypes() {
  GraphShape shape;
  shape.types = {{"a", 9, 1}, {"b", 5, 2}, {"c", 7, 0}};
  shape.relations = {
      {"a__to__b", 0, 1}, {"b__to__a", 1, 0}, {"c__to__c", 2, 2}};
  shape.seed_type = 1;
  return shape;
}

constexpr char kTyped[] = R"(
def forward(self, x: Dict[str, Tensor], edges: Dict[str, Tensor]):
    assert len(x) == 2 and len(edges) == 2
    e = edges["a__to__b"]
    b = x["b"].index_add(0, e[1], x["a"][e[0]].expand(-1, 2))
    return {"b": self.w * b, "a": x["a"]}
)";

TEST(ScriptModelTest, GivesDictionariesOfTypesAndRelations) {
  const auto model = LoadFor(OneWeight(kTyped), TwoTypes(), "script_typed");
  ASSERT_TRUE(model.ok()) << model.status();
  Subgraph graph;
  graph.nodes = {{at::tensor({5.f, 7.f}).view({2, 1}), {}, {0, 0, 2}},
                 {at::ones({2, 2}), {}, {0, 1, 2}},
                 {{}, {}, {0, 0, 0}}};
  const at::Tensor none = at::zeros({1}, at::kInt);
  graph.neighbors = {
      {at::tensor({0, 2, 2}, at::kInt), at::tensor({0, 1}, at::kInt), {}, {}},
      {none, at::zeros({0}, at::kInt), {}, {}},
      {none, at::zeros({0}, at::kInt), {}, {}}};
  const auto rows = (*model)->Forward(graph, {});
  EXPECT_TRUE(at::equal(rows[1], at::tensor({13.f, 13.f}).view({1, 2})));
  EXPECT_FALSE(rows[0].defined());
}

TEST(ScriptModelTest, RandomDrawsDependOnTheBatchName) {
  const auto model =
      LoadFor(SageScript(2, 50, 4, 1, 0.5), GraphShape::Homogeneous(2), "drop");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto rows = [&](bool training, DropoutKey key) {
    return (*model)->Forward(ThreeNodes(), {training, key})[0];
  };
  const at::Tensor first = rows(true, {1, 2, 3});
  EXPECT_FALSE(at::equal(rows(true, {1, 2, 4}), first));
  EXPECT_FALSE(at::equal(rows(true, {1, 3, 3}), first));
  EXPECT_FALSE(at::equal(rows(true, {2, 2, 3}), first));
  EXPECT_FALSE(at::equal(rows(true, {1 + (uint64_t{1} << 32), 2, 3}), first));
  EXPECT_TRUE(at::equal(rows(true, {1, 2, 3}), first));
  EXPECT_TRUE(at::equal(rows(false, {1, 2, 3}), rows(false, {1, 2, 4})));
}

TEST(ScriptModelTest, ParametersAreTheModules) {
  TestScript script = OneWeight(R"(
def forward(self, x, edge_index):
    if self.training:
        self.calls = self.calls + 1
    return self.w * x + self.calls
)");
  script.buffers = {{"calls", at::zeros({1}, at::kLong)}};
  const auto model =
      LoadFor(script, GraphShape::Homogeneous(2), "script_parameters");
  ASSERT_TRUE(model.ok()) << model.status();
  ParameterSet parameters;
  (*model)->AddTo(parameters);
  ASSERT_EQ(parameters.parameters().size(), 1u);
  EXPECT_EQ(parameters.parameters()[0].name, "w");
  EXPECT_TRUE(parameters.parameters()[0].tensor.requires_grad());
  const at::Tensor rows =
      (*model)->Forward(ThreeNodes(), {.training = true, .dropout = {}})[0];
  rows.sum().backward();
  EXPECT_EQ(parameters.parameters()[0].tensor.grad().item().toDouble(), 4);
  // The script has assigned a new tensor to its buffer, and reads what is
  // loaded.
  ASSERT_EQ(parameters.buffers().size(), 1u);
  EXPECT_EQ(parameters.buffers()[0].tensor.item().toLong(), 1);
  ASSERT_TRUE(parameters
                  .Load({{"w", at::full({1}, 2.0f)},
                         {"calls", at::full({1}, 10, at::kLong)}})
                  .ok());
  EXPECT_TRUE(at::equal((*model)->Forward(ThreeNodes(), {})[0],
                        at::full({2, 2}, 12.0f)));
}

TEST(ScriptModelTest, TiedWeightsHaveAllNames) {
  TestScript script = OneWeight(R"(
def forward(self, x, edge_index):
    return self.w * x + 3 * self.v * x
)");
  script.aliases = {{"v", "w"}};
  const auto model = LoadFor(script, GraphShape::Homogeneous(2), "script_tied");
  ASSERT_TRUE(model.ok()) << model.status();
  ParameterSet parameters;
  (*model)->AddTo(parameters);
  ASSERT_EQ(parameters.parameters().size(), 1u);
  const std::vector<NamedTensor> state = parameters.State();
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[0].name, "w");
  EXPECT_EQ(state[1].name, "v");
  (*model)->Forward(ThreeNodes(), {})[0].sum().backward();
  EXPECT_EQ(parameters.parameters()[0].tensor.grad().item().toDouble(), 16);

  const at::Tensor two = at::full({1}, 2.0f);
  EXPECT_TRUE(parameters.Load({{"v", two}, {"w", two.clone()}}).ok());
  EXPECT_TRUE(at::equal((*model)->Forward(ThreeNodes(), {})[0],
                        at::full({2, 2}, 8.0f)));
  EXPECT_TRUE(parameters.Load({{"v", at::ones({1})}}).ok());
  EXPECT_TRUE(at::equal((*model)->Forward(ThreeNodes(), {})[0],
                        at::full({2, 2}, 4.0f)));
  EXPECT_THAT(
      std::string(
          parameters.Load({{"v", two}, {"w", at::ones({1})}}).message()),
      HasSubstr("tensors \"w\" and \"v\" differ, but they are one tensor"));
  EXPECT_FALSE(parameters.Load({}).ok());
}

TEST(ScriptModelTest, OnlyBuffersMayBeMissing) {
  TestScript script = OneWeight(R"(
def forward(self, x, edge_index):
    return self.w * x + self.shift + self.frozen
)");
  script.parameters.push_back({"frozen", at::ones({1}, at::kLong)});
  script.buffers = {{"shift", at::full({1}, 5.0f)}};
  const auto model =
      LoadFor(script, GraphShape::Homogeneous(2), "script_missing");
  ASSERT_TRUE(model.ok()) << model.status();
  ParameterSet parameters;
  (*model)->AddTo(parameters);
  const NamedTensor weight = {"w", at::full({1}, 2.0f)};
  const NamedTensor frozen = {"frozen", at::full({1}, 3, at::kLong)};
  ASSERT_TRUE(parameters.Load({weight, frozen}).ok());
  EXPECT_TRUE(at::equal((*model)->Forward(ThreeNodes(), {})[0],
                        at::full({2, 2}, 10.0f)));
  EXPECT_THAT(std::string(parameters.Load({frozen}).message()),
              HasSubstr("tensor \"w\" is missing"));
  EXPECT_THAT(std::string(parameters.Load({weight}).message()),
              HasSubstr("tensor \"frozen\" is missing"));
}

// The error of Load for `script` on a graph of `shape`.
std::string Refusal(const TestScript& script,
                    const GraphShape& shape = GraphShape::Homogeneous(2)) {
  const absl::Status status = LoadFor(script, shape, "refused").status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(ScriptModelTest, RefusesFilesThatAreNotScripts) {
  const GraphShape shape = GraphShape::Homogeneous(2);
  const std::string file = FileIn("no_script");
  EXPECT_EQ(ScriptModel::Load(file, shape, 2).status().code(),
            absl::StatusCode::kNotFound);
  std::ofstream(file) << "not a zip file";
  const absl::Status text = ScriptModel::Load(file, shape, 2).status();
  EXPECT_EQ(text.code(), absl::StatusCode::kInvalidArgument) << text;
  SaveStateDict(file);
  const absl::Status state = ScriptModel::Load(file, shape, 2).status();
  EXPECT_THAT(std::string(state.message()),
              HasSubstr("torch.jit.script(model).save(\""));
}

TEST(ScriptModelTest, RefusesAForwardWithTheWrongSignature) {
  constexpr char kBatch[] = R"(
def forward(self, x, edge_index, batch):
    return self.w * x
)";
  EXPECT_THAT(Refusal(OneWeight(kBatch)),
              HasSubstr("forward(x: Tensor, edge_index: Tensor, batch: Tensor)"
                        "\na graph of 1 node types and 1 relations needs "
                        "forward(x: Tensor, edge_index: Tensor["));
  constexpr char kThis[] = R"(
def forward(this, x, edge_index, batch):
    return this.w * x
)";
  EXPECT_THAT(Refusal(OneWeight(kThis)), HasSubstr(" has forward(x: Tensor, "));
  EXPECT_THAT(Refusal(OneWeight(kTyped)), HasSubstr("needs forward(x: "));
  EXPECT_THAT(Refusal(OneWeight(kBatch), TwoTypes()),
              HasSubstr("needs forward(x_dict: Dict[str, Tensor], "));
  EXPECT_THAT(Refusal(OneWeight(kEdgeSum)),
              HasSubstr("the graph has no features of edges"));
}

TEST(ScriptModelTest, SaysInOneLineWhyForwardFails) {
  const std::string widths = Refusal(SageScript(3, 4, 5, 1));
  EXPECT_THAT(widths, HasSubstr("mat1 and mat2 shapes cannot be multiplied"));
  EXPECT_THAT(widths, HasSubstr("\nit was tried on two nodes per type, with "
                                "features as wide as the graph's (node: 2)"));
  EXPECT_THAT(widths, Not(HasSubstr("Traceback")));
  EXPECT_THAT(Refusal(OneWeight(R"(
def forward(self, x, edge_index):
    assert x.size(1) == 3, "not on Sundays"
    return self.w * x
)")),
              HasSubstr("AssertionError: not on Sundays\n"));
  const std::string lines = Refusal(OneWeight(R"(
def forward(self, x, edge_index):
    assert x.size(1) == 3, "not on Sundays\n   nor at night\n\nnor here"
    return self.w * x
)"));
  EXPECT_THAT(lines, HasSubstr("Error: not on Sundays\nit was tried"));
  EXPECT_THAT(lines, Not(HasSubstr("Traceback")));
}

TEST(ScriptModelTest, RefusesResultsThatAreNotRows) {
  const auto returning = [](const std::string& result) {
    return OneWeight("def forward(self, x, edge_index):\n    return " + result +
                     "\n");
  };
  EXPECT_THAT(Refusal(returning("(self.w * x)[:, 0]")),
              HasSubstr("the result is [2] Float, but must have a row"));
  EXPECT_THAT(Refusal(returning("(self.w * x)[:1]")), HasSubstr("[1, 2]"));
  EXPECT_THAT(Refusal(returning("torch.cat([self.w * x, x])")),
              HasSubstr("[4, 2]"));
  EXPECT_THAT(Refusal(returning("(self.w * x)[:, :0]")), HasSubstr("[2, 0]"));
  EXPECT_THAT(Refusal(returning("(self.w * x).argmax(1, True)")),
              HasSubstr("[2, 1] Long"));
  EXPECT_THAT(Refusal(returning("(self.w * x, x)")), HasSubstr("is a Tuple"));
  constexpr char kOther[] = R"(
def forward(self, x: Dict[str, Tensor], edges: Dict[str, Tensor]):
    return {"a": self.w * x["a"]}
)";
  EXPECT_THAT(Refusal(OneWeight(kOther), TwoTypes()),
              HasSubstr("no rows of node type b"));
}

TEST(ScriptModelTest, RefusesParametersThatCannotBeTrained) {
  constexpr char kForward[] = R"(
def forward(self, x, edge_index):
    return self.w * x
)";
  EXPECT_THAT(Refusal({{{"w", at::ones({1}, at::kDouble)}}, {}, kForward}),
              HasSubstr("parameter w of "));
  EXPECT_THAT(Refusal({{{"w", at::ones({1}, at::kLong)}}, {}, kForward}),
              HasSubstr("no parameter that requires a gradient"));
}

TEST(ScriptModelTest, RefusesTwoParametersInOneMemory) {
  const at::Tensor both = at::ones({2});
  const std::string refusal =
      Refusal({{{"v", both}, {"w", both.view({2})}}, {}, R"(
def forward(self, x, edge_index):
    return self.w * x + self.v * x
)"});
  EXPECT_THAT(refusal, HasSubstr("parameters v and w of "));
  EXPECT_THAT(refusal, HasSubstr(" are distinct but share memory\n"));
}

TEST(ScriptModelTest, NamesTheTypeOfAParameter) {
  EXPECT_THAT(Refusal({{{"w", at::ones({1}, at::kDouble)}}, {}, R"(
def forward(self, x, edge_index):
    return self.w * x
)"}),
              HasSubstr(" is Double, but training uses Float\nscript "
                        "model.float()"));
}

// Activations that a script keeps must not tie a step to the one before.
TEST(ScriptModelTest, BuffersThatAreAssignedActivationsAreDetached) {
  TestScript script = OneWeight(R"(
def forward(self, x, edge_index):
    rows = self.w * x + self.kept
    if self.training:
        self.kept = rows.sum()
    return rows
)");
  script.buffers = {{"kept", at::zeros({})}};
  const auto model = LoadFor(script, GraphShape::Homogeneous(2), "kept");
  ASSERT_TRUE(model.ok()) << model.status();
  ParameterSet parameters;
  (*model)->AddTo(parameters);
  for (int step = 0; step < 2; ++step) {
    parameters.parameters()[0].tensor.mutable_grad().reset();
    (*model)
        ->Forward(ThreeNodes(), {.training = true, .dropout = {}})[0]
        .sum()
        .backward();
    EXPECT_EQ(parameters.parameters()[0].tensor.grad().item().toDouble(), 4);
    EXPECT_FALSE(parameters.buffers()[0].tensor.requires_grad());
  }
  // 3 rows of 2 ones, and then of 2 sevens.
  EXPECT_EQ(parameters.buffers()[0].tensor.item().toDouble(), 42);
}

TEST(ScriptModelTest, KnowsItsFile) {
  const std::string file = SaveScript(SageScript(2, 3, 4, 1), FileIn("sum"));
  const auto model =
      ScriptModel::Load(file, GraphShape::Homogeneous(2), 2).value();
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(model->checksum(), XXH3_64bits(bytes.data(), bytes.size()));
  EXPECT_EQ(model->outputs(), 4);
}

// Only types that reach the seeds within the layers are needed.
TEST(ScriptModelTest, FarTypesNeedNoFeatures) {
  GraphShape shape = TwoTypes();
  shape.relations.push_back({"c__to__a", 2, 0});
  const std::string file = SaveScript(OneWeight(R"(
def forward(self, x: Dict[str, Tensor], edges: Dict[str, Tensor]):
    return {"b": self.w * x["b"]}
)"),
                                      FileIn("far"));
  EXPECT_TRUE(ScriptModel::Load(file, shape, 1).ok());
  const absl::Status status = ScriptModel::Load(file, shape, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "node type c has no features, and a script is given no embeddings "
            "for it");
  EXPECT_EQ(ReasonOf(status), "script_without_features");
}

TEST(ScriptModelTest, EdgeFeaturesThatAreNeededMustBeThere) {
  const absl::Status status =
      LoadFor(OneWeight(kEdgeSum), GraphShape::Homogeneous(2), "edges")
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "no_edge_features");
}

TEST(ScriptModelTest, ResultsKeepTheirWidth) {
  const auto model = LoadFor(OneWeight(R"(
def forward(self, x, edge_index):
    return (self.w * x)[:, :x.size(0) - 1]
)"),
                             GraphShape::Homogeneous(2), "narrow");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->outputs(), 1);
  EXPECT_THROW((*model)->Forward(ThreeNodes(), {}), c10::Error);
}

TEST(ScriptModelTest, RefusesTypesWithoutFeatures) {
  GraphShape shape = TwoTypes();
  shape.types[0].features = 0;
  EXPECT_THAT(Refusal(OneWeight(kTyped), shape),
              HasSubstr("node type a has no features"));
}

}  // namespace
}  // namespace millrace::testing
