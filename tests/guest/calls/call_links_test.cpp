// Links of a coloured program: one text of PTX, which is rewritten where it is loaded.
#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CallLinks : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  static constexpr int ptx = 1;
  static constexpr CuResult no_such_file = 301;
  static constexpr CuResult no_such_link = 400;

  const void* created() {
    const void* link = nullptr;
    EXPECT_EQ(ask("cuLinkCreate_v2", 0U, nullptr, nullptr, &link), cu_success);
    EXPECT_NE(link, nullptr);
    return link;
  }
  std::optional<CuResult> add(const void* link, int type, const std::string& data) {
    return ask("cuLinkAddData_v2", link, type, data.data(), data.size(), "name", 0U, nullptr,
               nullptr);
  }
  std::optional<CuResult> complete(const void* link) {
    return ask("cuLinkComplete", link, &image, &bytes);
  }

  const std::string text =
      test::module_head + test::kernel_of("k", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;");
  const char* image = nullptr;
  std::size_t bytes = 0;
};

TEST_F(CallLinks, one_text_is_loaded_as_it_is) {
  const void* link = created();
  ASSERT_EQ(add(link, ptx, text + std::string("\0behind", 7)), cu_success);
  ASSERT_EQ(complete(link), cu_success);
  ASSERT_EQ(bytes, text.size() + 1);
  EXPECT_EQ(std::string(image, bytes), text + std::string(1, '\0'));
  const CuModule module = loaded(image);
  EXPECT_EQ(ask("cuLinkComplete", link, &image, nullptr), cu_success);
  EXPECT_EQ(ask("cuLinkComplete", link, nullptr, &bytes), cu_error_invalid_value);
  EXPECT_EQ(ask("cuLinkDestroy", link), cu_success);
  const DevicePointer a = allocated(4);
  ASSERT_EQ(launch_line(function_of(module, "k"), 1, 1, a), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 7U);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(CallLinks, files_are_inputs_too) {
  const std::string folder = test::fresh_folder("call_links").string();
  ASSERT_TRUE(write_file(folder + "/k.ptx", text));
  const void* link = created();
  EXPECT_EQ(ask("cuLinkAddFile_v2", link, ptx, (folder + "/k.ptx").c_str(), 0U, nullptr, nullptr),
            cu_success);
  EXPECT_EQ(complete(link), cu_success);
  EXPECT_EQ(image, text);
  const void* other = created();
  EXPECT_EQ(ask("cuLinkAddFile", other, ptx, nullptr, 0U, nullptr, nullptr),
            cu_error_invalid_value);
  EXPECT_EQ(add(other, ptx, text), cu_success);
  EXPECT_EQ(ask("cuLinkAddFile", other, ptx, (folder + "/none").c_str(), 0U, nullptr, nullptr),
            no_such_file);
  EXPECT_EQ(complete(other), cu_error_not_supported) << "an input is missing";
  EXPECT_THAT(told, ElementsAre(HasSubstr(folder + "/none")));
  EXPECT_EQ(ask("cuLinkAddFile", created(), 4, (folder + "/k.ptx").c_str(), 0U, nullptr, nullptr),
            cu_error_not_supported);
}

TEST_F(CallLinks, what_is_machine_code_or_put_together_of_parts_is_refused) {
  for (const int type : {0, 2, 3, 4, 5}) {
    const void* link = created();
    EXPECT_EQ(add(link, ptx, text), cu_success);
    EXPECT_EQ(add(link, type, text), cu_error_not_supported) << type;
    EXPECT_THAT(last_told(), HasSubstr(fmt::format("its type is {}", type)));
    EXPECT_EQ(complete(link), cu_error_not_supported) << "without what was refused";
  }
  const void* link = created();
  EXPECT_EQ(add(link, ptx, text), cu_success);
  EXPECT_EQ(add(link, ptx, text), cu_error_not_supported);
  EXPECT_THAT(last_told(), HasSubstr("there is one already"));
  EXPECT_EQ(complete(link), cu_error_not_supported);
  const void* empty = created();
  EXPECT_EQ(complete(empty), cu_error_invalid_value);
  EXPECT_EQ(add(empty, ptx, ""), cu_error_invalid_value);
  EXPECT_EQ(ask("cuLinkAddData_v2", empty, ptx, nullptr, std::size_t{4}, "", 0U, nullptr, nullptr),
            cu_error_invalid_value);
  EXPECT_EQ(complete(empty), cu_error_invalid_value);
  EXPECT_EQ(image, nullptr);
}

TEST_F(CallLinks, links_that_are_none_are_told_apart) {
  const void* link = created();
  EXPECT_EQ(ask("cuLinkCreate", 0U, nullptr, nullptr, nullptr), cu_error_invalid_value);
  EXPECT_EQ(ask("cuLinkDestroy", link), cu_success);
  EXPECT_EQ(ask("cuLinkDestroy", link), no_such_link);
  EXPECT_EQ(add(link, ptx, text), no_such_link);
  EXPECT_EQ(ask("cuLinkAddFile_v2", link, ptx, "/k", 0U, nullptr, nullptr), no_such_link);
  EXPECT_EQ(complete(link), no_such_link);
}

TEST_F(CallLinks, logs_without_room_are_not_written) {
  std::string said = "info";
  for (const int log : {3, 5}) {
    int options[] = {log, log + 1};
    std::array<void*, 2> values{said.data(), nullptr};
    const void* link = nullptr;
    for (const unsigned count : {1U, 2U}) {  // without a size, and with one of no bytes
      ASSERT_EQ(ask("cuLinkCreate_v2", count, &options[0], values.data(), &link), cu_success);
      EXPECT_EQ(said, "info") << log;
    }
  }
}

TEST_F(CallLinks, logs_are_empty) {
  std::string said = "info";
  std::string errors = "errors";
  int options[] = {3, 4, 9, 5, 6};
  const auto values_for = [&](std::size_t info_bytes) {
    return std::array<void*, 5>{said.data(), reinterpret_cast<void*>(info_bytes), &said,  // NOLINT
                                errors.data(), reinterpret_cast<void*>(6)};               // NOLINT
  };
  auto values = values_for(4);
  const void* link = nullptr;
  const auto expect_empty = [&](char first) {
    EXPECT_EQ(said[0], first);
    EXPECT_EQ(errors[0], '\0');
    EXPECT_THAT(values, ElementsAre(said.data(), nullptr, &said, errors.data(), nullptr));
    said = "info";
    errors = "errors";
    values = values_for(4);
  };
  ASSERT_EQ(ask("cuLinkCreate_v2", 5U, &options[0], values.data(), &link), cu_success);
  expect_empty('\0');
  EXPECT_EQ(ask("cuLinkAddData_v2", link, ptx, text.data(), text.size(), "", 5U, &options[0],
                values.data()),
            cu_success);
  expect_empty('\0');
  EXPECT_EQ(ask("cuLinkAddFile_v2", link, ptx, "/nowhere", 5U, &options[0], values.data()),
            no_such_file);
  expect_empty('\0');
  values = values_for(0);
  ASSERT_EQ(ask("cuLinkCreate_v2", 5U, &options[0], values.data(), &link), cu_success);
  expect_empty('i');
  ASSERT_EQ(ask("cuLinkCreate_v2", 5U, &options[0], nullptr, &link), cu_success);
  ASSERT_EQ(ask("cuLinkCreate_v2", 5U, nullptr, values.data(), &link), cu_success);
  ASSERT_EQ(ask("cuLinkCreate_v2", 1U, &options[1], values.data(), &link), cu_success)
      << "a size without a buffer";
}

}  // namespace
}  // namespace demarc::cuda
