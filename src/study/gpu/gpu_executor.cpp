// The executor on a real GPU: which lanes each mode has.
#include "demarc/study/gpu_executor.hpp"

#include <algorithm>

#include "demarc/cuda/control.hpp"
#include "demarc/cuda/masks.hpp"
#include "gpu/colored_memory.hpp"
#include "gpu/gpu_lane.hpp"
#include "gpu/part_streams.hpp"
#include "gpu/process_stage.hpp"
#include "gpu/remainder_memory.hpp"
#include "gpu/workload_reader.hpp"

namespace demarc::study {
namespace {

class LaneStage : public Stage {
 public:
  LaneStage(std::vector<std::unique_ptr<Lane>> lanes, std::string account,
            std::optional<cuda::ProcessMask> mask = std::nullopt)
      : mask_(std::move(mask)), lanes_(std::move(lanes)), account_(std::move(account)) {}
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return *lanes_.at(index); }
  std::string account() const override { return account_; }

 private:
  std::optional<cuda::ProcessMask> mask_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string account_;
};

// The launches of a program, counted in the control block that `demarc exec` names.
Result<LaunchCount> open_launch_count(const std::string& announced) {
  DEMARC_TRY(cuda::Control control, cuda::Control::open(announced));
  const auto shared = std::make_shared<const cuda::Control>(std::move(control));
  return [shared] { return shared->block().counters.seen(); };
}

class GpuExecutor : public Executor {
 public:
  GpuExecutor(cuda::GpuPointer gpu, GpuExecutorOptions options)
      : gpu_(std::move(gpu)),
        options_(std::move(options)),
        plain_(make_plain_memory(gpu_)),
        target_(gpu_->compute_capability().major * 10U + gpu_->compute_capability().minor),
        reader_(make_workload_reader(target_)) {}

  DeviceContext context() const override {
    DeviceContext out;
    out.device = fmt::format("cuda:{}", options_.device);
    out.name = gpu_->name();
    out.driver = gpu_->driver().driver_version();
    out.sms = gpu_->sm_count();
    return out;
  }

  Result<gpu::Device> description() const override {
    return gpu::describe_card(gpu_->name(), options_.description);
  }
  Result<WorkloadCode> code_of(const Workload& workload) const override {
    return gpu_workload_code(workload.spec, target_);
  }

  Result<std::unique_ptr<Stage>> whole() override {
    DEMARC_TRY(auto stream, new_stream());
    std::vector<std::unique_ptr<Lane>> lanes;
    lanes.push_back(make_gpu_lane(plain_set(0), std::move(stream), options_.clock));
    return std::make_unique<LaneStage>(std::move(lanes), "the whole GPU");
  }

  Result<void> prepare(const Plan& plan, const Progress& /*progress*/) override {
    const auto& aggressors = plan.aggressors;
    commands_ = std::any_of(aggressors.begin(), aggressors.end(), is_command);
    if (commands_) DEMARC_CHECK(open_folder());
    return {};
  }

  // Green contexts come first: see open_green_streams().
  int rank(const Mode& mode) const override { return mode.back_end == "green" ? 0 : 1; }

