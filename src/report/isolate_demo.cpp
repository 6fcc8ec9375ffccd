// Plans and runs the interference study of the demonstration on a simulated GTX 1080.
#include "isolate_demo.hpp"

#include "demarc/study/sim_executor.hpp"

namespace demarc::report {

Result<study::Plan> isolate_demo_plan(const DemoOptions& options) {
  study::Plan plan;
  plan.modes = {{partition::Mode::none}, {partition::Mode::mask}, {partition::Mode::mask, true}};
  DEMARC_TRY(plan.victims, study::parse_workloads(options.victims, "--victims"));
  DEMARC_TRY(plan.aggressors, study::parse_workloads(options.aggressors, "--aggressors"));
  plan.rule.warm_up = 1;
  plan.rule.least = plan.rule.most = 3;
  plan.rounds = 1;
  DEMARC_CHECK(study::check_plan(plan));
  return plan;
}

Result<study::StudyResult> run_isolate_demo(const study::Plan& plan, const Progress& progress) {
  DEMARC_TRY(const auto executor, study::make_sim_executor({}));
  return study::run_study(plan, *executor, {.progress = progress});
}

}  // namespace demarc::report
