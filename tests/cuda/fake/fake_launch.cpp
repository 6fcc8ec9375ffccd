// Launches of the stand-in: what the callback is shown, and then the kernel, at once.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include "fake_launch.hpp"

namespace demarc::fake {
namespace {

using cuda::CuLaunchConfig;

constexpr std::size_t descriptor_place = 2560;  // in a stream's object
constexpr std::uint64_t probe_ns = 1'000'000;   // that a probe kernel takes

struct Elements {
  std::uint64_t words[21] = {};
};

// Calls back with what the configuration leaves of the parameters.
void show(FakeGpu& gpu, int domain, int id, Elements elements, Params what, std::size_t hollow) {
  if (what == Params::short_) elements.words[0] = 16;
  if (what == Params::least) elements.words[0] = 40;
  if (what == Params::hollow) elements.words[hollow] = 0;
  gpu.call_back(domain, id, what == Params::absent ? nullptr : elements.words);
}

constexpr std::size_t descriptor_element = 4;
constexpr std::size_t arguments_element = 7;

void show_launch(FakeGpu& gpu, int id, const Elements& elements) {
  if (!gpu.config.descriptors_pass) return;
  show(gpu, 0xb, id, elements, gpu.config.launch_params, descriptor_element);
}

Elements descriptor_params(FakeStream* stream, const FakeLaunch& launch, void* descriptor,
                           std::uint64_t bytes) {
  Elements params;
  params.words[0] = bytes;
  params.words[1] = 1;
  if (FakeGpu::get().config.streams == Shows::by_name) {
    params.words[2] = reinterpret_cast<std::uint64_t>(stream);
  }
  params.words[3] = reinterpret_cast<std::uint64_t>(launch.function);
  params.words[descriptor_element] = reinterpret_cast<std::uint64_t>(descriptor);
  return params;
}

bool feels(const FakeGpu& gpu, const FakeStream& stream) {
  if (gpu.now_ns >= gpu.felt.until_ns) return false;
  return gpu.felt.path ||
         (gpu.config.streams_feel_sides && (gpu.felt.sides >> stream.number % 2 & 1U) != 0);
}

CuResult finish(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch,
                const Descriptor& descriptor) {
  ++gpu.launches;
  gpu.last_domain = domain_of(gpu.config, descriptor);
  gpu.launch_priority = stream->priority;
  const bool probe = probe_arguments(launch.function->name) != nullptr;
  if (launch.arguments.empty() && !launch.function->argument_bytes.empty()) return error_invalid;
  if (launch.shared > static_cast<std::uint32_t>(launch.function->dynamic_shared)) {
    return error_invalid;
  }
  if (probe) {
    if (const CuResult wrong = wrong_with_probe(gpu, launch); wrong != cuda::cu_success) {
      return wrong;
    }
  }
  auto tpcs = enabled_by(gpu.config, descriptor, stream->green);
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (probe && tpcs.size() > 1 && blocks <= gpu.config.crowded_blocks)
    tpcs.erase(tpcs.begin() + 1, tpcs.end());
  Placed placed = place(gpu, launch, tpcs);
  read_numbers(gpu.config, launch.function->module->reading, placed);
  if (placed.sm.empty()) {
    stream->hangs = true;
    ++gpu.hanging;
    return cuda::cu_success;
  }
  if (stream->hangs) return cuda::cu_success;
  if (launch.function->name == "demarc_hold") {
    enqueue_hold(gpu, stream, launch, tpcs);
  } else if (probe) {
    run_probe(gpu, stream, launch, placed);
    gpu.now_ns += feels(gpu, *stream) ? probe_ns * 3 / 2 : probe_ns;
  } else {
    run_ptx(gpu, launch, placed);
  }
  return cuda::cu_success;
}

}  // namespace

void function_callback(FakeGpu& gpu, FakeCall& call, bool leaving) {
  Elements params;
  params.words[0] = 104;
  params.words[5] = reinterpret_cast<std::uint64_t>(&call.result);
  params.words[6] = reinterpret_cast<std::uint64_t>(call.name);
  params.words[arguments_element] = reinterpret_cast<std::uint64_t>(call.arguments);
  params.words[10] = static_cast<std::uint64_t>(call.id) | (leaving ? std::uint64_t{1} << 32 : 0);
  params.words[11] = reinterpret_cast<std::uint64_t>(&call.answered);
  show(gpu, 6, call.id, params, gpu.config.function_params, arguments_element);
}

void function_callback(FakeGpu& gpu, int id, const void* arguments, bool leaving) {
  const char* name = id == 516 ? "cuGraphExecDestroy" : "cuStreamDestroy_v2";
  FakeCall call{id, name, arguments};
  function_callback(gpu, call, leaving);
}

namespace {

void take_stream_mask(FakeStream* stream, FakeLaunch& launch) {
  const FakeConfig& config = FakeGpu::get().config;
  if (!config.stream_field_works) return;
  const char* field = stream->object + config.stream_offset;
  std::uint32_t words[5] = {};
  const bool wide = config.cuda_version >= 12000;
  if (wide) {
    std::memcpy(words, field, sizeof words);
  } else {
    std::uint32_t narrow[2];
    std::memcpy(narrow, field, sizeof narrow);
    words[0] = 1;
    words[1] = narrow[1];
    words[2] = narrow[0];
  }
  launch.stream_masked = words[0] == 1;
  const std::uint32_t smeared = config.smeared_bit;
  if (smeared != 0) launch.stream_mask[smeared / 32] |= std::uint32_t{1} << (smeared % 32);
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    if (((words[1 + t / 32] >> (t % 32)) & 1U) != 0) {
      launch.stream_mask[config.bit[t] / 32] |= std::uint32_t{1} << (config.bit[t] % 32);
    }
  }
}

// Where no field of other meaning is, as FakeStream has it.
void end_if_overwritten(const FakeConfig& config, const FakeStream& stream) {
  for (std::uint32_t at = config.deadly_from; at < config.deadly_until; ++at) {
    if (at % 64 >= 24 && stream.object[at] != 0) ::raise(SIGKILL);
  }
}

CuResult launch_now(FakeStream* stream, CuStream handle, const FakeLaunch& launch,
                    int function_id) {
  FakeGpu& gpu = FakeGpu::get();
  end_if_overwritten(gpu.config, *stream);
  // What the whole card cannot host the driver refuses; what a mask makes impossible it does not.
  if (launch.cluster > largest_gpc(gpu.config)) return 912;
  // Arguments of cuLaunchKernel: the function, six sizes, shared memory, the stream.
  struct {
    const void* function;
    std::uint32_t sizes[7];
    CuStream stream;
    void** given;
    void** extra;
  } arguments{launch.handle,
              {launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
               launch.block[2], launch.shared},
              handle,
              launch.given,
              launch.extra};
  const void* shown = &arguments;
  CuLaunchConfig config{};
  config.stream = handle;
  config.attributes = launch.attributes.data();
  config.attribute_count = static_cast<unsigned>(launch.attributes.size());
  std::copy(launch.grid, launch.grid + 3, config.grid);
  std::copy(launch.block, launch.block + 3, config.block);
  const struct {
    const void* config;
    const void* function;
    void** given;
    void** extra;
  } of_config{&config, launch.handle, launch.given, launch.extra};
  if (function_id == 652) shown = &of_config;
  const char* name = function_id == 652   ? "cuLaunchKernelEx"
                     : function_id == 477 ? "cuLaunchCooperativeKernel"
                                          : "cuLaunchKernel";
  FakeCall call{function_id, name, shown};
  function_callback(gpu, call, false);
  if (call.answered != 0) return call.result;
  const auto left = [&](CuResult result) {
    call.result = result;
    function_callback(gpu, call, true);
    return result;
  };
  if (gpu.broken != cuda::cu_success) return left(gpu.broken);
  if (gpu.fail_next != cuda::cu_success) {
    return left(std::exchange(gpu.fail_next, cuda::cu_success));
  }
  if (stream->capturing()) return left(capture_launch(*stream, launch));
  note_run(gpu, launch, stream->done);
  Descriptor descriptor = build(gpu.config, launch);
  const bool strays = gpu.config.stray_streams != 0 && stream->number >= gpu.config.stray_streams;
  void* shown_at = gpu.config.streams == Shows::by_place && !strays
                       ? static_cast<void*>(stream->object + descriptor_place)
                       : descriptor.data();
  std::memcpy(shown_at, descriptor.data(), descriptor.size());
  const Elements params = descriptor_params(stream, launch, shown_at, 88);
  show_launch(gpu, 1, params);
  std::memcpy(descriptor.data(), shown_at, descriptor.size());
  gpu.call_back(0xb, 2, params.words);
  return left(finish(gpu, stream, launch, descriptor));
}

}  // namespace

