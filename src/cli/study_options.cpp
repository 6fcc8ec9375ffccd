// Declares the options that isolate and attack have in common.
#include "study_options.hpp"

#include <algorithm>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/partition/mode.hpp"
#include "help.hpp"

namespace demarc::cli {
namespace {

// Options that not every device can follow; the planted model follows none of them.
struct DeviceOption {
  std::string_view name;
  bool real;  // cuda:N follows it
  bool simulated;
  std::string_view instead;
};
constexpr DeviceOption device_options[] = {
    {"--masks", true, true, "it has no memory to colour; use cuda:N or sim:NAME"},
    {"--colors", true, true, "it has no memory to colour; use cuda:N or sim:NAME"},
    {"--memory-gib", true, false, "it has no memory to take; use cuda:N"},
    {"--description", true, false, "its description is NAME already; use cuda:N"},
    {"--split", true, true, "it has no TPCs to divide; use cuda:N or sim:NAME"},
    {"--clock", true, false, "it has only one way to measure a time; leave it out or use cuda:N"},
    {"--victim-priority", true, false, "its streams have no priorities; use cuda:N"},
    {"--victim-cmd", true, false, "it runs kernels, not commands; use cuda:N"},
    {"--aggressor-cmd", true, false, "it runs kernels, not commands; use cuda:N"},
    {"--settle", true, false, "it runs kernels, not commands; use cuda:N"},
    {"--dispatch", false, true, "its hardware places the blocks; use sim:NAME"},
    {"--locality", false, true, "its hardware places the blocks; use sim:NAME"},
    {"--threads", false, true, "only simulated cells run side by side; use sim:NAME"},
    {"--forecast", true, true, "it has no description of a GPU; use cuda:N or sim:NAME"},
};

}  // namespace

void StudyOptions::declare(CLI::App& app, const std::string& devices) {
  app.add_option("--device", device, devices);
  app.add_option("--parts", parts, "number of equal parts: 2, 3 or 4");
  app.add_option(
      "--split", split_,
      "how TPCs are divided: packed, distributed, gpc-aligned, side-aware or side-aligned");
  app.add_option("--masks", masks_,
                 "colour masks as offsets in 2 MiB pages: 0xc4000,0x18a000 (default: those of the "
                 "card's description)")
      ->delimiter(',');
  app.add_option("--memory-gib", memory_gib_,
                 "GiB that all coloured parts have together (default: 12 per part if colours are "
                 "masks, else 6)");
  app.add_option(
      "--description", description_,
      "description of the card's memory: a file or a name (default: the built-in one of the card)");
  app.add_option("--colors,--colours", colors_,
                 "colour of each part: 1,0 (default: 0,1,...; on cuda:N the victim gets the colour "
                 "that neighbours slow least)")
      ->delimiter(',');
  app.add_option("--dispatch", dispatch_,
                 "policy that picks the SM of each block on sim:NAME (default: the SM with the "
                 "fewest threads)");
  app.add_option("--locality", locality_,
                 "[WORKLOAD=]FILE: map of demarc locality --json --maps --granularity 32, for "
                 "--dispatch locality");
  app.add_option(
      "--clock", clock_,
      "what is timed: gpu (kernels), events (whole runs) or requests (runs that come one by one, "
      "with idle time between)");
  app.add_option("--victim-priority", victim_priority,
                 "stream priority of the victim, if parts are streams of one process; a lower "
                 "number comes first");
  app.add_option("--seed", seed, "seed of the order of the runs and of all random choices");
  app.add_option("--threads", threads_,
                 "simulated cells at a time; 0 means all cores; the results do not depend on it");
  group(app);
}

void StudyOptions::group(CLI::App& app) {
  group_options(app, "Partition",
                {"--parts", "--split", "--masks", "--memory-gib", "--description", "--colors"});
  group_options(app, "Simulation", {"--dispatch", "--locality", "--threads"});
  group_options(app, "Measurement", {"--clock", "--victim-priority", "--seed"});
}

Result<void> StudyOptions::note_given(const CLI::App& app) {
  DEMARC_TRY(ref_, gpu::parse_device_ref(device));
  for (const DeviceOption& option : device_options) {
    const CLI::Option* declared = app.get_option_no_throw(std::string(option.name));
    if (declared != nullptr && declared->count() > 0) given_.emplace_back(option.name);
  }
  return {};
}

bool StudyOptions::given(std::string_view option) const {
  return std::find(given_.begin(), given_.end(), option) != given_.end();
}

Result<void> StudyOptions::check_device() const {
  for (const DeviceOption& option : device_options) {
    if ((real() && option.real) || (simulated() && option.simulated)) continue;
    if (!given(option.name)) continue;
    return invalid_input("--device {} does not support {}: {}", device, option.name,
                         option.instead);
  }
  return {};
}

Result<void> StudyOptions::parse(const std::vector<study::Mode>& modes,
                                 std::string_view mode_option) {
  if (settle_seconds > 3600) {
    return invalid_input("--settle {}: give 0 to 3600 seconds", settle_seconds);
  }
  const auto strategy = partition::parse_split_strategy(split_);
  if (!strategy) return invalid_input("--split: {}", strategy.error().message);
  strategy_ = *strategy;
  for (const std::string& mask : masks_) {
    DEMARC_TRY(const auto value, parse_u64(mask, "--masks"));
    mask_values_.push_back(value);
  }
  if (memory_gib_ && !(*memory_gib_ >= 0.25 && *memory_gib_ <= 4096)) {
    return invalid_input("--memory-gib {}: give 0.25 to 4096", *memory_gib_);
  }
  if (!description_.empty()) DEMARC_CHECK(gpu::find_device(description_));
  if (colors_.size() > parts) {
    return invalid_input("--colors: {} colours for {} parts; give at most one per part",
                         colors_.size(), parts);
  }
  DEMARC_TRY(clock_value_, study::parse_clock(clock_));
  if (!locality_.empty() && dispatch_ != "locality") {
    return invalid_input("only --dispatch locality reads --locality: add it");
  }
  if (dispatch_ == "locality" && locality_.empty()) {
    return invalid_input("--dispatch locality needs a map: add --locality MAP.json");
  }
  for (const std::string& option : locality_) {
    const std::size_t equals = option.find('=');
    const std::string file = equals == std::string::npos ? option : option.substr(equals + 1);
    DEMARC_TRY(const std::string text, read_file(file));
    DEMARC_TRY(sharing_[equals == std::string::npos ? "" : option.substr(0, equals)],
               sim::parse_block_sharing(text, file));
  }
  const auto any = [&modes](bool (*holds)(const study::Mode&)) {
    return std::any_of(modes.begin(), modes.end(), holds);
  };
  if ((!masks_.empty() || !colors_.empty()) &&
      !any([](const study::Mode& mode) { return mode.color; })) {
    return invalid_input(
        "{}: no mode of {} has colours that can be chosen; add one such as "
        "mask+color",
        masks_.empty() ? "--colors" : "--masks", mode_option);
  }
  if (memory_gib_ && !any([](const study::Mode& mode) { return mode.divides_memory(); })) {
    return invalid_input(
        "--memory-gib: no mode of {} has colours; add one such as mask+color or tenant",
        mode_option);
  }
  const auto apart = std::find_if(modes.begin(), modes.end(), [](const study::Mode& mode) {
    return mode.traits().across_processes;
  });
  if (victim_priority != 0 && apart != modes.end()) {
    return invalid_input(
        "--victim-priority: the victims of mode '{}' are processes of their own, whose streams "
        "keep "
        "the default priority; leave the mode out of {}",
        apart->name(), mode_option);
  }
  const auto takes_tpcs =
      simulated()
          ? +[](const partition::ModeTraits&
                    traits) { return traits.exact && !traits.throttles && traits.simulated; }
          : +[](const partition::ModeTraits& traits) { return traits.exact && !traits.throttles; };
  if (given("--split") && std::none_of(modes.begin(), modes.end(), [&](const study::Mode& mode) {
        return takes_tpcs(mode.traits());
      })) {
    return invalid_input(
        "--split: no mode of {} takes TPCs, so nothing is divided; add {}, or leave --split out",
        mode_option, partition::mode_names(takes_tpcs, " or "));
  }
  return {};
}

Result<std::unique_ptr<study::Executor>> StudyOptions::open() const {
  if (const auto* simulated = std::get_if<gpu::SimulatedRef>(&ref_)) {
    study::SimExecutorOptions sim;
    sim.device = simulated->name;
    sim.seed = seed;
    sim.threads = threads_;
    sim.split = strategy_;
    sim.masks = mask_values_;
    sim.colors = colors_;
    sim.dispatch = dispatch_;
    sim.sharing = sharing_;
    return study::make_sim_executor(sim);
  }
  study::GpuExecutorOptions gpu;
  gpu.device = std::get<gpu::CardRef>(ref_).index;
  gpu.program = "/proc/self/exe";
  study::take_away_on_signals();
  gpu.split = strategy_;
  gpu.masks = mask_values_;
  gpu.colors = colors_;
  gpu.description = description_;
  if (memory_gib_) gpu.arena_pages = static_cast<std::uint64_t>(*memory_gib_ * 512);
  gpu.clock = clock_value_;
  gpu.victim_priority = victim_priority;
  gpu.sync_domain = sync_domain;
  gpu.command_settle_seconds = settle_seconds;
  return study::make_gpu_executor(gpu);
}

}  // namespace demarc::cli
