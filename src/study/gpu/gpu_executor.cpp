// The executor on a real GPU: which lanes each mode has.
#include "demarc/study/gpu_executor.hpp"
#include "demarc/base/hash.hpp"

#include <algorithm>

#include "demarc/base/text.hpp"
#include "demarc/card/backend.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/guest/control.hpp"
#include "gpu/colored_parts.hpp"
#include "gpu/gpu_lane.hpp"
#include "gpu/lease_server.hpp"
#include "gpu/process_stage.hpp"
#include "gpu/workload_reader.hpp"
#include "number_ranges.hpp"

namespace demarc::study {
namespace {

constexpr std::array clock_names{std::pair{Clock::gpu, std::string_view("gpu")},
                                 std::pair{Clock::events, std::string_view("events")},
                                 std::pair{Clock::requests, std::string_view("requests")}};

// Lanes of this process. The parts of the card that they run in live as long.
class LaneStage : public Stage {
 public:
  LaneStage(std::vector<std::unique_ptr<cuda::PartitionStream>> parts,
            std::vector<std::unique_ptr<Lane>> lanes, std::string account)
      : parts_(std::move(parts)), lanes_(std::move(lanes)), account_(std::move(account)) {}
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return *lanes_.at(index); }
  std::string account() const override { return account_; }

 private:
  std::vector<std::unique_ptr<cuda::PartitionStream>>
      parts_;  // go after the lanes that use their streams
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string account_;
};

// Bit s of word s / 32: the SM belongs to one of the TPCs.
std::array<std::uint32_t, 8> sm_bits(const gpu::Topology& topology, const gpu::TpcSet& tpcs) {
  std::array<std::uint32_t, 8> bits{};
  for (const gpu::SmIndex sm : gpu::sms_of(topology, tpcs)) {
    bits.at(sm.raw() / 32) |= 1U << (sm.raw() % 32);
  }
  return bits;
}

// "part 1/2: SMs 0-65; part 2/2: SMs 66-131"
std::string account_of(const std::vector<partition::Partition>& partitions,
                       const std::vector<std::unique_ptr<cuda::PartitionStream>>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    append(out, "{}part {}: SMs {}", i == 0 ? "" : "; ", partitions[i].name,
           number_ranges(parts[i]->proof()->sms));
  }
  return out;
}

// The launches of a program, counted in the control block that `demarc exec` names.
Result<LaunchCount> open_launch_count(const std::string& announced) {
  DEMARC_TRY(cuda::Control control, cuda::Control::open(announced));
  const auto shared = std::make_shared<const cuda::Control>(std::move(control));
  return [shared] { return shared->block().counters.seen_of_program(); };
}

class GpuExecutor : public Executor {
 public:
  GpuExecutor(cuda::GpuPointer gpu, GpuExecutorOptions options)
      : gpu_(std::move(gpu)),
        options_(std::move(options)),
        plain_(make_plain_memory(gpu_)),
        target_(gpu_->compute_capability().number()),
        reader_(make_workload_reader(target_)) {}

  DeviceContext context() const override {
    DeviceContext out;
    out.device = to_string(gpu::CardRef{options_.device});
    out.name = gpu_->name();
    out.driver = gpu_->driver().driver_version();
    out.sms = gpu_->sm_count();
    out.settings = {{"split", std::string(partition::to_string(options_.split))},
                    {"masks", fmt::format("{:#x}", fmt::join(options_.masks, ","))},
                    {"colors", fmt::format("{}", fmt::join(options_.colors, ","))},
                    {"description", options_.description},
                    {"arena_pages", fmt::format("{}", options_.arena_pages)},
                    {"clock", std::string(clock_name(options_.clock))},
                    {"victim_priority", fmt::format("{}", options_.victim_priority)},
                    {"settle_seconds", fmt::format("{}", options_.command_settle_seconds)}};
    std::erase_if(out.settings, [](const auto& setting) { return setting.second.empty(); });
    out.settings.emplace("UUID", gpu_->uuid());
    if (const auto device = description()) {
      out.settings["description"] = fmt::format("{:016x}", hash_of(gpu::device_to_json(*device)));
    }
    return out;
  }