CuResult submit(FakeLaunch launch, CuStream handle, int function_id) {
  const auto none = [](const auto& shape) {
    return std::count(std::begin(shape), std::end(shape), 0U) != 0;
  };
  if (none(launch.grid) || none(launch.block)) return error_invalid;
  FakeStream* stream = stream_of(handle);
  take_stream_mask(stream, launch);
  launch.domain = stream->domains[0];
  return launch_now(stream, handle, launch, function_id);
}

namespace {

// As drivers of CUDA 13 do with ten kernels in a row.
constexpr std::size_t quickly_launched = 10;

void show_beginning(FakeStream* stream, FakeGraphExec& graph, int id) {
  if (!graph.beginning) return;
  show_launch(FakeGpu::get(), id,
              descriptor_params(stream, graph.nodes[0].launch, graph.beginning->data(), 168));
}

}  // namespace

void launch_fill(FakeStream* stream) {
  FakeLaunch fill;
  fill.grid[0] = 4;
  fill.grid[1] = fill.grid[2] = 1;
  Descriptor descriptor = build(FakeGpu::get().config, fill);
  show_launch(FakeGpu::get(), 1, descriptor_params(stream, fill, descriptor.data(), 88));
}

void upload_graph(FakeStream* stream, FakeGraphExec& graph) {
  FakeGpu& gpu = FakeGpu::get();
  if (!graph.descriptors.empty()) return;
  for (const FakeNode& node : graph.nodes) {
    graph.descriptors.push_back(build(gpu.config, node.launch));
  }
  chain_nodes(gpu.config, graph.descriptors);
  if (graph.nodes.size() >= quickly_launched) {
    FakeLaunch nothing = graph.nodes[0].launch;
    nothing.grid[0] = 0;
    graph.beginning = build(gpu.config, nothing);
    show_beginning(stream, graph, 1);
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    show_launch(gpu, 1,
                descriptor_params(stream, graph.nodes[n].launch, graph.descriptors[n].data(), 88));
  }
  graph.uploaded = graph.descriptors;
}

