// The emulator beside a real card: every bundled launch and every instruction case on both, their
// outputs compared bit by bit. Prints what differs and a summary.
// Exit code 0: all instruction cases are equal, or within the bounds that the PTX ISA documents;
// all launches are equal, but for those that round otherwise, and meet their references on the
// card; 2: there is no card; 3: something differs or was not compared.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "card_run.hpp"
#include "demarc/base/files.hpp"
#include "demarc/driver/driver.hpp"
#include "demarc/workload/workload.hpp"
#include "flow_runs.hpp"
#include "instructions/instruction_runs.hpp"
#include "instructions/product_cases.hpp"
#include "instructions/reference.hpp"

namespace demarc::emulate::test {
namespace {

struct Tally {
  std::size_t equal = 0;
  std::size_t near = 0;  // within a documented bound
  std::size_t different = 0;
  std::size_t skipped = 0;
  std::size_t unmet = 0;  // launches whose reference the card did not meet
};

// Elements of a buffer that are not the same; of f32 ones the largest relative distance, too.
struct BufferDifference {
  std::size_t elements = 0;
  std::size_t different = 0;
  double relative = 0;
};

BufferDifference compare_buffers(const gpu::Buffer& buffer, const std::vector<std::byte>& card,
                                 const std::vector<std::byte>& emulated) {
  BufferDifference out;
  const std::size_t size = gpu::size_of(buffer.element);
  out.elements = card.size() / size;
  for (std::size_t i = 0; i < out.elements; ++i) {
    if (std::memcmp(card.data() + i * size, emulated.data() + i * size, size) == 0) continue;
    ++out.different;
    double values[2] = {};
    const std::byte* at[2] = {card.data() + i * size, emulated.data() + i * size};
    for (unsigned s = 0; s < 2; ++s) {
      if (buffer.element == gpu::ScalarType::f32) {
        float value = 0;
        std::memcpy(&value, at[s], 4);
        values[s] = static_cast<double>(value);
      } else if (buffer.element == gpu::ScalarType::f64) {
        std::memcpy(&values[s], at[s], 8);
      }
    }
    const double scale = std::max(std::fabs(values[0]), std::fabs(values[1]));
    if (scale > 0) out.relative = std::max(out.relative, std::fabs(values[0] - values[1]) / scale);
  }
  return out;
}

// Launches whose PTX leaves the rounding open: approximate functions, or products and sums without
// a rounding, which the driver's compiler may fuse (docs/measurements/emulate.md).
bool may_round_otherwise(std::string_view launch) {
  for (const std::string_view known : {"cfd", "fft", "gaussian", "leukocyte", "nbody"}) {
    if (launch == known) return true;
  }
  return false;
}

Result<std::string> compare_launch(const cuda::GpuPointer& card, const workload::Workload& entry,
                                   Tally& tally) {
  DEMARC_TRY(const gpu::Launch launch, workload::instance(entry.name));
  const auto capability = card->compute_capability();
  DEMARC_TRY(const std::string ptx,
             workload::ptx_text(launch, capability.major * 10 + capability.minor));
  DEMARC_TRY(const gpu::Memory real, run_on_card(card, ptx, launch));
  const ptx::ParseResult parsed = ptx::parse(ptx, entry.name);
  if (!parsed.diagnostics.ok()) return invalid_input("{} does not parse", entry.name);
  Options options;
  options.source = entry.name;
  DEMARC_TRY(const Outcome outcome, run(parsed.module, launch, options));
  std::string said;
  bool equal = true;
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const BufferDifference found = compare_buffers(launch.buffers[i], real[i], outcome.buffers[i]);
    if (found.different == 0) continue;
    equal = false;
    said += fmt::format(" {}: {} of {} elements ({}), relative {:.2g};", launch.buffers[i].name,
                        found.different, found.elements, gpu::name_of(launch.buffers[i].element),
                        found.relative);
  }
  const auto checked = workload::check(launch, gpu::default_addresses(launch), real);
  ++(equal ? tally.equal : (may_round_otherwise(entry.name) ? tally.near : tally.different));
  if (!checked) ++tally.unmet;
  return fmt::format("| {} | {} | {} |", entry.name, equal ? "bit-equal" : said,
                     checked ? "yes" : "NO: " + checked.error().message);
}

void compare_launches(const cuda::GpuPointer& card, Tally& tally) {
  fmt::print("| launch | card against emulator | the card meets the reference |\n|---|---|---|\n");
  for (const workload::Workload& entry : workload::all()) {
    const auto said = compare_launch(card, entry, tally);
    if (!said) ++tally.skipped;
    fmt::print("{}\n",
               said ? *said
                    : fmt::format("| {} | not compared: {} | |", entry.name, said.error().message));
    std::fflush(stdout);
  }
}

// Where a card is known to do something else than the manual says; docs/measurements/emulate.md
// lists it.
bool card_differs(const InstructionCase& entry, const Inputs& x, const Results& ours) {
  const std::string name = mnemonic_of(entry);
  const auto has = [&](std::string_view word) {
    return entry.text.find(word) != std::string::npos;
  };
  const auto begins = [&](std::string_view word) { return name.rfind(word, 0) == 0; };
  if (name == "bfe.u64" || name == "bfe.s64") return x[1] > 255 || x[2] > 255;
  if (name == "bfi.b64") return x[2] > 255 || x[3] > 255;
  if (begins("fns")) return x[2] == 0x80000000U;
  const bool rounds = begins("mul") || begins("fma") || begins("mad") || begins("div");
  if (rounds && has(".ftz")) {
    // What rounding brings to the smallest normal number is flushed on a card.
    if (has("f16")) return (ours.d & 0x7fffU) == 0x0400U || ((ours.d >> 16) & 0x7fffU) == 0x0400U;
    return (ours.d & 0x7fffffffU) == 0x00800000U;
  }
  const bool high_bits = x[0] >> 31 != 0 || x[1] >> 31 != 0 || x[2] >> 31 != 0;
  // Limited from below only, so that a sum beyond 2^32 keeps its low bits.
  if ((begins("vadd.u32.") || begins("vsub.u32.")) && has(".sat") && has(".min")) return true;
  if (begins("vmad")) return high_bits && (has(".sat") || has(".shr"));
  const bool video = begins("vadd.") || begins("vsub.") || begins("vabsdiff.") || begins("vmin.") ||
                     begins("vmax.");
  if (video && has(" D.")) return true;
  if (video && (name.find(".min") != std::string::npos || name.find(".max") != std::string::npos))
    return x[2] >> 31 != 0 && name.find(".u32.") == name.find('.');
  return has("shared.add.noftz.f16x2") || has("shared.add.noftz.bf16x2");
}

struct Seen {
  std::size_t lanes = 0;
  std::size_t bits = 0;    // lanes whose bits differ
  std::size_t beyond = 0;  // lanes beyond the bound
  std::string first;
};

Seen compare_case(const InstructionCase& entry, const std::vector<Inputs>& inputs,
                  const std::vector<Results>& real, const std::vector<Results>& emulated) {
  Seen seen;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (entry.defined && !entry.defined(inputs[i])) continue;
    if (card_differs(entry, inputs[i], emulated[i])) continue;
    ++seen.lanes;
    for (std::size_t r = 0; r < entry.results.size(); ++r) {
      const std::uint64_t got = r == 0 ? real[i].d : real[i].e;
      const std::uint64_t ours = r == 0 ? emulated[i].d : emulated[i].e;
      if (got == ours) continue;
      ++seen.bits;
      // A NaN of f64 has the bits that the hardware gives it.
      if (entry.results[r] == Value::f64 && std::isnan(f64_of(got)) && std::isnan(f64_of(ours)))
        continue;
      const std::string said = difference(entry.results[r], got, ours, entry.card);
      if (said.empty()) continue;
      if (seen.beyond++ == 0) {
        seen.first = said;
        for (std::size_t s = 0; s < entry.sources.size(); ++s)
          seen.first += fmt::format(" 0x{:x}", inputs[i][s]);
      }
    }
  }
  return seen;
}

