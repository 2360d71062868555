// SPDX-License-Identifier: Apache-2.0
#include "client/field_words.h"

#include <gtest/gtest.h>

#include <utility>

namespace millrace {
namespace {

TEST(FieldWordsTest, FieldsAndWordsStandForEachOther) {
  for (const auto& [field, word] :
       {std::pair("seed_kind", "seeds"), std::pair("seeds", "seeds-file"),
        std::pair("aggregation", "aggr"),
        std::pair("average_degree", "avg-degree"),
        std::pair("bases", "num-bases"), std::pair("node_counts", "num-nodes"),
        std::pair("predict_embeddings", "output embeddings"),
        std::pair("batch_size", "batch-size"),
        std::pair("tls_server_name", "tls-server-name"),
        std::pair("lr", "lr")}) {
    EXPECT_EQ(WordOfField(field), word);
    EXPECT_EQ(FieldOfWord(word), field);
  }
}

}  // namespace
}  // namespace millrace
