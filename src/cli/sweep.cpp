// demarc sweep: runs a simulation over a grid of settings, on all cores or under mpirun, and keeps
// the results in a file of SQLite.
#include <cstdio>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/standard_error.hpp"
#include "demarc/report/sweep_page.hpp"
#include "demarc/sweep/results.hpp"
#include "demarc/sweep/run.hpp"
#include "program.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct RunSweepOptions {
  std::string plan, database;
  sweep::RunOptions run;
  unsigned jobs = 0;
  bool any_revision = false;
};

struct ShowOptions {
  std::string database, html, output, json;
  bool points = false, provenance = false;
  std::size_t rows = 40;
};

// The points that the file held already are no part of what is left to do.
std::function<void(const sweep::State&)> sweep_progress() {
  return [show = terminal_progress()](const sweep::State& state) {
    const double rate = state.seconds > 0 ? static_cast<double>(state.ran) / state.seconds : 0;
    const std::uint64_t to_run = std::max<std::uint64_t>(state.points - state.held, 1);
    report_progress(show, static_cast<double>(state.ran) / static_cast<double>(to_run),
                    fmt::format("{} of {} points, {:.1f} per second, {} failed",
                                state.held + state.ran, state.points, rate, state.failed));
  };
}

// What rank 0 does, or the only process.
Result<void> run_and_write(const RunSweepOptions& options, const sweep::Plan& plan,
                           sweep::Crew& crew, sweep::Transport* ranks) {
  std::string database = options.database;
  if (database.empty()) {
    database = std::filesystem::path(options.plan).replace_extension(".db").string();
  }
  DEMARC_TRY(auto store, sweep::Store::open(database, plan, options.any_revision));
  sweep::RunOptions run = options.run;
  run.progress = sweep_progress();
  const auto state = run_sweep(plan, store, crew, ranks, run);
  if (const auto bar = terminal_progress()) bar(1, "");  // it may have stood anywhere
  if (!state) return tl::unexpected(state.error());
  fmt::print("{}: {} of {} points, {} of them now in {}, {} failed\n", database,
             state->held + state->ran, state->points, state->ran, duration_text(state->seconds),
             state->failed);
  if (state->failed == 0) return {};
  // Nothing of the run itself is wrong: its ranks end as they do.
  return check_failed(
      "{} points failed; `demarc sweep export {} --points` shows their errors, and --retry runs "
      "them again",
      state->failed, database);
}

Result<void> run_points(const RunSweepOptions& options) {
  DEMARC_TRY(const std::string text, read_file(options.plan));
  const std::filesystem::path path(options.plan);
  DEMARC_TRY(const auto plan, sweep::Plan::parse(text, options.plan, path.parent_path()));
  const sweep::RunCommand command = [](const std::vector<std::string>& arguments) {
    return run_arguments(arguments);
  };
  const bool of_job = sweep::started_by_mpi();
  const unsigned jobs = options.jobs == 0 && of_job ? 1 : options.jobs;
  DEMARC_TRY(auto crew, sweep::Crew::start(plan, jobs, command));
  std::unique_ptr<sweep::Transport> ranks;
  if (of_job) {
    DEMARC_TRY(ranks, sweep::open_mpi());
  }
  auto ended = ranks && ranks->rank() != 0 ? serve_rank(crew, *ranks)
                                           : run_and_write(options, plan, crew, ranks.get());
  if (!ended && ranks && ended.error().kind != ErrorKind::check_failed) {
    say_to_standard_error(fmt::format("demarc sweep: {}\n", ended.error().message));
    std::fflush(nullptr);
    ranks->abandon(static_cast<int>(ended.error().kind));
  }
  return ended;
}

// Results are not written over by what is made of them.
Result<void> check_apart(const ShowOptions& options) {
  for (const std::string& file : {options.html, options.output, options.json}) {
    std::error_code none;
    if (file.empty() || !std::filesystem::equivalent(file, options.database, none)) continue;
    return invalid_input("{}: this file holds the results; write to another file", file);
  }
  return {};
}

// A file is what its name says.
Result<void> check_format(const ShowOptions& options) {
  for (const std::string& file : {options.output, options.json}) {
    if (std::filesystem::path(file).extension() != ".parquet") continue;
    const std::string csv = std::filesystem::path(file).replace_extension(".csv").string();
    return invalid_input(
        "{}: Parquet is not written; write CSV with `-o {}`, which pandas, DuckDB and Arrow read "
        "and can turn into Parquet",
        file, csv);
  }
  if (std::filesystem::path(options.output).extension() == ".json") {
    return invalid_input("{}: -o writes CSV; write JSON with `--json={}`", options.output,
                         options.output);
  }
  return {};
}

