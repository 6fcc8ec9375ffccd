// demarc topo: shows the GPCs, TPCs, SMs, L2 sides and mask bits of a GPU.
#include <fmt/format.h>

#include <memory>

#include "demarc/card/identify.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/device/tree.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct TopoOptions {
  std::string device = "cuda:0";
  std::string output;
  std::string json;
  bool refresh = false;
  bool identify = false;
};

std::string how_found(const cuda::CardFacts& facts) {
  std::vector<std::string> sources;
  if (facts.by_descriptor) sources.emplace_back("task descriptors");
  if (facts.by_cluster) sources.emplace_back("cluster co-location");
  std::string text;
  if (!sources.empty()) {
    text = fmt::format("GPCs found from {}{}", fmt::join(sources, " and from "),
                       sources.size() == 2 ? ", which agree" : " alone");
  }
  if (facts.from_cache) text += text.empty() ? "remembered" : " (remembered; --refresh measures)";
  if (!text.empty()) text += "\n";
  for (const std::string& note : facts.notes) text += "note: " + note + "\n";
  return text;
}

constexpr std::uint32_t identified_launches = 3;  // a client of MPS may get other SMs each time

Result<void> show_identity(const TopoOptions& options, const cuda::Card& card) {
  DEMARC_TRY(const auto found, cuda::identify_sms(card, identified_launches));
  if (!options.output.empty()) DEMARC_CHECK(gpu::write_device(options.output, card.device()));
  const gpu::Topology& topology = card.topology();
  return emit_result(
      options.json, "-", [&] { return identification_to_json(topology, found); },
      [&] { return gpu::to_tree(card.device()) + identification_to_text(topology, found); });
}

// A description in a file says all that the tree says.
bool only_writes(const TopoOptions& options) {
  return !options.output.empty() && options.json.empty();
}

Result<void> show_topology(const TopoOptions& options) {
  DEMARC_TRY(const gpu::GpuRef ref, gpu::parse_gpu_ref(options.device));
  if (const auto* simulated = std::get_if<gpu::SimulatedRef>(&ref)) {
    if (options.identify) {
      return invalid_input("--identify: {} runs no process; use cuda:N", options.device);
    }
    DEMARC_TRY(const gpu::Device device, gpu::find_device(simulated->name));
    if (!options.output.empty()) DEMARC_CHECK(gpu::write_device(options.output, device));
    if (only_writes(options)) return {};
    return emit_result(
        options.json, "-", [&] { return gpu::device_to_json(device); },
        [&] { return gpu::to_tree(device); });
  }
  DEMARC_CHECK(check_driver(options.device));
  cuda::CardOptions card_options;
  card_options.refresh = options.refresh;
  DEMARC_TRY(const auto card, cuda::open_card(std::get<gpu::CardRef>(ref).index, card_options));
  if (options.refresh) DEMARC_CHECK(tell_of_others("topo", options.device));
  // Inside MPS the tree would not say where this process runs.
  if (options.identify || card->virtual_sms()) return show_identity(options, *card);
  if (!options.output.empty()) DEMARC_CHECK(gpu::write_device(options.output, card->device()));
  if (only_writes(options)) return {};
  return emit_result(
      options.json, "-", [&] { return cuda::facts_to_json(card->facts()); },
      [&] { return gpu::to_tree(card->device()) + how_found(card->facts()); });
}

const RegisterVerb registered_topo({
    4,
    "topo",
    "show the GPCs, TPCs, SMs, L2 sides and mask bits of a GPU",
    "demarc topo --device cuda:0 --json",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<TopoOptions>();
      app.add_option("--device", options->device, "GPU: cuda:N, sim:NAME or sim:FILE.json");
      add_output(app, "-o,--output", options->output, "write the device description to this file");
      add_json(app, options->json, "the topology",
               {"demarc.topo/2", "demarc.topo.identity/2", "demarc.device/1"});
      app.add_flag("--identify", options->identify,
                   "find out on which SMs this process runs; under MPS this is always done");
      app.add_flag("--refresh", options->refresh,
                   "measure the card again; do not use the kept result");
      return [options] { return show_topology(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
