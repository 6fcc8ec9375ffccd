// Tests what is forecast of invented kernels, and what has no forecast and why.
#include "demarc/study/forecast.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/study/planted.hpp"
#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

// sweep: every thread reads the word that has its number. gather: the word whose number that is.
constexpr const char* invented_ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry sweep(.param .u64 data)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r1, [%rd4];
  ret;
}
.visible .entry gather(.param .u64 data)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [%rd2];
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  ret;
}
)";

constexpr std::uint64_t l2_bytes = 256 << 10;
constexpr std::uint32_t block_threads = 256;

// Workloads are called KERNEL:KIBIBYTES or KERNEL:KIBIBYTES:LAUNCHES.
class InventedExecutor : public Executor {
 public:
  DeviceContext context() const override {
    DeviceContext out;
    out.device = "invented";
    return out;
  }
  Result<std::unique_ptr<Stage>> whole() override { return missing_capability("nothing runs"); }
  Result<std::unique_ptr<Stage>> divide(const Mode&, std::uint32_t) override {
    return missing_capability("nothing runs");
  }
  Result<gpu::Device> description() const override {
    DEMARC_TRY(gpu::Device device, gpu::find_device("gtx1080"));
    device.l2.size_bytes = l2_bytes;
    return device;
  }
  Result<WorkloadCode> code_of(const Workload& workload) const override {
    if (workload.spec == "command") return missing_capability("it brings compiled code");
    const std::size_t colon = workload.spec.find(':');
    if (colon == std::string::npos) return invalid_input("no workload '{}'", workload.spec);
    const std::size_t second = workload.spec.find(':', colon + 1);
    WorkloadCode code;
    code.ptx = invented_ptx;
    code.launch.ptx = "invented.ptx";
    code.launch.buffers.push_back({.name = "data",
                                   .bytes = std::stoull(workload.spec.substr(colon + 1)) << 10U,
                                   .element = gpu::ScalarType::u32,
                                   .fill = {},
                                   .output = false});
    gpu::KernelLaunch kernel;
    kernel.kernel = workload.spec.substr(0, colon);
    kernel.block.x = block_threads;
    kernel.grid.x = static_cast<std::uint32_t>(code.launch.buffers[0].bytes / (4 * block_threads));
    kernel.arguments.emplace_back(gpu::BufferUse{});
    code.launch.kernels.assign(
        second == std::string::npos ? 1 : std::stoul(workload.spec.substr(second + 1)), kernel);
    return code;
  }
};

std::vector<Workload> named(const std::vector<std::string>& specs) {
  std::vector<Workload> out;
  for (const std::string& spec : specs) out.push_back({spec, spec});
  return out;
}

Result<Forecast> forecast_for(const std::vector<std::string>& victims,
                              const std::vector<std::string>& aggressors) {
  Plan plan;
  plan.victims = named(victims);
  plan.aggressors = named(aggressors);
  return forecast(plan, InventedExecutor());
}

TEST(Forecast, what_only_the_whole_l2_holds_loses_with_half_and_asks_nothing_of_the_dram) {
  const auto result = forecast_for({"sweep:192"}, {"sweep:1024"});
  ASSERT_TRUE(result) << result.error().message;
  const WorkloadForecast& fits = result->victims.at(0);
  EXPECT_EQ(fits.missing, "");
  EXPECT_TRUE(fits.complete);
  EXPECT_DOUBLE_EQ(fits.l2_hit_rate, 1);
  EXPECT_LT(fits.half_l2_hit_rate, 0.1);
  EXPECT_GT(fits.half_memory_slowdown, 1.1);
  EXPECT_EQ(fits.dram_demand_share, 0);
  const WorkloadForecast& stream = result->aggressors.at(0);
  EXPECT_GT(stream.half_memory_slowdown, 1.4);
  EXPECT_GT(stream.dram_demand_share, pressing_share);
}

RC_GTEST_PROP(Forecast, less_memory_never_makes_a_sweep_faster, ()) {
  const auto kib = *rc::gen::inRange<std::uint64_t>(1, 400);
  const auto result = forecast_for({fmt::format("sweep:{}", kib)}, {});
  RC_ASSERT(result.has_value());
  RC_ASSERT(result->victims.at(0).half_memory_slowdown >= 1);
}

