// SPDX-License-Identifier: Apache-2.0
#include "common/sample/digest.h"

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/graph/manifest.h"

namespace millrace {
namespace {

// SHA-256 over little-endian pieces; section 7 names them.
class Hasher {
 public:
  Hasher() : context_(EVP_MD_CTX_new()) {
    MILLRACE_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  }

  void Bytes(const void* data, size_t size) {
    MILLRACE_CHECK(EVP_DigestUpdate(context_.get(), data, size));
  }
  void U32(uint32_t value) { Bytes(&value, sizeof(value)); }
  void U64(uint64_t value) { Bytes(&value, sizeof(value)); }

  void Absent() { U32(0); }
  void ArrayHeader(DType dtype, std::span<const int64_t> shape) {
    U32(static_cast<uint32_t>(dtype));
    U32(static_cast<uint32_t>(shape.size()));
    for (const int64_t extent : shape) U64(static_cast<uint64_t>(extent));
  }
  // The first `rows` rows of an array, or all of it.
  void Rows(const Array& array, int64_t rows) {
    if (!array.present()) return Absent();
    std::vector<int64_t> shape = array.shape();
    shape[0] = rows;
    ArrayHeader(array.dtype(), shape);
    Bytes(array.data(), array.row_bytes() * static_cast<size_t>(rows));
  }
  void Whole(const Array& array) { Rows(array, array.rows()); }
  template <typename T>
  void Values(const std::vector<T>& values) {
    const int64_t size = static_cast<int64_t>(values.size());
    ArrayHeader(kDTypeOf<T>, std::span(&size, 1));
    Bytes(values.data(), values.size() * sizeof(T));
  }

  Sha256 Finish() {
    Sha256 hash;
    unsigned int size = 0;
    MILLRACE_CHECK(EVP_DigestFinal_ex(context_.get(), hash.data(), &size));
    MILLRACE_CHECK(size == hash.size());
    return hash;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

void HashEdges(const Batch& batch, const Relation& relation,
               const EdgeBlock& block, Hasher& hasher) {
  const EdgePlaces places = PlacesOfEdges(batch, relation, block);
  hasher.Values(places.hop);
  if (batch.direction == Direction::kIn) {
    hasher.Whole(block.neighbor);
    hasher.Values(places.owner);
  } else {
    hasher.Values(places.owner);
    hasher.Whole(block.neighbor);
  }
  hasher.Whole(block.edge_id);
  if (block.visits.present()) hasher.Whole(block.visits);
}

}  // namespace

Sha256 DigestBatch(const Batch& batch, const Schema& schema) {
  Hasher hasher;
  constexpr std::string_view kMagic = "millrace";
  hasher.Bytes(kMagic.data(), kMagic.size());
  hasher.U32(kSamplingVersion);
  hasher.U32(static_cast<uint32_t>(batch.seed_kind));
  const bool edges = batch.seed_kind == SeedKind::kEdge;
  const EdgeSeedBlock& pairs = batch.edge_seeds;
  hasher.U32(static_cast<uint32_t>(edges ? pairs.relation : batch.seed_type));
  hasher.Whole(batch.seed);
  hasher.Whole(batch.seed_time);
  hasher.Whole(pairs.negative_dst);
  hasher.Whole(batch.seed_to_local);
  if (edges) {
    for (const Array* array :
         {&pairs.dst, &pairs.label, &pairs.edge_type, &pairs.negative_src,
          &pairs.dst_local, &pairs.negative_src_local, &pairs.negative_local}) {
      hasher.Whole(*array);
    }
  }
  hasher.U32(static_cast<uint32_t>(batch.nodes.size()));
  for (const NodeBlock& block : batch.nodes) {
    MILLRACE_CHECK(block.original_id.present());
    hasher.Whole(block.original_id);
    hasher.Whole(block.tree);
  }
  hasher.U32(static_cast<uint32_t>(batch.edges.size()));
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    MILLRACE_CHECK(batch.edges[r].edge_id.present());
    HashEdges(batch, schema.relations[r], batch.edges[r], hasher);
  }
  if (batch.walks.present()) hasher.Whole(batch.walks);
  const NodeBlock& seeds = batch.nodes[batch.seed_type];
  if (edges) {
    hasher.Absent();
  } else {
    hasher.Rows(seeds.label, seeds.hop_offsets[1]);
  }
  for (const NodeBlock& block : batch.nodes) hasher.Whole(block.feature);
  for (const EdgeBlock& block : batch.edges) hasher.Whole(block.feature);
  return hasher.Finish();
}

Columns DigestColumns(bool features, bool edge_features) {
  Columns columns;
  columns.features = features;
  columns.edge_features = edge_features;
  columns.original_ids = true;
  columns.edge_ids = true;
  columns.labels = LabelRows::kSeeds;
  return columns;
}

std::string Hex(const Sha256& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : hash) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

struct DigestTotal::State {
  Hasher hasher;
};

DigestTotal::DigestTotal() : state_(std::make_unique<State>()) {}
DigestTotal::~DigestTotal() = default;

void DigestTotal::Add(const Sha256& digest) {
  state_->hasher.Bytes(digest.data(), digest.size());
}

Sha256 DigestTotal::Finish() { return state_->hasher.Finish(); }

}  // namespace millrace
