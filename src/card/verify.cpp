// Does what demarc verify does: launches over every path, and counts where blocks ran.
#include "demarc/card/verify.hpp"

#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/card/identify.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t verify_spin = 3000;
constexpr std::uint32_t verify_threads = 64;

Result<Placement> through_default_stream(const GpuPointer& gpu, const ProbeKernels& kernels,
                                         std::uint32_t blocks) {
  DEMARC_TRY(const DeviceBuffer counts, placement_counters(gpu, kernels));
  DevicePointer address = counts.address();
  DevicePointer none = 0;
  std::uint64_t spin = verify_spin;
  void* arguments[] = {&address, &none, &spin};
  DEMARC_CHECK(
      gpu->check(gpu->api().cuLaunchKernel(kernels.where().handle(), blocks, 1, 1, verify_threads,
                                           1, 1, 0, nullptr, arguments, nullptr),
                 "cannot launch into the default stream"));
  DEMARC_CHECK(wait_for_default_stream(gpu));
  return read_placement(counts, kernels);
}

class GraphHandles {
 public:
  explicit GraphHandles(const DriverApi& api) : api_(api) {}
  ~GraphHandles() {
    if (executable != nullptr) api_.cuGraphExecDestroy(executable);
    if (graph != nullptr) api_.cuGraphDestroy(graph);
  }
  GraphHandles(const GraphHandles&) = delete;
  GraphHandles& operator=(const GraphHandles&) = delete;
  CuGraph graph = nullptr;
  CuGraphExec executable = nullptr;

 private:
  const DriverApi& api_;
};

// Two nodes, launched twice: kept descriptors are looked at too.
Result<Placement> through_graph(const Stream& stream, const ProbeKernels& kernels,
                                std::uint32_t blocks) {
  const GpuPointer& gpu = stream.gpu();
  const DriverApi& api = gpu->api();
  DEMARC_TRY(const DeviceBuffer counts, placement_counters(gpu, kernels));
  GraphHandles handles(api);
  DEMARC_CHECK(gpu->check(api.cuStreamBeginCapture_v2(stream.handle(), cu_capture_thread_local),
                          "cannot begin a graph"));
  for (int node = 0; node < 2; ++node) {
    DEMARC_CHECK(launch(stream, kernels.where(), LaunchShape::line(blocks, verify_threads),
                        counts.address(), DevicePointer{0}, verify_spin));
  }
  DEMARC_CHECK(
      gpu->check(api.cuStreamEndCapture(stream.handle(), &handles.graph), "cannot end a graph"));
  DEMARC_CHECK(gpu->check(api.cuGraphInstantiateWithFlags(&handles.executable, handles.graph, 0),
                          "cannot instantiate a graph"));
  for (int round = 0; round < 2; ++round) {
    DEMARC_CHECK(gpu->check(api.cuGraphLaunch(handles.executable, stream.handle()),
                            "cannot launch a graph"));
    DEMARC_CHECK(stream.wait());
  }
  return read_placement(counts, kernels);
}

Result<void> judge(VerifyReport& report) {
  const auto allowed = gpu::sms_of(report.topology, report.expected);
  report.expected_sms = static_cast<std::uint32_t>(allowed.size());
  report.holds = true;
  for (VerifyPath& path : report.paths) {
    if (report.by_count) {
      report.holds &= path.placement.used_sms().size() <= allowed.size();
      continue;
    }
    path.outside = path.placement.outside(allowed);
    report.holds &= path.outside == 0;
  }
  return {};
}

// Whether this is a client of MPS, not every driver tells. So a list of TPCs is proved by kernels
// that name SMs in any case, if there are such kernels here.
Result<ProbeKernels> load_kernels(const GpuPointer& gpu, const VerifyReport& report) {
  auto naming = ProbeKernels::load(gpu, SmNumbers::of_card);
  if (naming || (gpu->under_mps() && !report.by_count)) return naming;
  return ProbeKernels::load(gpu);
}