TEST(Forecast, a_run_of_many_launches_is_one_launch_many_times) {
  const auto result = forecast_for({"sweep:512", "sweep:512:9"}, {});
  ASSERT_TRUE(result);
  const WorkloadForecast& one = result->victims.at(0);
  const WorkloadForecast& nine = result->victims.at(1);
  EXPECT_EQ(nine.launches, 9U);
  EXPECT_EQ(nine.kernels, 1U);
  EXPECT_DOUBLE_EQ(nine.dram_demand_share, one.dram_demand_share);
  EXPECT_DOUBLE_EQ(nine.half_memory_slowdown, one.half_memory_slowdown);
}

TEST(Forecast, addresses_from_data_are_emulated_unless_that_takes_too_much) {
  const auto result = forecast_for({"gather:16", "gather:150000"}, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->victims.at(0).missing, "");
  EXPECT_NE(result->victims.at(1).missing.find("153600000 bytes of buffers are more"),
            std::string::npos)
      << result->victims.at(1).missing;
}

TEST(Forecast, of_a_launch_that_is_too_long_the_beginning_is_forecast_and_said_to_be_one) {
  std::vector<std::string> others;  // to share what may be done with
  for (int i = 1; i < 16; ++i) others.push_back(fmt::format("sweep:{}", i));
  const auto result = forecast_for({"sweep:4194304"}, others);  // four million blocks
  ASSERT_TRUE(result);
  EXPECT_EQ(result->victims.at(0).missing, "");
  EXPECT_FALSE(result->victims.at(0).complete);
  EXPECT_GT(result->victims.at(0).dram_demand_share, pressing_share);
  EXPECT_TRUE(result->aggressors.at(0).complete);
}