  Result<std::unique_ptr<Stage>> divide(const Mode& mode, std::uint32_t parts) override {
    if (mode.back_end == "mps" || mode.back_end == "timeslice" ||
        (mode.back_end == "mask" && commands_)) {
      if (mode.color || mode.launches != Launches::separate) {
        return missing_capability(
            "'{}': across processes there are neither colours nor changed launches", mode.name());
      }
      return processes(mode, parts);
    }
    std::vector<LaunchForm> forms(parts);
    forms[0] = victim_form(mode);
    PartStreams confined;
    std::optional<cuda::ProcessMask> process_mask;
    if (mode.back_end == "green") {
      if (card_) return missing_capability("green contexts cannot follow masks in one process");
      DEMARC_TRY(confined, open_green_streams(gpu_, parts));
    } else if (mode.back_end == "none") {
      DEMARC_TRY(confined, open_free_streams(gpu_, parts));
    } else {
      DEMARC_TRY(confined, divide_sms(mode, parts, forms, process_mask));
    }
    if (!confined.sms.empty()) forms[0].own_sms = confined.sms[0];
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t part = 0; part < parts; ++part) {
      DEMARC_TRY(auto set, set_for(mode, part, parts, forms[part]));
      lanes.push_back(
          make_choosing_lane(make_gpu_lane(std::move(set), confined.streams[part], options_.clock),
                             make_command_lane(command_options({"--observe"}, {}))));
    }
    if (mode.color) {
      confined.account += "; " + (arena_ ? arena_->account() : pool_->remainders()->account);
    }
    return std::make_unique<LaneStage>(std::move(lanes), std::move(confined.account),
                                       std::move(process_mask));
  }

 private:
  LaunchForm victim_form(const Mode& mode) const {
    LaunchForm form;
    form.launches = mode.launches;
    form.stamps = options_.clock != Clock::events;
    return form;
  }

  // mask and affinity.
  Result<PartStreams> divide_sms(const Mode& mode, std::uint32_t parts,
                                 std::vector<LaunchForm>& forms,
                                 std::optional<cuda::ProcessMask>& process_mask) {
    if (!card_) {
      DEMARC_TRY(card_, cuda::Card::open(gpu_));
    }
    DEMARC_TRY(const auto partitions, partition::split(card_->topology(), parts, options_.split));
    if (mode.back_end == "mask") {
      DEMARC_TRY(auto masked, open_masked_streams(card_, partitions, options_.victim_priority));
      if (mode.launches != Launches::graph) return masked;
      // A graph obeys the process mask, not that of the stream it is launched into.
      DEMARC_TRY(auto mask, cuda::ProcessMask::set(card_, partitions[0].tpcs));
      process_mask.emplace(std::move(mask));
      DEMARC_TRY(masked.streams[0], new_stream());
      return masked;
    }
    DEMARC_TRY(auto confined, open_free_streams(gpu_, parts));
    confined.account.clear();
    for (std::uint32_t part = 0; part < parts; ++part) {
      forms[part].affine_sms = sm_bits(card_->topology(), partitions[part].tpcs);
      confined.account +=
          fmt::format("{}part {}: {} TPCs, persistent blocks", part == 0 ? "" : "; ",
                      partitions[part].name, partitions[part].tpcs.size());
    }
    return confined;
  }

  Result<std::shared_ptr<const cuda::Stream>> new_stream() {
    DEMARC_TRY(auto stream, cuda::Stream::create(gpu_));
    return std::make_shared<const cuda::Stream>(std::move(stream));
  }

  std::shared_ptr<ResidentSet> plain_set(std::uint32_t part) {
    while (plain_sets_.size() <= part) {
      LaunchForm form;
      form.stamps = plain_sets_.empty() && options_.clock != Clock::events;
      plain_sets_.push_back(std::make_shared<ResidentSet>(gpu_, plain_, reader_, form));
    }
    return plain_sets_[part];
  }

  // Plain, unchanged workloads are shared by all modes; others belong to their stage.
  Result<std::shared_ptr<ResidentSet>> set_for(const Mode& mode, std::uint32_t part,
                                               std::uint32_t parts, const LaunchForm& form) {
    if (!mode.color && !form.affine_sms && form.launches == Launches::separate) {
      return plain_set(part);
    }
    std::shared_ptr<MemorySource> memory = plain_;
    if (mode.color) {
      DEMARC_TRY(memory, colored_memory(part, parts));
    }
    return std::make_shared<ResidentSet>(gpu_, std::move(memory), reader_, form);
  }