Result<void> compare_group(const cuda::GpuPointer& card,
                           const std::vector<const InstructionCase*>& group, Tally& tally) {
  unsigned target = 75;
  for (const InstructionCase* entry : group) target = std::max(target, entry->target);
  std::string text = module_header(target);
  for (std::size_t i = 0; i < group.size(); ++i)
    text += kernel_body(*group[i], 0, false, fmt::format("k{}", i));
  auto module = cuda::Module::load(card, text, "instruction cases");
  if (!module && group.size() > 1) {
    // One of them does not compile: each on its own.
    for (const InstructionCase* entry : group) DEMARC_CHECK(compare_group(card, {entry}, tally));
    return {};
  }
  if (!module) {
    ++tally.skipped;
    fmt::print("not compiled by the driver: {}\n", group[0]->text);
    return {};
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    const InstructionCase& entry = *group[i];
    const auto inputs = inputs_for(entry, 2048, 11);
    DEMARC_TRY(const auto real,
               run_case_on_card(card, *module, fmt::format("k{}", i), entry, inputs));
    DEMARC_TRY(const auto emulated, emulate_case(entry, inputs, 0, false));
    const Seen seen = compare_case(entry, inputs, real, emulated);
    ++(seen.bits == 0 ? tally.equal : (seen.beyond == 0 ? tally.near : tally.different));
    if (seen.beyond > 0) {
      fmt::print("DIFFERENT {}: {} of {} lanes; card {}\n", entry.text, seen.beyond, seen.lanes,
                 seen.first);
    } else if (seen.bits > 0) {
      fmt::print("near {}: {} of {} lanes differ within the bound\n", entry.text, seen.bits,
                 seen.lanes);
    }
  }
  return {};
}

