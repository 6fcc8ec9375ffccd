// Launches of the stand-in: descriptor, callback, placement, and the probe kernels in C++.
#include <algorithm>
#include <cstring>

#include "demarc/base/gf2.hpp"
#include "demarc/cuda/colored.cuh"
#include "demarc/gpu/remainder_coloring.hpp"
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

constexpr std::size_t descriptor_place = 2560;  // in a stream's object

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
  if (config.kernels_launch && config.descriptor_version == 0x40) set_word(descriptor, 40, 0x13);
  const std::uint32_t divisor = std::max(launch.cluster, 1U);
  set_word(descriptor, 128, launch.grid[0] / divisor);
  set_word(descriptor, 132, launch.grid[1]);
  set_word(descriptor, 136, launch.grid[2]);
  if (launch.cluster != 0 && config.descriptor_version == 0x40) {
    set_word(descriptor, 268, 0x10100 | launch.cluster);
    set_word(descriptor, 0, 0x00800000);
  }
  for (std::size_t i = 0; i < layout.count; ++i) {
    set_word(descriptor, layout.words + 4 * i, config.stale_mask[i]);
  }
  if (config.stale_enabled) set_word(descriptor, 0, word_at(descriptor, 0) | 0x80000000U);
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

// Nodes of a graph all have the bit of kernels that launch kernels. What tells these apart is whose
// count they await: their own, where others await the next node's, and the last none.
void chain_nodes(const FakeConfig& config, std::vector<Descriptor>& nodes) {
  if (config.descriptor_version != 0x40) return;
  constexpr std::uint32_t first_count = 0xfe680424;
  constexpr std::uint32_t count_bytes = 28;
  std::uint32_t count = first_count;
  for (std::size_t n = 0; n < nodes.size(); ++n, count += count_bytes) {
    const std::uint32_t next = n + 1 == nodes.size() ? 0 : count + count_bytes;
    set_word(nodes[n], 40, word_at(nodes[n], 40) | 0x10);
    set_word(nodes[n], 192, count);
    set_word(nodes[n], 232, config.kernels_launch ? count : next);
  }
}

bool mask_set(const Layout& layout, const Descriptor& descriptor) {
  bool any = false;
  for (std::size_t i = 0; i < layout.count; ++i) {
    any |= word_at(descriptor, layout.words + 4 * i) != 0;
  }
  return any;
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
    const std::uint32_t bit = config.bit[(t + config.shift_masks) % config.tpcs];
    const bool set = bit / 32 < layout.count &&
                     ((word_at(descriptor, layout.words + 4 * (bit / 32)) >> (bit % 32)) & 1U) != 0;
    const bool masked = on && config.obey_masks && mask_set(layout, descriptor);
    const bool off = masked && set != config.invert_masks;
    const bool granted = on || config.client == 0 || ((config.client >> t) & 1U) != 0;
    if (!off && granted) tpcs.push_back(t);
  }
  return tpcs;
}

std::uint32_t blocks_of(const FakeLaunch& launch) {
  return launch.grid[0] * launch.grid[1] * launch.grid[2];
}

// Where the blocks of a launch run; empty when it can never start.
struct Placed {
  std::vector<std::uint32_t> number;  // %smid of each block
  std::vector<std::uint32_t> sm;      // the SM that it is
};

