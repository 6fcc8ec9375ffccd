// Handles of shared memory come back as they were, and nothing else is one.
#include "calls/ipc_handle.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

namespace demarc::cuda {
namespace {

const IpcHandle some_handle{"0123456789abcdef0123456789abcdef", 512, 4096};

std::string text_of(const CuIpcHandle& handle) {
  return {handle.bytes, sizeof handle.bytes};
}

CuIpcHandle handle_of(const std::string& text) {
  CuIpcHandle handle;
  std::memcpy(handle.bytes, text.data(), sizeof handle.bytes);
  return handle;
}

TEST(IpcHandles, name_a_key_a_place_and_a_size) {
  const CuIpcHandle handle = packed(some_handle).value();
  EXPECT_EQ(unpacked(handle), some_handle);
  EXPECT_EQ(text_of(handle), std::string("demarc memory 1\0", 16) + some_handle.key +
                                 std::string("\0\2\0\0\0\0\0\0\0\x10\0\0\0\0\0\0", 16));
}

TEST(IpcHandles, have_a_key_of_the_server) {
  for (const std::string key :
       {"", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeF", "0123456789abcdef0123456789abcdeg",
        "0123456789abcdef0123456789abcde/",
        "0123456789abcdef0123456789abcde:", "0123456789abcdef0123456789abcde`"}) {
    const auto refused = packed({key, 0, 1});
    ASSERT_FALSE(refused) << key;
    EXPECT_EQ(refused.error().message,
              "the key of lent memory has 32 hexadecimal digits; '" + key + "' came");
  }
}

TEST(IpcHandles, of_no_bytes_are_none) {
  EXPECT_FALSE(unpacked(packed({some_handle.key, 0, 0}).value()));
  EXPECT_TRUE(unpacked(packed({some_handle.key, 0, 1}).value()));
}

RC_GTEST_PROP(IpcHandles, are_none_with_another_mark_or_another_key, ()) {
  std::string text = text_of(packed(some_handle).value());
  const auto at = *rc::gen::inRange<std::size_t>(0, 48);
  const auto byte = *rc::gen::arbitrary<char>();
  const bool same = text[at] == byte;
  const bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
  text[at] = byte;
  RC_ASSERT(unpacked(handle_of(text)).has_value() == (same || (at >= 16 && digit)));
}

RC_GTEST_PROP(IpcHandles, of_other_programs_are_none, ()) {
  auto text = *rc::gen::container<std::string>(64, rc::gen::arbitrary<char>());
  RC_PRE(!text.starts_with("demarc memory 1"));
  RC_ASSERT(!unpacked(handle_of(text)).has_value());
}

RC_GTEST_PROP(IpcHandles, come_back_as_they_were, ()) {
  IpcHandle handle = some_handle;
  for (char& digit : handle.key) digit = *rc::gen::elementOf(std::string("0123456789abcdef"));
  handle.place = *rc::gen::arbitrary<std::uint64_t>();
  handle.bytes = *rc::gen::positive<std::uint64_t>();
  RC_ASSERT(unpacked(packed(handle).value()) == handle);
}

}  // namespace
}  // namespace demarc::cuda
