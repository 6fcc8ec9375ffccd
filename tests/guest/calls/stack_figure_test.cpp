// Whether the driver tells how much local memory a kernel takes.
#include "calls/stack_figure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lent_pools.hpp"

namespace demarc::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// For a driver that is as `change` makes it; nothing is left loaded.
std::string stack_figure_of(const std::function<void(DriverApi&)>& change) {
  const GpuPointer gpu = test::fake_gpu();
  DriverApi api = gpu->api();
  change(api);
  const std::int64_t before = test::objects_alive();
  const auto checked = check_stack_figure(api);
  EXPECT_EQ(test::objects_alive(), before);
  if (checked) return "told";
  EXPECT_EQ(checked.error().kind, ErrorKind::missing_capability);
  return checked.error().message;
}

TEST(StackFigures, are_told_by_a_driver_that_says_bytes_of_a_kernel_that_takes_some) {
  EXPECT_EQ(stack_figure_of([](DriverApi&) {}), "told");
  EXPECT_THAT(stack_figure_of([](DriverApi& api) {
                api.cuFuncGetAttribute = [](int* value, int, CuFunction) -> CuResult {
                  *value = 0;
                  return cu_success;
                };
              }),
              AllOf(HasSubstr("does not tell how much local memory a kernel takes"),
                    HasSubstr("it says 0 bytes of one that takes a kilobyte (error 0)")));
}

TEST(StackFigures, are_not_told_where_the_kernel_cannot_be_loaded_found_or_asked) {
  EXPECT_THAT(stack_figure_of([](DriverApi& api) {
                api.cuModuleLoadData = [](CuModule*, const void*) -> CuResult { return 218; };
              }),
              HasSubstr("(error 218)"));
  EXPECT_THAT(stack_figure_of([](DriverApi& api) {
                api.cuModuleGetFunction = [](CuFunction*, CuModule, const char*) -> CuResult {
                  return 500;
                };
              }),
              HasSubstr("(error 500)"));
  EXPECT_THAT(stack_figure_of([](DriverApi& api) {
                api.cuFuncGetAttribute = [](int* value, int, CuFunction) -> CuResult {
                  *value = 1024;  // an error says that it was not told
                  return 1;
                };
              }),
              HasSubstr("(error 1)"));
}

}  // namespace
}  // namespace demarc::cuda