  Result<std::uint32_t> color_of(std::uint32_t part, std::uint32_t colors) const {
    const std::uint32_t color = part < options_.colors.size() ? options_.colors[part] : part;
    if (color >= colors) {
      return invalid_input("colour {} of part {}: the masks make {} colours", color, part, colors);
    }
    return color;
  }

  Result<std::shared_ptr<MemorySource>> colored_memory(std::uint32_t part, std::uint32_t parts) {
    DEMARC_TRY(const gpu::ColorScheme scheme, scheme_for(parts));
    if (scheme.remainders) {
      DEMARC_CHECK(fill_pool(scheme, parts));
      DEMARC_TRY(const std::uint32_t color, color_of(part, pool_->colors()));
      return make_remainder_memory(pool_, color);
    }
    DEMARC_CHECK(fill_arena(scheme, parts));
    DEMARC_TRY(const std::uint32_t color, color_of(part, arena_->coloring().colors()));
    return make_colored_memory(arena_, color);
  }

  // Masks that were given are taken as they are; else what the card's description says.
  Result<gpu::ColorScheme> scheme_for(std::uint32_t parts) const {
    if (!options_.masks.empty()) return gpu::ColorScheme{0, options_.masks, {}, 0};
    DEMARC_TRY(const auto device, gpu::describe_card(gpu_->name(), options_.description));
    return gpu::color_scheme(device, parts);
  }

  // One pool or arena serves all modes of a study; it is measured once. Of the pages of a pool
  // nearly every one can be used.
  Result<void> fill_pool(const gpu::ColorScheme& scheme, std::uint32_t parts) {
    if (pool_) return {};
    if (!card_) {
      DEMARC_TRY(card_, cuda::Card::open(gpu_));
    }
    std::vector<cuda::ShareRequest> shares;
    for (std::uint32_t c = 0; c < scheme.colors; ++c) shares.push_back({std::uint64_t{1} << c, 0});
    const std::uint64_t pages = std::uint64_t{options_.arena_pages_a_part} / 2 * parts;
    DEMARC_TRY(pool_, cuda::ColoredPool::create(card_, scheme,
                                                pages * scheme.remainders->page_bytes, shares));
    return {};
  }

  Result<void> fill_arena(const gpu::ColorScheme& scheme, std::uint32_t parts) {
    if (arena_) return {};
    DEMARC_TRY(const auto kernels, cuda::ProbeKernels::load(gpu_));
    DEMARC_TRY(arena_, ColoredArena::make(gpu_, kernels, scheme.masks,
                                          options_.arena_pages_a_part * parts));
    return {};
  }

  Result<void> open_folder() {
    if (folder_) return {};
    DEMARC_TRY(folder_, StudyFolder::make());
    return {};
  }

  // Every process of the study sees one card, which is cuda:0 there, inside MPS or not.
  Environment environment_of(const MpsDaemon* daemon) const {
    Environment out = folder_ ? folder_->mark() : Environment{};
    out.emplace_back("CUDA_VISIBLE_DEVICES", gpu_->uuid());
    if (daemon != nullptr) {
      const Environment client = daemon->environment();
      out.insert(out.end(), client.begin(), client.end());
    }
    return out;
  }

  std::vector<std::string> exec_command(const std::vector<std::string>& how) const {
    std::vector<std::string> argv{options_.program, "exec", "--device", "cuda:0"};
    argv.insert(argv.end(), how.begin(), how.end());
    return argv;
  }

  // A command under `demarc exec`, which counts its launches, and confines it where `how` says so.
  CommandLaneOptions command_options(const std::vector<std::string>& how,
                                     const Environment& more) const {
    CommandLaneOptions out;
    out.prefix = [argv = exec_command(how)](int announce) {
      std::vector<std::string> prefix = argv;
      prefix.insert(prefix.end(), {"--announce", std::to_string(announce), "--"});
      return prefix;
    };
    out.open_count = open_launch_count;
    out.proves = how.front() == "--tpcs";
    out.environment = environment_of(nullptr);
    out.environment.insert(out.environment.end(), more.begin(), more.end());
    out.settle_seconds = options_.command_settle_seconds;
    return out;
  }