Placed place(FakeGpu& gpu, const FakeLaunch& launch, const std::vector<std::uint32_t>& tpcs) {
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
  Placed placed;
  std::vector<std::uint32_t>& where = placed.sm;
  if (launch.cluster == 0) {
    if (sms.empty()) return placed;
    for (std::uint32_t b = 0; b < blocks_of(launch); ++b) where.push_back(sms[b % sms.size()]);
  } else {
    for (const auto& [gpc, list] : of_gpc) {
      if (list.size() >= launch.cluster) pools.push_back(list);
    }
    if (pools.empty()) return placed;
    for (std::uint32_t c = 0; c < blocks_of(launch) / launch.cluster; ++c) {
      const auto& pool = pools[c % pools.size()];
      const std::size_t first = (c / pools.size()) * launch.cluster;
      for (std::uint32_t b = 0; b < launch.cluster; ++b) {
        where.push_back(pool[(first + b) % pool.size()]);
      }
    }
  }
  placed.number = where;
  if (config.virtual_sms) {
    for (std::uint32_t& sm : placed.number) {
      sm = static_cast<std::uint32_t>(std::find(sms.begin(), sms.end(), sm) - sms.begin());
    }
  }
  return placed;
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

bool upset(const FakeGpu& gpu) {
  return gpu.launches >= gpu.config.upset_from && gpu.launches < gpu.config.upset_until;
}

double noise_of(const FakeGpu& gpu) {
  return upset(gpu) ? gpu.config.upset_noise : gpu.config.latency_noise;
}

std::uint64_t seed_of(const FakeGpu& gpu) {
  return gpu.config.page_seed + (upset(gpu) ? gpu.config.upset_seed : 0);
}

double planted_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t line) {
  const std::uint32_t tpc = sm / gpu.config.sms_per_tpc;
  const std::uint64_t slice = line * 0x9e3779b97f4a7c15ULL >> 58;
  const bool near = gpu.config.side[tpc] == (slice & 1);
  std::normal_distribution<double> noise(0, noise_of(gpu));
  const double own = static_cast<double>((tpc * 7 + slice * 3) % 11);
  return 270 + own + (near ? 0 : 30) + noise(gpu.random);
}

std::uint64_t scrambled(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

struct PlantedChunk {
  std::uint64_t module, slice, side;
};

// Numbers go on from one physical page to the next. Six runs of remainders, three of each side,
// share a path each.
PlantedChunk planted_remainder(std::uint64_t seed, std::uint64_t physical, std::uint64_t offset) {
  static const gpu::RemainderHash hash = gpu::h200_remainders();
  const std::uint64_t added = scrambled(physical * 7919 + seed);
  const auto constant = static_cast<std::uint32_t>(added % 64);
  const std::uint64_t number =
      ((physical + seed) << hash.number_bits()) + hash.number(offset, constant);
  const std::uint64_t remainder = number % hash.modulus;
  const std::uint64_t half = parity(offset, hash.half) ^ (added >> 6U & 1U);
  return {remainder < 24 ? remainder / 8 : 3 + (remainder - 24) / 8,
          half * hash.modulus + remainder, remainder < 24 ? 0U : 1U};
}

PlantedChunk planted_chunk(FakeGpu& gpu, std::uint64_t address) {
  constexpr std::uint64_t page_bytes = 2 << 20;
  const std::uint64_t offset = address % page_bytes;
  const auto page = gpu.mapped.find(address - offset);
  const std::uint64_t physical = page == gpu.mapped.end() ? 0 : page->second;
  const std::uint64_t seed = seed_of(gpu);
  if (gpu.config.remainders) return planted_remainder(seed, physical, offset);
  std::uint64_t module = scrambled(physical * 7919 + seed) % 16;
  for (std::size_t i = 0; i < 4; ++i) {
    module ^= static_cast<std::uint64_t>(__builtin_parityll(offset & planted_masks[i])) << i;
  }
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    number |= static_cast<std::uint64_t>(__builtin_parityll(offset & planted_digits[i])) << i;
  }
  const std::uint64_t page_digits = scrambled(physical * 31 + seed) % 8;
  return {module, module * 5 + ((number ^ page_digits) + physical) % 5, 0};
}

// Cycles of one load of a mapped address: what its slice is to the SM.
double slice_latency(FakeGpu& gpu, std::uint32_t sm, std::uint64_t address) {
  const PlantedChunk chunk = planted_chunk(gpu, address);
  const bool far =
      gpu.config.remainders && gpu.config.side[sm / gpu.config.sms_per_tpc] != chunk.side;
  std::normal_distribution<double> noise(0, noise_of(gpu));
  return 250 + gpu.config.latency_offset + (far ? 100 : 0) +
         static_cast<double>(scrambled(chunk.slice * 1024 + sm) % 64) + noise(gpu.random);
}

struct PlantedStream {
  std::uint64_t base = 0;
  const std::uint32_t* chunks = nullptr;
  std::uint32_t count = 0, shift = 0, rounds = 0, writes = 0;
};

PlantedStream planted_stream(const std::uint64_t* words) {
  PlantedStream stream;
  stream.base = words[0];
  stream.chunks = reinterpret_cast<const std::uint32_t*>(words[1]);  // NOLINT
  stream.count = static_cast<std::uint32_t>(words[2]);
  stream.shift = static_cast<std::uint32_t>(words[2] >> 32U);
  stream.rounds = static_cast<std::uint32_t>(words[3]);
  stream.writes = static_cast<std::uint32_t>(words[3] >> 32U);
  return stream;
}

