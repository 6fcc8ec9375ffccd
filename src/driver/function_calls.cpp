// Reads what the driver's function callbacks tell.
#include "demarc/driver/function_calls.hpp"

#include "callback_params.hpp"
#include "demarc/driver/driver_call.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t least_function_params_bytes = 88;

constexpr std::uint32_t about_streams_and_graphs =
    does::launches_graph | does::builds_graph | does::ends_graph | does::ends_stream;
constexpr std::uint32_t about_launches = does::launches | does::copies_or_fills;

bool has_succeeded(const void* params) {
  const auto* result = static_cast<const CuResult* const*>(params)[result_index];
  return result != nullptr && *result == cu_success;
}

// A graph is instantiated and uploaded by one call, or uploaded later.
FunctionCall upload_of(const CallFacts& facts, const char* arguments, bool has_graph) {
  FunctionCall call;
  if (facts.function == DriverFunction::cuGraphUpload) {
    const auto given = read_parameters<LaunchGraph>(arguments);
    call.kind = FunctionCall::Kind::graph_upload;
    call.stream = given.stream;
    if (has_graph) call.graph = given.executable;
    return call;
  }
  const auto given = read_parameters<InstantiateGraphWith>(arguments);
  if (given.how == nullptr || (given.how->flags & CuInstantiation::upload) == 0) return call;
  call.kind = FunctionCall::Kind::graph_upload;
  call.stream = given.how->upload_stream;
  if (has_graph && given.executable != nullptr) call.graph = *given.executable;
  return call;
}

}  // namespace

std::span<const int> stream_and_graph_functions() {
  static const auto numbers = numbers_of_functions(about_streams_and_graphs);
  return numbers;
}

std::span<const int> launch_functions() {
  static const auto numbers = numbers_of_functions(about_launches);
  return numbers;
}

FunctionCall read_function_call(int id, const void* params) {
  FunctionCall call;
  if (params == nullptr || params_bytes(params) < least_function_params_bytes) {
    call.kind = FunctionCall::Kind::unreadable;
    return call;
  }
  call.leaving = (static_cast<const std::uint64_t*>(params)[site_index] >> 32) != 0;
  const auto* arguments = static_cast<const char* const*>(params)[arguments_index];
  const CallFacts facts = facts_of(static_cast<std::uint32_t>(id));
  if ((facts.does & (about_launches | about_streams_and_graphs)) == 0) return call;
  if ((facts.does & does::copies_or_fills) != 0) {
    call.kind = FunctionCall::Kind::copy_or_fill;
  } else if (arguments == nullptr) {
    call.kind = FunctionCall::Kind::unreadable;
  } else if ((facts.does & does::builds_graph) != 0) {
    const bool is_leaving = call.leaving;
    call = upload_of(facts, arguments, is_leaving && has_succeeded(params));
    call.leaving = is_leaving;
  } else if ((facts.does & does::launches_graph) != 0) {
    const auto given = read_parameters<LaunchGraph>(arguments);
    call.kind = FunctionCall::Kind::graph_launch;
    call.graph = given.executable;
    call.stream = given.stream;
  } else if ((facts.does & about_streams_and_graphs) != 0) {
    if (call.leaving) return call;
    if ((facts.does & does::ends_graph) != 0) {
      call.kind = FunctionCall::Kind::graph_gone;
      call.graph = read_parameters<DestroyExecutable>(arguments).executable;
    } else {
      call.kind = FunctionCall::Kind::stream_gone;
      call.stream = read_parameters<DestroyStream>(arguments).stream;
    }
  } else if (facts.function != DriverFunction::cuLaunchKernelEx) {
    call.kind = FunctionCall::Kind::launch;
    call.stream = read_parameters<LaunchCooperative>(arguments).stream;
  } else if (const auto* config = read_parameters<LaunchKernelEx>(arguments).config) {
    call.kind = FunctionCall::Kind::launch;  // the driver refuses null
    call.stream = config->stream;
  }
  return call;
}

}  // namespace demarc::cuda
