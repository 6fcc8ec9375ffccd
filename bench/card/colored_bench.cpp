// Streaming through a coloured span against plain code on the same share of the memory system, two
// spans that stream side by side, and what copies and audits of coloured memory cost. Needs a card
// whose description knows colours (H100, H200).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "colored_kernels_ptx.hpp"
#include "demarc/card/backend.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/device/embedded_ptx.hpp"

namespace {

using namespace demarc;        // NOLINT: a program of its own
using namespace demarc::cuda;  // NOLINT

constexpr std::uint64_t mebi = std::uint64_t{1} << 20U;
constexpr int samples = 15;
constexpr double wanted_share = 0.95;
constexpr int neighbour_samples = 5;
constexpr std::uint32_t victim_rounds = 10;  // over 512 MiB
constexpr std::uint32_t neighbour_rounds = 120;

// Elements of the spans as the device sees them.
struct U128 {
  std::uint32_t words[4];
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Case {
  const char* name;
  std::uint64_t bytes;
  std::uint32_t writes;
  std::uint32_t rounds;
};

// Bytes moved in a second, reads and writes both counted.
double rate(const Case& what, double seconds) {
  return static_cast<double>(what.bytes) * what.rounds * (what.writes + 1) / seconds;
}

class Kernels {
 public:
  static Result<Kernels> load(const GpuPointer& gpu) {
    const auto capability = gpu->compute_capability();
    const auto* image = gpu::find_ptx(embedded::colored_kernels(), "colored_streams",
                                      capability.major * 10 + capability.minor);
    if (image == nullptr) return missing_capability("no kernels for this GPU");
    DEMARC_TRY(Module module, Module::load(gpu, std::string(image->text), "colored_streams.ptx"));
    std::vector<Function> functions;
    for (const char* name :
         {"bench_plain", "bench_runs", "bench_span1", "bench_span2", "bench_span_remainders"}) {
      DEMARC_TRY(Function function, module.function(name));
      functions.push_back(std::move(function));
    }
    return Kernels{std::move(module), std::move(functions)};
  }
  [[nodiscard]] const Function& span(unsigned masks) const {
    return masks == remainders ? functions.back() : functions.at(1 + masks);
  }
  Module module;
  std::vector<Function> functions;
};

template <class Launch>
Result<double> seconds_of(const char* kernel, const Stream& stream, Launch&& start) {
  DEMARC_TRY(const Event begin, Event::create(stream.gpu()));
  DEMARC_TRY(const Event end, Event::create(stream.gpu()));
  DEMARC_CHECK(begin.record(stream));
  DEMARC_CHECK(start());
  DEMARC_CHECK(end.record(stream));
  if (const auto done = stream.wait(); !done) {
    return check_failed("kernel over {}: {}", kernel, done.error().message);
  }
  DEMARC_TRY(const double milliseconds, end.milliseconds_since(begin));
  return milliseconds * 1e-3;
}

// Three ways over one size, taken in turns: the medians of their rates.
template <unsigned Masks>
Result<void> compare(const Kernels& kernels, const Stream& stream, const Case& what,
                     const ColoredBuffer& colored, std::uint32_t blocks, const char* share) {
  const GpuPointer& gpu = stream.gpu();
  DEMARC_TRY(const DeviceBuffer plain, DeviceBuffer::allocate(gpu, what.bytes));
  DEMARC_TRY(const DeviceBuffer sink, DeviceBuffer::allocate(gpu, 4));
  DEMARC_CHECK(plain.fill(1));
  const std::uint64_t run = colored.run_bytes();
  std::vector<DevicePointer> addresses;
  for (std::uint64_t at = 0; at < what.bytes; at += run)
    addresses.push_back(colored.address(at).raw());
  DEMARC_TRY(const DeviceBuffer list, DeviceBuffer::allocate(gpu, 8 * addresses.size()));
  DEMARC_CHECK(list.upload(addresses.data(), 8 * addresses.size()));
  const std::uint64_t vectors = what.bytes / 16;
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(run / 16));
  const colored_span<U128, Masks> span(colored.layout<Masks>(), vectors);
  // One block an SM: with more than 32 registers a thread, no second one fits beside it.
  const LaunchShape shape = LaunchShape::line(blocks, 1024);
  const auto& functions = kernels.functions;
  std::vector<double> rates[3];
  for (int sample = -2; sample < samples; ++sample) {
    DEMARC_TRY(const double of_plain, seconds_of("plain memory", stream, [&] {
                 return launch(stream, functions[0], shape, plain.address(), vectors, what.writes,
                               what.rounds, sink.address());
               }));
    DEMARC_TRY(const double of_runs, seconds_of("a list of runs", stream, [&] {
                 return launch(stream, functions[1], shape, list.address(), shift, vectors,
                               what.writes, what.rounds, sink.address());
               }));
    DEMARC_TRY(const double of_span, seconds_of("a span", stream, [&] {
                 return launch(stream, kernels.span(Masks), shape, span, what.writes, what.rounds,
                               sink.address());
               }));
    DEMARC_TRY(const auto still, list.read<DevicePointer>(addresses.size()));
    if (still != addresses) return check_failed("a stream wrote outside its own buffer");
    if (sample < 0) continue;
    rates[0].push_back(rate(what, of_plain));
    rates[1].push_back(rate(what, of_runs));
    rates[2].push_back(rate(what, of_span));
  }
  const double by_list = median(rates[1]);
  const double by_span = median(rates[2]);
  std::printf("%-22s %-8s %9.0f %11.0f %11.0f %8.3f  %s\n", what.name, share,
              median(rates[0]) * 1e-9, by_list * 1e-9, by_span * 1e-9, by_span / by_list,
              by_span >= wanted_share * by_list ? "reached" : "NOT REACHED");
  return {};
}

template <class Work>
Result<double> wall_seconds(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  DEMARC_CHECK(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Copies and the audit of one buffer.
Result<void> copies_and_audit(const GpuPointer& gpu, const ColoredBuffer& buffer) {
  std::vector<char> host(buffer.bytes());
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<char>(i * 31 >> 7U);
  std::vector<char> back(host.size());
  DEMARC_TRY(const DeviceBuffer plain, DeviceBuffer::allocate(gpu, buffer.bytes()));
  const auto upload = [&] { return buffer.upload(host.data(), host.size()); };
  const auto upload_plain = [&] { return plain.upload(host.data(), host.size()); };
  DEMARC_CHECK(upload());
  DEMARC_CHECK(upload_plain());
  DEMARC_TRY(const double up, wall_seconds(upload));
  DEMARC_TRY(const double up_plain, wall_seconds(upload_plain));
  DEMARC_TRY(const double down,
             wall_seconds([&] { return buffer.download(back.data(), back.size()); }));
  const bool same = std::memcmp(host.data(), back.data(), host.size()) == 0;
  ColorAudit audit;
  DEMARC_TRY(const double audited, wall_seconds([&]() -> Result<void> {
               DEMARC_TRY(audit, buffer.audit());
               return {};
             }));
  const double gigabytes = static_cast<double>(buffer.bytes()) * 1e-9;
  std::printf("copies of %llu MiB: up %.1f GB/s (plain buffer %.1f), down %.1f GB/s, contents %s\n",
              static_cast<unsigned long long>(buffer.bytes() / mebi), gigabytes / up,
              gigabytes / up_plain, gigabytes / down, same ? "kept" : "CHANGED");
  std::printf("audit by timing: %llu chunks in %.2f s, %llu outside, %llu unclear: %s\n",
              static_cast<unsigned long long>(audit.chunks()), audited,
              static_cast<unsigned long long>(audit.outside),
              static_cast<unsigned long long>(audit.unclear),
              audit.holds() ? "every chunk has its colour" : "DOES NOT HOLD");
  return {};
}

// One span that streams on a stream of its own.
template <unsigned Masks>
struct Streamer {
  const Kernels* kernels;
  const Stream* stream;
  const ColoredBuffer* buffer;
  std::uint32_t blocks;
  const DeviceBuffer* sink;

  [[nodiscard]] Result<void> start(std::uint32_t writes, std::uint32_t rounds) const {
    return launch(*stream, kernels->span(Masks), LaunchShape::line(blocks, 1024),
                  buffer->span<U128, Masks>(), writes, rounds, sink->address());
  }
};

// Seconds of the victim, alone or while the neighbour streams without a break.
template <unsigned Masks>
Result<double> seconds_beside(const Streamer<Masks>& victim, std::uint32_t victim_writes,
                              const Streamer<Masks>* neighbour, std::uint32_t writes) {
  std::vector<double> times;
  for (int sample = -1; sample < neighbour_samples; ++sample) {
    if (neighbour != nullptr) DEMARC_CHECK(neighbour->start(writes, neighbour_rounds));
    DEMARC_TRY(const double seconds, seconds_of("a span", *victim.stream, [&] {
                 return victim.start(victim_writes, victim_rounds);
               }));
    if (neighbour != nullptr) {
      DEMARC_TRY(const bool over, neighbour->stream->done());
      if (over) return check_failed("the neighbour ended before the victim");
      DEMARC_CHECK(neighbour->stream->wait());
    }
    if (sample >= 0) times.push_back(seconds);
  }
  return median(times);
}

// Spans of the first two parts, each on its own SMs, in two colours and in one.
template <unsigned Masks>
Result<void> neighbours(const Kernels& kernels, ColoredPool& pool, const ColoredBuffer& own,
                        const Stream* streams[2], const std::uint32_t blocks[2],
                        const char* share) {
  DEMARC_TRY(const DeviceBuffer sink, DeviceBuffer::allocate(pool.arena().gpu(), 4));
  DEMARC_TRY(const ColoredBuffer other, pool.allocate(1, own.bytes()));
  DEMARC_TRY(const ColoredBuffer same, pool.allocate(0, own.bytes()));
  const Streamer<Masks> victim{&kernels, streams[0], &own, blocks[0], &sink};
  for (const std::uint32_t victim_writes : {0U, 1U}) {
    DEMARC_TRY(const double alone, seconds_beside<Masks>(victim, victim_writes, nullptr, 0));
    for (const ColoredBuffer* buffer : {&other, &same}) {
      const Streamer<Masks> neighbour{&kernels, streams[1], buffer, blocks[1], &sink};
      DEMARC_TRY(const double reads, seconds_beside(victim, victim_writes, &neighbour, 0));
      DEMARC_TRY(const double writes, seconds_beside(victim, victim_writes, &neighbour, 1));
      std::printf("%s, a span that %s beside a span in %s colours: x%.3f (reads), x%.3f (writes)\n",
                  share, victim_writes != 0 ? "reads and writes" : "reads",
                  buffer == &other ? "other" : "the same", reads / alone, writes / alone);
    }
  }
  return {};
}

template <unsigned Masks>
Result<void> run(const CardPointer& card, const Kernels& kernels, const color::ColorScheme& scheme,
                 const char* share) {
  const GpuPointer& gpu = card->gpu();
  std::vector<ShareRequest> shares;
  for (std::uint32_t color = 0; color < scheme.colors; ++color) {
    shares.push_back({color::ColorSet::run(color, 1, scheme.colors), 0});
  }
  const std::uint64_t bytes = 2048 * mebi * scheme.colors * scheme.pages_per_kept_page();
  DEMARC_TRY(const auto pool, ColoredPool::create(card, scheme, bytes, shares));
  std::printf("%s\n", pool->colors().account().c_str());
  DEMARC_TRY(const ColoredBuffer large, pool->allocate(0, 512 * mebi));
  // Well inside the colours' share of the L2 (50 MB, of which either side keeps what its SMs read).
  const std::uint64_t small_bytes = 16 * mebi / scheme.colors;
  DEMARC_TRY(const ColoredBuffer small, pool->allocate(0, small_bytes));
  const std::uint32_t sms = gpu->sm_count();
  const Case cases[] = {{"DRAM, reads", 512 * mebi, 0, 1},
                        {"DRAM, read and write", 512 * mebi, 1, 1},
                        {"L2, reads", small_bytes, 0, 200},
                        {"L2, read and write", small_bytes, 1, 200}};
  for (const Case& what : cases) {
    const ColoredBuffer& buffer = what.bytes == small.bytes() ? small : large;
    DEMARC_CHECK(compare<Masks>(kernels, card->stream(), what, buffer, sms, share));
  }
  // As a partition runs: its share of the colours and of the TPCs, no GPC in two parts.
  DEMARC_TRY(const auto parts, partition::split(card->topology(), scheme.colors,
                                                partition::SplitStrategy::gpc_aligned));
  DEMARC_TRY(const auto backend, make_backend(card, Mode::mask));
  DEMARC_TRY(const auto stream, backend->open(parts[0]));
  DEMARC_TRY(const auto next, backend->open(parts[1]));
  const std::string name = std::string(share) + "+SMs";
  const std::uint32_t blocks[2] = {gpu::sm_count(card->topology(), parts[0].tpcs),
                                   gpu::sm_count(card->topology(), parts[1].tpcs)};
  for (const Case& what : cases) {
    const ColoredBuffer& buffer = what.bytes == small.bytes() ? small : large;
    DEMARC_CHECK(compare<Masks>(kernels, stream->stream(), what, buffer, blocks[0], name.c_str()));
  }
  const Stream* streams[2] = {&stream->stream(), &next->stream()};
  DEMARC_CHECK(neighbours<Masks>(kernels, *pool, large, streams, blocks, share));
  DEMARC_TRY(const ColoredBuffer audited, pool->allocate(1, 256 * mebi));
  return copies_and_audit(gpu, audited);
}

Result<void> run_all() {
  DEMARC_TRY(const auto card, open_card(0));
  const GpuPointer& gpu = card->gpu();
  DEMARC_TRY(const gpu::Device device, gpu::describe_card(gpu->name()));
  DEMARC_TRY(const color::ColorScheme halves, color::color_scheme(device, 2));
  DEMARC_TRY(const color::ColorScheme quarters, color::color_scheme(device, 4));
  DEMARC_TRY(const Kernels kernels, Kernels::load(gpu));
  std::printf("%s, driver %s; GB/s, medians of %d taken in turns; span over list: at least %.2f\n",
              gpu->name().c_str(), gpu->driver().driver_version().c_str(), samples, wanted_share);
  std::printf("%-22s %-8s %9s %11s %11s %8s\n", "stream", "share", "plain", "list, same", "span",
              "ratio");
  if (halves.remainders) {
    DEMARC_CHECK(run<remainders>(card, kernels, halves, "1/2"));
    return run<remainders>(card, kernels, quarters, "1/4");
  }
  DEMARC_CHECK(run<1>(card, kernels, halves, "1/2"));
  return run<2>(card, kernels, quarters, "1/4");
}

}  // namespace

int main() {
  if (const auto done = run_all(); !done) {
    std::printf("colored_bench: not run: %s\n", done.error().message.c_str());
  }
  return 0;
}
