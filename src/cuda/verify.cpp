#include "demarc/cuda/verify.hpp"

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t verify_spin = 3000;
constexpr std::uint32_t verify_threads = 64;

// The remembered topology of the card, else what the driver tells: nothing is measured here,
// because a measurement inside a partition would show the partition.
Result<gpu::Topology> topology_for_verify(const Gpu& gpu) {
  const std::string path = facts_path(gpu, {});
  if (std::filesystem::exists(path)) {
    DEMARC_TRY(const std::string text, read_file(path));
    DEMARC_TRY(const CardFacts facts, parse_facts(text, path));
    return facts.device.topology;
  }
  DEMARC_TRY(const gpu::Device device, describe(gpu));
  return device.topology;
}

Result<Placement> through_default_stream(const GpuPointer& gpu, const ProbeKernels& kernels,
                                         std::uint32_t blocks) {
  DEMARC_TRY(const DeviceBuffer counts, DeviceBuffer::allocate(gpu, gpu->sm_count() * 4ULL));
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
  DEMARC_TRY(const DeviceBuffer counts, DeviceBuffer::allocate(gpu, gpu->sm_count() * 4ULL));
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

void judge(VerifyReport& report, const std::vector<std::uint32_t>& allowed) {
  report.holds = true;
  report.relative = true;
  for (const VerifyPath& path : report.paths) {
    const auto used = path.placement.used_sms();
    report.relative &=
        !used.empty() && used.back() + 1 == used.size() && used.size() <= allowed.size();
  }
  report.relative &= !allowed.empty() && allowed.back() + 1 != allowed.size();
  for (VerifyPath& path : report.paths) {
    path.outside = path.placement.outside(allowed);
    const std::size_t used = path.placement.used_sms().size();
    report.holds &= report.relative ? used <= allowed.size() : path.outside == 0;
  }
}

Result<void> probe_as_it_is(const GpuPointer& gpu, std::uint32_t blocks, VerifyReport& report) {
  DEMARC_TRY(const ProbeKernels kernels, ProbeKernels::load(gpu));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  DEMARC_TRY(
      Placement plain,
      probe_placement(stream, kernels, LaunchShape::line(blocks, verify_threads), verify_spin));
  report.paths.push_back({"stream", std::move(plain), 0});
  DEMARC_TRY(Placement by_default, through_default_stream(gpu, kernels, blocks));
  report.paths.push_back({"default stream", std::move(by_default), 0});
  if (gpu->api().cuGraphLaunch != nullptr) {
    DEMARC_TRY(Placement graph, through_graph(stream, kernels, blocks));
    report.paths.push_back({"graph", std::move(graph), 0});
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify(const VerifyPlan& plan) {
  DEMARC_TRY(const auto driver, Driver::load());
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, plan.device));
  VerifyReport report;
  report.card = gpu->name();
  report.sms = gpu->sm_count();
  const std::uint32_t blocks = plan.blocks_per_sm * gpu->sm_count();
  gpu::Topology topology;
  if (plan.mode == Mode::none) {
    DEMARC_TRY(topology, topology_for_verify(*gpu));
    DEMARC_TRY(report.expected, choose_tpcs(topology, plan.choice));
    DEMARC_CHECK(probe_as_it_is(gpu, blocks, report));
  } else {
    CardOptions options;
    options.use_masks = plan.mode == Mode::mask;
    DEMARC_TRY(const CardPointer card, Card::open(gpu, options));
    topology = card->topology();
    DEMARC_TRY(report.expected, choose_tpcs(topology, plan.choice));
    DEMARC_TRY(const auto backend, make_backend(card, plan.mode));
    DEMARC_TRY(const auto lane, backend->open({"verified", report.expected, 0, 0}));
    DEMARC_TRY(Placement placement, lane->probe(blocks, verify_spin));
    report.paths.push_back({std::string(to_string(plan.mode)), std::move(placement), 0});
  }
  const auto allowed = partition::sms_of(topology, report.expected);
  report.expected_sms = static_cast<std::uint32_t>(allowed.size());
  judge(report, allowed);
  return report;
}

std::string report_to_text(const VerifyReport& report) {
  std::string text = fmt::format("{}: expected TPCs {} ({} of {} SMs)\n", report.card,
                                 to_string(report.expected), report.expected_sms, report.sms);
  for (const VerifyPath& path : report.paths) {
    text += fmt::format("{:<16}{:>10} blocks on {:>3} SMs, {} outside\n", path.name,
                        path.placement.total(), path.placement.used_sms().size(), path.outside);
  }
  if (report.relative) {
    text += "SM numbers are relative here (MPS): only their count was checked\n";
  }
  return text + (report.holds ? "the partition HOLDS\n" : "the partition DOES NOT HOLD\n");
}

std::string report_to_json(const VerifyReport& report) {
  Json paths = Json::array();
  for (const VerifyPath& path : report.paths) {
    paths.push_back(Json{{"path", path.name},
                         {"blocks", path.placement.total()},
                         {"outside", path.outside},
                         {"blocks_per_sm", path.placement.blocks}});
  }
  const Json json{{"schema", "demarc.verify/1"},
                  {"card", report.card},
                  {"sms", report.sms},
                  {"expected_tpcs", to_string(report.expected)},
                  {"expected_sms", report.expected_sms},
                  {"relative_sm_numbers", report.relative},
                  {"holds", report.holds},
                  {"paths", paths}};
  return json.dump(2) + "\n";
}

}  // namespace demarc::cuda
