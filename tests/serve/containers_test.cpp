// What containers of tenants get, and the file that says so to their runtimes.
#include "demarc/serve/containers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cdi_rules.hpp"
#include "demarc/base/files.hpp"
#include "demarc/lease/packet.hpp"
#include "demarc/serve/config.hpp"
#include "paths.hpp"

namespace demarc::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ContainerPlaces places{"/run/d.sock", "/usr/bin/demarc", "/usr/lib/libdemarc_preload.so",
                             "/usr/lib/libdemarc_compilers.so", "/usr/lib/libdemarc_blas.so"};

lease::ServerStatus with_tenants(const std::vector<std::string>& names) {
  lease::ServerStatus status{"GPU-1", 0, {}};
  for (const auto& name : names) status.tenants.push_back({.name = name});
  return status;
}
Json file_of(const std::vector<std::string>& names) {
  return own_json(status_to_cdi(with_tenants(names), places).value());
}
std::string refusal_of(const std::vector<std::string>& names) {
  const auto text = status_to_cdi(with_tenants(names), places);
  return text ? "accepted" : text.error().message;
}

TEST(Containers, are_described_by_a_file_that_keeps_the_rules) {
  const Json file = file_of({"detector", "a.b-c_1"});
  EXPECT_THAT(test::CdiRules::faults_of(file), IsEmpty());
  EXPECT_EQ(file.at("cdiVersion"), "0.6.0");
  EXPECT_EQ(file.at("kind"), "demarc.dev/tenant");
  ASSERT_EQ(file.at("devices").size(), 2U);
  EXPECT_EQ(file.at("devices").at(1).at("name"), "a.b-c_1");
  const Json& edits = file.at("devices").at(0).at("containerEdits");
  EXPECT_EQ(edits.at("env"),
            (Json{"DEMARC_TENANT=detector", "DEMARC_SOCKET=/run/d.sock.d/detector.sock"}));
  ASSERT_EQ(edits.at("mounts").size(), 5U);
  EXPECT_EQ(edits.at("mounts").at(0).at("hostPath"), "/usr/bin/demarc");
  EXPECT_EQ(edits.at("mounts").at(0).at("containerPath"), "/opt/demarc/bin/demarc");
  EXPECT_EQ(edits.at("mounts").at(1).at("containerPath"), "/opt/demarc/lib/libdemarc_preload.so");
  EXPECT_EQ(edits.at("mounts").at(2).at("hostPath"), "/run/d.sock.d/detector.sock");
  EXPECT_EQ(edits.at("mounts").at(2).at("containerPath"), "/run/d.sock.d/detector.sock");
  EXPECT_EQ(edits.at("mounts").at(3).at("hostPath"), "/usr/lib/libdemarc_compilers.so");
  EXPECT_EQ(edits.at("mounts").at(3).at("containerPath"), "/opt/demarc/lib/libdemarc_compilers.so");
  EXPECT_EQ(edits.at("mounts").at(4).at("hostPath"), "/usr/lib/libdemarc_blas.so");
  EXPECT_EQ(edits.at("mounts").at(4).at("containerPath"), "/opt/demarc/lib/libdemarc_blas.so");
  for (const Json& mount : edits.at("mounts")) EXPECT_EQ(mount.at("options").at(0), "ro");
}

TEST(Containers, rules_find_what_is_wrong_with_a_file) {
  const auto faults = [](const std::function<void(Json&)>& change) {
    Json file = file_of({"a", "b"});
    change(file);
    return test::CdiRules::faults_of(file);
  };
  EXPECT_THAT(faults([](Json& file) { file["kind"] = "tenant"; }), ElementsAre("kind: \"tenant\""));
  EXPECT_THAT(faults([](Json& file) { file["cdiVersion"] = "0.6"; }),
              ElementsAre("cdiVersion: \"0.6\""));
  EXPECT_THAT(faults([](Json& file) { file.erase("devices"); }), ElementsAre("file: no devices"));
  EXPECT_THAT(faults([](Json& file) { file["device"] = 1; }), ElementsAre("file: unknown device"));
  EXPECT_THAT(faults([](Json& file) { file["devices"][1]["name"] = "a"; }),
              ElementsAre("name: given twice"));
  EXPECT_THAT(faults([](Json& file) { file["devices"] = Json::array(); }),
              ElementsAre("devices: an array with an item at least"));
  EXPECT_THAT(faults([](Json& file) { file["devices"][0]["containerEdits"]["env"][0] = "DEMARC"; }),
              ElementsAre("env: \"DEMARC\""));
  EXPECT_THAT(faults([](Json& file) {
                file["devices"][0]["containerEdits"]["mounts"][0]["hostPath"] = "demarc";
              }),
              ElementsAre("hostPath: \"demarc\""));
  EXPECT_THAT(faults([](Json& file) {
                file["devices"][0]["containerEdits"]["mounts"][0]["options"] = "ro";
              }),
              ElementsAre("options: an array"));
}

