# cmake --install: headers, both libraries, the command, and what pkg-config and find_package(Reef) need.
include(CMakePackageConfigHelpers)

set(reef_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Reef)

install(TARGETS reef_shared reef_static EXPORT ReefTargets)
install(DIRECTORY include/reef ${PROJECT_BINARY_DIR}/include/reef DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
if(reef_mpi_found)
  # A part of its own: it is not in ReefTargets, whose users need no MPI.
  install(TARGETS reef_mpi)
endif()
if(reef_nats_found)
  # Likewise: its users need libnats and libsodium, those of libreef do not.
  install(TARGETS reef_net)
endif()
if(REEF_TOOLS)
  install(TARGETS reef_tool)
  if(reef_tool_rpath AND NOT CMAKE_SKIP_RPATH)
    # Only in the build folder are the command and these libraries side by side.
    cmake_path(APPEND reef_installed_tool "\${CMAKE_INSTALL_PREFIX}" ${CMAKE_INSTALL_BINDIR} reef)
    install(CODE "file(RPATH_CHANGE FILE \"\$ENV{DESTDIR}${reef_installed_tool}\"
                       OLD_RPATH [[$ORIGIN:${reef_tool_rpath}]] NEW_RPATH [[${reef_tool_rpath}]])")
  endif()
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES data/digits.npy data/digits_labels.npy data/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/reef)

# The paths in reef.pc are relative to the file itself, so --prefix at install time and moved trees work.
cmake_path(APPEND reef_pc_dir ${CMAKE_INSTALL_FULL_LIBDIR} pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${reef_pc_dir} OUTPUT_VARIABLE reef_pc_to_prefix)
cmake_path(APPEND reef_pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND reef_pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
# Empty where the C library has dlopen itself.
list(TRANSFORM CMAKE_DL_LIBS PREPEND "-l" OUTPUT_VARIABLE reef_dl_pc)
configure_file(cmake/reef.pc.in ${PROJECT_BINARY_DIR}/reef.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/reef.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT ReefTargets NAMESPACE Reef:: DESTINATION ${reef_package_dir})
configure_package_config_file(cmake/ReefConfig.cmake.in ${PROJECT_BINARY_DIR}/ReefConfig.cmake
                              INSTALL_DESTINATION ${reef_package_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ReefConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ReefConfig.cmake ${PROJECT_BINARY_DIR}/ReefConfigVersion.cmake
        DESTINATION ${reef_package_dir})