  Result<gpu::Device> description() const override {
    return gpu::describe_card(gpu_->name(), options_.description);
  }
  Result<WorkloadCode> code_of(const Workload& workload) const override {
    return gpu_workload_code(workload.spec, target_);
  }

  Result<std::uint64_t> bytes_of_part(const Mode& mode, std::uint32_t parts) const override {
    if (mode.color) return colors_.bytes_of_part(*gpu_, parts);
    if (mode.traits().leased) {
      return missing_capability("{}: what a part has is known once its server runs", mode.name());
    }
    DEMARC_TRY(const std::uint64_t free, gpu_->free_bytes());
    return free / (std::max(parts, 2U) - 1);
  }

  // Three quarters of what a part will have: victims and the driver want some too.
  Result<NeighbourMeans> neighbour_means(const Mode& mode, std::uint32_t parts) const override {
    DEMARC_TRY(NeighbourMeans means, Executor::neighbour_means(mode, parts));
    means.lacking.erase(Need::host_memory);
    means.lacking.erase(Need::copy_engines);
    DEMARC_TRY(const std::uint64_t memory, bytes_of_part(mode, parts));
    means.bytes = memory / 4 * 3;
    return means;
  }

  Result<std::unique_ptr<Stage>> whole() override {
    DEMARC_TRY(auto stream, cuda::Stream::create(gpu_));
    if (options_.sync_domain) {
      DEMARC_CHECK(cuda::set_sync_domain(*gpu_, stream.handle(), *options_.sync_domain));
    }
    std::vector<std::unique_ptr<Lane>> lanes;
    lanes.push_back(make_choosing_lane(
        make_gpu_lane(plain_set(0), std::make_shared<const cuda::Stream>(std::move(stream)),
                      options_.clock),
        make_command_lane(
            command_options({"--observe", "--sync-domain", "none"}, environment_of(nullptr)))));
    return std::make_unique<LaneStage>(std::vector<std::unique_ptr<cuda::PartitionStream>>{},
                                       std::move(lanes), "the whole GPU");
  }

  Result<void> prepare(const Plan& plan, const std::vector<PlannedVisit>& /*visits*/,
                       const Progress& /*progress*/) override {
    commands_ = first_command(plan) != nullptr;
    if (commands_) DEMARC_CHECK(open_folder());
    return {};
  }

  int rank(const Mode& mode) const override {
    // A server takes memory that a pool of this process would keep until the study ends.
    if (mode.traits().leased) return -1;
    return mode.traits().hook == partition::HookUse::comes_before ? 0 : 1;
  }