Result<void> compare_instructions(const cuda::GpuPointer& card, Tally& tally) {
  const auto capability = card->compute_capability();
  const unsigned most = capability.major * 10 + capability.minor;
  constexpr std::size_t group_size = 32;
  std::vector<const InstructionCase*> group;
  for (const InstructionCase& entry : all_cases()) {
    if (entry.target > most) {
      ++tally.skipped;
      continue;
    }
    group.push_back(&entry);
    if (group.size() < group_size) continue;
    DEMARC_CHECK(compare_group(card, group, tally));
    group.clear();
  }
  return group.empty() ? Result<void>{} : compare_group(card, group, tally);
}

// Writes what the card gave into `folder` where one is given: tests/emulate/products.
Result<void> compare_product(const cuda::GpuPointer& card, const ProductCase& one,
                             const std::string& folder, Tally& tally) {
  const gpu::Launch launch = one.launch();
  DEMARC_TRY(const gpu::Memory real,
             run_on_card(card, one.text, launch, {one.in, std::vector<std::byte>(one.out_bytes)}));
  if (!folder.empty()) {
    const auto* bytes = reinterpret_cast<const char*>(real[1].data());
    DEMARC_CHECK(write_file(folder + "/" + one.name + ".card", {bytes, real[1].size()}));
  }
  const ptx::ParseResult parsed = ptx::parse(one.text, one.name);
  DEMARC_TRY(const Outcome outcome,
             run_on(parsed.module, launch, {one.in, std::vector<std::byte>(one.out_bytes)}));
  const bool same = outcome.buffers[1] == real[1];
  ++(same ? tally.equal : tally.different);
  if (!same) fmt::print("DIFFERENT {}\n", one.name);
  return {};
}

Result<void> compare_products(const cuda::GpuPointer& card, const std::string& folder,
                              Tally& tally) {
  if (card->compute_capability().major != 9) {
    fmt::print("products: not compared, because the emulator rounds as cards of sm_90 do\n");
    return {};
  }
  for (const ProductCase& one : product_cases()) {
    DEMARC_CHECK(compare_product(card, one, folder, tally));
  }
  return {};
}

// Random kernels whose lanes part: the card leaves what threads leave that run one at a time.
Result<void> compare_flows(const cuda::GpuPointer& card, Tally& tally) {
  const char* const given = std::getenv("DEMARC_FLOW_PROGRAMS");
  const std::uint64_t count = given != nullptr ? std::strtoull(given, nullptr, 10) : 300;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const RandomFlow flow = random_flow(seed);
    DEMARC_TRY(const gpu::Memory expected, reference_of_flow(flow, seed));
    DEMARC_TRY(const gpu::Memory real,
               run_on_card(card, flow.text, launch_of_flow(flow), bytes_of(memory_of_flow(flow))));
    const std::string said = flow_difference(expected, real);
    ++(said.empty() ? tally.equal : tally.different);
    if (!said.empty()) fmt::print("DIFFERENT random kernel {}: {}\n", seed, said);
  }
  return {};
}

Result<int> compare_all(const std::string& folder) {
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const cuda::GpuPointer card, cuda::Gpu::open(driver, 0));
  fmt::print("{}, driver {}, emulator {}\n\n", card->name(), driver->driver_version(),
             to_string(widest_instruction_set()));
  Tally products;
  DEMARC_CHECK(compare_products(card, folder, products));
  fmt::print("matrix products: {} of {} bit-equal\n", products.equal,
             products.equal + products.different);
  Tally flows;
  DEMARC_CHECK(compare_flows(card, flows));
  fmt::print("random kernels: {} of {} bit-equal\n", flows.equal, flows.equal + flows.different);
  Tally cases;
  DEMARC_CHECK(compare_instructions(card, cases));
  fmt::print("\n");
  Tally launches;
  compare_launches(card, launches);
  fmt::print(
      "\nlaunches: {} bit-equal, {} rounded otherwise, {} different, {} not compared, {} whose "
      "reference the card does not meet\n",
      launches.equal, launches.near, launches.different, launches.skipped, launches.unmet);
  fmt::print(
      "instruction cases: {} bit-equal, {} within documented bounds, {} different, {} not on this "
      "card\n",
      cases.equal, cases.near, cases.different, cases.skipped);
  const bool good = products.different + flows.different + cases.different + launches.different +
                        launches.skipped + launches.unmet ==
                    0;
  return good ? 0 : 3;
}

}  // namespace
}  // namespace demarc::emulate::test

// An argument is the folder that gets what the card makes of the matrix products.
int main(int count, char** words) {
  const auto code = demarc::emulate::test::compare_all(count > 1 ? words[1] : "");
  if (code) return *code;
  fmt::print(stderr, "{}\n", code.error().message);
  return 2;
}