TEST(Forecast, what_has_no_ptx_keeps_its_row_and_the_reason) {
  const auto result = forecast_for({"sweep:16"}, {"command"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->aggressors.at(0).missing, "it brings compiled code");
  EXPECT_NE(forecast_text(*result).find("command      none: it brings compiled code"),
            std::string::npos)
      << forecast_text(*result);
}

TEST(Forecast, a_workload_that_does_not_exist_is_an_error) {
  EXPECT_EQ(forecast_for({"quicksort"}, {}).error().message, "no workload 'quicksort'");
}

TEST(Forecast, a_model_without_a_description_runs_its_study_without_a_forecast) {
  Plan plan;
  plan.modes = {{partition::Mode::mask, false}};
  plan.victims = {{"mm", "mm"}};
  plan.aggressors = {{"va", "va"}};
  plan.rule = {0, 20, 20, 1, 1};
  const auto executor = make_planted_executor(planted_model("h100").value(), 1);
  const auto result = run_study(plan, *executor, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->forecast.missing, "planted:h100 has no description of a GPU");
  EXPECT_EQ(Json::parse(study_json(*result, ""))["forecast"],
            Json({{"missing", "planted:h100 has no description of a GPU"}}));
  EXPECT_EQ(forecast_study(plan, *executor).error().kind, ErrorKind::missing_capability);
}

WorkloadForecast row(const std::string& name, double dram, double slowdown) {
  WorkloadForecast out;
  out.name = out.spec = name;
  out.dram_demand_share = dram;
  out.l2_demand_share = dram / 2;
  out.half_memory_slowdown = slowdown;
  return out;
}

Forecast invented_forecast(double demand) {
  Forecast out;
  out.device = "card";
  out.victims = {row("nn", 0.3, 1.4), row("mm", 0.01, 1)};
  out.aggressors = {row("mm", 0.01, 1), row("va", demand, 1)};
  return out;
}

Plan plan_with(const std::string& modes) {
  Plan plan;
  plan.modes = parse_modes(modes).value();
  plan.victims = {{"nn", "nn"}, {"mm", "mm"}};
  plan.aggressors = {{"mm", "mm"}, {"va", "va"}};
  return plan;
}

TEST(Forecast, with_nothing_measured_colours_are_for_aggressors_that_press_on_the_memory) {
  EXPECT_EQ(recommend(plan_with("none,mps,mask+color,mask"), invented_forecast(0.9)),
            "Nothing was measured; the forecast recommends mask+color: va presses on the memory "
            "that nn needs. By forecast va loads the memory most: 90 % of the DRAM's bandwidth, 45 "
            "% of the L2's. With half of the memory nn takes 1.40x as long.");
  EXPECT_EQ(recommend(plan_with("none,mps,mask+color,mask"), invented_forecast(0.1)),
            "Nothing was measured; the forecast recommends mask: no aggressor asks for 25 % of the "
            "DRAM's or the L2's bandwidth, and every victim keeps the whole L2. By forecast va "
            "loads the memory most: 10 % of the DRAM's bandwidth, 5 % of the L2's. With half of "
            "the memory nn takes 1.40x as long.");
  EXPECT_TRUE(recommend(plan_with("none,mps"), invented_forecast(0.9))
                  .starts_with("None of the chosen modes divides SMs and memory; add mask+color to "
                               "--modes: va presses on"));
}

TEST(Forecast, that_half_the_l2_costs_nothing_is_said_with_how_far_the_victims_were_followed) {
  Forecast given = invented_forecast(0.9);
  given.victims[0].half_memory_slowdown = 1;
  EXPECT_TRUE(forecast_words(given).ends_with(
      "With half of the memory no victim takes more than 1.05x as long."));
  given.victims[1].complete = false;
  EXPECT_TRUE(forecast_words(given).ends_with("x as long, as far as beginnings can tell."))
      << forecast_words(given);
}

TEST(Forecast, of_what_it_does_not_know_it_says_what_may_be) {
  Forecast given = invented_forecast(0.1);
  given.aggressors = {row("app", 0, 0)};
  given.aggressors[0].missing = "an access stream has no PTX";
  given.victims[0].half_memory_slowdown = 1;
  EXPECT_EQ(recommend(plan_with("mask,mask+color"), given),
            "Nothing was measured; the forecast recommends mask+color: app may press on the memory "
            "that nn needs. By forecast with half of the memory no victim takes more than 1.05x "
            "as long. Not forecast: app.");
  given.victims[0].half_memory_slowdown = 1.4;
  EXPECT_EQ(forecast_words(given),
            "By forecast with half of the memory nn takes 1.40x as long. Not forecast: app.");
}

// Both modes hold every victim; the one with colours by a little more.
StudyResult both_hold(const Forecast& forecast) {
  StudyResult result;
  result.plan = plan_with("mask,mask+color");
  result.forecast = forecast;
  for (std::size_t mode = 0; mode < 2; ++mode) {
    ModeSummary summary;
    summary.mode = mode;
    summary.victims.resize(2);
    summary.victims[1].victim = 1;
    const double most = mode == 0 ? 2.5 : 0.5;
    summary.mean = {2, most, most};
    summary.tail.p99 = {2, most, most};
    result.modes.push_back(summary);
  }
  return result;
}

TEST(Forecast, among_modes_that_hold_colours_are_left_out_where_no_aggressor_presses) {
  EXPECT_EQ(
      recommend(both_hold(invented_forecast(0.1))),
      "Use mask: worst slowdown 1.02x (nn next to mm; p99 1.02x), overhead 0.00x on average and "
      "0.00x at most (nn). Colours would gain nothing: by forecast no aggressor asks for 25 % of "
      "the DRAM's or the L2's bandwidth, and without colours each victim has the whole L2. "
      "mask+color: worst slowdown 1.00x (nn next to mm; p99 1.00x), overhead 0.00x on average and "
      "0.00x at most (nn). By forecast va loads the memory most: 10 % of the DRAM's "
      "bandwidth, 5 % of the L2's. With half of the memory nn takes 1.40x as long.");
  EXPECT_TRUE(recommend(both_hold(invented_forecast(0.9))).starts_with("Use mask+color: "));
  Forecast unknown = invented_forecast(0.1);
  unknown.aggressors[0].missing = "it brings compiled code";
  EXPECT_TRUE(recommend(both_hold(unknown)).starts_with("Use mask+color: "));
}

}  // namespace
}  // namespace demarc::study
