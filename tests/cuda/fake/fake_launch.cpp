// Launches of the stand-in: descriptor, callback, placement, and the probe kernels in C++.
#include <algorithm>
#include <cstring>

#include "fake_state.hpp"

namespace demarc::fake {
namespace {

using cuda::CuLaunchConfig;

void set_word(Descriptor& descriptor, std::size_t offset, std::uint32_t word) {
  std::memcpy(descriptor.data() + offset, &word, sizeof word);
}

std::uint32_t word_at(const Descriptor& descriptor, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, descriptor.data() + offset, sizeof word);
  return word;
}

struct Layout {
  std::size_t version, words, count, enable;
};

Layout layout_of(const FakeConfig& config) {
  if (config.descriptor_version >= 0x50) return {58, 280, 4, 16};
  if (config.descriptor_version >= 0x40) return {72, 304, 4, 0};
  return {72, 84, 2, 384};
}

Descriptor build(const FakeConfig& config, const FakeLaunch& launch) {
  Descriptor descriptor{};
  const Layout layout = layout_of(config);
  descriptor[layout.version] = config.descriptor_version;
  const std::uint32_t divisor = std::max(launch.cluster, 1U);
  set_word(descriptor, 128, launch.grid[0] / divisor);
  set_word(descriptor, 132, launch.grid[1]);
  set_word(descriptor, 136, launch.grid[2]);
  if (launch.cluster != 0 && config.descriptor_version == 0x40) {
    set_word(descriptor, 268, 0x10100 | launch.cluster);
    set_word(descriptor, 0, 0x00800000);
  }
  if (launch.stream_masked) {
    for (std::size_t i = 0; i < layout.count; ++i) {
      set_word(descriptor, layout.words + 4 * i, launch.stream_mask[i]);
    }
    if (layout.enable < 384) {
      set_word(descriptor, layout.enable, word_at(descriptor, layout.enable) | 0x80000000U);
    }
  }
  return descriptor;
}

std::vector<std::uint32_t> enabled_by(const FakeConfig& config, const Descriptor& descriptor,
                                      const FakeGreen* green) {
  const Layout layout = layout_of(config);
  const bool on = layout.enable >= 384 || (word_at(descriptor, layout.enable) >> 31) != 0;
  std::vector<std::uint32_t> tpcs;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    if (green != nullptr &&
        std::find(green->tpcs.begin(), green->tpcs.end(), t) == green->tpcs.end()) {
      continue;
    }
    const std::uint32_t bit = config.bit[t];
    const bool off = on && config.obey_masks && bit / 32 < layout.count &&
                     ((word_at(descriptor, layout.words + 4 * (bit / 32)) >> (bit % 32)) & 1U) != 0;
    if (!off) tpcs.push_back(t);
  }
  return tpcs;
}

std::uint32_t blocks_of(const FakeLaunch& launch) {
  return launch.grid[0] * launch.grid[1] * launch.grid[2];
}

// %smid of each block; empty when the launch can never start.
std::vector<std::uint32_t> place(FakeGpu& gpu, const FakeLaunch& launch,
                                 const std::vector<std::uint32_t>& tpcs) {
  const FakeConfig& config = gpu.config;
  std::vector<std::vector<std::uint32_t>> pools;  // SMs that one cluster, or any block, may use
  std::vector<std::uint32_t> sms;
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_gpc;
  for (const std::uint32_t t : tpcs) {
    for (std::uint32_t i = 0; i < config.sms_per_tpc; ++i) {
      const std::uint32_t sm = t * config.sms_per_tpc + i;
      sms.push_back(sm);
      of_gpc[config.gpc[t]].push_back(sm);
    }
  }
  std::vector<std::uint32_t> where;
  if (launch.cluster == 0) {
    if (sms.empty()) return where;
    for (std::uint32_t b = 0; b < blocks_of(launch); ++b) where.push_back(sms[b % sms.size()]);
  } else {
    for (const auto& [gpc, list] : of_gpc) {
      if (list.size() >= launch.cluster) pools.push_back(list);
    }
    if (pools.empty()) return where;
    for (std::uint32_t c = 0; c < blocks_of(launch) / launch.cluster; ++c) {
      const auto& pool = pools[c % pools.size()];
      const std::size_t first = (c / pools.size()) * launch.cluster;
      for (std::uint32_t b = 0; b < launch.cluster; ++b) {
        where.push_back(pool[(first + b) % pool.size()]);
      }
    }
  }
  if (config.virtual_sms) {
    for (std::uint32_t& sm : where) {
      sm = static_cast<std::uint32_t>(std::find(sms.begin(), sms.end(), sm) - sms.begin());
    }
  }
  return where;
}