// A victim takes 100 ns a chunk, and longer where the other stream uses the chunk's module.
void run_streams(FakeGpu& gpu, const std::vector<std::uint64_t>& a) {
  const PlantedStream victim = planted_stream(a.data());
  const PlantedStream other = planted_stream(a.data() + 5);
  const auto* roles = reinterpret_cast<const unsigned char*>(a[10]);
  auto* taken = reinterpret_cast<std::uint64_t*>(a[14]);
  bool used[16] = {};
  const auto module_of = [&gpu](const PlantedStream& stream, std::uint32_t i) {
    return planted_chunk(gpu, stream.base + (std::uint64_t{stream.chunks[i]} << stream.shift))
        .module;
  };
  for (std::uint32_t i = 0; i < other.count; ++i) used[module_of(other, i)] = true;
  double nanoseconds = 0;
  for (std::uint32_t i = 0; i < victim.count; ++i) {
    nanoseconds += used[module_of(victim, i)] ? (other.writes != 0 ? 340 : 180) : 100;
  }
  for (std::uint32_t sm = 0; sm < gpu.sms(); ++sm) {
    if (roles[sm] == 1) taken[sm] = static_cast<std::uint64_t>(nanoseconds * victim.rounds);
  }
}

// A block an SM; the blocks that find no SM left come too late.
void run_fingerprint(FakeGpu& gpu, const std::vector<std::uint64_t>& a, const Placed& placed) {
  const auto* offsets = reinterpret_cast<const std::uint32_t*>(a[1]);
  const auto count = static_cast<std::size_t>(a[2]);
  const double loads = 8.0 * static_cast<double>(a[4]);
  auto* counters = reinterpret_cast<std::uint32_t*>(a[7]);
  auto* numbers = reinterpret_cast<std::uint32_t*>(a[8]);
  auto* sums = reinterpret_cast<std::uint32_t*>(a[9]);
  std::set<std::uint32_t> taken;
  for (std::size_t b = 0; b < placed.sm.size(); ++b) {
    if (!taken.insert(placed.sm[b]).second) continue;
    const std::size_t rank = taken.size() - 1;
    numbers[rank] = placed.number[b];
    for (std::size_t i = 0; i < count; ++i) {
      sums[rank * count + i] = static_cast<std::uint32_t>(
          loads * slice_latency(gpu, placed.sm[b], a[0] + std::uint64_t{offsets[i]} * 128) + 0.5);
    }
  }
  counters[3] = counters[4] = static_cast<std::uint32_t>(taken.size());
}

void run_hit_latency(FakeGpu& gpu, const std::vector<std::uint64_t>& a) {
  const auto* offsets = reinterpret_cast<const std::uint32_t*>(a[1]);
  const auto* slot_of_sm = reinterpret_cast<const std::int32_t*>(a[3]);
  auto* out = reinterpret_cast<std::uint16_t*>(a[6]);
  const auto count = static_cast<std::size_t>(a[2]);
  for (std::uint32_t sm = 0; sm < gpu.sms(); ++sm) {
    if (slot_of_sm[sm] < 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      out[static_cast<std::size_t>(slot_of_sm[sm]) * count + i] = static_cast<std::uint16_t>(
          8 * slice_latency(gpu, sm, a[0] + std::uint64_t{offsets[i]} * 128) + 0.5);
    }
  }
}

void run_copy(const std::vector<std::uint64_t>& a) {
  colored_layout<remainders> colored;
  constexpr std::size_t words = sizeof colored / 8;
  std::memcpy(static_cast<void*>(&colored), a.data(), sizeof colored);
  for (std::uint64_t i = 0; i < a[words + 1]; ++i) {
    auto* there = reinterpret_cast<char*>(colored.address(i));
    auto* here = reinterpret_cast<char*>(a[words] + i);
    if (a[words + 2] != 0) {
      *there = *here;
    } else {
      *here = *there;
    }
  }
}

