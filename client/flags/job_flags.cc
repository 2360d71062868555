// SPDX-License-Identifier: Apache-2.0
#include "client/flags/job_flags.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/block.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/durations.h"
#include "common/cli/numbers.h"
#include "common/cli/program.h"
#include "common/cli/words.h"
#include "common/grpc/fleet/address_list.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

std::vector<std::string> OfferedWords(const WordField& field) {
  std::vector<std::string> words;
  for (const OptionWord& word : field.words) {
    if (word.offered) words.emplace_back(word.word);
  }
  return words;
}

std::string DefaultWord(const WordField& field) {
  const int number = field.get(JobSpec());
  for (const OptionWord& word : field.words) {
    if (word.number == number) return std::string(word.word);
  }
  return "";
}

// The texts of an option that has no default and was not given.
const std::vector<std::string> kNotGiven = {""};

void SetWord(const WordField& field, std::string_view text, JobSpec& spec) {
  for (const OptionWord& word : field.words) {
    if (word.word == text) field.set(spec, word.number);
  }
}

}  // namespace

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
                   "files are reloaded when they change")
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

void SourceFlags::AddConnectionTo(CLI::App& app,
                                  const std::string& default_gpus) {
  AddTlsFlags(app, tls_);
  CLI::Option_group* fetching = app.add_option_group("Fetching");
  fetching
      ->add_option("--threads", threads_,
                   "threads of this process; 0 means one per core")
      ->check(WholeNumber(0, 1024));
  fetching
      ->add_option("--partition-wait", partition_wait_,
                   "how long to wait for a partition that no server serves")
      ->type_name("DURATION");
  fetching
      ->add_option("--trace-slow", trace_slow_,
                   "--servers: log where a batch spent its time if it took "
                   "longer to arrive than this, such as 500ms; at most 10 "
                   "batches a second; 0 turns this off")
      ->type_name("DURATION");
  fetching
      ->add_option("--cache-ratio", cache_ratio_,
                   "--servers: share of each partition's feature rows, "
                   "hottest first, that this process fetches once and keeps, "
                   "on its GPU if it trains on one; each worker on a host "
                   "keeps its own copy. --store: the share that GPUs keep, "
                   "while the others are pinned")
      ->check(Number(0, 1));
  memory_.AddTo(*fetching, "--store: ", default_gpus);
}

std::string SourceFlags::Describe() const {
  return store_.empty() ? StrCat("servers ", servers_)
                        : StrCat("store ", store_);
}

absl::StatusOr<SourceOptions> SourceFlags::Options(
    const std::optional<OwnGpu>& gpu) const {
  SourceOptions options;
  options.store = store_;
  options.servers = servers_;
  options.tls = tls_;
  options.threads = threads_;
  options.cache_ratio = cache_ratio_;
  options.memory = memory_.Options();
  const bool uses_gpus =
      !store_.empty() && (options.memory.uses_devices() || cache_ratio_ != 0);
  if (gpu.has_value()) {
    options.device_cache = gpu->cache;
    std::vector<int>& gpus = options.memory.gpus;
    if (uses_gpus && !memory_.names_gpus()) gpus = {gpu->device};
    options.memory.gpus_read_pinned =
        uses_gpus && std::ranges::find(gpus, gpu->device) != gpus.end();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      options.partition_wait,
      ParseDurationOption("--partition-wait", partition_wait_));
  MILLRACE_ASSIGN_OR_RETURN(options.trace_slow,
                            ParseDurationOption("--trace-slow", trace_slow_));
  return options;
}

void SourceFlags::ReadFromServers(const std::string& servers) {
  store_.clear();
  servers_ = servers;
  memory_ = MemoryFlags();
}

absl::StatusOr<std::shared_ptr<BatchSource>> SourceFlags::Open(
    const std::optional<OwnGpu>& gpu) const {
  MILLRACE_ASSIGN_OR_RETURN(const SourceOptions options, Options(gpu));
  KeepFreedMemory();
  return OpenSource(options);
}