std::uint32_t largest_gpc(const FakeConfig& config) {
  std::map<std::uint32_t, std::uint32_t> sms;
  std::uint32_t most = 0;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    most = std::max(most, sms[config.gpc[t]] += config.sms_per_tpc);
  }
  return most;
}

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

double planted_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t line) {
  const std::uint32_t tpc = sm / gpu.config.sms_per_tpc;
  const std::uint64_t slice = line * 0x9e3779b97f4a7c15ULL >> 58;
  const bool near = gpu.config.side[tpc] == (slice & 1);
  std::normal_distribution<double> noise(0, gpu.config.latency_noise);
  const double own = static_cast<double>((tpc * 7 + slice * 3) % 11);
  return 270 + own + (near ? 0 : 30) + noise(gpu.random);
}

// The probe kernels. Arguments as in src/cuda/kernels/probes.cu.
void run(FakeGpu& gpu, const FakeLaunch& launch, const std::vector<std::uint32_t>& where) {
  const auto& a = launch.arguments;
  const std::string& name = launch.function->name;
  if (name == "demarc_where") {
    for (std::size_t b = 0; b < where.size(); ++b) {
      at<std::uint32_t>(a[0])[where[b]] += 1;
      if (a[1] != 0) at<std::uint32_t>(a[1])[b] = where[b];
    }
  } else if (name == "demarc_self_lines") {
    for (std::uint64_t line = 0; line < a[2]; ++line) {
      *at<std::uint64_t>(a[0] + line * a[1]) = a[0] + line * a[1];
    }
  } else if (name == "demarc_latency") {
    const auto target = static_cast<std::uint32_t>(a[4]);
    if (std::find(where.begin(), where.end(), target) == where.end()) return;
    *at<std::uint32_t>(a[6]) += 1;
    for (std::uint64_t line = 0; line < a[2]; ++line) {
      at<std::uint32_t>(a[7])[line] =
          static_cast<std::uint32_t>(8 * planted_latency(gpu, target, line) + 0.5);
    }
  } else if (name == "demarc_affine") {
    std::vector<std::uint32_t> staying;
    for (const std::uint32_t sm : where) {
      if (((at<std::uint64_t>(a[0])[sm / 64] >> (sm % 64)) & 1U) != 0) staying.push_back(sm);
    }
    if (staying.empty()) return;
    for (std::uint64_t b = 0; b < a[2]; ++b) {
      at<std::uint32_t>(a[3])[b] = staying[b % staying.size()];
    }
  }
}

struct Params {
  std::uint64_t words[21] = {};
};

Params descriptor_params(FakeStream* stream, const FakeLaunch& launch, void* descriptor,
                         std::uint64_t bytes) {
  Params params;
  params.words[0] = bytes;
  params.words[1] = 1;
  params.words[2] = reinterpret_cast<std::uint64_t>(stream);
  params.words[3] = reinterpret_cast<std::uint64_t>(launch.function);
  params.words[4] = reinterpret_cast<std::uint64_t>(descriptor);
  return params;
}

void function_callback(FakeGpu& gpu, int id, const void* arguments, bool leaving) {
  Params params;
  params.words[0] = 104;
  params.words[7] = reinterpret_cast<std::uint64_t>(arguments);
  params.words[10] = static_cast<std::uint64_t>(id) | (leaving ? std::uint64_t{1} << 32 : 0);
  gpu.call_back(6, id, params.words);
}