  Result<std::unique_ptr<Stage>> processes(const Mode& mode, std::uint32_t parts) {
    DEMARC_CHECK(open_folder());
    std::unique_ptr<MpsDaemon> daemon;
    std::string account = fmt::format("{} processes that take turns", parts);
    if (mode.back_end != "timeslice") {
      DEMARC_TRY(daemon, MpsDaemon::start(folder_, gpu_->uuid()));
    }
    PartProcesses part;
    part.environment = environment_of(daemon.get());
    if (mode.back_end == "mps") {
      const std::uint32_t share = 100 / parts;
      part.environment.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(share));
      account = fmt::format("{} MPS clients with {} % of the threads each", parts, share);
    }
    part.worker = {options_.program,
                   "isolate",
                   "--device",
                   "cuda:0",
                   "--worker",
                   "--clock",
                   std::string(clock_name(options_.clock))};
    part.command = command_options({"--observe"}, part.environment);
    std::vector<PartProcesses> all(parts, part);
    if (mode.back_end == "mask") {
      DEMARC_TRY(account, confine(all));
    }
    if (daemon) {
      // The daemon outlives the lanes of its stage.
      const auto before_end = [&clients = *daemon](pid_t leader) {
        clients.end_clients_below(leader);
      };
      for (PartProcesses& each : all) each.command.before_end = before_end;
    }
    return make_process_stage(all, std::move(daemon), std::move(account));
  }

  // Puts worker and command of each part under `demarc exec --tpcs`, which proves the partition
  // before it starts them and ends with 3 where something ran outside.
  Result<std::string> confine(std::vector<PartProcesses>& parts) {
    if (!card_) {
      DEMARC_TRY(card_, cuda::Card::open(gpu_));
    }
    DEMARC_TRY(const auto partitions,
               partition::split(card_->topology(), static_cast<std::uint32_t>(parts.size()),
                                options_.split));
    std::string account = "processes, each confined by demarc exec";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string tpcs = partition::to_string(partitions[i].tpcs);
      auto argv = exec_command({"--tpcs", tpcs, "--"});
      argv.insert(argv.end(), parts[i].worker.begin(), parts[i].worker.end());
      parts[i].worker = std::move(argv);
      parts[i].command = command_options({"--tpcs", tpcs}, parts[i].environment);
      account += fmt::format("; part {}: TPCs {}", partitions[i].name, tpcs);
    }
    return account;
  }

  cuda::GpuPointer gpu_;
  GpuExecutorOptions options_;
  std::shared_ptr<MemorySource> plain_;
  std::uint32_t target_;
  WorkloadReader reader_;
  std::vector<std::shared_ptr<ResidentSet>> plain_sets_;
  std::shared_ptr<ColoredArena> arena_;
  std::shared_ptr<cuda::ColoredPool> pool_;
  bool commands_ = false;  // among the plan's aggressors
  std::shared_ptr<StudyFolder> folder_;
  cuda::CardPointer card_;  // opened when a mode needs masks or the topology
};

}  // namespace

Result<Clock> parse_clock(std::string_view text) {
  for (const Clock clock : {Clock::gpu, Clock::events}) {
    if (text == clock_name(clock)) return clock;
  }
  return invalid_input("--clock: '{}' is neither gpu nor events", text);
}

std::string_view clock_name(Clock clock) {
  return clock == Clock::gpu ? "gpu" : "events";
}

Result<std::unique_ptr<Executor>> make_gpu_executor(const GpuExecutorOptions& options) {
  DEMARC_TRY(auto driver, cuda::Driver::load());
  DEMARC_TRY(auto gpu, cuda::Gpu::open(std::move(driver), options.device));
  return std::make_unique<GpuExecutor>(std::move(gpu), options);
}

}  // namespace demarc::study
