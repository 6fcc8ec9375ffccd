# Install and export: find_package(demarc) gives demarc::<room>.
include(CMakePackageConfigHelpers)
get_property(rooms GLOBAL PROPERTY DEMARC_ROOM_TARGETS)
add_dependencies(demarc_installed ${rooms})
set(third_party ${DEMARC_THIRD_PARTY})
list(TRANSFORM third_party PREPEND demarc_)
install(TARGETS ${rooms} ${third_party} EXPORT demarc-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/demarc" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(EXPORT demarc-targets NAMESPACE demarc:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/demarc COMPONENT dev)
export(EXPORT demarc-targets NAMESPACE demarc:: FILE "${PROJECT_BINARY_DIR}/demarc-targets.cmake")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/demarc-config.cmake.in"
  "${PROJECT_BINARY_DIR}/demarc-config.cmake" INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/demarc)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/demarc-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/demarc-config.cmake" "${PROJECT_BINARY_DIR}/demarc-config-version.cmake"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/demarc COMPONENT dev)
# The Python package, beside the library that it calls: PYTHONPATH=<prefix>/<libraries>/demarc/python. `make wheel` makes a
# wheel of it, which other Pythons install.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/demarc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/demarc/python
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/python/demarc.pth" DESTINATION ${CMAKE_INSTALL_LIBDIR}/demarc/python)

# Completion and manual pages, which the program prints itself.
set(shown "${PROJECT_BINARY_DIR}/shown")
add_custom_command(OUTPUT "${shown}/done"
  COMMAND "${PROJECT_SOURCE_DIR}/tools/show-program.sh" "$<TARGET_FILE:demarc_program>" "${shown}"
  DEPENDS demarc_program "${PROJECT_SOURCE_DIR}/tools/show-program.sh" VERBATIM)
add_custom_target(demarc_shown DEPENDS "${shown}/done")
add_dependencies(demarc_installed demarc_shown)
install(FILES "${shown}/demarc" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES "${shown}/_demarc" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES "${shown}/demarc.fish" DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY "${shown}/man1" DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY "${shown}/lab/man1" DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT lab)
include(DemarcInstallPages)
