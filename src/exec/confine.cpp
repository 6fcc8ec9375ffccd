// Proves a partition in a child process, then runs a program in it and reports what held.
#include "demarc/exec/confine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "demarc/base/numbers.hpp"
#include "demarc/base/process.hpp"
#include "demarc/base/text.hpp"
#include "demarc/card/card.hpp"
#include "demarc/card/proof.hpp"
#include "demarc/driver/driver_version.hpp"
#include "demarc/driver/functions.hpp"
#include "demarc/driver/in_child.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/guest/gpu_by_uuid.hpp"
#include "demarc/guest/host_memory.hpp"
#include "demarc/guest/mps_client.hpp"
#include "demarc/guest/program_claim.hpp"
#include "demarc/partition/partition.hpp"
#include "supervisor.hpp"
#include "tenant_lease.hpp"

namespace demarc::cuda {
namespace {

constexpr const char* mps_variable = "CUDA_MPS_PIPE_DIRECTORY";

// What the child process that uses the GPU hands back. Plain data: goes through a pipe.
struct Prepared {
  HardwareMask mask;
  gpu::ComputeCapability capability;
  gpu::TpcSet tpcs;
  std::uint32_t sms{};
  std::uint32_t largest_cluster{};
  std::uint32_t device_count{};
  bool mps_client{};
  std::uint32_t sync_domains{};      // that a program can be given one of
  char no_domain_because[200] = {};  // why it cannot
  char uuid[sizeof ControlBlock::uuid] = {};
};

void copy_text(const std::string& text, std::span<char> to) {
  std::snprintf(to.data(), to.size(), "%s", text.c_str());
}

// Which memory synchronisation domains there are to choose from. What lacks is said where the
// program would have done without, and refused where one was asked for by its number.
Result<void> prepare_domains(const GpuPointer& gpu, const DomainChoice& choice,
                             Prepared& prepared) {
  if (choice.kind == DomainChoice::Kind::none) return {};
  const std::uint32_t count = sync_domain_count(*gpu);
  const Result<void> ready =
      count < 2 ? missing_capability("{} has one for all", gpu->name()) : prove_sync_domains(gpu);
  if (ready) {
    prepared.sync_domains = count;
  } else if (choice.kind == DomainChoice::Kind::given ||
             ready.error().kind != ErrorKind::missing_capability) {
    return tl::unexpected(ready.error());
  } else {
    copy_text(ready.error().message, prepared.no_domain_because);
  }
  return {};
}

// The mask of a lease, which the server has proved beside nobody.
Result<HardwareMask> mask_of(const lease::ProvedMask& proved) {
  HardwareMask mask;
  bool whole = proved.disabled.size() == mask.disabled.size();
  for (std::size_t i = 0; whole && i < mask.disabled.size(); ++i) {
    mask.disabled.at(i) = static_cast<std::uint32_t>(proved.disabled.at(i));
    whole = mask.disabled.at(i) == proved.disabled.at(i);
  }
  if (whole && mask.ours() && !mask.everything()) return mask;
  return check_failed(
      "the lease of demarc serve has no mask of TPCs: expected 4 words of 32 bits that leave some "
      "TPC, but {} words came",
      proved.disabled.size());
}

// Calls are refused by their names: a function that is not known would pass, or break a program.
Result<void> check_known_functions(const Driver& driver, const char* otherwise) {
  if (driver.cuda_version() <= functions_known_until) return {};
  return missing_capability(
      "{}: this driver has CUDA {}, and Demarc knows only the functions up to {}", otherwise,
      cuda_version_text(driver.cuda_version()), cuda_version_text(functions_known_until));
}

// The program asks the same of its own driver; here it is told before anything was started.
Result<void> check_calls_are_shown(const Driver& driver) {
  DEMARC_TRY(LaunchHook * hook, LaunchHook::install(driver));
  return hook->watch_calls(nullptr);
}

// The server has proved which SMs the lease's mask leaves. Runs in the child.
Result<Prepared> prepare_leased(const std::shared_ptr<const Driver>& driver, std::uint32_t index,
                                const lease::Lease& lease, const DomainChoice& domain) {
  Prepared prepared;
  DEMARC_TRY(prepared.mask, mask_of(lease.mask));
  DEMARC_TRY(prepared.tpcs,
             gpu::parse_tpc_set(lease.tpcs, gpu::TpcSet::capacity, "the TPCs of the lease"));
  DEMARC_CHECK(check_known_functions(*driver, "a tenant's program cannot be watched"));
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, index));
  if (!lease.mps.empty()) DEMARC_CHECK(check_mps_client(gpu->api(), gpu->handle(), lease.mps));
  DEMARC_CHECK(prove_mask(gpu, prepared.mask, lease.mask.sms));
  prepared.capability = gpu->compute_capability();
  prepared.sms = lease.mask.sms;
  DEMARC_CHECK(prepare_domains(gpu, domain, prepared));
  DEMARC_TRY(prepared.device_count, driver->device_count());
  copy_text(gpu->uuid(), prepared.uuid);
  return prepared;
}

