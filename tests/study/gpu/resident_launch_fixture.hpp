// Launches made ready on the stand-in, in the forms that tests ask for.
#pragma once

#include "gpu/resident_launch.hpp"
#include "lane_fixture.hpp"

namespace demarc::study {

class ResidentLaunchTest : public LaneFixture {
 protected:
  Result<std::unique_ptr<ResidentLaunch>> make(LoadedLaunch loaded, const LaunchForm& form = {}) {
    auto support = SupportKernels::load(*memory);
    EXPECT_TRUE(support) << support.error().message;
    seen_driver.launches.clear();
    return ResidentLaunch::make(gpu, *memory,
                                std::make_shared<const SupportKernels>(std::move(*support)),
                                std::move(loaded), form, *stream);
  }
  [[nodiscard]] std::string refusal(LoadedLaunch loaded, const LaunchForm& form = {}) {
    const auto made = make(std::move(loaded), form);
    if (made) return "none";
    kind = made.error().kind;
    return made.error().message;
  }
  // The launches of the workload's own kernels since it was made ready.
  static std::vector<SeenLaunch> own_launches() {
    std::vector<SeenLaunch> own;
    for (const SeenLaunch& one : seen_driver.launches) {
      const bool support = one.kernel == "demarc_zero" || one.kernel == "demarc_copy" ||
                           one.kernel == "demarc_digest";
      if (!support) own.push_back(one);
    }
    return own;
  }
  ErrorKind kind = ErrorKind::check_failed;
};

inline LaunchForm form_of(Launches launches, std::uint32_t own_sms = 0) {
  LaunchForm form;
  form.launches = launches;
  form.own_sms = own_sms;
  return form;
}

inline LaunchForm affine_on_six_to_nine() {
  LaunchForm form;
  form.affine_sms = std::array<std::uint32_t, 8>{0x3c0};
  return form;
}

}  // namespace demarc::study
