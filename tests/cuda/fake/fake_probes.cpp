// The probe kernels in C++. Arguments as in src/card/kernels/probes.cu and timed_memory.cu.
#include <algorithm>
#include <cstring>

#include "demarc/card/colored.cuh"
#include "fake_launch.hpp"
#include "fake_planted.hpp"

namespace demarc::fake {
namespace {

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
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
// Alone it runs on, a tenth of a millisecond a round, while others launch.
void run_streams(FakeGpu& gpu, FakeStream* stream, const std::vector<std::uint64_t>& a,
                 const Placed& placed) {
  const PlantedStream victim = planted_stream(a.data());
  const PlantedStream other = planted_stream(a.data() + 5);
  const auto* roles = reinterpret_cast<const unsigned char*>(a[10]);
  auto* taken = reinterpret_cast<std::uint64_t*>(a[14]);
  bool used[16] = {};
  const auto chunk_of = [&gpu](const PlantedStream& of, std::uint32_t i) {
    return planted_chunk(gpu, of.base + (std::uint64_t{of.chunks[i]} << of.shift));
  };
  for (std::uint32_t i = 0; i < other.count; ++i) used[chunk_of(other, i).module] = true;
  double nanoseconds = 0;
  for (std::uint32_t i = 0; i < victim.count; ++i) {
    if (other.count == 0) {
      nanoseconds += 100;
      continue;
    }
    nanoseconds += used[chunk_of(victim, i).module] ? (other.writes != 0 ? 340 : 180) : 100;
  }
  for (const std::uint32_t sm : placed.number) {
    if (roles[sm] == 1) taken[sm] = static_cast<std::uint64_t>(nanoseconds * victim.rounds);
  }
  if (other.count != 0 || victim.rounds < 2) return;
  stream->busy_until_ns = gpu.now_ns + victim.rounds * std::uint64_t{100'000};
  gpu.felt = {stream->busy_until_ns, false, 0};
  if (gpu.config.felt_paths == 0 && !gpu.config.streams_feel_sides) return;
  for (std::uint32_t i = 0; i < victim.count; ++i) {
    const PlantedChunk chunk = chunk_of(victim, i);
    gpu.felt.path |= (gpu.config.felt_paths >> chunk.module & 1U) != 0;
    gpu.felt.sides |= std::uint32_t{1} << chunk.side;
  }
}

void run_hit_latency(FakeGpu& gpu, const std::vector<std::uint64_t>& a, const Placed& placed) {
  const auto* offsets = reinterpret_cast<const std::uint32_t*>(a[1]);
  const auto* slot_of_sm = reinterpret_cast<const std::int32_t*>(a[3]);
  auto* out = reinterpret_cast<std::uint16_t*>(a[6]);
  const auto count = static_cast<std::size_t>(a[2]);
  const std::set<std::uint32_t> reached(placed.number.begin(), placed.number.end());
  for (const std::uint32_t sm : reached) {
    if (slot_of_sm[sm] < 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      out[static_cast<std::size_t>(slot_of_sm[sm]) * count + i] = static_cast<std::uint16_t>(
          8 * slice_latency(gpu, sm, a[0] + std::uint64_t{offsets[i]} * 128) + 0.5);
    }
  }
}

constexpr std::size_t layout_words = sizeof(colored_layout<remainders>) / 8;

colored_layout<remainders> copied_layout(const std::vector<std::uint64_t>& a) {
  colored_layout<remainders> colored;
  std::memcpy(static_cast<void*>(&colored), a.data(), sizeof colored);
  return colored;
}

// The kernel moves 16 bytes at a time, which lie together in coloured memory and as plainly.
bool vectors_agree(const FakeGpu& gpu, const std::vector<std::uint64_t>& a) {
  return (copied_layout(a).first - a[layout_words]) % 16 == 0 && a[layout_words + 2] < 2 &&
         gpu.fits(a[layout_words], a[layout_words + 1]);
}

void run_copy(const std::vector<std::uint64_t>& a) {
  const colored_layout<remainders> colored = copied_layout(a);
  const std::uint64_t bytes = a[layout_words + 1];
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t now =
        std::min<std::uint64_t>(bytes - done, 16 - (colored.first + done) % 16);
    void* there = reinterpret_cast<void*>(colored.address(done));  // NOLINT
    void* here = reinterpret_cast<void*>(a[layout_words] + done);  // NOLINT
    const bool to_colored = a[layout_words + 2] != 0;
    std::memcpy(to_colored ? there : here, to_colored ? here : there, now);
    done += now;
  }
}

std::uint64_t blocks_of(const FakeLaunch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

// What a launch writes: address and bytes.
struct Output {
  DevicePointer address;
  std::size_t bytes;
};

std::vector<Output> outputs_of(const FakeGpu& gpu, const FakeLaunch& launch) {
  const auto& a = launch.arguments;
  const std::string& name = launch.function->name;
  const std::uint64_t sms = gpu.shown_sms();
  const std::uint64_t blocks = blocks_of(launch);
  if (name == "demarc_where") {
    std::vector<Output> outputs{{a[0], 4 * sms}};
    if (a[1] != 0) outputs.push_back({a[1], 4 * blocks});
    return outputs;
  }
  if (name == "demarc_self_lines") return {{a[0], a[1] * (a[2] - 1) + 8}};
  if (name == "demarc_latency") return {{a[6], 4}, {a[7], 4 * a[2]}};
  if (name == "demarc_hit_latency") return {{a[6], 2 * a[2] * a[4]}};
  if (name == "demarc_streams") return {{a[14], 8 * sms}};
  if (name == "demarc_hold") return {{a[0], 24 * blocks}};
  if (name == "demarc_affine") return {{a[1], 4}, {a[3], 4 * a[2]}};
  if (name == "demarc_copy_colored" && a[layout_words + 2] == 0) {
    return {{a[layout_words], a[layout_words + 1]}};
  }
  return {};
}

// Kernels that measure time count on the threads that they were written for.
std::uint32_t wanted_threads(const std::string& name) {
  if (name == "demarc_latency" || name == "demarc_hit_latency") {
    return 32;
  }
  return name == "demarc_streams" ? 1024 : 0;
}

// Streams with other numbers would wait for ever, or begin as if others were done.
bool streams_agree(const FakeGpu& gpu, const std::vector<std::uint64_t>& a) {
  const auto* roles = reinterpret_cast<const unsigned char*>(a[10]);
  const auto* ranks = reinterpret_cast<const std::uint16_t*>(a[11]);
  const auto* counters = reinterpret_cast<const std::uint32_t*>(a[12]);
  std::uint32_t workers[3] = {0, 0, 0};
  for (std::uint32_t sm = 0; sm < gpu.shown_sms(); ++sm) {
    if (roles[sm] > 2 || (roles[sm] != 0 && ranks[sm] != workers[roles[sm]]++)) return false;
  }
  const auto low = [&a](std::size_t word) { return static_cast<std::uint32_t>(a[word]); };
  const auto high = [&a](std::size_t word) { return static_cast<std::uint32_t>(a[word] >> 32U); };
  return high(4) == workers[1] && high(9) == workers[2] && low(3) != 0 && low(8) == 0 &&
         low(9) == 0 && (workers[2] == 0) == (low(7) == 0) && counters[0] == 0 &&
         counters[1] == 0 && a[15] == a[12] + 8;
}

// For a line of mapped memory its slice decides, as everywhere; of a buffer its number.
double line_latency(FakeGpu& gpu, std::uint32_t sm, const std::vector<std::uint64_t>& a,
                    std::uint64_t line) {
  const std::uint64_t address = a[0] + line * a[1];
  const bool mapped = gpu.mapped.contains(address / fake_page * fake_page);
  return mapped ? slice_latency(gpu, sm, address) : planted_latency(gpu, sm, line);
}

// Each line is loaded over and over, by the address that it holds.
bool lines_lead_to_themselves(const std::vector<std::uint64_t>& a) {
  for (std::uint64_t line = 0; line < a[2]; ++line) {
    const std::uint64_t address = a[0] + line * a[1];
    if (*at<std::uint64_t>(address) != address) return false;
  }
  return true;
}

}  // namespace

const std::vector<std::size_t>* probe_arguments(const std::string& name) {
  static const auto& sizes = *new std::map<std::string, std::vector<std::size_t>>{
      {"demarc_idle", {}},
      {"demarc_where", {8, 8, 8}},
      {"demarc_latency", {8, 8, 4, 4, 4, 4, 8, 8}},
      {"demarc_self_lines", {8, 8, 4}},
      {"demarc_affine", {8, 8, 4, 8, 8}},
      {"demarc_hold", {8, 8}},
      {"demarc_hit_latency", {8, 8, 4, 8, 4, 4, 8, 4}},
      {"demarc_streams", {40, 40, 8, 8, 8, 8, 8, 8}},
      {"demarc_copy_colored", {sizeof(colored_layout<remainders>), 8, 8, 4}}};
  const auto found = sizes.find(name);
  return found == sizes.end() ? nullptr : &found->second;
}

CuResult wrong_with_probe(const FakeGpu& gpu, const FakeLaunch& launch) {
  const auto& a = launch.arguments;
  const std::string& name = launch.function->name;
  const std::uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  const std::uint32_t wanted = wanted_threads(name);
  if (launch.block[1] != 1 || launch.block[2] != 1) return error_invalid;  // lines of threads
  if (threads == 0 || (wanted != 0 && threads != wanted)) return error_invalid;
  if (blocks_of(launch) == 0) return error_invalid;
  for (const Output& output : outputs_of(gpu, launch)) {
    if (!gpu.fits(output.address, output.bytes)) return error_illegal_address;
  }
  const bool agree = name == "demarc_streams"        ? streams_agree(gpu, a)
                     : name == "demarc_latency"      ? lines_lead_to_themselves(a)
                     : name == "demarc_copy_colored" ? vectors_agree(gpu, a)
                     : name == "demarc_hit_latency"  ? a[7] == 0  // what is loaded changes nothing
                                                     : true;
  return agree ? cuda::cu_success : error_timeout;
}

void run_probe(FakeGpu& gpu, FakeStream* stream, const FakeLaunch& launch, const Placed& placed) {
  if (stream != &gpu.default_stream) {  // copies wait for that one
    for (const Output& output : outputs_of(gpu, launch)) {
      gpu.unfinished[output.address] = reinterpret_cast<CuStream>(stream);
    }
  }
  const auto& a = launch.arguments;
  const auto& where = placed.number;
  const std::string& name = launch.function->name;
  if (name == "demarc_where") {
    for (std::size_t b = 0; b < where.size(); ++b) {
      if (!gpu.fits(a[0], 4 * (where[b] + std::size_t{1}))) {
        gpu.broken = error_illegal_address;
        return;
      }
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
          static_cast<std::uint32_t>(8 * line_latency(gpu, target, a, line) + 0.5);
    }
  } else if (name == "demarc_hit_latency") {
    run_hit_latency(gpu, a, placed);
  } else if (name == "demarc_streams") {
    run_streams(gpu, stream, a, placed);
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

}  // namespace demarc::fake
