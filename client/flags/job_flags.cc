// SPDX-License-Identifier: Apache-2.0
#include "client/flags/job_flags.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/block.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/cli/program.h"
#include "common/cli/words.h"
#include "common/grpc/fleet/address_list.h"
#include "common/table/npy_rows.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

// Sets the fanouts of `spec` from "15,10" and "S__R__D=15,10".
absl::Status AddFanouts(const std::vector<std::string>& values, JobSpec& spec) {
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos) {
      if (!spec.fanouts.empty()) {
        return UsageError(
            "--fanouts was given twice without a relation; write "
            "--fanouts SRC__REL__DST=15,10 for each relation");
      }
      MILLRACE_ASSIGN_OR_RETURN(spec.fanouts, ParseFanouts("--fanouts", value));
      continue;
    }
    const std::string relation(
        absl::StripAsciiWhitespace(value.substr(0, equals)));
    MILLRACE_ASSIGN_OR_RETURN(
        Fanouts fanouts, ParseFanouts("--fanouts", value.substr(equals + 1)));
    if (!spec.relation_fanouts.emplace(relation, std::move(fanouts)).second) {
      return UsageError(StrCat("--fanouts names ", relation, " twice"));
    }
  }
  return absl::OkStatus();
}

const std::map<std::string, SampleMethod> kMethods = {
    {"uniform", SampleMethod::kUniform},
    {"labor", SampleMethod::kLabor},
    {"walk", SampleMethod::kWalk},
    {"ppr", SampleMethod::kPpr},
    {"induced", SampleMethod::kInduced}};
const std::map<std::string, SeedKind> kSeedKinds = {
    {"node", SeedKind::kNode},
    {"edge", SeedKind::kEdge},
    {"graph", SeedKind::kGraph}};
const std::map<std::string, ExcludeSeedEdges> kExclude = {
    {"", ExcludeSeedEdges::kNone},
    {"none", ExcludeSeedEdges::kNone},
    {"self", ExcludeSeedEdges::kSelf},
    {"reverse", ExcludeSeedEdges::kReverse}};
const std::map<std::string, NegativeMode> kNegatives = {
    {"binary", NegativeMode::kBinary},
    {"triplet", NegativeMode::kTriplet},
    {"shared", NegativeMode::kShared},
    {"in-batch", NegativeMode::kInBatch}};
const std::map<std::string, TemporalStrategy> kTemporal = {
    {"", TemporalStrategy::kNone},
    {"uniform", TemporalStrategy::kUniform},
    {"last", TemporalStrategy::kLast}};

// Value of JobSpec::train_graph for "full" or "induced:SPLIT".
absl::StatusOr<std::string> ParseTrainGraph(const std::string& text) {
  constexpr std::string_view kInduced = "induced:";
  if (text == "full") return std::string();
  if (text.starts_with(kInduced) && text.size() > kInduced.size()) {
    return text.substr(kInduced.size());
  }
  return UsageError(
      StrCat("--train-graph \"", text,
             "\" is neither full nor induced:SPLIT, e.g. induced:train"));
}

}  // namespace

absl::StatusOr<Fanouts> ParseFanouts(const std::string& option,
                                     const std::string& text) {
  Fanouts fanouts;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int32_t fanout = 0;
    // SimpleAtoi ignores blanks around the number.
    if (!absl::SimpleAtoi(item, &fanout) || fanout < kAllNeighbors) {
      return UsageError(
          StrCat(option, " \"", text, "\": \"", item,
                 "\" is not a number of at least -1 (all neighbours); write "
                 "e.g. 15,10,5"));
    }
    fanouts.push_back(fanout);
  }
  return fanouts;
}

absl::StatusOr<Negatives> ParseNegatives(const std::string& option,
                                         const std::string& text) {
  Negatives negatives;
  if (text.empty()) return negatives;
  const size_t colon = text.find(':');
  const auto mode = kNegatives.find(text.substr(0, colon));
  const bool number =
      colon != std::string::npos &&
      absl::SimpleAtod(text.substr(colon + 1), &negatives.amount);
  if (mode == kNegatives.end() ||
      number == (mode->second == NegativeMode::kInBatch)) {
    return UsageError(
        StrCat(option, " \"", text,
               "\" is not one of binary:R, triplet:K, shared:K, in-batch"));
  }
  negatives.mode = mode->second;
  return negatives;
}

