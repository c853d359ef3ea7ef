# What runs on several ranks: the tests of tests/mpi and the programs of examples/mpi, with the label `mpi`. Each is run once per number
# of ranks in its line `ranks: 1 2 4` (or 4). Open MPI's settings for few cores and for root are made by scripts/ranks.sh.
function(reef_add_ranks name target source timeout)
  file(STRINGS ${source} line REGEX "ranks: [0-9 ]+" LIMIT_COUNT 1)
  string(REGEX MATCH "ranks: ([0-9 ]+)" line "${line}")
  string(STRIP "${CMAKE_MATCH_1}" counts)
  separate_arguments(counts)
  if(REEF_SANITIZE) # slow, and two numbers show what can be shown
    list(FILTER counts INCLUDE REGEX "^[34]$")
  endif()
  foreach(count IN LISTS counts)
    add_test(NAME ${name}.${count} COMMAND ${reef_mpi_harness} ${count} $<TARGET_FILE:${target}>)
    # The MPI library keeps memory until the end of the process.
    set_tests_properties(${name}.${count} PROPERTIES TIMEOUT ${timeout} LABELS mpi PROCESSORS 2 ENVIRONMENT
                         "ASAN_OPTIONS=detect_leaks=0;UBSAN_OPTIONS=print_stacktrace=1")
  endforeach()
endfunction()

if(reef_mpi_found AND REEF_EXAMPLES)
  file(GLOB sources CONFIGURE_DEPENDS examples/mpi/*.c)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_executable(example_mpi_${name} ${source})
    set_target_properties(example_mpi_${name} PROPERTIES OUTPUT_NAME mpi_${name}
                                                         RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_link_libraries(example_mpi_${name} PRIVATE reef_shared reef_mpi MPI::MPI_C reef_flags m)
    reef_add_ranks(example.mpi_${name} example_mpi_${name} ${source} 120)
  endforeach()
endif()

if(reef_mpi_found AND TARGET reef_test_base)
  file(GLOB sources CONFIGURE_DEPENDS tests/mpi/test_*.c)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "^test_" "" name ${name})
    add_executable(test_mpi_${name} ${source})
    set_target_properties(test_mpi_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(test_mpi_${name} PRIVATE reef_test_support reef_mpi MPI::MPI_C)
    reef_add_ranks(mpi.${name} test_mpi_${name} ${source} 180)
  endforeach()
endif()
