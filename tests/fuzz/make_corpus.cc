// SPDX-License-Identifier: Apache-2.0
// make_fuzz_corpus FOLDER: writes those inputs of tests/fuzz/corpus that come
// from our own code; make_corpus.py writes those in other programs' formats.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/file/npy.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "common/wire/manifest_proto.h"
#include "sampler.pb.h"
#include "server/rpc/expand_handler.h"
#include "tests/fuzz/support/graph.h"
#include "tests/fuzz/support/in_process.h"
#include "tests/fuzz/support/input.h"
#include "tests/support/store_builder.h"

namespace millrace::fuzz {
namespace {

std::filesystem::path corpus;

void Write(const std::string& target, const std::string& name,
           const std::string& bytes) {
  std::filesystem::create_directories(corpus / target);
  std::ofstream(corpus / target / name, std::ios::binary) << bytes;
}

std::string Byte(size_t value) {
  return std::string(1, static_cast<char>(value));
}

// Encodes bytes in the form that Input::Piece reads.
std::string Piece(const std::string& bytes) {
  MILLRACE_CHECK(bytes.size() < 1 << 16);
  return Byte(bytes.size() & 0xff) + Byte(bytes.size() >> 8) + bytes;
}

std::string RequestOf(const FuzzJob& job, int home) {
  v1::SampleRequest request;
  JobToProto(job.spec, *request.mutable_job());
  ColumnsToProto(job.columns, *request.mutable_columns());
  request.set_partition(static_cast<uint32_t>(home));
  const Manifest& manifest = RichStore()->manifest();
  request.set_fingerprint(manifest.fingerprint);
  const auto resolved = ResolveJob(job.spec, manifest);
  MILLRACE_CHECK(resolved.ok());
  UsedSplitsToProto(
      SplitsOfJob(*resolved, manifest, job.explicit_seeds.has_value()),
      *request.mutable_splits());
  if (job.explicit_seeds.has_value()) {
    const ExplicitSeeds& seeds = *job.explicit_seeds;
    const auto ids = [](const std::vector<int64_t>& list) {
      std::string bytes;
      AppendIds(std::vector<uint64_t>(list.begin(), list.end()), DType::kUint32,
                bytes);
      return bytes;
    };
    request.set_explicit_ids(ids(seeds.ids));
    request.set_explicit_dst_ids(ids(seeds.dst));
    request.set_explicit_negative_ids(ids(seeds.negatives));
  }
  return request.SerializeAsString();
}

void WriteStreams() {
  for (size_t number = 0; number < RichJobs().size(); ++number) {
    for (int home = 0; home < kParts; ++home) {
      const std::string name = std::to_string(number) + std::to_string(home);
      const std::string request = RequestOf(RichJobs()[number], home);
      const StreamedAnswer answer = AnswerSample(request);
      if (!answer.status.ok()) {
        std::cerr << "job " << name << ": " << answer.status << "\n";
        continue;
      }
      std::string stream = Byte(number) + Byte(static_cast<size_t>(home));
      for (const std::string& message : answer.messages) {
        stream += Piece(message);
      }
      Write("stream", "job" + name, stream);
      Write("request", "sample" + name, Byte(0) + request);
    }
  }
}

// Writes small requests that ask for huge walks.
void WriteWideWalks() {
  for (const SampleMethod method : {SampleMethod::kWalk, SampleMethod::kPpr}) {
    for (FuzzJob job : RichJobs()) {
      if (job.spec.method != method) continue;
      job.spec.walks = 4000;
      job.spec.walk_length = 250;
      const char* name = method == SampleMethod::kWalk ? "walks" : "visits";
      Write("request", std::string("sample_wide_") + name,
            Byte(0) + RequestOf(job, 0));
    }
  }
}

std::string Ids(const std::vector<uint64_t>& ids,
                DType dtype = DType::kUint32) {
  std::string bytes;
  AppendIds(ids, dtype, bytes);
  return bytes;
}

void WriteGathers() {
  v1::GatherRequest gather;
  gather.set_node_type(1);
  gather.set_ids(Ids({0, 2, 1}));
  for (int column = 0; column <= 5; ++column) {
    gather.set_column(static_cast<v1::NodeColumn>(column));
    Write("request", "gather" + std::to_string(column),
          Byte(1) + gather.SerializeAsString());
  }
  gather.set_column(v1::NODE_COLUMN_FEATURE);
  gather.set_feature_dtype(v1::DTYPE_BFLOAT16);
  Write("request", "gather_cast", Byte(1) + gather.SerializeAsString());
  v1::GatherRequest rows;
  rows.set_edge_relation(0);
  rows.set_rows(Ids({1, 0}, DType::kUint64));
  Write("request", "gather_edges", Byte(1) + rows.SerializeAsString());
}

void WriteExpands() {
  for (int rule = 0; rule <= 4; ++rule) {
    v1::ExpandRequest expand;
    expand.set_rule(static_cast<v1::ExpandRequest::Rule>(rule));
    expand.set_edge_ids(true);
    expand.set_feature_rows(true);
    expand.set_within(rule == 1 ? "train" : "");
    for (uint32_t relation = 0; relation < 3; ++relation) {
      v1::ExpandRequest::Frontier& frontier = *expand.add_frontiers();
      frontier.set_relation(relation);
      frontier.set_fanout(rule == 4 ? -1 : 2);
      frontier.set_ids(Ids({0, 1}));
      if (rule == 2) frontier.set_trees(Ids({0, 1}));
      if (rule == 3) frontier.set_times(Ids({20, 3}, DType::kUint64));
      if (rule == 4) frontier.set_among(Ids({0, 1, 3}));
      frontier.set_excluded_nodes(Ids({1}));
      frontier.set_excluded_neighbors(Ids({0}));
    }
    Write("request", "expand" + std::to_string(rule),
          Byte(2) + expand.SerializeAsString());
  }
}

void WriteLeaves() {
  v1::ResolveRequest resolve;
  resolve.set_node_type(1);
  resolve.set_original_ids(Ids({0, 3}, DType::kUint64));
  Write("request", "resolve", Byte(3) + resolve.SerializeAsString());
  v1::HasEdgesRequest edges;
  edges.set_src_ids(Ids({0, 1, 2}));
  edges.set_dst_ids(Ids({0, 1, 2}));
  Write("request", "has_edges", Byte(4) + edges.SerializeAsString());
}

// Writes replies for replies_fuzz.cc.
void WriteReplies() {
  ServerCore& core = RichServer();
  const ::grpc::CallbackServerContext context;
  for (uint32_t relation = 0; relation < 3; ++relation) {
    v1::ExpandRequest expand;
    expand.set_edge_ids(true);
    expand.set_feature_rows(true);
    v1::ExpandRequest::Frontier& frontier = *expand.add_frontiers();
    frontier.set_relation(relation);
    frontier.set_fanout(2);
    frontier.set_ids(Ids({0, 1}));
    auto memory = core.leaf_admission.Reserve(
        {.client = "client", .end = [] {}}, 0, expand.ByteSizeLong());
    MILLRACE_CHECK(memory.ok());
    v1::ExpandReply reply;
    MILLRACE_CHECK(AnswerExpand(core, context, expand, *memory, reply).ok());
    Write("replies", "expand" + std::to_string(relation),
          Byte(0) + Byte(2 + 4 + relation * 8) + reply.SerializeAsString());
  }
  v1::ResolveReply resolved;
  resolved.set_ids(Ids({2, 0}));
  Write("replies", "resolve", Byte(1) + Byte(0) + resolved.SerializeAsString());
  v1::HasEdgesReply edges;
  edges.set_found(std::string("\0\1\1", 3));
  Write("replies", "has_edges", Byte(2) + Byte(0) + edges.SerializeAsString());
  v1::GatherRequest gather;
  gather.set_node_type(1);
  gather.set_column(v1::NODE_COLUMN_FEATURE);
  gather.set_ids(Ids({0, 2}));
  std::string rows = Byte(3) + Byte(2);
  const StreamedAnswer answer = AnswerGather(gather.SerializeAsString());
  MILLRACE_CHECK(answer.status.ok());
  for (const std::string& message : answer.messages) rows += Piece(message);
  Write("replies", "gather", rows);
}

void WriteManifests() {
  const Manifest& manifest = RichStore()->manifest();
  v1::DescribeReply reply;
  ManifestToProto(manifest, reply);
  Write("describe", "rich", reply.SerializeAsString());
  Manifest pairs = manifest;
  pairs.edge_splits.push_back({.relation = 1,
                               .name = "train",
                               .count = 3,
                               .part_counts = {1, 2},
                               .has_edge_id = true,
                               .label = {DType::kInt64, {}},
                               .negatives = 2});
  pairs.files.push_back(
      {SplitFolder(pairs.schema, pairs.edge_splits.back()) + "label.npy", 88,
       1});
  SetFingerprints(pairs);
  ManifestToProto(pairs, reply);
  Write("describe", "pairs", reply.SerializeAsString());
  v1::ErrorInfo error;
  error.set_partition(3);
  error.set_retry_after_ms(50);
  Write("describe", "error", error.SerializeAsString());
  Write("manifest", "rich", FormatManifest(manifest));
  Write("manifest", "pairs", FormatManifest(pairs));
  const testing::TestGraph small = testing::SmallGraph();
  MILLRACE_CHECK(testing::BuildDataset(small, Scratch() / "small").ok());
  const auto store = Store::Open(Scratch() / "small");
  MILLRACE_CHECK(store.ok());
  Write("manifest", "small", FormatManifest((*store)->manifest()));
}

// Writes patches for store_fuzz.cc: file, offset, bytes.
void WriteDamages() {
  constexpr size_t kFiles = 80;
  for (size_t number = 0; number < RichJobs().size(); ++number) {
    Write("store", "sound" + std::to_string(number), Byte(number));
  }
  // Each patch changes the first value after a header of 128 bytes.
  for (size_t file = 0; file < kFiles; file += 2) {
    Write("store", "value" + std::to_string(file),
          Byte(file % RichJobs().size() | (file & 2) << 6) + Byte(file) +
              Byte(128) + Byte(0) + Byte(2) + "\xff\x7f");
  }
}

void WriteArrays() {
  const std::vector<std::pair<std::string, Array>> arrays = {
      {"int64", Array::Adopt(std::vector<int64_t>{0, 1, 2, 3, 4})},
      {"uint32", Array::Adopt(std::vector<uint32_t>{4, 1, 0})},
      {"float", testing::RampFeature(3, 2)},
      {"mask", Array::Adopt(std::vector<uint8_t>{0, 1, 1, 0, 1})}};
  for (const auto& [name, array] : arrays) {
    const std::filesystem::path path = Scratch() / name;
    MILLRACE_CHECK(WriteNpy(path, array).ok());
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    for (size_t kind = 0; kind < 5; ++kind) {
      Write("npy", name + std::to_string(kind), Byte(kind) + bytes);
    }
  }
}

}  // namespace
}  // namespace millrace::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_fuzz_corpus FOLDER\n";
    return 2;
  }
  millrace::fuzz::corpus = argv[1];
  millrace::fuzz::WriteStreams();
  millrace::fuzz::WriteWideWalks();
  millrace::fuzz::WriteGathers();
  millrace::fuzz::WriteExpands();
  millrace::fuzz::WriteLeaves();
  millrace::fuzz::WriteReplies();
  millrace::fuzz::WriteManifests();
  millrace::fuzz::WriteDamages();
  millrace::fuzz::WriteArrays();
  return 0;
}