CLI::Validator ServerList() {
  return CLI::Validator(
      [](const std::string& list) {
        return std::string(AddressList::Parse(list).status().message());
      },
      "");
}

void AddTlsFlags(CLI::App& app, TlsOptions& tls) {
  CLI::Option_group* group = app.add_option_group("TLS");
  group
      ->add_option("--tls-ca", tls.ca,
                   "--servers over TLS: PEM file of the CA that signs their "
                   "certificates")
      ->type_name("FILE");
  group
      ->add_option("--tls-cert", tls.cert,
                   "mutual TLS: PEM file of this client's certificate; all "
                   "files are read again when they change")
      ->type_name("FILE");
  group
      ->add_option("--tls-key", tls.key,
                   "mutual TLS: PEM file of the key of --tls-cert")
      ->type_name("FILE");
  group
      ->add_option("--tls-server-name", tls.server_name,
                   "name that servers' certificates must have, instead of the "
                   "host in --servers")
      ->type_name("NAME");
}

CLI::Option* AddServersFlag(CLI::App& group, std::string& servers) {
  return group
      .add_option("--servers", servers,
                  "fleet: host:port,host:port | @FILE | dns:///name:port")
      ->type_name("LIST")
      ->check(ServerList());
}

void SourceFlags::AddTo(CLI::App& app) {
  CLI::Option_group* source = app.add_option_group("Source");
  source
      ->add_option("--store", store_,
                   "dataset or store: batches are made in this process")
      ->type_name("STORE");
  AddServersFlag(*source, servers_);
  source->require_option(1);
}

void SourceFlags::AddConnectionTo(CLI::App& app) {
  AddTlsFlags(app, tls_);
  CLI::Option_group* fetching = app.add_option_group("Fetching");
  fetching
      ->add_option("--threads", threads_,
                   "threads of this process; 0: one per core")
      ->check(WholeNumber(0, 1024));
  fetching
      ->add_option("--partition-wait", partition_wait_,
                   "how long to wait for a partition that no server serves")
      ->type_name("DURATION");
  fetching
      ->add_option("--cache-ratio", cache_ratio_,
                   "--servers: share of each partition's feature rows, the "
                   "hottest, that this process fetches once and keeps; of "
                   "workers on one host each holds its own")
      ->check(Number(0, 1));
}

absl::StatusOr<std::shared_ptr<BatchSource>> SourceFlags::Open() const {
  SourceOptions options;
  options.store = store_;
  options.servers = servers_;
  options.tls = tls_;
  options.threads = threads_;
  options.cache_ratio = cache_ratio_;
  if (!absl::ParseDuration(partition_wait_, &options.partition_wait) ||
      options.partition_wait < absl::ZeroDuration()) {
    return UsageError(StrCat("--partition-wait \"", partition_wait_,
                             "\" is not a duration; write e.g. 20s or 5m"));
  }
  KeepFreedMemory();
  return OpenSource(options);
}

void JobFlags::AddTo(CLI::App& app) {
  AddSeeds(*app.add_option_group("Seeds"));
  AddSampling(*app.add_option_group("Sampling"));
  AddEdgeSeeds(*app.add_option_group("Edge seeds"));
  AddColumns(*app.add_option_group("Columns"));
  CLI::Option_group* fetching = app.add_option_group("Fetching");
  fetching
      ->add_option("--prefetch-batches", prefetch_batches_,
                   "batches fetched ahead")
      ->check(AtLeast(1));
  fetching
      ->add_option("--prefetch-bytes", prefetch_bytes_,
                   "bytes fetched ahead (K, M, G)")
      ->transform(ByteSize())
      ->default_str("1G");
}

void JobFlags::AddSeeds(CLI::App& group) {
  group.add_option("--seeds", seed_kind_, "what batches are built around")
      ->check(OneOf(kSeedKinds));
  group.add_option("--split", split_, "split that the seeds come from")
      ->type_name("NAME");
  group
      .add_option("--type", type_,
                  "node type of the seeds, or relation of edge seeds; not "
                  "needed where only one has the split")
      ->type_name("TYPE");
  group
      .add_option("--seeds-file", seeds_file_,
                  "seeds by original id (.npy), instead of a split: [n], or "
                  "[n, 2] with their times; edges: [n, 2] sources and "
                  "destinations, or [n, 3] with times")
      ->type_name("FILE");
  CLI::Option* per_trainer =
      group.add_option("--batch-size", batch_size_, "seeds of one batch")
          ->check(AtLeast(1));
  group
      .add_option("--global-batch-size", global_batch_size_,
                  "seeds of one step over all trainers")
      ->check(AtLeast(1))
      ->excludes(per_trainer);
  group.add_option("--seed", seed_, "seed of all random draws");
  group.add_flag("--shuffle,!--no-shuffle", shuffle_,
                 "permute the seeds anew each epoch, as is the default, or "
                 "keep their order");
  group
      .add_option("--seed-order", seed_order_,
                  "global, or local: one partition's seeds per batch")
      ->check(OneOf({"global", "local"}));
  group.add_flag("--drop-last", drop_last_,
                 "leave out the batch smaller than the rest, and the ragged "
                 "step");
}