// Runs in the child.
Result<Prepared> prepare(const std::shared_ptr<const Driver>& driver, std::uint32_t index,
                         const partition::TpcChoice& choice, const DomainChoice& domain,
                         ProgramClaim& claim) {
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, index));
  DEMARC_TRY(const CardPointer card, Card::open(gpu));
  DEMARC_TRY(const gpu::TpcSet tpcs, claim.take_tpcs(gpu->uuid(), [&](const gpu::TpcSet& taken) {
    return partition::choose_tpcs(card->topology(), choice, taken);
  }));
  Prepared prepared;
  DEMARC_TRY(prepared.mask, card->hardware_mask(tpcs));
  DEMARC_CHECK(prove_partition(card, tpcs));
  const auto sms = gpu::sms_of(card->topology(), tpcs);
  prepared.capability = gpu->compute_capability();
  prepared.tpcs = tpcs;
  prepared.sms = static_cast<std::uint32_t>(sms.size());
  prepared.mps_client = gpu->attribute(attribute_mps_enabled).value_or(0) == 1;
  // Half-full SMs take clusters too, but how full they are the descriptor does not say: one block
  // an SM is what is certain.
  prepared.largest_cluster = partition::largest_cluster(card->topology(), tpcs, 1);
  DEMARC_CHECK(prepare_domains(gpu, domain, prepared));
  DEMARC_TRY(prepared.device_count, driver->device_count());
  copy_text(gpu->uuid(), prepared.uuid);
  return prepared;
}

// The same where no partition is wanted. Runs in the child.
Result<Prepared> prepare_to_observe(const std::shared_ptr<const Driver>& driver,
                                    std::uint32_t index, const DomainChoice& domain) {
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, index));
  Prepared prepared;
  prepared.capability = gpu->compute_capability();
  prepared.sms = gpu->sm_count();
  DEMARC_CHECK(prepare_domains(gpu, domain, prepared));
  DEMARC_TRY(prepared.device_count, driver->device_count());
  copy_text(gpu->uuid(), prepared.uuid);
  return prepared;
}

// Refusing calls keeps kernels from host memory only where every call is known and where the
// driver does not map all of it (heterogeneous memory management).
Result<void> check_host_memory_can_be_refused(const Driver& driver, const Gpu& gpu) {
  DEMARC_CHECK(check_known_functions(driver, "host memory cannot be refused"));
  DEMARC_TRY(const int pageable, gpu.attribute(attribute_pageable_memory));
  if (pageable == 0) return {};
  return missing_capability(
      "host memory cannot be refused: kernels on {} reach all of it without a call "
      "(heterogeneous memory management); load the module nvidia-uvm with uvm_disable_hmm=1",
      gpu.name());
}

// Over the environment of this process.
std::vector<std::pair<std::string, std::string>> environment_for(
    const Prepared& prepared, const std::string& preload, const std::string& control,
    const std::string& tenant, bool windows, const std::vector<std::string>& in_front,
    const std::string& mps) {
  std::vector<std::pair<std::string, std::string>> environment{
      {"CUDA_INJECTION64_PATH", preload},
      {control_variable, control},
      {tenant_variable, tenant},
      {windows_variable, windows ? "1" : ""}};
  const char* other = std::getenv("CUDA_INJECTION64_PATH");
  if (other != nullptr && preload != other) {
    environment.emplace_back(chained_injection_variable, other);
  }
  if (!in_front.empty()) {
    const char* more = std::getenv("LD_PRELOAD");
    const bool has_more = more != nullptr && *more != '\0';
    const std::string libraries = joined(in_front, ":");
    environment.emplace_back("LD_PRELOAD", has_more ? libraries + ":" + more : libraries);
    environment.emplace_back("CUPY_COMPILE_WITH_PTX", "1");
  }
  if (!mps.empty()) environment.emplace_back(mps_variable, mps);
  // The mask is of one card: the program sees that one only.
  if (prepared.device_count > 1) environment.emplace_back("CUDA_VISIBLE_DEVICES", prepared.uuid);
  return environment;
}