TEST(Containers, have_tenants_whose_names_devices_may_have) {
  for (const std::string& good :
       {std::string("a"), std::string("0"), std::string("a_.-B"), std::string(63, 'x')}) {
    EXPECT_EQ(refusal_of({good}), "accepted");
  }
  for (const std::string& bad :
       {std::string(), std::string("-a"), std::string("a."), std::string("a b"), std::string("a:b"),
        std::string("a/b"), std::string("\xc3\xa4"), std::string(64, 'x')}) {
    EXPECT_THAT(refusal_of({"good", bad}), HasSubstr("tenant '" + bad + "': the name of a device"));
  }
  EXPECT_EQ(refusal_of({}), "the server has no tenants: there is no device");
}

class ContainerPlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(program, "#!/bin/sh\n"));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ASSERT_TRUE(write_file(library, ""));
    ASSERT_TRUE(write_file(compilers, ""));
    ASSERT_TRUE(write_file(blas, ""));
  }
  [[nodiscard]] std::string refusal(const ContainerPlaces& wanted) const {
    const auto found = find_places(wanted);
    return found ? "found" : found.error().message;
  }

  std::filesystem::path folder = test::fresh_folder("containers");
  std::string socket = folder / "socket";
  std::string program = folder / "program";
  std::string library = folder / "library.so";
  std::string compilers = folder / "libdemarc_compilers.so";
  std::string blas = folder / "libdemarc_blas.so";
  lease::PacketListener listener = lease::PacketListener::listen(socket, {}).value();
};

TEST_F(ContainerPlacesTest, are_files_of_the_right_kind) {
  EXPECT_EQ(refusal({socket, program, library}), "found");
  EXPECT_THAT(refusal({program, program, library}),
              HasSubstr("program': there is no socket of this name"));
  EXPECT_THAT(refusal({socket, library, library}),
              HasSubstr("library.so': there is no program of this name"));
  EXPECT_THAT(refusal({socket, folder, library}), HasSubstr("there is no program of this name"));
  EXPECT_THAT(refusal({socket, program, folder}), HasSubstr("there is no library of this name"));
  EXPECT_THAT(refusal({socket, program, library + "x"}), HasSubstr("this library does not exist"));
  std::filesystem::remove(compilers);
  EXPECT_EQ(refusal({socket, program, library}), "libdemarc_compilers.so was not found beside " +
                                                     library + "; a tenant's program needs both");
  ASSERT_TRUE(write_file(compilers, ""));
  std::filesystem::remove(blas);
  EXPECT_EQ(refusal({socket, program, library}), "libdemarc_blas.so was not found beside " +
                                                     library + "; a tenant's program needs both");
}

TEST_F(ContainerPlacesTest, are_absolute_and_lie_beside_the_program_that_runs) {
  const auto found =
      find_places({std::filesystem::relative(socket), std::filesystem::relative(program),
                   std::filesystem::relative(library)})
          .value();
  EXPECT_EQ(found.socket, socket);
  EXPECT_EQ(found.program, program);
  EXPECT_EQ(found.preload, library);
  EXPECT_EQ(found.compilers, compilers);
  EXPECT_EQ(found.blas, blas);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(refusal({socket, "", library}), HasSubstr(self + "/demarc': there is no program"));
}

TEST_F(ContainerPlacesTest, have_the_folder_of_MPS_where_there_is_one) {
  EXPECT_EQ(container_edits({socket, program, library, compilers, blas}, "a").mounts.size(), 5U);
  std::filesystem::create_directory(mps_folder(socket));
  const auto edits = container_edits({socket, program, library, compilers, blas}, "a");
  EXPECT_EQ(edits.mounts.back(), (ContainerMount{socket + ".mps", socket + ".mps", false}));
  EXPECT_THAT(edits.environment, ElementsAre(std::pair("DEMARC_TENANT", "a"),
                                             std::pair("DEMARC_SOCKET", socket + ".d/a.sock")));
}

}  // namespace
}  // namespace demarc::serve
