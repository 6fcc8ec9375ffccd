// Keeps rows in SQLite, in its write-ahead mode. A file holds one sweep; the table `sweep` has its
// text.
#include "demarc/sweep/store.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "sqlite.hpp"

namespace demarc::sweep {
namespace {

constexpr int schema = 1;
constexpr int application = 0x64656d61;  // "dema": tells a file of ours

std::vector<std::string> column_names(const Plan& plan) {
  std::vector<std::string> names = plan.axis_names();
  for (const Measure& measure : plan.measures()) names.push_back(measure.name);
  return names;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) append(text, ", \"{}\"", name);
  return text;
}

}  // namespace

struct Store::State {
  Plan plan;
  std::string path;
  OwnedFile lock;
  Database database;
  std::optional<Statement> add, find;

  Result<Statement> statement(const std::string& text) const {
    return Statement::make(database.get(), path, text);
  }
  Result<void> run(const std::string& text) const {
    DEMARC_TRY(Statement made, statement(text));
    const auto end = made.step();
    if (!end) return tl::unexpected(end.error());
    return {};
  }
  Result<std::int64_t> number(const std::string& text) const {
    DEMARC_TRY(Statement made, statement(text));
    DEMARC_TRY(const bool row, made.step());
    return row ? made.whole(0) : 0;
  }
  Result<void> open(int flags) {
    sqlite3* made = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &made, flags, nullptr);
    database.reset(made);
    if (code != SQLITE_OK) {
      return invalid_input("{}: {}", path,
                           made == nullptr ? "out of memory" : sqlite3_errmsg(made));
    }
    sqlite3_busy_timeout(made, 10000);
    return {};
  }
  // Whether it is one of ours; an error for a file of something else.
  Result<bool> holds_a_sweep() const {
    DEMARC_TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_master"));
    if (tables == 0) return false;
    DEMARC_TRY(const std::int64_t id, number("PRAGMA application_id"));
    DEMARC_TRY(const std::int64_t version, number("PRAGMA user_version"));
    if (id != application) return invalid_input("{}: this file does not hold a sweep", path);
    if (version == schema) return true;
    return invalid_input("{}: it has schema {}; this program reads {}", path, version, schema);
  }
  // The plan that the file holds.
  Result<Plan> held() const {
    DEMARC_TRY(Statement text, statement("SELECT source, text FROM sweep"));
    DEMARC_TRY(const bool row, text.step());
    if (!row) return invalid_input("{}: holds no sweep", path);
    return Plan::parse(text.text(1), text.text(0), {});
  }
  Result<void> prepare() {
    const auto columns = column_names(plan);
    std::string marks;
    for (std::size_t i = 0; i < columns.size(); ++i) marks += ", ?";
    DEMARC_TRY(add,
               statement(fmt::format("INSERT OR REPLACE INTO points (_key, _done, _error, "
                                     "_exit_code, _seconds, _rank, _revision, _seed, _input{}) "
                                     "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?{})",
                                     quoted(columns), marks)));
    return prepare_reading();
  }
  Result<void> prepare_reading() {
    std::vector<std::string> measures;
    for (const Measure& measure : plan.measures()) measures.push_back(measure.name);
    std::string where;
    for (const std::string& axis : plan.axis_names()) {
      append(where, "{}\"{}\" = ?", where.empty() ? " WHERE " : " AND ", axis);
    }
    DEMARC_TRY(find, statement(fmt::format("SELECT _done, _error, _exit_code, _seconds, _rank, "
                                           "_revision, _seed, _input, _key{} FROM points{}",
                                           quoted(measures), where)));
    return {};
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const Plan& Store::plan() const {
  return state_->plan;
}

Result<Store> Store::open(const std::filesystem::path& path, const Plan& plan, bool any_revision) {
  auto state = std::make_unique<State>(State{
      .plan = plan, .path = path.string(), .lock = {}, .database = {}, .add = {}, .find = {}});
  // SQLite locks ranges of bytes; this lock is of another kind and goes with the process.
  state->lock = OwnedFile(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (state->lock.get() < 0) return invalid_input("{}: {}", path.string(), std::strerror(errno));
  if (::flock(state->lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return invalid_input("{}: another sweep is writing to it", path.string());
  }
  DEMARC_CHECK(state->open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  DEMARC_TRY(const bool held, state->holds_a_sweep());
  const auto columns = column_names(plan);
  if (held) {
    DEMARC_TRY(const Plan before, state->held());
    if (column_names(before) != columns) {
      return invalid_input(
          "{}: it holds a sweep of {}, but this sweep is of {}; give another file with --db",
          state->path, joined(column_names(before), ", "), joined(columns, ", "));
    }
    DEMARC_TRY(Statement other,
               state->statement("SELECT _revision, count(*) FROM points WHERE _revision <> ?"));
    other.bind(1, std::string(revision()));
    DEMARC_TRY(const bool any, other.step());
    if (any && other.whole(1) > 0 && !any_revision) {
      return invalid_input(
          "{}: {} points are of revision {}, but this program is of {}; take another file with "
          "--db, or give --any-revision",
          state->path, other.whole(1), other.text(0), revision());
    }
  }
  DEMARC_CHECK(state->run("PRAGMA journal_mode = WAL"));
  DEMARC_CHECK(state->run("PRAGMA synchronous = NORMAL"));
  DEMARC_CHECK(state->run("BEGIN IMMEDIATE"));
  if (!held) {
    DEMARC_CHECK(state->run(fmt::format("PRAGMA application_id = {}", application)));
    DEMARC_CHECK(state->run(fmt::format("PRAGMA user_version = {}", schema)));
    DEMARC_CHECK(state->run("CREATE TABLE sweep (source TEXT, text TEXT)"));
    DEMARC_CHECK(state->run(fmt::format(
        "CREATE TABLE points (_key TEXT, _done INTEGER, _error TEXT, _exit_code INTEGER, "
        "_seconds REAL, _rank INTEGER, _revision TEXT, _seed TEXT, _input TEXT{}, "
        "PRIMARY KEY ({})) WITHOUT ROWID",
        quoted(columns), quoted(plan.axis_names()).substr(2))));
  }
  DEMARC_CHECK(state->run("DELETE FROM sweep"));
  DEMARC_TRY(Statement put, state->statement("INSERT INTO sweep VALUES (?, ?)"));
  put.bind(1, plan.source());
  put.bind(2, plan.text());
  DEMARC_CHECK(put.run());
  DEMARC_CHECK(state->run("COMMIT"));
  DEMARC_CHECK(state->prepare());
  return Store(std::move(state));
}

Result<Store> Store::read(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_input("{}: this is a directory; name the file with the results (.db) in it",
                         path.string());
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return invalid_input("{}: there is no such file", path.string());
  }
  auto state = std::make_unique<State>(State{.plan = Plan::none(),
                                             .path = path.string(),
                                             .lock = {},
                                             .database = {},
                                             .add = {},
                                             .find = {}});
  DEMARC_CHECK(state->open(SQLITE_OPEN_READONLY));
  DEMARC_TRY(const bool held, state->holds_a_sweep());
  if (!held) return invalid_input("{}: holds no sweep", path.string());
  DEMARC_TRY(state->plan, state->held());
  DEMARC_CHECK(state->prepare_reading());
  return Store(std::move(state));
}

Result<void> Store::add(const Point& point, const Outcome& outcome) {
  Statement& add = *state_->add;
  add.bind(1, point.key);
  add.bind(2, std::int64_t{outcome.done});
  add.bind(3, outcome.error);
  add.bind(4, std::int64_t{outcome.exit_code});
  add.bind(5, outcome.seconds);
  add.bind(6, std::int64_t{outcome.rank});
  add.bind(7, std::string(revision()));
  add.bind(8, point.seed);
  add.bind(9, point.input);
  int at = 10;
  for (const Value& value : state_->plan.values(point.index)) add.bind(at++, value);
  for (const auto& value : outcome.kept) {
    if (value) add.bind(at, *value);
    ++at;
  }
  return add.run();
}

Result<std::optional<bool>> Store::state(const Point& point) {
  DEMARC_TRY(const auto found, row(point.index));
  if (!found || found->key != point.key) return std::nullopt;
  return found->outcome.done;
}

Result<std::optional<Row>> Store::row(std::uint64_t index) {
  Statement& find = *state_->find;
  find.rewind();
  int at = 1;
  for (const Value& value : state_->plan.values(index)) find.bind(at++, value);
  DEMARC_TRY(const bool found, find.step());
  if (!found) return std::nullopt;
  Row row;
  row.outcome.done = find.whole(0) != 0;
  row.outcome.error = find.text(1);
  row.outcome.exit_code = static_cast<int>(find.whole(2));
  row.outcome.seconds = find.real(3);
  row.outcome.rank = static_cast<std::uint32_t>(find.whole(4));
  row.revision = find.text(5);
  row.seed = find.text(6);
  row.input = find.text(7);
  row.key = find.text(8);
  for (std::size_t m = 0; m < state_->plan.measures().size(); ++m) {
    row.outcome.kept.push_back(find.value(9 + static_cast<int>(m)));
  }
  find.rewind();
  return row;
}

Result<Store::Counts> Store::counts() {
  DEMARC_TRY(const auto done, state_->number("SELECT count(*) FROM points WHERE _done"));
  DEMARC_TRY(const auto all, state_->number("SELECT count(*) FROM points"));
  return Counts{static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(all - done)};
}

}  // namespace demarc::sweep
