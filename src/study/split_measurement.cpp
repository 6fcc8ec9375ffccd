// Runs the launch of demarc translate on real cards, and sets its times beside the simulated ones.
#include "demarc/study/split_measurement.hpp"

#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "demarc/driver/mapped_pieces.hpp"
#include "demarc/driver/split_launch.hpp"
#include "demarc/sim/translation/simulate.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::study {
namespace {

namespace translation = sim::translation;

// Cycles of the simulated machine are nanoseconds. What lies between two kernels of it is on a card
// a part of each kernel's time between two events.
double simulated_ms(const translation::Comparison& simulated, std::size_t architecture) {
  const auto cycles = simulated.apps.front().summaries[architecture].cycles.raw();
  return static_cast<double>(cycles + simulated.settings.kernel_overhead) / 1e6;
}

double off_percent(double simulated, double measured) {
  return (simulated / measured - 1) * 100;
}

Result<cuda::SplitPlan> plan_of(std::uint32_t runs, const translation::Settings& settings,
                                const translation::Application& application) {
  DEMARC_TRY(const auto homes, translation::page_homes(settings, application));
  const auto addresses = application.page_addresses();
  cuda::SplitPlan plan;
  plan.page_bytes = settings.page_bytes;
  plan.runs = runs;
  // A page that no block touches lies on the first card.
  const auto number_of = [&](sim::Address address) {
    return (address.raw() - gpu::default_base_address) / settings.page_bytes;
  };
  plan.owners.assign(number_of(addresses.back()) + 1, 0);
  for (std::size_t page = 0; page < addresses.size(); ++page) {
    plan.owners[number_of(addresses[page])] = homes[page].raw();
  }
  return plan;
}

double time_of(const std::vector<cuda::SplitRun::Kernel>& kernels) {
  double sum = 0;
  for (const auto& kernel : kernels) {
    sum += *std::max_element(kernel.milliseconds.begin(), kernel.milliseconds.end());
  }
  return sum;
}

// The indices of runs by their times.
std::vector<std::size_t> by_time(const cuda::SplitRun& run) {
  std::vector<std::size_t> order(run.kernels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return time_of(run.kernels[a]) < time_of(run.kernels[b]);
  });
  return order;
}

}  // namespace

Result<std::vector<cuda::GpuPointer>> open_split_cards(const std::vector<std::uint32_t>& cards,
                                                       const translation::Settings& settings) {
  if (cards.size() != settings.gpus) {
    return invalid_input("{} cards, but the simulated machine has {} GPUs", cards.size(),
                         settings.gpus);
  }
  if (settings.split != translation::Split::contiguous) {
    return invalid_input("cards split a kernel into equal runs of blocks; give --split contiguous");
  }
  if (settings.remote != translation::Remote::lines) {
    return invalid_input("cards leave pages where they lie; give --remote lines");
  }
  if (settings.placement == translation::Placement::first_walk) {
    return invalid_input(
        "with first-walk the places of pages are known only at the end; give another --placement");
  }
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  std::vector<cuda::GpuPointer> gpus;
  for (const std::uint32_t card : cards) {
    DEMARC_TRY(cuda::GpuPointer gpu, cuda::Gpu::open(driver, card));
    gpus.push_back(std::move(gpu));
  }
  DEMARC_CHECK(cuda::check_pieces(gpus, settings.page_bytes));
  return gpus;
}

Result<MeasuredSplit> measure_split(const std::vector<cuda::GpuPointer>& gpus, std::uint32_t runs,
                                    const translation::Settings& settings,
                                    const workload::LoadedLaunch& loaded,
                                    const translation::Application& application) {
  DEMARC_TRY(const cuda::SplitPlan plan, plan_of(runs, settings, application));
  DEMARC_TRY(const cuda::SplitRun run,
             cuda::run_split(gpus, loaded.launch, loaded.ptx, loaded.ptx_name, plan));
  MeasuredSplit measured;
  measured.name = application.name();
  for (const cuda::GpuPointer& gpu : gpus) measured.cards.push_back(gpu->name());
  if (loaded.launch.check.exists()) {
    DEMARC_CHECK(workload::check(loaded.launch, run.addresses, run.buffers));
    measured.check = "passed";
  } else {
    measured.check = "none";
  }
  measured.pages.assign(gpus.size(), 0);
  for (const std::uint32_t owner : plan.owners) ++measured.pages[owner];
  const auto order = by_time(run);
  const auto& median = run.kernels[order[order.size() / 2]];
  for (const auto& kernel : median) {
    measured.kernels.push_back({kernel.kernel, kernel.milliseconds});
  }
  measured.milliseconds = time_of(median);
  measured.fastest = time_of(run.kernels[order.front()]);
  measured.slowest = time_of(run.kernels[order.back()]);
  return measured;
}

std::string measured_text(const MeasuredSplit& measured, const translation::Comparison& simulated) {
  std::string text = fmt::format("{} on {}\n", measured.name, joined(measured.cards, ", "));
  text += fmt::format("{:<20}", "kernel, ms");
  for (std::size_t card = 0; card < measured.cards.size(); ++card) {
    text += fmt::format(" {:>10}", fmt::format("card {}", card));
  }
  text += "\n";
  for (const auto& kernel : measured.kernels) {
    text += fmt::format("{:<20}", kernel.kernel);
    for (const double one : kernel.milliseconds) text += fmt::format(" {:>10.4f}", one);
    text += "\n";
  }
  text += fmt::format("measured              {:.4f} ms ({:.4f} to {:.4f})\n", measured.milliseconds,
                      measured.fastest, measured.slowest);
  for (std::size_t i = 0; i < simulated.architectures.size(); ++i) {
    const double cycles = simulated_ms(simulated, i);
    text += fmt::format("simulated {:<11} {:.4f} ms ({:+.1f} %)\n",
                        to_string(simulated.architectures[i]), cycles,
                        off_percent(cycles, measured.milliseconds));
  }
  if (measured.check == "passed") text += "the outputs meet the reference\n";
  return text;
}

std::string measured_json(const MeasuredSplit& measured, const translation::Comparison& simulated) {
  Json kernels = Json::array();
  for (const auto& kernel : measured.kernels) {
    kernels.push_back({{"kernel", kernel.kernel}, {"milliseconds", kernel.milliseconds}});
  }
  Json architectures = Json::object();
  for (std::size_t i = 0; i < simulated.architectures.size(); ++i) {
    const double cycles = simulated_ms(simulated, i);
    architectures[std::string(to_string(simulated.architectures[i]))] = {
        {"milliseconds", cycles}, {"off_percent", off_percent(cycles, measured.milliseconds)}};
  }
  Json settings = Json::object();
  for (const auto& info : translation::setting_table()) {
    settings[std::string(info.name)] = info.get(simulated.settings);
  }
  return json_text(Json{{"schema", "demarc.translate.measured/1"},
                        {"name", measured.name},
                        {"cards", measured.cards},
                        {"pages", measured.pages},
                        {"check", measured.check},
                        {"measured",
                         {{"milliseconds", measured.milliseconds},
                          {"fastest", measured.fastest},
                          {"slowest", measured.slowest},
                          {"kernels", std::move(kernels)}}},
                        {"simulated", std::move(architectures)},
                        {"settings", std::move(settings)}},
                   2) +
         "\n";
}

}  // namespace demarc::study
