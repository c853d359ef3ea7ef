# MPI for libreef_mpi: src/engine/mpi.c, the only file that sees it, and METIS for src/engine/metis.c. libreef never links either.
# Sets
#   reef_mpi_found      there is a working MPI
#   reef_metis_found    and a METIS
#   reef_mpi_harness    runs a program on some ranks of this machine: harness RANKS PROGRAM...
set(REEF_MPI AUTO CACHE STRING "Build libreef_mpi: ON, OFF, or AUTO (if there is an MPI)")
set(REEF_METIS AUTO CACHE STRING "Spread agents by METIS: ON, OFF, or AUTO (if it is there)")
set(reef_mpi_found FALSE)
set(reef_metis_found FALSE)

if(REEF_MPI AND NOT (REEF_MPI STREQUAL AUTO AND CMAKE_CROSSCOMPILING))
  find_package(MPI 3.0 QUIET COMPONENTS C)
  set(reef_mpi_found ${MPI_C_FOUND})
  if(NOT reef_mpi_found AND NOT REEF_MPI STREQUAL AUTO)
    message(FATAL_ERROR "REEF_MPI=ON, but there is no MPI with a working mpicc")
  endif()
endif()

if(reef_mpi_found)
  message(STATUS "MPI: ${MPI_C_LIBRARY_VERSION_STRING}")
  set(reef_mpi_harness ${CMAKE_COMMAND} -E env MPIEXEC=${MPIEXEC_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/ranks.sh)
  add_library(reef_mpi SHARED src/engine/mpi.c src/engine/metis.c)
  set_target_properties(reef_mpi PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${reef_soversion}
                                            C_VISIBILITY_PRESET hidden ${reef_as_installed})
  target_include_directories(reef_mpi PRIVATE src PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                         $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(reef_mpi PRIVATE MPI::MPI_C $<BUILD_INTERFACE:reef_flags>)
  target_link_options(reef_mpi PRIVATE ${reef_shared_link_options})
  add_library(Reef::mpi ALIAS reef_mpi)
  if(REEF_METIS)
    find_path(METIS_INCLUDE_DIR metis.h)
    find_library(METIS_LIBRARY metis)
    mark_as_advanced(METIS_INCLUDE_DIR METIS_LIBRARY)
    if(METIS_INCLUDE_DIR AND METIS_LIBRARY)
      set(reef_metis_found TRUE)
      set_source_files_properties(src/engine/metis.c PROPERTIES COMPILE_DEFINITIONS REEF_HAVE_METIS
                                                                INCLUDE_DIRECTORIES ${METIS_INCLUDE_DIR})
      target_link_libraries(reef_mpi PRIVATE ${METIS_LIBRARY})
    elseif(NOT REEF_METIS STREQUAL AUTO)
      message(FATAL_ERROR "REEF_METIS=ON, but there is no metis.h with libmetis")
    endif()
  endif()
else()
  message(STATUS "MPI: none; libreef_mpi is left out")
endif()
