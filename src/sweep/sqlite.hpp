// SQLite's handles with owners, and statements whose errors are values.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/sweep/plan.hpp"

namespace demarc::sweep {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using StatementHandle = std::unique_ptr<sqlite3_stmt, EndStatement>;

// A statement with its values, from 1 on.
class Statement {
 public:
  static Result<Statement> make(sqlite3* database, const std::string& path,
                                const std::string& text) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database, text.c_str(), -1, &made, nullptr) != SQLITE_OK) {
      return invalid_input("{}: {}", path, sqlite3_errmsg(database));
    }
    return Statement(database, path, StatementHandle(made));
  }
  void bind(int at, const std::string& text) {
    sqlite3_bind_text(handle_.get(), at, text.c_str(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(int at, double number) { sqlite3_bind_double(handle_.get(), at, number); }
  void bind(int at, std::int64_t number) { sqlite3_bind_int64(handle_.get(), at, number); }
  void bind(int at, const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return bind(at, *text);
    if (const auto* real = std::get_if<double>(&value)) return bind(at, *real);
    if (const auto* flag = std::get_if<bool>(&value)) return bind(at, std::int64_t{*flag});
    bind(at, std::get<std::int64_t>(value));
  }
  // True: a row; false: the end.
  Result<bool> step() {
    const int code = sqlite3_step(handle_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return invalid_input("{}: {}", path_, sqlite3_errmsg(database_));
  }
  // A statement that gives no rows. It can be used again.
  Result<void> run() {
    const auto end = step();
    sqlite3_reset(handle_.get());
    sqlite3_clear_bindings(handle_.get());
    if (!end) return tl::unexpected(end.error());
    return {};
  }
  void rewind() { sqlite3_reset(handle_.get()); }
  [[nodiscard]] std::string text(int column) const {
    const auto* found = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
    return found == nullptr ? "" : found;
  }
  [[nodiscard]] std::int64_t whole(int column) const {
    return sqlite3_column_int64(handle_.get(), column);
  }
  [[nodiscard]] double real(int column) const {
    return sqlite3_column_double(handle_.get(), column);
  }
  [[nodiscard]] std::optional<Value> value(int column) const {
    switch (sqlite3_column_type(handle_.get(), column)) {
      case SQLITE_INTEGER:
        return Value(whole(column));
      case SQLITE_FLOAT:
        return Value(real(column));
      case SQLITE_TEXT:
        return Value(text(column));
      default:
        return {};
    }
  }

 private:
  Statement(sqlite3* database, std::string path, StatementHandle handle)
      : database_(database), path_(std::move(path)), handle_(std::move(handle)) {}
  sqlite3* database_;
  std::string path_;
  StatementHandle handle_;
};

}  // namespace demarc::sweep