void copy_counters(const LaunchCounters& counters, ConfineOutcome& outcome) {
  const auto copy = [](const auto& from, auto& to) {
    std::copy(from.begin(), from.end(), std::begin(to));
  };
  copy(counters.masked, outcome.masked);
  copy(counters.unmasked, outcome.unmasked);
  copy(counters.refused, outcome.refused);
  copy(counters.masked_blocks, outcome.masked_blocks);
  outcome.graphs = counters.graphs;
}

void note_block(const ConfinePlan& plan, const Prepared& prepared, ControlBlock& block) {
  block.capability = prepared.capability;
  block.count_paths = std::uint32_t{plan.audit};
  block.no_host_memory = std::uint32_t{!plan.host_memory};
  block.allow_plain = std::uint32_t{plan.allow_plain};
  block.allow_spills = plan.allow_spills;
  block.silence_printf = std::uint32_t{plan.silence_printf};
  block.overlap = std::uint32_t{plan.overlap_launches};
  block.windows = plan.windows;
  block.needs_mps = std::uint32_t{prepared.mps_client};
  const auto tpcs = static_cast<std::uint32_t>(prepared.tpcs.size());
  block.sms_per_tpc = tpcs == 0 ? 0 : prepared.sms / tpcs;
  std::memcpy(block.uuid, prepared.uuid, sizeof block.uuid);
}

using Tell = std::function<void(const std::string& line)>;

struct OwnDomain {
  std::optional<std::uint32_t> domain;
  std::string no_domain_because;
};

// The domain of a tenant, whose server has claimed it, is claimed by no program: `claim` is empty.
Result<OwnDomain> choose_domain(const DomainChoice& choice, const Prepared& prepared,
                                std::optional<ProgramClaim>& claim, const Tell& tell) {
  OwnDomain own;
  own.no_domain_because = prepared.no_domain_because;
  if (choice.kind == DomainChoice::Kind::given) {
    if (choice.domain >= prepared.sync_domains) {
      return missing_capability(
          "there is no memory synchronisation domain {}; the card has 0 to {}", choice.domain,
          prepared.sync_domains - 1);
    }
    own.domain = choice.domain;
    if (claim) DEMARC_CHECK(claim->take_domain(prepared.uuid, choice.domain, tell));
  } else if (claim && choice.kind == DomainChoice::Kind::free && prepared.sync_domains != 0) {
    const auto domain = claim->take_free_domain(prepared.uuid, prepared.sync_domains);
    if (domain) {
      own.domain = *domain;
    } else {
      own.no_domain_because = domain.error().message;
    }
  }
  return own;
}

Result<Supervisor> start_supervised(const ConfinePlan& plan, const Control& control,
                                    std::optional<ProgramClaim>& claim,
                                    std::optional<TenantLease>& tenant,
                                    const ProgramPlan& program) {
  ControlBlock& block = control.block();
  std::function<void()> look;
  if (claim) look = [&block, &claim] { claim->follow(block); };
  return Supervisor::start({block.uuid, block.report_token, plan.tell,
                            [&block](const ProcessCounts& counts) {
                              block.confined = counts.confined;
                              block.contexts = counts.contexts;
                              block.kept_off = counts.kept_off;
                              block.stopped = counts.stopped;
                            },
                            std::move(look), tenant ? tenant->file() : -1,
                            [&plan, &tenant] { tenant->let_go(plan.tell); }},
                           program);
}

// On which card, with which TPCs and in which domain a program runs.
struct Division {
  std::string card;  // UUID; empty: the plan's device
  partition::TpcChoice choice;
  DomainChoice domain;
  std::string mps;  // what its programs find MPS by; empty: as this process does
};

Division division_of(const ConfinePlan& plan, const std::optional<TenantLease>& tenant) {
  Division division{{}, plan.choice, plan.sync_domain, {}};
  if (!tenant) return division;
  const lease::Lease& lease = tenant->lease();
  division.card = lease.card;
  division.mps = lease.mps;
  // Without one it takes none: a tenant that comes later may be given it.
  division.domain = {DomainChoice::Kind::none, {}};
  if (lease.sync_domain) division.domain = {DomainChoice::Kind::given, *lease.sync_domain};
  return division;
}

