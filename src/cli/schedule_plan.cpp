// demarc schedule plan: finds TPC partitions for periodic tasks.
#include "demarc/base/files.hpp"
#include "demarc/sim/schedulability/schedulability.hpp"
#include "schedule_commands.hpp"

namespace demarc::cli {
namespace {

struct PlanOptions {
  std::string tasks, output, json;
};

Result<void> run_plan(const PlanOptions& options) {
  DEMARC_TRY(const std::string text, read_file(options.tasks));
  DEMARC_TRY(const sim::TaskSet set, sim::parse_tasks(text, options.tasks));
  DEMARC_TRY(const sim::SchedulePlan plan, sim::plan_schedule(set));
  DEMARC_CHECK(emit_result(
      options.json, options.output, [&] { return sim::plan_json(set, plan); },
      [&] { return sim::plan_text(set, plan); }));
  if (!plan.feasible()) return check_failed("{}: no partition holds all deadlines", options.tasks);
  return {};
}

}  // namespace

ScheduleCommand declare_schedule_plan(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "plan", "find a TPC partition in which periodic tasks hold their deadlines");
  app->footer("Example: demarc schedule plan examples/dispatch/tasks.json");
  auto options = std::make_shared<PlanOptions>();
  app->add_option("tasks", options->tasks, "task set (JSON, schema demarc.tasks/1)")
      ->type_name("FILE")
      ->required();
  add_output(*app, options->output);
  add_json(*app, options->json, "the plan", {"demarc.schedule.plan/1"});
  return {app, [options] { return run_plan(*options); }};
}

}  // namespace demarc::cli