// The probe kernels. Arguments as in src/cuda/kernels/probes.cu and timed_memory.cu.
void run(FakeGpu& gpu, const FakeLaunch& launch, const Placed& placed) {
  const auto& a = launch.arguments;
  const auto& where = placed.number;
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
  } else if (name == "demarc_hit_latency") {
    run_hit_latency(gpu, a);
  } else if (name == "demarc_fingerprint") {
    run_fingerprint(gpu, a, placed);
  } else if (name == "demarc_streams") {
    run_streams(gpu, a);
  } else if (name == "demarc_copy_colored") {
    run_copy(a);
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

struct Elements {
  std::uint64_t words[21] = {};
};

// Calls back with what the configuration leaves of the parameters.
void show(FakeGpu& gpu, int domain, int id, Elements elements, Params what, std::size_t hollow) {
  if (what == Params::short_) elements.words[0] = 16;
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

CuResult finish(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch,
                const Descriptor& descriptor) {
  ++gpu.launches;
  const Placed placed = place(gpu, launch, enabled_by(gpu.config, descriptor, stream->green));
  if (placed.sm.empty()) {
    stream->hangs = true;
    ++gpu.hanging;
    return cuda::cu_success;
  }
  if (!stream->hangs) run(gpu, launch, placed);
  return cuda::cu_success;
}

}  // namespace

void function_callback(FakeGpu& gpu, int id, const void* arguments, bool leaving) {
  Elements params;
  params.words[0] = 104;
  params.words[arguments_element] = reinterpret_cast<std::uint64_t>(arguments);
  params.words[10] = static_cast<std::uint64_t>(id) | (leaving ? std::uint64_t{1} << 32 : 0);
  show(gpu, 6, id, params, gpu.config.function_params, arguments_element);
}

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
  const bool strays = gpu.config.stray_streams != 0 && stream->number >= gpu.config.stray_streams;
  void* shown_at = gpu.config.streams == Shows::by_place && !strays
                       ? static_cast<void*>(stream->object + descriptor_place)
                       : descriptor.data();
  std::memcpy(shown_at, descriptor.data(), descriptor.size());
  const Elements params = descriptor_params(stream, launch, shown_at, 88);
  show_launch(gpu, 1, params);
  std::memcpy(descriptor.data(), shown_at, descriptor.size());
  gpu.call_back(0xb, 2, params.words);
  function_callback(gpu, function_id, shown, true);
  return finish(gpu, stream, launch, descriptor);
}

CuResult launch_graph(FakeStream* stream, FakeGraphExec& graph) {
  FakeGpu& gpu = FakeGpu::get();
  const std::uint64_t arguments[2] = {reinterpret_cast<std::uint64_t>(&graph),
                                      reinterpret_cast<std::uint64_t>(stream)};
  function_callback(gpu, 514, arguments, false);
  if (graph.descriptors.empty()) {
    for (const FakeLaunch& node : graph.nodes) {
      graph.descriptors.push_back(build(gpu.config, node));
    }
    chain_nodes(gpu.config, graph.descriptors);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      show_launch(gpu, 1,
                  descriptor_params(stream, graph.nodes[n], graph.descriptors[n].data(), 88));
    }
    graph.uploaded = graph.descriptors;
  }
  CuResult result = cuda::cu_success;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    show_launch(gpu, 3,
                descriptor_params(stream, graph.nodes[n], graph.descriptors[n].data(), 168));
    result = finish(gpu, stream, graph.nodes[n], graph.uploaded[n]);
  }
  const Elements done{};
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
  const std::uint32_t smeared = config.smeared_bit;
  if (smeared != 0) launch.stream_mask[smeared / 32] |= std::uint32_t{1} << (smeared % 32);
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
      {"demarc_affine", {8, 8, 4, 8, 8}},
      {"demarc_hit_latency", {8, 8, 4, 8, 4, 4, 8, 4}},
      {"demarc_fingerprint", {8, 8, 4, 4, 4, 8, 8, 8, 8, 8, 4}},
      {"demarc_streams", {40, 40, 8, 8, 8, 8, 8, 8}},
      {"demarc_copy_colored", {sizeof(colored_layout<remainders>), 8, 8, 4}}};
  std::vector<std::uint64_t> copied;
  const auto found = sizes.find(function.name);
  if (found == sizes.end()) return copied;
  for (std::size_t i = 0; i < found->second.size(); ++i) {
    for (std::size_t at = 0; at < found->second[i]; at += sizeof(std::uint64_t)) {
      std::uint64_t value = 0;
      std::memcpy(&value, static_cast<const char*>(arguments[i]) + at,
                  std::min(found->second[i] - at, sizeof value));
      copied.push_back(value);
    }
  }
  return copied;
}

}  // namespace demarc::fake
