// Reads what the driver's function callbacks tell.
#include "driver/function_calls.hpp"

#include <algorithm>
#include <cstring>

#include "driver/callback_params.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t least_function_params_bytes = 88;

// cuLaunchKernel, cuLaunchCooperativeKernel, each also for per-thread default streams; then
// cuLaunchKernelEx.
constexpr int launch_ids[] = {307, 442, 477, 478, 652, 653};
constexpr std::size_t plain_launches = 4;
// cuGraphLaunch, also for per-thread default streams; cuStreamDestroy and its second version;
// cuGraphExecDestroy.
constexpr int streams_and_graphs[] = {514, 515, 127, 326, 516};
constexpr std::size_t graph_launches = 2;
constexpr int graph_destroy = 516;

constexpr std::size_t stream_of_plain_launch = 40;  // bytes into the arguments
constexpr std::size_t stream_of_config = 32;        // bytes into CUlaunchConfig
constexpr std::size_t stream_of_graph_launch = 8;

bool is_one_of(int id, std::span<const int> ids) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

template <class T>
T value_at(const char* address) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a handle, which is a pointer
  std::memcpy(&value, address, sizeof(T));
  return value;
}

}  // namespace

std::span<const int> stream_and_graph_functions() {
  return streams_and_graphs;
}

std::span<const int> launch_functions() {
  return launch_ids;
}

bool is_launch(int id) {
  return is_one_of(id, launch_ids);
}

FunctionCall read_function_call(int id, const void* params) {
  FunctionCall call;
  if (params == nullptr || params_bytes(params) < least_function_params_bytes) {
    call.kind = FunctionCall::Kind::unreadable;
    return call;
  }
  call.leaving = (static_cast<const std::uint64_t*>(params)[site_index] >> 32) != 0;
  const auto* arguments = static_cast<const char* const*>(params)[arguments_index];
  if (arguments == nullptr && (is_one_of(id, launch_ids) || is_one_of(id, streams_and_graphs))) {
    call.kind = FunctionCall::Kind::unreadable;
    return call;
  }
  const std::span<const int> functions = streams_and_graphs;
  if (is_one_of(id, functions.first(graph_launches))) {
    call.kind = FunctionCall::Kind::graph_launch;
    call.graph = value_at<CuGraphExec>(arguments);
    call.stream = value_at<CuStream>(arguments + stream_of_graph_launch);
  } else if (is_one_of(id, functions.subspan(graph_launches))) {
    if (call.leaving) return call;
    call.kind =
        id == graph_destroy ? FunctionCall::Kind::graph_gone : FunctionCall::Kind::stream_gone;
    if (id == graph_destroy) {
      call.graph = value_at<CuGraphExec>(arguments);
    } else {
      call.stream = value_at<CuStream>(arguments);
    }
  } else if (is_one_of(id, std::span(launch_ids).first(plain_launches))) {
    call.kind = FunctionCall::Kind::launch;
    call.stream = value_at<CuStream>(arguments + stream_of_plain_launch);
  } else if (!is_one_of(id, launch_ids)) {
    return call;
  } else if (const auto* config = value_at<const char*>(arguments)) {  // the driver refuses null
    call.kind = FunctionCall::Kind::launch;
    call.stream = value_at<CuStream>(config + stream_of_config);
  }
  return call;
}

}  // namespace demarc::cuda
