// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/service.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/random_hex.h"
#include "common/base/strings.h"
#include "sampler.grpc.pb.h"
#include "server/rpc/gather_rpc.h"
#include "server/rpc/reply_call.h"
#include "server/rpc/reply_rpcs.h"
#include "server/rpc/sample_rpc.h"
#include "server/rpc/stream_call.h"

namespace millrace {
namespace {

using Context = ::grpc::GenericCallbackServerContext;

// All calls go through gRPC's generic service, which treats every call as a
// bidirectional stream: gRPC starts any other kind of call only after the whole
// request has arrived, so that a slow sender could not be timed out.
class SamplerCalls final : public ::grpc::CallbackGenericService {
 public:
  explicit SamplerCalls(ServerCore& core) {
    for (const StreamRpc& rpc : {SampleRpc(core), GatherRpc(core)}) {
      Add(rpc.name, [&core, rpc](Context* context) {
        return new StreamCall(core, rpc, context);
      });
    }
    for (const ReplyRpc& rpc : ReplyRpcs(core)) {
      Add(rpc.name, [&core, rpc](Context* context) {
        return new ReplyCall(core, rpc, context);
      });
    }
  }

  // For unknown methods the base class answers UNIMPLEMENTED.
  ::grpc::ServerGenericBidiReactor* CreateReactor(Context* context) override {
    const auto found = starts_.find(context->method());
    return found == starts_.end()
               ? ::grpc::CallbackGenericService::CreateReactor(context)
               : found->second(context);
  }

 private:
  // Creates a call, which deletes itself.
  using Start = std::function<::grpc::ServerGenericBidiReactor*(Context*)>;

  void Add(const char* method, Start start) {
    starts_[StrCat("/", v1::Sampler::service_full_name(), "/", method)] =
        std::move(start);
  }

  absl::flat_hash_map<std::string, Start> starts_;  // by path
};

// A host (:authority) that nobody can call, because it cannot be guessed.
//
// Reflection lists the services whose methods are registered by name, and a
// generic service has none. So the generated service is registered as well, but
// only for this host: calls to it would be read and parsed by gRPC without any
// of our limits.
std::string UnknownHost() { return RandomHex(32) + ".invalid"; }

}  // namespace

SamplerService::SamplerService(ServerCore& core)
    : calls_(std::make_unique<SamplerCalls>(core)),
      listed_at_(UnknownHost()),
      listing_(std::make_unique<v1::Sampler::CallbackService>()) {}

SamplerService::~SamplerService() = default;

void SamplerService::Register(::grpc::ServerBuilder& builder) {
  builder.RegisterCallbackGenericService(calls_.get());
  builder.RegisterService(listed_at_, listing_.get());
}

}  // namespace millrace