void JobFlags::AddSampling(CLI::App& group) {
  group
      .add_option("--fanouts", fanouts_,
                  "neighbours per node and hop: 15,10,5, or per relation: "
                  "SRC__REL__DST=15,10 (repeatable); -1 all, 0 none")
      ->type_name("N,N,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  group
      .add_option("--method", method_,
                  "uniform; labor: neighbours that frontier nodes share; walk: "
                  "random walks; ppr: what walks visit most; induced: all "
                  "edges among the sampled nodes")
      ->check(OneOf(kMethods));
  group
      .add_option("--direction", direction_,
                  "follow in-edges or out-edges from the seeds")
      ->check(OneOf({"in", "out"}));
  group.add_flag("--replace", replace_, "draw with replacement");
  group.add_flag("--disjoint", disjoint_, "one tree per seed");
  group.add_flag("--weighted", weighted_, "draw by the edges' weights");
  group
      .add_option("--temporal", temporal_,
                  "draw among edges and nodes not later than the seed, "
                  "uniformly or the last ones; implies --disjoint")
      ->check(OneOf({"uniform", "last"}));
  group
      .add_option("--train-graph", train_graph_,
                  "full, or induced:SPLIT: only nodes of that split are "
                  "neighbours, for inductive training")
      ->type_name("full|induced:SPLIT");
  AddWalks(group);
}

void JobFlags::AddWalks(CLI::App& group) {
  group.add_option("--walks", walks_, "walk, ppr: walks from each node");
  group.add_option("--walk-length", walk_length_, "walk, ppr: steps of a walk");
  group.add_option("--restart", restart_,
                   "ppr: chance that a walk ends before a step; 0.15 if not "
                   "given");
  group
      .add_option("--metapath", metapath_,
                  "walk, ppr: relations of the steps, in turn; not needed "
                  "where there is only one")
      ->type_name("SRC__REL__DST,...")
      ->delimiter(',');
}

void JobFlags::AddEdgeSeeds(CLI::App& group) {
  group
      .add_option("--negatives", negatives_,
                  "binary:R pairs a seed, triplet:K destinations a seed, "
                  "shared:K for the batch, in-batch")
      ->type_name("KIND");
  group
      .add_option("--exclude-seed-edges", exclude_seed_edges_,
                  "leave the seeds' edges out of the batch: none, self, or "
                  "reverse: their reverses too")
      ->check(OneOf({"none", "self", "reverse"}));
}

void JobFlags::AddColumns(CLI::App& group) {
  group.add_option("--labels", labels_, "labels of the seeds, or of all nodes")
      ->check(OneOf({"seeds", "all"}));
  group.add_flag("--no-features", no_features_, "topology and ids only");
  group.add_flag("--edge-features", edge_features_, "features of edges too");
  group
      .add_option("--feature-dtype", feature_dtype_,
                  "cast of features on the wire; without it as stored")
      ->check(OneOf({"float32", "float16", "bfloat16"}));
}

absl::StatusOr<JobSpec> JobFlags::Spec(int world) const {
  JobSpec spec;
  spec.seed = seed_;
  spec.seed_type = type_;
  spec.split = split_;
  MILLRACE_RETURN_IF_ERROR(AddFanouts(fanouts_, spec));
  spec.batch_size = batch_size_;
  if (global_batch_size_.has_value()) {
    if (*global_batch_size_ < world || *global_batch_size_ % world != 0) {
      return UsageError(StrCat("--global-batch-size ", *global_batch_size_,
                               " does not divide by the world size ", world,
                               "; use a multiple of it"));
    }
    spec.batch_size = *global_batch_size_ / world;
  }
  spec.shuffle = shuffle_;
  spec.seed_order =
      seed_order_ == "local" ? SeedOrder::kLocal : SeedOrder::kGlobal;
  spec.drop_last = drop_last_;
  spec.replace = replace_;
  spec.disjoint = disjoint_;
  spec.direction = direction_ == "out" ? Direction::kOut : Direction::kIn;
  spec.method = kMethods.at(method_);
  spec.weighted = weighted_;
  spec.temporal = kTemporal.at(temporal_);
  spec.walks = walks_;
  spec.walk_length = walk_length_;
  if (restart_.has_value() && spec.method != SampleMethod::kPpr) {
    return UsageError(
        "--restart needs --method ppr\nleave it out, or say which");
  }
  spec.restart = restart_.value_or(spec.restart);
  spec.metapath = metapath_;
  MILLRACE_ASSIGN_OR_RETURN(spec.train_graph, ParseTrainGraph(train_graph_));
  spec.seed_kind = kSeedKinds.at(seed_kind_);
  MILLRACE_ASSIGN_OR_RETURN(spec.negatives,
                            ParseNegatives("--negatives", negatives_));
  spec.exclude = kExclude.at(exclude_seed_edges_);
  return spec;
}

absl::StatusOr<JobSpec> JobFlags::SamplingSpec() const {
  if (fanouts_.empty() && method_ != "walk" && method_ != "induced" &&
      seed_kind_ != "graph") {
    return UsageError(
        "--fanouts is needed: the neighbours to draw per node, a number for "
        "each hop\ngive e.g. --fanouts 15,10,5, or --fanouts 0 for the seeds "
        "alone");
  }
  return Spec();
}

bool JobFlags::InferSeedType(const Manifest& manifest, JobSpec& spec) const {
  const Schema& schema = manifest.schema;
  const bool edges = spec.seed_kind == SeedKind::kEdge;
  const size_t types =
      edges ? schema.relations.size() : schema.node_types.size();
  if (!spec.seed_type.empty() || has_seeds_file() || types == 1 ||
      spec.seed_kind == SeedKind::kGraph) {
    return false;
  }
  std::vector<std::string> with_split;
  for (const SplitInfo& split : manifest.splits) {
    if (edges || split.name != spec.split) continue;
    with_split.push_back(schema.node_types[split.type].name);
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    if (!edges || split.name != spec.split) continue;
    with_split.push_back(schema.RelationName(split.relation));
  }
  if (with_split.size() != 1) return false;
  spec.seed_type = with_split[0];
  return true;
}

absl::StatusOr<Columns> JobFlags::WantedColumns() const {
  Columns columns;
  columns.features = !no_features_;
  columns.edge_features = edge_features_;
  columns.labels = labels_ == "all" ? LabelRows::kAll : LabelRows::kSeeds;
  if (!feature_dtype_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(columns.feature_dtype,
                              DTypeFromName(feature_dtype_));
  }
  return columns;
}

absl::StatusOr<std::optional<SeedList>> JobFlags::Seeds(SeedKind kind) const {
  if (seeds_file_.empty()) return std::nullopt;
  const absl::StatusOr<Array> read = ReadNpyIntegers(seeds_file_);
  if (absl::IsInvalidArgument(read.status())) {
    return UsageError(StrCat("--seeds-file ", read.status().message()));
  }
  MILLRACE_ASSIGN_OR_RETURN(const Array array, read);
  const std::vector<int64_t>& shape = array.shape();
  const int64_t width = shape.size() == 2 ? shape[1] : 1;
  const bool edges = kind == SeedKind::kEdge;
  const int64_t ends = edges ? 2 : 1;
  if (width < ends || width > ends + 1) {
    return UsageError(StrCat(
        "--seeds-file ", seeds_file_, " has the shape (",
        absl::StrJoin(shape, ", "), "); it must be ",
        edges ? "(n, 2), or (n, 3) with times" : "(n), or (n, 2) with times"));
  }
  SeedList seeds;
  for (int64_t i = 0; i < array.rows(); ++i) {
    seeds.ids.push_back(array.IntegerAt(i * width));
    if (edges) seeds.dst.push_back(array.IntegerAt(i * width + 1));
    if (width > ends) seeds.times.push_back(array.IntegerAt(i * width + ends));
  }
  return seeds;
}

void LogSeedType(const JobSpec& spec) {
  spdlog::info("seeds are of --type {}, which alone has a split {}",
               spec.seed_type, spec.split);
}

}  // namespace millrace