CuResult finish(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch,
                const Descriptor& descriptor) {
  ++gpu.launches;
  const auto where = place(gpu, launch, enabled_by(gpu.config, descriptor, stream->green));
  if (where.empty()) {
    stream->hangs = true;
    ++gpu.hanging;
    return cuda::cu_success;
  }
  if (!stream->hangs) run(gpu, launch, where);
  return cuda::cu_success;
}

}  // namespace

CuResult launch_now(FakeStream* stream, CuStream handle, const FakeLaunch& launch,
                    int function_id) {
  FakeGpu& gpu = FakeGpu::get();
  // What the whole card cannot host the driver refuses; what a mask makes impossible it does not.
  if (launch.cluster > largest_gpc(gpu.config)) return 912;
  // Arguments of cuLaunchKernel: the function, six sizes, shared memory, the stream.
  struct {
    void* function;
    std::uint32_t sizes[8];
    CuStream stream;
  } arguments{launch.function, {}, handle};
  const void* shown = &arguments;
  CuLaunchConfig config{};
  config.stream = handle;
  const void* config_pointer = &config;
  if (function_id == 652) shown = &config_pointer;
  function_callback(gpu, function_id, shown, false);
  Descriptor descriptor = build(gpu.config, launch);
  const Params params = descriptor_params(stream, launch, descriptor.data(), 88);
  if (gpu.config.descriptors_pass) gpu.call_back(0xb, 1, params.words);
  gpu.call_back(0xb, 2, params.words);
  function_callback(gpu, function_id, shown, true);
  return finish(gpu, stream, launch, descriptor);
}

CuResult launch_graph(FakeStream* stream, FakeGraphExec& graph) {
  FakeGpu& gpu = FakeGpu::get();
  const std::uint64_t arguments[2] = {1, 1};
  function_callback(gpu, 514, arguments, false);
  if (graph.descriptors.empty()) {
    for (const FakeLaunch& node : graph.nodes) {
      graph.descriptors.push_back(build(gpu.config, node));
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Params params =
          descriptor_params(stream, graph.nodes[n], graph.descriptors[n].data(), 88);
      if (gpu.config.descriptors_pass) gpu.call_back(0xb, 1, params.words);
    }
    graph.uploaded = graph.descriptors;
  }
  CuResult result = cuda::cu_success;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Params params =
        descriptor_params(stream, graph.nodes[n], graph.descriptors[n].data(), 168);
    if (gpu.config.descriptors_pass) gpu.call_back(0xb, 3, params.words);
    result = finish(gpu, stream, graph.nodes[n], graph.uploaded[n]);
  }
  const Params done{};
  gpu.call_back(0xb, 2, done.words);
  function_callback(gpu, 514, arguments, true);
  return result;
}

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
  launch.stream_masked = words[0] != 0;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    if (((words[1 + t / 32] >> (t % 32)) & 1U) != 0) {
      launch.stream_mask[config.bit[t] / 32] |= std::uint32_t{1} << (config.bit[t] % 32);
    }
  }
}

std::vector<std::uint64_t> copy_arguments(const FakeFunction& function, void** arguments) {
  // Sizes in bytes of each probe kernel's arguments.
  static const std::map<std::string, std::vector<std::size_t>> sizes = {
      {"demarc_idle", {}},
      {"demarc_where", {8, 8, 8}},
      {"demarc_latency", {8, 8, 4, 4, 4, 4, 8, 8}},
      {"demarc_self_lines", {8, 8, 4}},
      {"demarc_affine", {8, 8, 4, 8, 8}}};
  std::vector<std::uint64_t> copied;
  const auto found = sizes.find(function.name);
  if (found == sizes.end()) return copied;
  for (std::size_t i = 0; i < found->second.size(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, arguments[i], found->second[i]);
    copied.push_back(value);
  }
  return copied;
}

}  // namespace demarc::fake
