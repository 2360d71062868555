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
#include "common/sample/batch_arrays.h"

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

// Hashes the arrays of a group that have this rule.
void HashArrays(const Batch& batch, ArrayGroup group, int index,
                DigestRule rule, Hasher& hasher) {
  for (const BatchArray& array : ArraysOf(group)) {
    if (array.digest != rule) continue;
    const Array values = array.Get(batch, index);
    if (rule == DigestRule::kIfPresent && !values.present()) continue;
    hasher.Whole(values);
  }
}

void HashNodes(const Batch& batch, int type, Hasher& hasher) {
  const NodeBlock& block = batch.nodes[type];
  MILLRACE_CHECK(block.original_id.present());
  hasher.Whole(block.original_id);
  HashArrays(batch, ArrayGroup::kNodes, type, DigestRule::kAlways, hasher);
  HashArrays(batch, ArrayGroup::kNodes, type, DigestRule::kIfPresent, hasher);
}

void HashEdges(const Batch& batch, const Schema& schema, int index,
               Hasher& hasher) {
  const EdgeBlock& block = batch.edges[index];
  MILLRACE_CHECK(block.edge_id.present());
  const EdgePlaces places =
      PlacesOfEdges(batch, schema.relations[index], block);
  hasher.Values(places.hop);
  if (batch.direction == Direction::kIn) {
    hasher.Whole(block.neighbor);
    hasher.Values(places.owner);
  } else {
    hasher.Values(places.owner);
    hasher.Whole(block.neighbor);
  }
  HashArrays(batch, ArrayGroup::kEdges, index, DigestRule::kAlways, hasher);
  HashArrays(batch, ArrayGroup::kEdges, index, DigestRule::kIfPresent, hasher);
}

}  // namespace

Sha256 DigestBatch(const Batch& batch, const Schema& schema) {
  Hasher hasher;
  constexpr std::string_view kMagic = "millrace";
  hasher.Bytes(kMagic.data(), kMagic.size());
  hasher.U32(kSamplingVersion);
  hasher.U32(static_cast<uint32_t>(batch.seed_kind));
  const bool edges = batch.seed_kind == SeedKind::kEdge;
  hasher.U32(static_cast<uint32_t>(edges ? batch.edge_seeds.relation
                                         : batch.seed_type));
  const ArrayGroup seeds = ArrayGroup::kSeeds;
  HashArrays(batch, seeds, 0, DigestRule::kAlways, hasher);
  if (edges) HashArrays(batch, seeds, 0, DigestRule::kEdgeSeeds, hasher);
  const int types = static_cast<int>(batch.nodes.size());
  const int relations = static_cast<int>(batch.edges.size());
  hasher.U32(static_cast<uint32_t>(types));
  for (int t = 0; t < types; ++t) HashNodes(batch, t, hasher);
  hasher.U32(static_cast<uint32_t>(relations));
  for (int r = 0; r < relations; ++r) HashEdges(batch, schema, r, hasher);
  HashArrays(batch, seeds, 0, DigestRule::kIfPresent, hasher);
  const NodeBlock& labelled = batch.nodes[batch.seed_type];
  if (edges) {
    hasher.Absent();
  } else {
    hasher.Rows(labelled.label, labelled.hop_offsets[1]);
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