void JobFlags::AddTo(CLI::App& app) {
  using Group = JobOption::Group;
  AddGroup(*app.add_option_group("Seeds"), Group::kSeeds);
  AddGroup(*app.add_option_group("Sampling"), Group::kSampling);
  AddGroup(*app.add_option_group("Edge seeds"), Group::kEdgeSeeds);
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

CLI::Option* JobFlags::AddOption(CLI::App& group, const JobOption& row) {
  const std::string name = StrCat("--", row.option);
  const std::string help(row.help);
  const auto add = [&](auto& value) {
    return group.add_option(name, value, help);
  };
  CLI::Option* option = std::visit(
      [&]<typename T>(const T& field) -> CLI::Option* {
        if constexpr (std::is_same_v<T, WordField>) {
          std::string& text = texts_[row.name].emplace_back();
          if (row.shows_default) text = DefaultWord(field);
          return add(text)->check(OneOf(OfferedWords(field)));
        } else if constexpr (std::is_same_v<T, TextField>) {
          std::vector<std::string>& texts = texts_[row.name];
          if (field.repeatable) {
            return add(texts)->expected(1)->multi_option_policy(
                CLI::MultiOptionPolicy::TakeAll);
          }
          std::string& text = texts.emplace_back();
          if (row.shows_default) text = field.format(spec_);
          return add(text);
        } else if constexpr (std::is_same_v<T, bool JobSpec::*>) {
          const std::string both = StrCat(name, ",!--no-", row.option);
          return group.add_flag(spec_.*field ? both : name, spec_.*field, help);
        } else if constexpr (std::is_same_v<T, double JobSpec::*>) {
          return row.shows_default ? add(spec_.*field)
                                   : add(numbers_[row.name]);
        } else {
          return add(spec_.*field);
        }
      },
      row.field);
  if (std::holds_alternative<std::vector<std::string> JobSpec::*>(row.field)) {
    option->delimiter(',');
  }
  if (!row.value_name.empty()) option->type_name(std::string(row.value_name));
  return option;
}

void JobFlags::AddGroup(CLI::App& group, JobOption::Group rows) {
  for (const JobOption& row : JobOptions()) {
    if (row.group != rows) continue;
    CLI::Option* option = AddOption(group, row);
    // Two options are not fields of a job; they are added beside the fields
    // that they belong with.
    if (row.name == "seed_type") AddSeedsFile(group);
    if (row.name == "batch_size") AddGlobalBatchSize(group, option);
  }
}

void JobFlags::AddSeedsFile(CLI::App& group) {
  group
      .add_option("--seeds-file", seeds_file_,
                  "seeds by original id (.npy), instead of a split: [n], or "
                  "[n, 2] with their times; edges: [n, 2] sources and "
                  "destinations, or [n, 3] with times")
      ->type_name("FILE");
}

void JobFlags::AddGlobalBatchSize(CLI::App& group, CLI::Option* batch_size) {
  group
      .add_option("--global-batch-size", global_batch_size_,
                  "seeds per step, over all trainers")
      ->check(AtLeast(1))
      ->excludes(batch_size->check(AtLeast(1)));
}

void JobFlags::AddColumns(CLI::App& group) {
  group.add_option("--labels", labels_, "labels of the seeds, or of all nodes")
      ->check(OneOf({"seeds", "all"}));
  group.add_flag("--no-features", no_features_, "topology and ids only");
  group.add_flag("--edge-features", edge_features_, "also fetch edge features");
  group
      .add_option("--feature-dtype", feature_dtype_,
                  "dtype of features on the wire; by default, as stored")
      ->check(OneOf({"float32", "float16", "bfloat16"}));
}

absl::StatusOr<JobSpec> JobFlags::Spec(int world) const {
  JobSpec spec = spec_;
  for (const JobOption& row : JobOptions()) {
    const auto given = texts_.find(row.name);
    if (given == texts_.end() || given->second.empty()) continue;
    if (given->second == kNotGiven && !row.shows_default) continue;
    if (const auto* field = std::get_if<WordField>(&row.field)) {
      SetWord(*field, given->second.back(), spec);
    } else if (const auto* field = std::get_if<TextField>(&row.field)) {
      MILLRACE_RETURN_IF_ERROR(field->parse(given->second, spec));
    }
  }
  MILLRACE_RETURN_IF_ERROR(SetNumbers(spec));
  if (global_batch_size_.has_value()) {
    if (*global_batch_size_ < world || *global_batch_size_ % world != 0) {
      return UsageError(StrCat("--global-batch-size ", *global_batch_size_,
                               " is not divisible by the world size ", world,
                               "; use a multiple of it"));
    }
    spec.batch_size = *global_batch_size_ / world;
  }
  return spec;
}

// Other methods refuse these options, whatever their values.
absl::Status JobFlags::SetNumbers(JobSpec& spec) const {
  for (const auto& [name, number] : numbers_) {
    if (!number.has_value()) continue;
    const JobOption& row = *FindJobOption(name);
    if (!Reads(spec.method, row)) return NeedsMethod(row);
    spec.*std::get<double JobSpec::*>(row.field) = *number;
  }
  return absl::OkStatus();
}

absl::StatusOr<JobSpec> JobFlags::SamplingSpec() const {
  MILLRACE_ASSIGN_OR_RETURN(JobSpec spec, Spec());
  if (texts_.at("fanouts").empty() && spec.method != SampleMethod::kWalk &&
      spec.method != SampleMethod::kInduced &&
      spec.seed_kind != SeedKind::kGraph) {
    return UsageError(
        "--fanouts is needed: the neighbours to draw per node, a number for "
        "each hop\ngive e.g. --fanouts 15,10,5, or --fanouts 0 for the seeds "
        "alone");
  }
  return spec;
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

absl::StatusOr<std::optional<ExplicitSeeds>> JobFlags::Seeds(
    SeedKind kind) const {
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
  ExplicitSeeds seeds;
  for (int64_t i = 0; i < array.rows(); ++i) {
    seeds.ids.push_back(array.IntegerAt(i * width));
    if (edges) seeds.dst.push_back(array.IntegerAt(i * width + 1));
    if (width > ends) seeds.times.push_back(array.IntegerAt(i * width + ends));
  }
  return seeds;
}

void LogSeedType(const JobSpec& spec) {
  LogInfo(StrCat("seeds are of --type ", spec.seed_type,
                 ", which alone has a split ", spec.split));
}

}  // namespace millrace
