// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model_kind.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

TEST(ModelKindTest, FindsEachKindByItsName) {
  for (const ModelKindInfo& info : kModelKinds) {
    const auto kind = ModelKindFromName(info.name);
    ASSERT_TRUE(kind.ok()) << kind.status();
    EXPECT_EQ(*kind, info.kind);
    EXPECT_EQ(&InfoOf(*kind), &info);
  }
}

TEST(ModelKindTest, AllButEmbeddingsAndScriptsHaveLayers) {
  for (const ModelKindInfo& info : kModelKinds) {
    const int makers =
        (info.make_conv != nullptr) + (info.make_layer != nullptr);
    const bool none =
        info.kind == ModelKind::kEmbedding || info.kind == ModelKind::kScript;
    EXPECT_EQ(makers, none ? 0 : 1) << info.name;
  }
}

TEST(ModelKindTest, ErrorsForUnknownNamesListTheKnownOnes) {
  const absl::Status status = ModelKindFromName("resnet").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "model \"resnet\": is not one of sage, gat, gatv2, gcn, gin, rgcn, "
            "embedding, script:FILE");
}

TEST(ModelKindTest, NamesTheKindsThatReadAnOption) {
  EXPECT_EQ(KindsWith(&ModelKindInfo::reads_heads),
            (std::vector<std::string>{"gat", "gatv2"}));
  EXPECT_EQ(KindsWith(&ModelKindInfo::reads_aggr),
            std::vector<std::string>{"sage"});
}

}  // namespace
}  // namespace millrace
