// Answers the functions of the driver that link code.
#include "calls/link_calls.hpp"

#include <algorithm>
#include <cstdint>

#include "demarc/base/files.hpp"

namespace demarc::cuda {
namespace {

constexpr int ptx_input = 1;  // CU_JIT_INPUT_PTX
constexpr CuResult no_such_file = 301;
constexpr CuResult no_such_link = 400;

// Buffers for what a linker says get empty texts; other options are about machine code.
void empty_logs(unsigned count, const int* options, void** values) {
  constexpr int info_text = 3;  // CU_JIT_INFO_LOG_BUFFER, behind it its size, and that of errors
  constexpr int info_bytes = 4;
  constexpr int error_text = 5;
  constexpr int error_bytes = 6;
  if (options == nullptr || values == nullptr) return;
  for (const int text : {info_text, error_text}) {
    char* buffer = nullptr;
    std::uintptr_t bytes = 0;
    void** filled = nullptr;
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == text) buffer = static_cast<char*>(values[i]);
      if (options[i] == (text == info_text ? info_bytes : error_bytes)) {
        bytes = reinterpret_cast<std::uintptr_t>(values[i]) & 0xffffffffU;
        filled = &values[i];
      }
    }
    if (buffer != nullptr && bytes != 0) *buffer = '\0';
    if (filled != nullptr) *filled = nullptr;
  }
}

}  // namespace

std::span<const CallRow<LinkCalls>> LinkCalls::rows() {
  static constexpr CallRow<LinkCalls> table[] = {
      {DriverFunction::cuLinkCreate, &LinkCalls::create},
      {DriverFunction::cuLinkCreate_v2, &LinkCalls::create},
      {DriverFunction::cuLinkAddData, &LinkCalls::add_data},
      {DriverFunction::cuLinkAddData_v2, &LinkCalls::add_data},
      {DriverFunction::cuLinkAddFile, &LinkCalls::add_file},
      {DriverFunction::cuLinkAddFile_v2, &LinkCalls::add_file},
      {DriverFunction::cuLinkComplete, &LinkCalls::complete},
      {DriverFunction::cuLinkDestroy, &LinkCalls::destroy},
  };
  return table;
}

LinkCalls::Link* LinkCalls::find(const void* handle) {
  const auto found = links_.find(handle);
  return found == links_.end() ? nullptr : found->second.get();
}

CuResult LinkCalls::refuse(Link& link, const std::string& why) {
  link.refused = true;
  tell_(fmt::format("an input of a link was refused: {}", why));
  return cu_error_not_supported;
}

CallAnswer LinkCalls::create(const DriverCall& call) {
  const auto [count, options, values, handle] = call.parameters<CreateLink>();
  if (handle == nullptr) return cu_error_invalid_value;
  empty_logs(count, options, values);
  auto link = std::make_unique<Link>();
  *handle = link.get();
  const std::lock_guard lock(mutex_);
  links_.emplace(*handle, std::move(link));
  return cu_success;
}

CuResult LinkCalls::add(Link& link, int type, std::string text) {
  if (type != ptx_input) {
    return refuse(link,
                  fmt::format("its type is {}, and machine code has no colour; link PTX", type));
  }
  if (!link.text.empty()) {
    return refuse(link,
                  "there is one already, and a link of several inputs gives machine code; put them "
                  "into one text of PTX");
  }
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.empty()) return cu_error_invalid_value;
  link.text = std::move(text);
  return cu_success;
}

CallAnswer LinkCalls::add_data(const DriverCall& call) {
  const auto given = call.parameters<AddLinkData>();
  const std::lock_guard lock(mutex_);
  Link* link = find(given.link);
  if (link == nullptr) return no_such_link;
  empty_logs(given.count, given.options, given.values);
  if (given.data == nullptr) return cu_error_invalid_value;
  return add(*link, given.type, std::string(given.data, given.bytes));
}

CallAnswer LinkCalls::add_file(const DriverCall& call) {
  const auto given = call.parameters<AddLinkFile>();
  const std::lock_guard lock(mutex_);
  Link* link = find(given.link);
  if (link == nullptr) return no_such_link;
  empty_logs(given.count, given.options, given.values);
  if (given.path == nullptr) return cu_error_invalid_value;
  auto text = read_file(given.path);
  if (text) return add(*link, given.type, std::move(*text));
  link->refused = true;
  tell_(text.error().message);
  return no_such_file;
}

// The size counts the zero at the end: a copy of so many bytes can be loaded as well.
CallAnswer LinkCalls::complete(const DriverCall& call) {
  const auto [handle, image, bytes] = call.parameters<CompleteLink>();
  const std::lock_guard lock(mutex_);
  const Link* link = find(handle);
  if (link == nullptr) return no_such_link;
  if (link->refused) return cu_error_not_supported;
  if (image == nullptr || link->text.empty()) return cu_error_invalid_value;
  *image = link->text.c_str();
  if (bytes != nullptr) *bytes = link->text.size() + 1;
  return cu_success;
}

CallAnswer LinkCalls::destroy(const DriverCall& call) {
  const std::lock_guard lock(mutex_);
  return links_.erase(call.parameters<DestroyLink>().link) != 0 ? cu_success : no_such_link;
}

}  // namespace demarc::cuda