Result<void> probe_as_it_is(const GpuPointer& gpu, std::uint32_t blocks, VerifyReport& report) {
  DEMARC_TRY(const ProbeKernels kernels, load_kernels(gpu, report));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  DEMARC_TRY(
      Placement plain,
      probe_placement(stream, kernels, LaunchShape::line(blocks, verify_threads), verify_spin));
  report.paths.push_back({"stream", std::move(plain)});
  DEMARC_TRY(Placement by_default, through_default_stream(gpu, kernels, blocks));
  report.paths.push_back({"default stream", std::move(by_default)});
  if (gpu->api().cuGraphLaunch != nullptr) {
    DEMARC_TRY(Placement graph, through_graph(stream, kernels, blocks));
    report.paths.push_back({"graph", std::move(graph)});
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify(const VerifyPlan& plan) {
  DEMARC_TRY(const auto driver, Driver::load());
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, plan.device));
  DEMARC_CHECK(gpu->check_whole());
  VerifyReport report;
  report.card = gpu->name();
  report.mode = plan.mode;
  const std::uint32_t blocks = plan.blocks_per_sm * gpu->sm_count();
  if (!plan.mode) {
    const bool listed = !plan.choice.tpcs.empty() || !plan.choice.gpcs.empty();
    report.by_count = gpu->under_mps() && !listed;
    DEMARC_TRY(const auto known, remembered_facts(*gpu, {}));
    DEMARC_TRY(const gpu::Device described, describe(*gpu));
    report.topology = known ? known->device.topology : described.topology;
    DEMARC_TRY(report.expected, partition::choose_tpcs(report.topology, plan.choice));
    DEMARC_CHECK(probe_as_it_is(gpu, blocks, report));
  } else {
    CardOptions options;
    const partition::ModeTraits& traits = partition::traits_of(*plan.mode);
    if (!traits.confines) {
      return invalid_input(
          "--mode {}: this mode confines nothing that verify could check; {} do. Without --mode "
          "this process is verified as it is",
          partition::to_string(*plan.mode),
          partition::mode_names([](const partition::ModeTraits& row) { return row.confines; },
                                ", "));
    }
    options.use_masks = traits.hook == partition::HookUse::needed;
    DEMARC_TRY(const CardPointer card, Card::open(gpu, options));
    report.topology = card->topology();
    DEMARC_TRY(report.expected, partition::choose_tpcs(report.topology, plan.choice));
    DEMARC_TRY(const auto backend, make_backend(card, *plan.mode));
    DEMARC_TRY(const auto stream, backend->open({"verified", report.expected}));
    DEMARC_TRY(Placement placement, stream->probe(blocks, verify_spin));
    report.paths.push_back({std::string(partition::to_string(*plan.mode)), std::move(placement)});
  }
  report.sms = report.topology.sm_count();
  DEMARC_CHECK(judge(report));
  return report;
}

std::string VerifyReport::subject() const {
  if (!mode) return "this process as it is";
  return fmt::format("a partition of mode {}, made for this check", partition::to_string(*mode));
}

bool VerifyReport::unconfined() const {
  return !mode && expected_sms < sms &&
         std::all_of(paths.begin(), paths.end(), [&](const VerifyPath& path) {
           return path.placement.used_sms().size() == sms;
         });
}

std::string report_to_text(const VerifyReport& report) {
  std::string text =
      fmt::format("{}: looking at {}; expected TPCs {} ({} of {} SMs)\n", report.card,
                  report.subject(), to_string(report.expected), report.expected_sms, report.sms);
  for (const VerifyPath& path : report.paths) {
    text += fmt::format("{:<16}{:>10} blocks on {:>3} SMs", path.name, path.placement.total(),
                        path.placement.used_sms().size());
    text += report.by_count ? "\n" : fmt::format(", {} outside\n", path.outside);
  }
  if (report.by_count) {
    text += "MPS chooses the SMs of its clients, so their number was checked\n";
  }
  if (report.unconfined()) {
    return text + "this process is in no partition: its blocks ran on every SM of the card\n";
  }
  return text + (report.holds ? "the partition HOLDS\n" : "the partition DOES NOT HOLD\n");
}

std::string report_to_json(const VerifyReport& report) {
  Json paths = Json::array();
  for (const VerifyPath& path : report.paths) {
    Json json_path{{"path", path.name}, {"blocks", path.placement.total()}};
    if (!report.by_count) json_path["outside"] = path.outside;
    json_path["blocks_per_sm"] = path.placement.blocks;
    paths.push_back(std::move(json_path));
  }
  Json json{{"schema", "demarc.verify/2"},
            {"card", report.card},
            {"subject", report.subject()},
            {"unconfined", report.unconfined()},
            {"sms", report.sms},
            {"expected_tpcs", to_string(report.expected)},
            {"expected_sms", report.expected_sms},
            {"by_count", report.by_count},
            {"holds", report.holds},
            {"paths", paths}};
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
