# Packages of an install, by its components. `make package` makes Debian packages of a release build:
#   demarc         the program with all of its verbs, what it loads into others, the C interface's library, the Python package
#   demarc-lab     what needs Open MPI, and what only studies read
#   demarc-fleet   what needs gRPC, and scripts of clusters
#   demarc-dev     headers, archives and CMake files
# The program is one and whole in each case, because it links neither Open MPI nor gRPC: it loads libdemarc_mpi.so under mpirun
# if that is there, and the device plugin is a program of its own.
# `make tarball` makes a tarball of a static build, of all components but `dev`.
set(CPACK_PACKAGE_NAME demarc)
set(CPACK_PACKAGE_VENDOR "the Demarc authors")
set(CPACK_PACKAGE_CONTACT "the Demarc authors")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL demarc lab fleet dev)
if(DEMARC_STATIC)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_PACKAGE_FILE_NAME "demarc-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL dev)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
else()
  set(CPACK_GENERATOR DEB)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING IGNORE)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEMARC_PACKAGE_NAME demarc)
set(CPACK_DEBIAN_DEMARC_PACKAGE_SUGGESTS "python3, demarc-lab, demarc-fleet, demarc-dev")
# An upgrade asks before it replaces a configuration that was changed.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/packaging/conffiles" CONTENT "/etc/demarc/demarc.toml\n")
set(CPACK_DEBIAN_DEMARC_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/packaging/conffiles")
set(CPACK_COMPONENT_LAB_DESCRIPTION "sweeps under mpirun, pages, examples and measurements of Demarc's laboratory")
set(CPACK_COMPONENT_FLEET_DESCRIPTION "Demarc's tenants on Kubernetes and under Slurm")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Demarc's libraries for C and C++ programs: headers, archives, CMake files")
# The archives name what they need by the paths of these packages.
set(needed_by_dev libfmt-dev nlohmann-json3-dev libexpected-dev libzstd-dev liblz4-dev libsqlite3-dev libnlopt-cxx-dev
    prometheus-cpp-dev libxxhash-dev)
foreach(package lab fleet dev)
  string(TOUPPER ${package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME demarc-${package})
  list(JOIN needed_by_${package} ", " needed)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "demarc (= ${PROJECT_VERSION})")
  if(needed)
    string(APPEND CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS ", ${needed}")
  endif()
endforeach()
include(CPack)
