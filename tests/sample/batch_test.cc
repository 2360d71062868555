// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(BatchTest, TotalBytesCountsEveryArray) {
  Batch batch;
  batch.nodes.resize(2);
  batch.edges.resize(2);
  EdgeSeedBlock& pairs = batch.edge_seeds;
  NodeBlock& nodes = batch.nodes[1];
  EdgeBlock& edges = batch.edges[1];
  size_t bytes = 0;
  for (Array* array : {&batch.seed,
                       &batch.seed_time,
                       &batch.seed_to_local,
                       &batch.walks,
                       &pairs.dst,
                       &pairs.label,
                       &pairs.edge_type,
                       &pairs.negative_src,
                       &pairs.negative_dst,
                       &pairs.dst_local,
                       &pairs.negative_src_local,
                       &pairs.negative_local,
                       &pairs.false_negatives,
                       &nodes.id,
                       &nodes.tree,
                       &nodes.original_id,
                       &nodes.degree,
                       &nodes.feature,
                       &nodes.label,
                       &edges.indptr,
                       &edges.neighbor,
                       &edges.edge_id,
                       &edges.hop,
                       &edges.visits,
                       &edges.feature,
                       &edges.feature_row}) {
    *array = Array::Allocate(DType::kUint8, {3});
    bytes += 3;
    EXPECT_EQ(batch.total_bytes(), bytes);
  }
}

}  // namespace
}  // namespace millrace