  Result<std::unique_ptr<Stage>> divide(const Mode& mode, std::uint32_t parts) override {
    const partition::ModeTraits& traits = mode.traits();
    if (mode.windows) {
      return missing_capability(
          "{}: on a card, windows are for programs in a tenant; run them with demarc exec "
          "--windows "
          "always",
          mode.name());
    }
    if (traits.across_processes || (traits.confines && commands_)) {
      if (mode.color || mode.launches != Launches::separate) {
        return missing_capability(
            "'{}': parts that are processes support neither colours nor changed launches",
            mode.name());
      }
      for (const auto& set : plain_sets_) set->clear();  // the parts need their memory
      return traits.leased ? leases(parts) : processes(mode, parts);
    }
    DEMARC_TRY(const cuda::CardPointer card, card_for(traits.hook));
    DEMARC_TRY(const auto partitions, partitions_of(mode, card->topology(), parts));
    DEMARC_TRY(const auto back_end, cuda::make_backend(card, mode.division));
    std::vector<std::unique_ptr<cuda::PartitionStream>> divided;
    std::string of_colors;
    if (mode.color) {
      DEMARC_CHECK(fill_colors(parts));
      DEMARC_TRY(auto victim, colors_.open_victim(card, *back_end, partitions));
      divided.push_back(std::move(victim.lane));
      of_colors = fmt::format("; {}; {}", colors_.account(), victim.account);
    }
    for (std::uint32_t part = mode.color ? 1 : 0; part < parts; ++part) {
      const int priority = part == 0 ? victim_priority(traits) : 0;
      DEMARC_TRY(auto lane, back_end->open(partitions[part], priority));
      divided.push_back(std::move(lane));
    }
    std::string account = traits.confines ? account_of(partitions, divided)
                                          : fmt::format("{} streams of one process", parts);
    if (!traits.confines && commands_) account += ", and commands that take turns with it";
    if (traits.slices) {
      DEMARC_TRY(const int first, divided[0]->stream().priority());
      DEMARC_TRY(const int others, divided[1]->stream().priority());
      if (first >= others) {
        return missing_capability(
            "preempt: the victim's stream has priority {} and its neighbours' {}; it must be lower",
            first, others);
      }
      append(account,
             "; the victim's has priority {}, and neighbours' launches are cut into slices that "
             "fill the GPU 8 times and begin only while the victim has no work",
             first);
    }
    account += domains_text(mode, partitions);
    const auto way = traits.slices ? std::make_shared<RightOfWay>() : nullptr;
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t part = 0; part < parts; ++part) {
      LaunchForm form = part == 0 ? victim_form(mode) : neighbour_form();
      if (part != 0) form.gives_way_to = way;
      if (traits.rewrites) form.affine_sms = sm_bits(card->topology(), divided[part]->tpcs());
      if (part == 0 && traits.confines && !traits.rewrites) {
        form.own_sms = divided[part]->proof()->sms_allowed;
      }
      DEMARC_TRY(auto set, set_for(mode, part, parts, form));
      // The part owns its stream and outlives the lane.
      const std::shared_ptr<const cuda::Stream> stream(std::shared_ptr<void>(),
                                                       &divided[part]->stream());
      const auto observe = exec_options({"--observe"}, partitions[part]);
      lanes.push_back(make_choosing_lane(
          make_gpu_lane(std::move(set), stream, options_.clock, part == 0 ? way : nullptr),
          make_command_lane(command_options(observe, environment_of(nullptr)))));
    }
    account += of_colors;
    return std::make_unique<LaneStage>(std::move(divided), std::move(lanes), std::move(account));
  }

 private:
  LaunchForm victim_form(const Mode& mode) const {
    LaunchForm form;
    form.launches = mode.launches;
    form.stamps = options_.clock == Clock::gpu;
    return form;
  }

  int victim_priority(const partition::ModeTraits& traits) const {
    if (options_.victim_priority != 0 || !traits.slices) return options_.victim_priority;
    return cuda::highest_stream_priority;
  }

  static LaunchForm neighbour_form() {
    LaunchForm form;
    form.neighbour = true;
    return form;
  }

  // The launch callback is used in modes that need it alone: after it, the driver makes no green
  // context any more.
  Result<cuda::CardPointer> card_for(partition::HookUse hook) {
    const bool masks = hook == partition::HookUse::needed;
    cuda::CardPointer& card = masks ? masked_card_ : plain_card_;
    if (!card) {
      cuda::CardOptions options;
      options.use_masks = masks;
      DEMARC_TRY(card, cuda::Card::open(gpu_, options));
    }
    return card;
  }

  // --split decides where any set of TPCs will do; else only how many there are counts.
  Result<std::vector<partition::Partition>> partitions_of(const Mode& mode,
                                                          const gpu::Topology& topology,
                                                          std::uint32_t parts) const {
    const auto strategy = mode.traits().exact ? options_.split : partition::SplitStrategy::packed;
    DEMARC_TRY(auto partitions, mode.traits().throttles
                                    ? partition::throttled_split(topology, parts)
                                    : partition::split(topology, parts, strategy));
    const bool several = !mode.common_domain && cuda::sync_domain_count(*gpu_) > 1;
    for (partition::Partition& part : partitions) {
      if (!several) part.sync_domain.reset();
    }
    return partitions;
  }

  // Whether parts have memory synchronisation domains of their own, and why not.
  [[nodiscard]] std::string domains_text(
      const Mode& mode, const std::vector<partition::Partition>& partitions) const {
    if (mode.common_domain) return "; all parts share one memory synchronisation domain";
    if (partitions.front().sync_domain) return "; each part has a memory synchronisation domain";
    return fmt::format("; {} has no memory synchronisation domains", gpu_->name());
  }

  std::shared_ptr<ResidentSet> plain_set(std::uint32_t part) {
    while (plain_sets_.size() <= part) {
      LaunchForm form = plain_sets_.empty() ? victim_form(Mode{}) : neighbour_form();
      plain_sets_.push_back(std::make_shared<ResidentSet>(gpu_, plain_, reader_, form));
    }
    return plain_sets_[part];
  }

  // Plain, unchanged workloads are shared by all modes; others belong to their stage.
  Result<std::shared_ptr<ResidentSet>> set_for(const Mode& mode, std::uint32_t part,
                                               std::uint32_t parts, const LaunchForm& form) {
    if (!mode.color && !form.affine_sms && !form.gives_way_to &&
        form.launches == Launches::separate) {
      return plain_set(part);
    }
    std::shared_ptr<MemorySource> memory = plain_;
    if (mode.color) {
      DEMARC_TRY(memory, colors_.memory_of(part, parts));
    }
    return std::make_shared<ResidentSet>(gpu_, std::move(memory), reader_, form);
  }

  // One pool serves all modes of a study; it is measured once.
  Result<void> fill_colors(std::uint32_t parts) {
    if (colors_.filled()) return {};
    DEMARC_TRY(const cuda::CardPointer card, card_for(partition::HookUse::unused));
    return colors_.fill(card, parts);
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

  // With the memory synchronisation domain of the part. Commands of one part follow each other, so
  // the one before may still have the TPCs.
  static std::vector<std::string> exec_options(std::vector<std::string> how,
                                               const partition::Partition& part) {
    how.emplace_back("--sync-domain");
    how.push_back(part.sync_domain ? std::to_string(*part.sync_domain) : "none");
    if (how.front() == "--tpcs") how.emplace_back("--allow-overlap");
    return how;
  }

  std::vector<std::string> exec_command(const std::vector<std::string>& how) const {
    std::vector<std::string> argv{options_.program, "exec", "--device", "cuda:0"};
    argv.insert(argv.end(), how.begin(), how.end());
    return argv;
  }

  // A command under `demarc exec`, which counts its launches, and confines it where `how` says so.
  // `inner` are words between `demarc exec` and the command.
  CommandLaneOptions command_options(const std::vector<std::string>& how, Environment environment,
                                     const std::vector<std::string>& inner = {}) const {
    CommandLaneOptions out;
    out.prefix = [argv = exec_command(how), inner](int announce) {
      std::vector<std::string> prefix = argv;
      prefix.insert(prefix.end(), {"--announce", std::to_string(announce), "--"});
      prefix.insert(prefix.end(), inner.begin(), inner.end());
      return prefix;
    };
    out.open_count = open_launch_count;
    out.proves = how.front() != "--observe";
    out.environment = std::move(environment);
    out.settle_seconds = options_.command_settle_seconds;
    out.leave_seconds = options_.command_leave_seconds;
    return out;
  }

  Result<std::unique_ptr<Stage>> processes(const Mode& mode, std::uint32_t parts) {
    DEMARC_CHECK(open_folder());
    const partition::ModeTraits& traits = mode.traits();
    DEMARC_TRY(const cuda::CardPointer card, card_for(traits.hook));
    DEMARC_TRY(const auto partitions, partitions_of(mode, card->topology(), parts));
    std::unique_ptr<MpsDaemon> daemon;
    if (!traits.takes_turns) {
      DEMARC_TRY(daemon, MpsDaemon::start(folder_, gpu_->uuid()));
    }
    PartProcesses part;
    part.environment = environment_of(daemon.get());
    part.worker = worker_command();
    std::vector<PartProcesses> all(parts, part);
    std::string account =
        fmt::format("{} processes{}", parts, traits.takes_turns ? " that take turns" : "");
    for (std::uint32_t i = 0; i < parts; ++i) {
      PartProcesses& each = all[i];
      for (const auto& [name, value] :
           cuda::process_environment(mode.division, card->topology(), partitions[i])) {
        each.environment.emplace_back(name, value);
        append(account, "; part {}: {}={}", partitions[i].name, name, value);
      }
      if (partitions[i].sync_domain) {
        each.worker.insert(each.worker.end(),
                           {"--sync-domain", std::to_string(*partitions[i].sync_domain)});
      }
      each.command = command_options(exec_options({"--observe"}, partitions[i]), each.environment);
    }
    if (traits.confines) confine(all, partitions, account);
    account += domains_text(mode, partitions);
    if (daemon) {
      // The daemon outlives the lanes of its stage.
      const auto before_end = [&clients = *daemon](pid_t leader) {
        clients.end_clients_below(leader);
      };
      for (PartProcesses& each : all) each.command.before_end = before_end;
    }
    return make_process_stage({std::move(all), std::move(daemon), std::move(account)});
  }

  // Worker and command of each part run under `demarc exec --part`, as programs of users do. The
  // worker keeps the server of these leases while the stage lives.
  Result<std::unique_ptr<Stage>> leases(std::uint32_t parts) {
    DEMARC_CHECK(open_folder());
    constexpr std::uint64_t mebibytes_per_page = 2;
    DEMARC_TRY(
        const auto server,
        LeaseServer::prepare(folder_, {options_.program, options_.arena_pages * mebibytes_per_page,
                                       options_.description}));
    Environment environment = server->environment();
    environment.emplace_back("CUDA_VISIBLE_DEVICES", gpu_->uuid());
    std::vector<PartProcesses> all;
    for (std::uint32_t i = 0; i < parts; ++i) {
      const auto how = server->exec_options(fmt::format("{}/{}", i + 1, parts));
      std::vector<std::string> argv = exec_command(how);
      argv.emplace_back("--");
      const auto worker = worker_command();
      argv.insert(argv.end(), worker.begin(), worker.end());
      all.push_back(leased_part(std::move(argv), environment,
                                command_options(how, environment, LeaseServer::restoring_words())));
    }
    return make_process_stage({std::move(all), server, {}, [server] { return server->account(); }});
  }

  // The program that serves a lane in another process.
  std::vector<std::string> worker_command() const {
    return {options_.program,
            "isolate",
            "--device",
            "cuda:0",
            "--worker",
            "--clock",
            std::string(clock_name(options_.clock))};
  }

  // Puts worker and command of each part under `demarc exec --tpcs`, which proves the partition
  // before it starts them and ends with 3 where something ran outside.
  void confine(std::vector<PartProcesses>& parts,
               const std::vector<partition::Partition>& partitions, std::string& account) const {
    account += ", each confined by demarc exec";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string tpcs = gpu::to_string(partitions[i].tpcs);
      const auto how = exec_options({"--tpcs", tpcs}, partitions[i]);
      auto argv = exec_command(how);
      argv.emplace_back("--");
      argv.insert(argv.end(), parts[i].worker.begin(), parts[i].worker.end());
      parts[i].worker = std::move(argv);
      parts[i].command = command_options(how, parts[i].environment);
      append(account, "; part {}: TPCs {}", partitions[i].name, tpcs);
    }
  }

  cuda::GpuPointer gpu_;
  GpuExecutorOptions options_;
  std::shared_ptr<MemorySource> plain_;
  std::uint32_t target_;
  WorkloadReader reader_;
  std::vector<std::shared_ptr<ResidentSet>> plain_sets_;
  ColoredParts colors_{options_};
  bool commands_ = false;  // among the plan's workloads
  std::shared_ptr<StudyFolder> folder_;
  cuda::CardPointer plain_card_;  // both are opened when a mode needs them
  cuda::CardPointer masked_card_;
};

}  // namespace

Result<Clock> parse_clock(std::string_view text) {
  for (const auto& [clock, name] : clock_names) {
    if (text == name) return clock;
  }
  return invalid_input("--clock: '{}' is not gpu, events or requests", text);
}

std::string_view clock_name(Clock clock) {
  return std::find_if(clock_names.begin(), clock_names.end(),
                      [&](const auto& row) { return row.first == clock; })
      ->second;
}

Result<std::unique_ptr<Executor>> make_gpu_executor(const GpuExecutorOptions& options) {
  DEMARC_TRY(auto driver, cuda::Driver::load());
  DEMARC_TRY(auto gpu, cuda::Gpu::open(std::move(driver), options.device));
  return std::make_unique<GpuExecutor>(std::move(gpu), options);
}

}  // namespace demarc::study