Result<void> show(const ShowOptions& options) {
  DEMARC_CHECK(check_apart(options));
  DEMARC_TRY(auto store, sweep::Store::read(options.database));
  DEMARC_TRY(const auto counts, store.counts());
  DEMARC_TRY(const auto summary, sweep::summary(store));
  DEMARC_TRY(const auto best, sweep::best_values(store));
  if (!options.html.empty()) {
    DEMARC_TRY(const std::string page, report::sweep_page(store, command_line()));
    DEMARC_CHECK(emit(options.html, page));
  }
  std::string text = fmt::format("{}: {} of {} points ended, {} failed\n\n", store.plan().source(),
                                 counts.done + counts.failed, store.plan().size(), counts.failed);
  text += to_table(summary, options.rows);
  if (!best.columns.empty()) text += "\n" + to_table(best, options.rows);
  DEMARC_TRY(const auto notes, sweep::zero_measures(store));
  for (const std::string& note : notes) append(text, "note: {}\n", note);
  return emit_result(
      options.json, options.output, [&] { return to_json(store, summary, notes); },
      [&] { return text; });
}

Result<void> export_points(const ShowOptions& options) {
  DEMARC_CHECK(check_format(options));
  DEMARC_CHECK(check_apart(options));
  DEMARC_TRY(auto store, sweep::Store::read(options.database));
  DEMARC_TRY(const auto table,
             options.points ? sweep::all_points(store, options.provenance) : sweep::summary(store));
  DEMARC_TRY(const auto notes, sweep::zero_measures(store));
  for (const std::string& note : notes)
    say_to_standard_error(fmt::format("demarc sweep: note: {}\n", note));
  return emit_result(
      options.json, options.output, [&] { return to_json(store, table, notes); },
      [&] { return to_csv(table); });
}

struct SweepCommand {
  CLI::App* app = nullptr;
  std::function<Result<void>()> run;
};

SweepCommand declare_run(CLI::App& verb) {
  CLI::App* app =
      verb.add_subcommand("run", "run the points that are not yet in the file of the results");
  app->footer(
      "Example: demarc sweep run examples/sweeps/dispatch.json\n"
      "         mpirun -np 16 demarc sweep run plan.json --db results.db");
  auto options = std::make_shared<RunSweepOptions>();
  app->add_option("plan", options->plan, "sweep file (docs/sweep.md)")
      ->required()
      ->type_name("FILE");
  app->add_option("--db", options->database,
                  "file of the results (default: the sweep file's name with .db)")
      ->type_name("FILE");
  app->add_option("--jobs,-j", options->jobs,
                  "points at a time per machine or rank; 0 means all cores, or 1 under mpirun")
      ->check(CLI::Range(0U, 4096U).description(""));
  app->add_option("--max-points", options->run.most, "end after this many points; 0 means all");
  app->add_flag("--retry", options->run.retry, "run failed points again");
  app->add_flag("--any-revision", options->any_revision,
                "continue a file even if it has points of another revision of this program");
  return {app, [options] { return run_points(*options); }};
}

SweepCommand declare_show(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand("show", "show the results of all points, aggregated");
  app->footer("Example: demarc sweep show results.db --html results.html");
  auto options = std::make_shared<ShowOptions>();
  app->add_option("database", options->database, "file of the results")
      ->required()
      ->type_name("FILE");
  app->add_option("--rows", options->rows, "largest number of rows to show of a table");
  add_json(*app, options->json, "the table", {"demarc.sweep.export/1"});
  add_output(*app, "--html", options->html, "write a page with the figures to this file");
  add_output(*app, options->output);
  return {app, [options] { return show(*options); }};
}

SweepCommand declare_export(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand("export", "write the results as CSV or JSON");
  app->footer("Example: demarc sweep export results.db --points -o points.csv");
  auto options = std::make_shared<ShowOptions>();
  app->add_option("database", options->database, "file of the results")
      ->required()
      ->type_name("FILE");
  app->add_flag("--points", options->points, "write every point, not the aggregates");
  app->add_flag(
      "--provenance", options->provenance,
      "with --points: add seconds, rank, exit code, revision, seed and the digest of the input");
  add_json(*app, options->json, "the table", {"demarc.sweep.export/1"});
  add_output(*app, options->output);
  return {app, [options]() -> Result<void> {
            if (options->provenance && !options->points) {
              return invalid_input("--provenance belongs to --points: give --points too");
            }
            return export_points(*options);
          }};
}

const RegisterVerb sweep_verb({
    .order = 208,
    .name = "sweep",
    .summary = "run a simulation over a grid of settings, on all cores or under mpirun",
    .example = "demarc sweep run examples/sweeps/dispatch.json",
    .declare =
        [](CLI::App& app) {
          app.require_subcommand(1);
          const std::vector<SweepCommand> commands = {declare_run(app), declare_show(app),
                                                      declare_export(app)};
          return [commands]() -> Result<void> {
            for (const SweepCommand& command : commands) {
              if (command.app->parsed()) return command.run();
            }
            return {};
          };
        },
});

}  // namespace
}  // namespace demarc::cli