CuResult launch_graph(FakeStream* stream, FakeGraphExec& graph) {
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.broken != cuda::cu_success) return gpu.broken;
  if (stream->capturing()) return capture_graph(*stream, graph);
  upload_graph(stream, graph);
  show_beginning(stream, graph, 3);
  CuResult result = cuda::cu_success;
  std::vector<FakeRuns> done(graph.nodes.size(), stream->done);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const FakeNode& node = graph.nodes[n];
    show_launch(gpu, 3, descriptor_params(stream, node.launch, graph.descriptors[n].data(), 168));
    for (const std::size_t before : node.after) {
      done[n].insert(done[before].begin(), done[before].end());
    }
    note_run(gpu, node.launch, done[n]);
    result = finish(gpu, stream, node.launch, graph.uploaded[n]);
  }
  for (const FakeRuns& of_node : done) stream->done.insert(of_node.begin(), of_node.end());
  const Elements ended{};
  gpu.call_back(0xb, 2, ended.words);
  return result;
}

namespace {

// Where the names CU_LAUNCH_PARAM_BUFFER_POINTER (1) and _SIZE (2) say that all arguments lie.
std::span<const std::byte> argument_buffer(void** extra) {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  for (void** one = extra; one != nullptr && *one != nullptr; one += 2) {
    if (reinterpret_cast<std::uintptr_t>(*one) == 1) begin = one[1];
    if (reinterpret_cast<std::uintptr_t>(*one) == 2) std::memcpy(&bytes, one[1], sizeof bytes);
  }
  return {static_cast<const std::byte*>(begin), bytes};
}

}  // namespace

std::vector<std::uint64_t> copy_arguments(const FakeFunction& function, void** arguments,
                                          void** extra) {
  std::vector<std::uint64_t> copied;
  const std::span<const std::byte> buffer = argument_buffer(extra);
  std::size_t next = 0;  // in the buffer
  for (std::size_t i = 0; i < function.argument_bytes.size(); ++i) {
    const std::size_t bytes = function.argument_bytes[i];
    const std::byte* argument = nullptr;
    if (arguments != nullptr) {
      argument = static_cast<const std::byte*>(arguments[i]);
    } else {
      const std::size_t alignment = std::min<std::size_t>(bytes, sizeof(std::uint64_t));
      next = (next + alignment - 1) / alignment * alignment;
      if (next + bytes > buffer.size()) return {};
      argument = buffer.data() + next;
      next += bytes;
    }
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      std::uint64_t value = 0;
      std::memcpy(&value, argument + at, std::min(bytes - at, sizeof value));
      copied.push_back(value);
    }
  }
  return copied;
}

}  // namespace demarc::fake
