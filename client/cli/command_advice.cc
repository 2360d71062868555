// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command_advice.h"

namespace millrace {
namespace {

constexpr ReasonAdvice kCommandAdvice[] = {
    {{"ids_with_gaps"},
     "ids count from 0 without large gaps: renumber the nodes, or, if there "
     "are that many, say so with `import npy --num-nodes TYPE=N`"},
    {{"import_too_large"},
     "give the actual number of nodes, use a smaller --memory, or use a host "
     "with more memory"},
    {{"metis_failed"}, "use another --seed, or --method ldg"},
    {{"no_assignment"}, "give the owners with --assignment F.npy"},
    {{"no_lists_in_dataset"},
     "re-create the dataset with `millrace import`, which writes both "
     "directions, or choose the other direction with --directions"},
    {{"too_large_for_metis"},
     "use --method ldg, whose memory grows with nodes only"},
};

}  // namespace

std::span<const ReasonAdvice> CommandAdvice() { return kCommandAdvice; }

}  // namespace millrace
