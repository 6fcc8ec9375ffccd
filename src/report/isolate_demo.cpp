#include "demarc/report/isolate_demo.hpp"

#include "demarc/study/sim_executor.hpp"

namespace demarc::report {

Result<study::StudyResult> run_isolate_demo(const Progress& progress) {
  study::Plan plan;
  plan.modes = {{"none", false}, {"mask", false}, {"mask", true}};
  DEMARC_TRY(plan.victims, study::parse_workloads("mm,fwt,va,sp,sn,cfd,nn", "victims"));
  DEMARC_TRY(plan.aggressors, study::parse_workloads("mm,fwt,va", "aggressors"));
  plan.rule.warm_up = 1;
  plan.rule.least = plan.rule.most = 3;
  plan.rounds = 1;
  DEMARC_TRY(const auto executor, study::make_sim_executor({}));
  return study::run_study(plan, *executor, progress);
}

}  // namespace demarc::report