Result<void> check_plan(const ConfinePlan& plan) {
  if (plan.command.empty()) return invalid_input("no command was given: demarc exec ... -- CMD");
  if (plan.observe && !plan.choice.empty()) {
    return invalid_input("--observe chooses no TPCs: leave out --tpcs, --gpcs and --sms");
  }
  if (!plan.tenant.empty() && (plan.observe || !plan.choice.empty())) {
    return invalid_input(
        "--tenant, or {} in the environment, brings its own TPCs: leave out --observe, --tpcs, "
        "--gpcs and --sms",
        tenant_variable);
  }
  if (plan.allow_overlap && plan.choice.empty()) {
    return invalid_input(
        "--allow-overlap is for programs with TPCs of their own: give --tpcs, --gpcs or --sms");
  }
  DEMARC_CHECK(partition::check_choice(plan.choice));
  const std::pair<const char*, bool> of_tenants[] = {
      {"--report", plan.report},
      {"--allow-plain", plan.allow_plain},
      {"--allow-spills", plan.allow_spills != 0},
      {"--silence-printf", plan.silence_printf},
      {"--overlap-launches", plan.overlap_launches},
      {"--windows", plan.windows != WindowUse::automatic}};
  for (const auto& [option, given] : of_tenants) {
    if (!given || !plan.tenant.empty()) continue;
    return invalid_input("{} needs --part or --tenant", option);
  }
  if (plan.tenant.empty() && !plan.observe && plan.choice.empty()) {
    return invalid_input(
        "which part of the card is not said: give --part K/N (SMs, L2 and memory), or exactly one "
        "of --tpcs, --gpcs and --sms");
  }
  return refuse_inside();
}

// What LD_PRELOAD names before the program starts.
Result<std::vector<std::string>> libraries_in_front(const ConfinePlan& plan,
                                                    const std::string& preload,
                                                    const std::optional<TenantLease>& tenant) {
  std::vector<std::string> libraries;
  // Code that runs as it is is compiled as the program has it compiled.
  if (!tenant || plan.windows == WindowUse::always) return libraries;
  DEMARC_TRY(libraries.emplace_back(), find_compilers(preload));
  if (tenant->refuses_machine_code(plan.windows)) {
    DEMARC_TRY(libraries.emplace_back(), find_blas(preload));
  }
  return libraries;
}

}  // namespace

Result<void> refuse_inside() {
  if (tell_supervisor(OwnCommand::present) == EBADF) return {};
  return invalid_input(
      "this runs inside another demarc exec, which confines it already: start it outside of that "
      "one");
}

Result<WindowUse> parse_window_use(std::string_view text) {
  if (text == "auto") return WindowUse::automatic;
  if (text == "never") return WindowUse::never;
  if (text == "always") return WindowUse::always;
  return invalid_input("--windows {}: auto, never or always was expected", text);
}

Result<DomainChoice> parse_domain_choice(std::string_view text) {
  if (text == "free") return DomainChoice{DomainChoice::Kind::free, {}};
  if (text == "none") return DomainChoice{DomainChoice::Kind::none, {}};
  const auto number = parse_u64(text, "--sync-domain");
  if (!number || *number > std::numeric_limits<std::int32_t>::max()) {
    return invalid_input("--sync-domain {}: free, none or the number of a domain was expected",
                         text);
  }
  return DomainChoice{DomainChoice::Kind::given, static_cast<std::uint32_t>(*number)};
}

