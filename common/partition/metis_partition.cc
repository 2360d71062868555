// SPDX-License-Identifier: Apache-2.0
#include "common/partition/metis_partition.h"

#include <metis.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/partition/metis_graph.h"

namespace millrace {
namespace {

// Two entries per edge, each a neighbour and a weight, in our graph and again
// in METIS's copy. METIS needs more on top of that.
constexpr uint64_t kBytesPerEdge = 32;

constexpr uint64_t kMetisLimit = std::numeric_limits<idx_t>::max();
constexpr int kMaxRecursiveParts = 8;
constexpr int kPollMilliseconds = 100;

// Exit statuses of the child.
enum : int { kDone = 0, kNoMemory = 1, kFailed = 2 };

// Shared memory with one number per vertex, which the child writes and the
// parent reads.
class SharedResult {
 public:
  explicit SharedResult(int64_t size)
      : bytes_(static_cast<size_t>(size) * sizeof(idx_t)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedResult() {
    if (ok()) munmap(memory_, bytes_);
  }
  SharedResult(const SharedResult&) = delete;
  SharedResult& operator=(const SharedResult&) = delete;

  bool ok() const { return memory_ != MAP_FAILED; }
  idx_t* data() const { return static_cast<idx_t*>(memory_); }

 private:
  const size_t bytes_;
  void* const memory_;
};

int CallMetis(MetisGraph& graph, int parts, uint64_t seed, idx_t* result) {
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & kMetisLimit);
  options[METIS_OPTION_NUMBERING] = 0;
  auto vertices = static_cast<idx_t>(graph.vertices());
  idx_t constraints = graph.constraints;
  idx_t part_count = parts;
  idx_t cut = 0;
  const auto partition = parts <= kMaxRecursiveParts ? &METIS_PartGraphRecursive
                                                     : &METIS_PartGraphKway;
  return partition(&vertices, &constraints, graph.starts.data(),
                   graph.neighbors.get(), graph.weights.data(), nullptr,
                   graph.edge_weights.get(), &part_count, nullptr, nullptr,
                   options, &cut, result);
}

[[noreturn]] void RunChild(MetisGraph& graph, int parts, uint64_t seed,
                           idx_t* result) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ctrl-C reaches the whole process group. The parent unwinds and ends this
  // process.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  // METIS prints errors to stdout, which is for results.
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const int code = CallMetis(graph, parts, seed, result);
  // Do not run the parent's destructors or flush its buffers.
  _exit(code == METIS_OK             ? kDone
        : code == METIS_ERROR_MEMORY ? kNoMemory
                                     : kFailed);
}

absl::Status ChildStatus(int wait_status) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kDone) {
    return absl::OkStatus();
  }
  const bool killed =
      WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (killed ||
      (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kNoMemory)) {
    return WithReason(
        absl::ResourceExhaustedError("METIS had too little memory"),
        Reason{"too_large_for_metis"});
  }
  const std::string how =
      WIFSIGNALED(wait_status)
          ? StrCat("ended by signal ", WTERMSIG(wait_status))
          : StrCat("exit status ", WEXITSTATUS(wait_status));
  return WithReason(absl::InternalError(StrCat("METIS failed (", how, ")")),
                    Reason{"metis_failed"});
}

// Waits until the child closes its end of the pipe, which happens when it ends.
absl::Status AwaitChild(pid_t child, int pipe_fd, Progress& progress) {
  while (true) {
    pollfd wait = {pipe_fd, POLLIN, 0};
    if (poll(&wait, 1, kPollMilliseconds) > 0) break;
    progress.Add(0);
    if (absl::Status status = CheckInterrupted(); !status.ok()) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return status;
    }
  }
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0) {
    if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, "cannot wait for METIS");
    }
  }
  return ChildStatus(wait_status);
}

absl::Status RunMetis(MetisGraph& graph, int parts, uint64_t seed,
                      idx_t* result) {
  int ends[2];
  if (pipe(ends) != 0) return absl::ErrnoToStatus(errno, "cannot open a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "cannot start METIS");
  if (child == 0) RunChild(graph, parts, seed, result);
  write_end = UniqueFd();
  // METIS does not report progress, and the time that it takes for graphs of
  // the same size varies tenfold.
  Progress progress("METIS", /*total=*/-1, /*unit=*/"");
  MILLRACE_RETURN_IF_ERROR(AwaitChild(child, read_end.get(), progress));
  progress.Finish();
  return absl::OkStatus();
}

Assignment SplitByType(const MetisGraph& graph, const idx_t* result) {
  Assignment assignment;
  for (size_t type = 0; type + 1 < graph.type_begin.size(); ++type) {
    assignment.emplace_back(result + graph.type_begin[type],
                            result + graph.type_begin[type + 1]);
  }
  return assignment;
}

}  // namespace

absl::Status CheckMetisSize(uint64_t vertices, uint64_t edges) {
  std::string what;
  if (vertices > kMetisLimit) {
    what = StrCat("the graph has ", vertices, " nodes");
  } else if (edges > kMetisLimit / 2) {
    what = StrCat(edges, " edges need ", edges * 2, " adjacency entries");
  } else {
    return absl::OkStatus();
  }
  return FieldStatus(
      absl::StatusCode::kFailedPrecondition,
      {.field = "method",
       .value = "metis",
       .limit = StrCat(what, "; METIS numbers at most ", kMetisLimit)},
      Reason{"too_large_for_metis"});
}

absl::StatusOr<Assignment> AssignMetis(const Store& dataset, int parts,
                                       uint64_t seed) {
  const Schema& schema = dataset.schema();
  uint64_t vertices = 0;
  uint64_t edges = 0;
  for (const NodeType& type : schema.node_types) vertices += type.count;
  for (const Relation& relation : schema.relations) {
    edges += static_cast<uint64_t>(relation.edge_count);
  }
  MILLRACE_RETURN_IF_ERROR(CheckMetisSize(vertices, edges));
  // METIS cannot bisect a graph with fewer vertices than parts.
  if (vertices <= static_cast<uint64_t>(parts) || edges == 0) {
    return AssignRandom(schema, parts, seed);
  }
  MILLRACE_RETURN_IF_ERROR(WithReason(
      CheckMemory(StrCat("METIS on ", vertices, " nodes and ", edges, " edges"),
                  edges * kBytesPerEdge),
      Reason{"too_large_for_metis"}));
  MILLRACE_ASSIGN_OR_RETURN(MetisGraph graph, BuildMetisGraph(dataset));
  if (graph.entries() == 0) return AssignRandom(schema, parts, seed);
  LogInfo("METIS partitions the graph", {{"vertices", graph.vertices()},
                                         {"adjacency_entries", graph.entries()},
                                         {"parts", parts}});
  const SharedResult result(graph.vertices());
  if (!result.ok()) return absl::ErrnoToStatus(errno, "no memory for METIS");
  MILLRACE_RETURN_IF_ERROR(RunMetis(graph, parts, seed, result.data()));
  return SplitByType(graph, result.data());
}

}  // namespace millrace
