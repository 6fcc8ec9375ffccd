// Does what demarc verify does: launches over every path, counts where blocks ran, and identifies
// the SMs.
#include "demarc/card/verify.hpp"

#include <algorithm>

#include "identification_json.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t verify_spin = 3000;
constexpr std::uint32_t verify_threads = 64;

Result<Placement> through_default_stream(const GpuPointer& gpu, const ProbeKernels& kernels,
                                         std::uint32_t blocks) {
  DEMARC_TRY(const DeviceBuffer counts,
             DeviceBuffer::allocate<std::uint32_t>(gpu, gpu->sm_count()));
  DEMARC_CHECK(counts.fill(0));
  DevicePointer address = counts.address();
  DevicePointer none = 0;
  std::uint64_t spin = verify_spin;
  void* arguments[] = {&address, &none, &spin};
  DEMARC_CHECK(
      gpu->check(gpu->api().cuLaunchKernel(kernels.where().handle(), blocks, 1, 1, verify_threads,
                                           1, 1, 0, nullptr, arguments, nullptr),
                 "cannot launch into the default stream"));
  DEMARC_CHECK(wait_for_default_stream(gpu));
  Placement placement;
  DEMARC_TRY(placement.blocks, counts.read<std::uint32_t>(gpu->sm_count()));
  return placement;
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
  DEMARC_TRY(const DeviceBuffer counts,
             DeviceBuffer::allocate<std::uint32_t>(gpu, gpu->sm_count()));
  DEMARC_CHECK(counts.fill(0));
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
  Placement placement;
  DEMARC_TRY(placement.blocks, counts.read<std::uint32_t>(gpu->sm_count()));
  return placement;
}

// The process as it is: what its numbers mean and which SMs it has. The topology is the remembered
// one, else what the driver tells: a measurement inside a partition would show the partition.
Result<void> identify(const GpuPointer& gpu, const std::optional<CardFacts>& known,
                      std::uint32_t launches, VerifyReport& report) {
  report.relative = gpu->under_mps();
  if (launches == 0 || !known || !known->fingerprints) return {};
  auto found = identify_sms(gpu, *known, launches);
  if (!found) {
    if (gpu->stuck()) return tl::unexpected(found.error());
    report.notes.push_back(found.error().message);
    return {};
  }
  report.relative |= found->misnumbered != 0;
  report.identified = std::move(*found);
  return {};
}

Result<void> judge(VerifyReport& report) {
  const auto allowed = gpu::sms_of(report.topology, report.expected);
  report.expected_sms = static_cast<std::uint32_t>(allowed.size());
  report.holds = true;
  for (VerifyPath& path : report.paths) {
    path.outside = path.placement.outside(allowed);
    report.holds &=
        report.relative ? path.placement.used_sms().size() <= allowed.size() : path.outside == 0;
  }
  if (!report.relative || !report.named) return {};
  if (report.identified) {
    const Confinement seen = confinement_of(*report.identified, report.expected);
    report.holds &= seen.outside.empty();
    report.proved = seen.in_doubt == 0 || !report.holds;
  } else if (report.notes.empty()) {
    return missing_capability(
        "SM numbers are relative here (MPS) and name no SM. Run demarc topo --refresh once, "
        "outside MPS and with nothing else on the card; then verify can identify SMs by their "
        "latencies. Without this, --sms and --share count SMs");
  } else {
    report.proved = !report.holds;
  }
  report.holds &= report.proved;
  return {};
}

Result<void> probe_as_it_is(const GpuPointer& gpu, std::uint32_t blocks, VerifyReport& report) {
  DEMARC_TRY(const ProbeKernels kernels, ProbeKernels::load(gpu));
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
    report.named = !plan.choice.tpcs.empty() || !plan.choice.gpcs.empty();
    DEMARC_TRY(const auto known, remembered_facts(*gpu, {}));
    DEMARC_TRY(const gpu::Device described, describe(*gpu));
    report.topology = known ? known->device.topology : described.topology;
    DEMARC_TRY(report.expected, partition::choose_tpcs(report.topology, plan.choice));
    DEMARC_CHECK(probe_as_it_is(gpu, blocks, report));
    DEMARC_CHECK(identify(gpu, known, plan.identified_launches, report));
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
    text += report.relative ? "\n" : fmt::format(", {} outside\n", path.outside);
  }
  if (report.identified) {
    text += identification_to_text(report.topology, *report.identified, false);
    const gpu::TpcSet outside = report.identified->tpcs - report.expected;
    if (report.named && report.relative && !outside.empty()) {
      text += fmt::format("TPCs {} were used unexpectedly\n", to_string(outside));
    }
  }
  for (const std::string& note : report.notes) text += "not identified by latency: " + note + "\n";
  if (report.relative && !report.named) {
    text += "SM numbers are relative here (MPS): their count was checked\n";
  }
  if (report.unconfined()) {
    return text + "this process is in no partition: its blocks ran on every SM of the card\n";
  }
  if (!report.proved) return text + "the partition COULD NOT BE PROVED\n";
  return text + (report.holds ? "the partition HOLDS\n" : "the partition DOES NOT HOLD\n");
}

std::string report_to_json(const VerifyReport& report) {
  Json paths = Json::array();
  for (const VerifyPath& path : report.paths) {
    Json json_path{{"path", path.name}, {"blocks", path.placement.total()}};
    if (!report.relative) json_path["outside"] = path.outside;
    json_path["blocks_per_sm"] = path.placement.blocks;
    paths.push_back(std::move(json_path));
  }
  Json json{{"schema", "demarc.verify/1"},
            {"card", report.card},
            {"subject", report.subject()},
            {"unconfined", report.unconfined()},
            {"sms", report.sms},
            {"expected_tpcs", to_string(report.expected)},
            {"expected_sms", report.expected_sms},
            {"relative_sm_numbers", report.relative},
            {"proved", report.proved},
            {"holds", report.holds},
            {"notes", report.notes},
            {"paths", paths}};
  if (report.identified) {
    json["identified"] = identification_json(report.topology, *report.identified);
  }
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