Result<ConfineOutcome> run_confined(const ConfinePlan& plan) {
  DEMARC_CHECK(check_plan(plan));
  DEMARC_CHECK(check_process_folder());
  DEMARC_TRY(const std::string preload, find_preload(plan.preload));
  DEMARC_TRY(const Control control, Control::create());
  std::optional<TenantLease> tenant;
  if (!plan.tenant.empty()) {
    DEMARC_TRY(tenant, TenantLease::open(plan, control));
  }
  DEMARC_TRY(const auto in_front, libraries_in_front(plan, preload, tenant));
  const Division division = division_of(plan, tenant);
  if (tenant && division.mps.empty() && plan.tell) {
    plan.tell(fmt::format(
        "demarc serve runs without MPS: the programs of its tenants take turns on the card, and "
        "'{}' has its TPCs alone while it has its turn",
        plan.tenant));
  }
  std::optional<ProgramClaim> claim;
  if (!tenant) {
    DEMARC_TRY(claim, ProgramClaim::open(plan.allow_overlap));
  }
  DEMARC_TRY(const Prepared prepared, in_child<Prepared>([&]() -> Result<Prepared> {
               // It is proved where the program will run: as a client of the same MPS.
               if (!division.mps.empty()) ::setenv(mps_variable, division.mps.c_str(), 1);
               DEMARC_TRY(const auto driver, Driver::load());
               std::uint32_t device = plan.device;
               if (!division.card.empty()) {
                 DEMARC_TRY(device, index_of_uuid(driver, division.card));
               }
               if (!plan.host_memory) {
                 DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, device));
                 DEMARC_CHECK(check_host_memory_can_be_refused(*driver, *gpu));
               }
               if (tenant || !plan.host_memory) DEMARC_CHECK(check_calls_are_shown(*driver));
               if (tenant) {
                 return prepare_leased(driver, device, tenant->lease(), division.domain);
               }
               return plan.observe
                          ? prepare_to_observe(driver, device, division.domain)
                          : prepare(driver, device, division.choice, division.domain, *claim);
             }));
  if (claim) claim->took_tpcs(prepared.tpcs);
  DEMARC_TRY(const OwnDomain own, choose_domain(division.domain, prepared, claim, plan.tell));
  ControlBlock& block = control.block();
  note_block(plan, prepared, block);
  if (own.domain) block.sync_domain = static_cast<std::int32_t>(*own.domain);
  if (claim) {
    DEMARC_CHECK(claim->pass_on(prepared.uuid, block));
    if (plan.observe) claim->tell_of_server(prepared.uuid, plan.tell);
  }
  if (tenant) {
    // The server's own, which follows where the tenant is moved.
    HardwareMask given;
    if (!block.mask.load(given) || !given.ours()) {
      return check_failed("demarc serve gave tenant '{}' a lease, but gave the program no mask",
                          plan.tenant);
    }
  } else {
    block.largest_cluster = prepared.largest_cluster;
    DEMARC_CHECK(control.store_mask(prepared.mask, !plan.observe, to_string(prepared.tpcs)));
  }
  DEMARC_TRY(
      Supervisor supervisor,
      start_supervised(
          plan, control, claim, tenant,
          {plan.command, environment_for(prepared, preload, control.value(), plan.tenant,
                                         tenant && !tenant->refuses_machine_code(plan.windows),
                                         in_front, division.mps)}));
  if (plan.started) plan.started(control.value());
  ConfineOutcome outcome;
  outcome.program_exit_code = supervisor.wait();
  outcome.observed = plan.observe;
  outcome.tpcs = prepared.tpcs;
  outcome.sms = prepared.sms;
  outcome.sync_domain = own.domain;
  outcome.no_domain_because = own.no_domain_because;
  outcome.processes = supervisor.counts();
  copy_counters(block.counters, outcome);
  outcome.periods = block.masks.periods(block.mask.published());
  outcome.findings = look_for_findings(outcome.processes, block.counters, plan.observe);
  if (tenant) outcome.report = report_of(plan.tenant, block.record);
  return outcome;
}

Result<Moved> confine_again(std::int64_t pid, const partition::TpcChoice& choice) {
  DEMARC_CHECK(partition::check_choice(choice));
  DEMARC_CHECK(refuse_inside());
  DEMARC_TRY(const std::string value, control_value_of(pid));
  DEMARC_TRY(const Control control, Control::open(value));
  if (control.block().lease_token[0] != '\0') {
    return invalid_input(
        "--pid {}: its TPCs are those of a tenant's lease: demarc lease move moves them", pid);
  }
  DEMARC_TRY(const OwnedFile turn, control.turn_to_move());
  const std::string uuid = control.block().uuid;
  // Until the program's own demarc exec has claimed them.
  DEMARC_TRY(ProgramClaim claim, ProgramClaim::like(control.block()));
  DEMARC_TRY(const Prepared prepared, in_child<Prepared>([&]() -> Result<Prepared> {
               DEMARC_TRY(const auto driver, Driver::load());
               DEMARC_TRY(const std::uint32_t index, index_of_uuid(driver, uuid));
               return prepare(driver, index, choice, {DomainChoice::Kind::none, {}}, claim);
             }));
  DEMARC_CHECK(hand_over(control.block(), prepared.tpcs));
  control.block().largest_cluster = prepared.largest_cluster;
  DEMARC_CHECK(control.store_mask(prepared.mask, true, to_string(prepared.tpcs)));
  return Moved{prepared.tpcs, control.block().counters.has_graphs()};
}

}  // namespace demarc::cuda
